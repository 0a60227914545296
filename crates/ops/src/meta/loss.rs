//! Meta functions of the `loss` operators.

use c10::{check, Result, ScalarType, SymInt, Tensor};
use iter::StructuredOutputs;

fn check_nll(self_: &Tensor, target: &Tensor, weight: Option<&Tensor>) -> Result<i64> {
    check!(self_.dim() > 0 && self_.dim() <= 2, "input tensor should be 1D or 2D");
    check!(target.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported");
    let no_batch = self_.dim() == 1 && target.dim() == 0;
    check!(
        no_batch || self_.sizes()?[0] == target.sizes()?.first().copied().unwrap_or(1),
        "size mismatch (got input: {:?}, target: {:?})",
        self_.sizes()?,
        target.sizes()?
    );
    check!(
        matches!(target.dtype(), ScalarType::Long | ScalarType::Byte),
        "expected scalar type Long but found {}",
        target.dtype().short_name()
    );
    let n_classes = self_.sizes()?[self_.sizes()?.len() - 1];
    if let Some(weight) = weight {
        check!(
            weight.numel()? == n_classes,
            "weight tensor should be defined either for all {n_classes} classes or no classes but got weight tensor of \
             shape: {:?}",
            weight.sizes()?
        );
        check!(
            weight.dtype() == self_.dtype(),
            "expected scalar type {} but found {}",
            self_.dtype().short_name(),
            weight.dtype().short_name()
        );
    }
    Ok(n_classes)
}

/// `nll_loss_forward`
pub fn nll_loss_forward_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
    _ignore_index: &SymInt,
) -> Result<()> {
    check_nll(self_, target, weight)?;
    if reduction == 0 && self_.dim() == 2 {
        outs.set_output_raw_strided(0, &[self_.sizes()?[0]], &[], self_.options())?;
    } else {
        outs.set_output_raw_strided(0, &[], &[], self_.options())?;
    }
    outs.set_output_raw_strided(1, &[], &[], self_.options())
}

/// `nll_loss_backward`
#[allow(clippy::too_many_arguments)]
pub fn nll_loss_backward_meta(
    outs: &mut StructuredOutputs,
    grad_output: &Tensor,
    self_: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
    _ignore_index: &SymInt,
    total_weight: &Tensor,
) -> Result<()> {
    check_nll(self_, target, weight)?;
    check!(
        total_weight.numel()? == 1,
        "expected total_weight to be a  single element tensor, got: {:?} ({} elements)",
        total_weight.sizes()?,
        total_weight.numel()?
    );
    if reduction == 0 && self_.dim() == 2 {
        check!(
            grad_output.sizes()? == [self_.sizes()?[0]],
            "nll_loss_backward(): expected grad_output of shape [{}], got {:?}",
            self_.sizes()?[0],
            grad_output.sizes()?
        );
    } else {
        check!(
            grad_output.dim() <= 1 && grad_output.numel()? == 1,
            "Expected a single element grad_output tensor, but got: {:?}",
            grad_output.sizes()?
        );
    }
    outs.set_output_contiguous(0, self_.sizes()?, self_.options())
}
