//! Losses of a difference that grow linearly at last, and the soft margin: a function per element, then the reduction.
//!
//! The slopes are made of differentiable operators; where PyTorch has a second derivative, it is the derivative of what
//! stands here.

use c10::{check, check_not_implemented, Result, Scalar, ScalarType, Tensor};

use super::{apply_reduction, MEAN};
use crate::meta::norm::statistics_dtype;
use crate::terms::{cast, mul, scale, shift, square, sub};
use crate::{at, sym};

/// The dtype of a loss of two tensors, which has to be a floating one.
fn check_floating(kernel: &str, a: &Tensor, b: &Tensor) -> Result<ScalarType> {
    let dtype = iter::result_type(&[a, b])?;
    check_not_implemented!(
        dtype.is_floating_point(),
        "\"{kernel}\" not implemented for '{}'",
        dtype.short_name()
    );
    Ok(dtype)
}

/// A gradient per element of a reduced loss: of a mean, everybody's share.
pub fn share(grad: &Tensor, of: &Tensor, reduction: i64) -> Result<Tensor> {
    if reduction != MEAN {
        return Ok(grad.clone());
    }
    at::div_scalar(grad, &sym::numel_scalar(of))
}

/// `aten::smooth_l1_loss`
pub fn smooth_l1_loss(self_: &Tensor, target: &Tensor, reduction: i64, beta: f64) -> Result<Tensor> {
    check!(beta >= 0.0, "smooth_l1_loss does not support negative values for beta.");
    if beta == 0.0 {
        return super::l1_loss(self_, target, reduction);
    }
    let dtype = check_floating("smooth_l1_cpu", self_, target)?;
    let wide = statistics_dtype(dtype);
    let z = at::abs(&sub(&cast(self_, wide)?, &cast(target, wide)?)?)?;
    let inside = at::lt_scalar(&z, &Scalar::Float(beta))?;
    let loss = at::where_self(&inside, &scale(&square(&z)?, 0.5 / beta)?, &shift(&z, -0.5 * beta)?)?;
    apply_reduction(cast(&loss, dtype)?, reduction)
}

/// `aten::smooth_l1_loss_backward`
pub fn smooth_l1_loss_backward(
    grad_output: &Tensor,
    self_: &Tensor,
    target: &Tensor,
    reduction: i64,
    beta: f64,
) -> Result<Tensor> {
    let difference = sub(self_, target)?;
    let slope = if beta == 0.0 {
        at::sgn(&difference)?
    } else {
        at::clamp(&scale(&difference, 1.0 / beta)?, Some(&Scalar::Float(-1.0)), Some(&Scalar::Float(1.0)))?
    };
    share(&mul(&slope, grad_output)?, &difference, reduction)
}

/// `aten::huber_loss`
pub fn huber_loss(self_: &Tensor, target: &Tensor, reduction: i64, delta: f64) -> Result<Tensor> {
    check!(delta > 0.0, "huber_loss does not support non-positive values for delta.");
    let dtype = check_floating("huber_cpu", self_, target)?;
    // An element is rounded once, halves included.
    let wide = statistics_dtype(dtype);
    let z = at::abs(&sub(&cast(self_, wide)?, &cast(target, wide)?)?)?;
    let inside = at::le_scalar(&z, &Scalar::Float(delta))?;
    let outside = scale(&shift(&z, -0.5 * delta)?, delta)?;
    let loss = at::where_self(&inside, &scale(&square(&z)?, 0.5)?, &outside)?;
    apply_reduction(cast(&loss, dtype)?, reduction)
}

/// `aten::huber_loss_backward`
pub fn huber_loss_backward(
    grad_output: &Tensor,
    self_: &Tensor,
    target: &Tensor,
    reduction: i64,
    delta: f64,
) -> Result<Tensor> {
    let difference = sub(self_, target)?;
    let slope = at::clamp(&difference, Some(&Scalar::Float(-delta)), Some(&Scalar::Float(delta)))?;
    share(&mul(&slope, grad_output)?, &difference, reduction)
}

/// `aten::soft_margin_loss`
pub fn soft_margin_loss(self_: &Tensor, target: &Tensor, reduction: i64) -> Result<Tensor> {
    let loss = at::log1p(&at::exp(&at::neg(&mul(self_, target)?)?)?)?;
    apply_reduction(loss, reduction)
}

/// `aten::soft_margin_loss_backward`
pub fn soft_margin_loss_backward(
    grad_output: &Tensor,
    self_: &Tensor,
    target: &Tensor,
    reduction: i64,
) -> Result<Tensor> {
    let negated = at::neg(target)?;
    let slope = mul(&negated, &at::sigmoid(&mul(&negated, self_)?)?)?;
    share(&mul(&slope, grad_output)?, self_, reduction)
}
