//! Meta functions of the `loss` operators.

use c10::{check, Result, ScalarType, SizeInt, SymInt, Tensor};
use iter::StructuredOutputs;

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
