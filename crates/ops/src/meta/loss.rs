//! Meta functions of the `loss` operators.

use c10::{check, Result, ScalarType, SizeInt, SymInt, Tensor};
use iter::StructuredOutputs;

use crate::sym;

fn check_nll<I: SizeInt>(self_: &Tensor, target: &Tensor, weight: Option<&Tensor>) -> Result<()> {
    check!(self_.dim() > 0 && self_.dim() <= 2, "input tensor should be 1D or 2D");
    check!(target.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported");
    let no_batch = self_.dim() == 1 && target.dim() == 0;
    let (sizes, target_sizes) = (I::sizes_of(self_)?, I::sizes_of(target)?);
    check!(
        no_batch || sizes[0].expect_eq(target_sizes.first().unwrap_or(&I::ONE))?,
        "size mismatch (got input: {:?}, target: {:?})",
        &sizes[..],
        &target_sizes[..]
    );
    check!(
        self_.dim() == 2 || I::numel_of(target)?.expect_eq(&I::ONE)?,
        "expected one target for one sample, got target: {:?}",
        &target_sizes[..]
    );
    check!(
        matches!(target.dtype(), ScalarType::Long | ScalarType::Byte),
        "expected scalar type Long but found {}",
        target.dtype().short_name()
    );
    let n_classes = &sizes[sizes.len() - 1];
    if let Some(weight) = weight {
        check!(
            weight.dim() == 1 && I::numel_of(weight)?.expect_eq(n_classes)?,
            "weight tensor should be defined either for all {n_classes} classes or no classes but got weight tensor of \
             shape: {:?}",
            weight.sym_sizes()
        );
        check!(
            weight.dtype() == self_.dtype(),
            "expected scalar type {} but found {}",
            self_.dtype().short_name(),
            weight.dtype().short_name()
        );
    }
    Ok(())
}

/// `nll_loss_forward`
pub fn nll_loss_forward_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
    _ignore_index: &SymInt,
) -> Result<()> {
    check_nll::<I>(self_, target, weight)?;
    if reduction == 0 && self_.dim() == 2 {
        outs.set_output_raw_strided(0, &I::sizes_of(self_)?[..1], &[], self_.options())?;
    } else {
        outs.set_output_raw_strided::<I>(0, &[], &[], self_.options())?;
    }
    outs.set_output_raw_strided::<I>(1, &[], &[], self_.options())
}

/// `nll_loss_backward`
#[allow(clippy::too_many_arguments)]
pub fn nll_loss_backward_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    grad_output: &Tensor,
    self_: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
    _ignore_index: &SymInt,
    total_weight: &Tensor,
) -> Result<()> {
    check_nll::<I>(self_, target, weight)?;
    check!(
        I::numel_of(total_weight)?.expect_eq(&I::ONE)?,
        "expected total_weight to be a  single element tensor, got: {:?} ({} elements)",
        total_weight.sym_sizes(),
        total_weight.sym_numel()
    );
    for given in [grad_output, total_weight] {
        check!(
            given.dtype() == self_.dtype(),
            "expected scalar type {} but found {}",
            self_.dtype().short_name(),
            given.dtype().short_name()
        );
    }
    let sizes = I::sizes_of(self_)?;
    if reduction == 0 && self_.dim() == 2 {
        check!(
            I::expect_same(&I::sizes_of(grad_output)?, &sizes[..1])?,
            "nll_loss_backward(): expected grad_output of shape [{}], got {:?}",
            sizes[0],
            grad_output.sym_sizes()
        );
    } else {
        check!(
            grad_output.dim() <= 1 && I::numel_of(grad_output)?.expect_eq(&I::ONE)?,
            "Expected a single element grad_output tensor, but got: {:?}",
            grad_output.sym_sizes()
        );
    }
    outs.set_output_contiguous(0, &sizes, self_.options())
}

/// Checks the arguments of `_ctc_loss`, and gives the sizes of `alpha`.
fn check_ctc<I: SizeInt>(
    log_probs: &Tensor,
    targets: &Tensor,
    input_lengths: &[i64],
    target_lengths: &[i64],
    blank: i64,
) -> Result<[I; 3]> {
    const OF: &str = "(while checking arguments for ctc_loss_allocate_outputs)";
    check!(
        log_probs.dim() == 3,
        "Expected 3-dimensional tensor, but got {}-dimensional tensor for argument #1 'log_probs' {OF}",
        log_probs.dim()
    );
    check!(!sym::is_empty(log_probs)?, "log_probs tensor must not be empty");
    check!(
        matches!(targets.dtype(), ScalarType::Int | ScalarType::Long),
        "Expected tensor for argument #2 'targets' to have scalar type Int; but got torch.{}Tensor instead {OF}",
        targets.dtype().short_name()
    );
    check!(
        matches!(targets.dim(), 1 | 2),
        "Expected 1 to 2 dimensions, but got {}-dimensional tensor for argument #2 'targets' {OF}",
        targets.dim()
    );
    let (sizes, target_sizes) = (I::sizes_of(log_probs)?, I::sizes_of(targets)?);
    let [steps, sequences, classes] = [0, 1, 2].map(|d| sizes[d].clone());
    let count = |n: usize| -> Result<I> { I::from_sym(&SymInt::from(n as i64)) };
    check!(sequences.expect_eq(&count(input_lengths.len())?)?, "input_lengths must be of size batch_size");
    check!(sequences.expect_eq(&count(target_lengths.len())?)?, "target_lengths must be of size batch_size");
    check!(
        blank >= 0 && I::from_sym(&SymInt::from(blank))?.expect_lt(&classes)?,
        "blank must be in label range"
    );
    for &length in input_lengths {
        check!(length >= 0, "Expected input_lengths to have value at least 0, but got value {length} {OF}");
        check!(
            I::from_sym(&SymInt::from(length))?.expect_le(&steps)?,
            "Expected input_lengths to have value at most {steps}, but got value {length} {OF}"
        );
    }
    let (mut longest, mut total) = (0, 0_i64);
    for &length in target_lengths {
        check!(length >= 0, "Expected target_lengths to have value at least 0, but got value {length} {OF}");
        longest = longest.max(length);
        total = total.saturating_add(length);
    }
    if targets.dim() == 1 {
        check!(
            target_sizes[0].expect_eq(&I::from_sym(&SymInt::from(total))?)?,
            "Expected tensor to have size {total} at dimension 0, but got size {} for argument #2 'targets' {OF}",
            target_sizes[0]
        );
    } else {
        check!(
            target_sizes[0].expect_eq(&sequences)?,
            "Expected tensor to have size {sequences} at dimension 0, but got size {} for argument #2 'targets' {OF}",
            target_sizes[0]
        );
        check!(
            I::from_sym(&SymInt::from(longest))?.expect_le(&target_sizes[1])?,
            "Expected tensor to have size at least {longest} at dimension 1, but got size {} for argument #2 'targets' {OF}",
            target_sizes[1]
        );
    }
    let width = SymInt::from(longest).sym_mul(&SymInt::from(2))?.sym_add(&SymInt::ONE)?;
    Ok([sequences, steps, I::from_sym(&width)?])
}

/// `_ctc_loss`: the loss of each sequence, and the log probabilities of the beginnings of its paths.
pub fn ctc_loss_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    log_probs: &Tensor,
    targets: &Tensor,
    input_lengths: &[i64],
    target_lengths: &[i64],
    blank: i64,
    _zero_infinity: bool,
) -> Result<()> {
    let alpha = check_ctc::<I>(log_probs, targets, input_lengths, target_lengths, blank)?;
    outs.set_output_contiguous(0, &alpha[..1], log_probs.options())?;
    outs.set_output_contiguous(1, &alpha, log_probs.options())
}

/// `_ctc_loss_backward`
#[allow(clippy::too_many_arguments)] // The operator has that many.
pub fn ctc_loss_backward_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    grad: &Tensor,
    log_probs: &Tensor,
    targets: &Tensor,
    input_lengths: &[i64],
    target_lengths: &[i64],
    neg_log_likelihood: &Tensor,
    log_alpha: &Tensor,
    blank: i64,
    _zero_infinity: bool,
) -> Result<()> {
    let alpha = check_ctc::<I>(log_probs, targets, input_lengths, target_lengths, blank)?;
    for (argument, tensor, expected) in [
        ("grad", grad, &alpha[..1]),
        ("neg_log_likelihood", neg_log_likelihood, &alpha[..1]),
        ("log_alpha", log_alpha, &alpha[..]),
    ] {
        let sizes = I::sizes_of(tensor)?;
        check!(
            I::expect_same(&sizes, expected)? && tensor.dtype() == log_probs.dtype(),
            "ctc_loss_backward: expected {argument} of sizes {expected:?} and dtype {}, got {:?} and {}",
            log_probs.dtype(),
            &sizes[..],
            tensor.dtype()
        );
    }
    outs.set_output_contiguous(0, &I::sizes_of(log_probs)?, log_probs.options())
}
