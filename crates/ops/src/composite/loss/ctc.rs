//! Connectionist temporal classification.

use c10::{check, Result, Scalar, Tensor};

use super::{apply_reduction, MEAN};
use crate::{at, ints_of, tensor_of_ints};

fn lengths_of(name: &str, lengths: &Tensor) -> Result<Vec<i64>> {
    check!(lengths.dtype().is_integral(false), "{name} must be integral");
    check!(lengths.dim() <= 1, "{name} must be of size batch_size");
    ints_of(&at::reshape(lengths, &[c10::SymInt::from(-1)])?)
}

/// `aten::_ctc_loss.Tensor`
pub fn _ctc_loss_tensor(
    log_probs: &Tensor,
    targets: &Tensor,
    input_lengths: &Tensor,
    target_lengths: &Tensor,
    blank: i64,
    zero_infinity: bool,
) -> Result<(Tensor, Tensor)> {
    let inputs = lengths_of("input_lengths", input_lengths)?;
    let labels = lengths_of("target_lengths", target_lengths)?;
    at::_ctc_loss(log_probs, targets, &inputs, &labels, blank, zero_infinity)
}

/// `aten::ctc_loss.Tensor`
pub fn ctc_loss_tensor(
    log_probs: &Tensor,
    targets: &Tensor,
    input_lengths: &Tensor,
    target_lengths: &Tensor,
    blank: i64,
    reduction: i64,
    zero_infinity: bool,
) -> Result<Tensor> {
    let inputs = lengths_of("input_lengths", input_lengths)?;
    let labels = lengths_of("target_lengths", target_lengths)?;
    at::ctc_loss_intlist(log_probs, targets, &inputs, &labels, blank, reduction, zero_infinity)
}

/// `aten::ctc_loss.IntList`
pub fn ctc_loss_intlist(
    log_probs: &Tensor,
    targets: &Tensor,
    input_lengths: &[i64],
    target_lengths: &[i64],
    blank: i64,
    reduction: i64,
    zero_infinity: bool,
) -> Result<Tensor> {
    let batched = log_probs.dim() == 3;
    let of_batch = if batched { log_probs.clone() } else { at::unsqueeze(log_probs, 1)? };
    let (mut loss, _) =
        at::_ctc_loss(&of_batch, targets, input_lengths, target_lengths, blank, zero_infinity)?;
    if zero_infinity {
        let infinite = at::eq_scalar(&loss, &Scalar::Float(f64::INFINITY))?;
        loss = at::masked_fill_scalar(&loss, &infinite, &Scalar::Int(0))?;
    }
    if reduction == MEAN {
        let lengths = at::clamp_min(&tensor_of_ints(target_lengths)?, &Scalar::Int(1))?;
        let lengths = at::to_device(&lengths, loss.device(), loss.dtype(), false, false, None)?;
        return at::mean(&at::div_tensor(&loss, &lengths)?, None);
    }
    let loss = apply_reduction(loss, reduction)?;
    if batched || loss.dim() == 0 {
        Ok(loss)
    } else {
        at::squeeze_dim(&loss, 0)
    }
}
