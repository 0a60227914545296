//! Composites of the `foreach` family: the operator on each tensor of a list.

use c10::{check, Result, Scalar, Tensor};

use crate::at;

fn check_lists(self_: &[Tensor], other: &[Tensor]) -> Result<()> {
    check!(!self_.is_empty(), "Tensor list must have at least one tensor.");
    check!(
        self_.len() == other.len(),
        "Tensor lists must have the same number of tensors, got {} and {}",
        self_.len(),
        other.len()
    );
    Ok(())
}

fn check_list(self_: &[Tensor]) -> Result<()> {
    check!(!self_.is_empty(), "Tensor list must have at least one tensor.");
    Ok(())
}

/// `aten::_foreach_add.Scalar`
pub fn _foreach_add_scalar(self_: &[Tensor], scalar: &Scalar) -> Result<Vec<Tensor>> {
    check_list(self_)?;
    self_.iter().map(|t| at::add_scalar(t, scalar, &Scalar::Int(1))).collect()
}

/// `aten::_foreach_add_.Scalar`
pub fn _foreach_add__scalar(self_: &[Tensor], scalar: &Scalar) -> Result<()> {
    check_list(self_)?;
    self_.iter().try_for_each(|t| at::add__scalar(t, scalar, &Scalar::Int(1)).map(drop))
}

/// `aten::_foreach_add.List`
pub fn _foreach_add_list(self_: &[Tensor], other: &[Tensor], alpha: &Scalar) -> Result<Vec<Tensor>> {
    check_lists(self_, other)?;
    self_.iter().zip(other).map(|(a, b)| at::add_tensor(a, b, alpha)).collect()
}

/// `aten::_foreach_add_.List`
pub fn _foreach_add__list(self_: &[Tensor], other: &[Tensor], alpha: &Scalar) -> Result<()> {
    check_lists(self_, other)?;
    self_.iter().zip(other).try_for_each(|(a, b)| at::add__tensor(a, b, alpha).map(drop))
}

/// `aten::_foreach_mul.Scalar`
pub fn _foreach_mul_scalar(self_: &[Tensor], scalar: &Scalar) -> Result<Vec<Tensor>> {
    check_list(self_)?;
    self_.iter().map(|t| at::mul_scalar(t, scalar)).collect()
}

/// `aten::_foreach_mul_.Scalar`
pub fn _foreach_mul__scalar(self_: &[Tensor], scalar: &Scalar) -> Result<()> {
    check_list(self_)?;
    self_.iter().try_for_each(|t| at::mul__scalar(t, scalar).map(drop))
}

fn check_scalar_tensor(scalar: &Tensor) -> Result<()> {
    check!(
        scalar.dim() == 0 && scalar.numel()? == 1,
        "scalar tensor expected to be 0 dim but it has {} dimensions and {} elements.",
        scalar.dim(),
        scalar.numel()?
    );
    Ok(())
}

/// `aten::_foreach_mul.Tensor`
pub fn _foreach_mul_tensor(self_: &[Tensor], other: &Tensor) -> Result<Vec<Tensor>> {
    check_list(self_)?;
    check_scalar_tensor(other)?;
    self_.iter().map(|t| at::mul_tensor(t, other)).collect()
}

/// `aten::_foreach_mul_.Tensor`
pub fn _foreach_mul__tensor(self_: &[Tensor], other: &Tensor) -> Result<()> {
    check_list(self_)?;
    check_scalar_tensor(other)?;
    self_.iter().try_for_each(|t| at::mul__tensor(t, other).map(drop))
}

/// `aten::_foreach_neg`
pub fn _foreach_neg(self_: &[Tensor]) -> Result<Vec<Tensor>> {
    check_list(self_)?;
    self_.iter().map(at::neg).collect()
}

/// `aten::_foreach_neg_`
pub fn _foreach_neg_(self_: &[Tensor]) -> Result<()> {
    check_list(self_)?;
    self_.iter().try_for_each(|t| at::neg_(t).map(drop))
}

/// `aten::_foreach_zero_`
pub fn _foreach_zero_(self_: &[Tensor]) -> Result<()> {
    check_list(self_)?;
    self_.iter().try_for_each(|t| at::zero_(t).map(drop))
}

/// `aten::_fused_sgd_.tensor_lr`
#[allow(clippy::too_many_arguments)]
pub fn _fused_sgd__tensor_lr(
    self_: &[Tensor],
    grads: &[Tensor],
    momentum_buffer_list: &[Tensor],
    weight_decay: f64,
    momentum: f64,
    lr: &Tensor,
    dampening: f64,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: Option<&Tensor>,
    found_inf: Option<&Tensor>,
) -> Result<()> {
    let lr = at::item(lr)?.to_f64()?;
    at::_fused_sgd_(
        self_,
        grads,
        momentum_buffer_list,
        weight_decay,
        momentum,
        lr,
        dampening,
        nesterov,
        maximize,
        is_first_step,
        grad_scale,
        found_inf,
    )
}
