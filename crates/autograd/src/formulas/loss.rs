//! Derivatives of losses.

use c10::{Result, Scalar, Tensor};
use ops::at;
use ops::composite::loss::{binary_variance, share};
pub use ops::composite::loss::{logits_gradient, logits_target_gradient};
use ops::terms::{add, cast, mul, shift, square, sub};

/// PyTorch's number of the reduction `mean`.
const MEAN: i64 = 1;

/// `mse_loss_backward` with respect to the input (or, negated, the target)
pub fn mse_loss_double_backward(
    grad: &Tensor,
    grad_output: &Tensor,
    input: &Tensor,
    reduction: i64,
) -> Result<Tensor> {
    let product = at::mul_scalar(&at::mul_tensor(grad, grad_output)?, &Scalar::Int(2))?;
    if reduction == MEAN {
        return at::div_scalar(&product, &Scalar::SymInt(input.sym_numel()));
    }
    Ok(product)
}

/// Where a slope grows, and by how much: `grad` and `grad_output` times `curvature`, as a share of a mean.
fn curved(
    grad: &Tensor,
    grad_output: &Tensor,
    curvature: &Tensor,
    of: &Tensor,
    reduction: i64,
) -> Result<Tensor> {
    share(&mul(&mul(grad, grad_output)?, curvature)?, of, reduction)
}

/// `smooth_l1_loss_backward` with respect to the input (or, negated, the target)
pub fn smooth_l1_double_backward(
    grad: &Tensor,
    grad_output: &Tensor,
    input: &Tensor,
    target: &Tensor,
    reduction: i64,
    beta: f64,
) -> Result<Tensor> {
    let difference = sub(input, target)?;
    let inside = at::lt_scalar(&at::abs(&difference)?, &Scalar::Float(beta))?;
    let inside = cast(&inside, difference.dtype())?;
    curved(grad, grad_output, &at::div_scalar(&inside, &Scalar::Float(beta))?, &difference, reduction)
}

/// `huber_loss_backward` with respect to the input (or, negated, the target)
pub fn huber_double_backward(
    grad: &Tensor,
    grad_output: &Tensor,
    input: &Tensor,
    target: &Tensor,
    reduction: i64,
    delta: f64,
) -> Result<Tensor> {
    let difference = sub(input, target)?;
    let inside = at::lt_scalar(&at::abs(&difference)?, &Scalar::Float(delta))?;
    curved(grad, grad_output, &cast(&inside, difference.dtype())?, &difference, reduction)
}

/// `soft_margin_loss_backward` with respect to the input
pub fn soft_margin_double_backward(
    grad: &Tensor,
    grad_output: &Tensor,
    input: &Tensor,
    target: &Tensor,
    reduction: i64,
) -> Result<Tensor> {
    let probability = at::sigmoid(&mul(input, target)?)?;
    let variance = mul(&probability, &shift(&at::neg(&probability)?, 1.0)?)?;
    curved(grad, grad_output, &mul(&square(target)?, &variance)?, input, reduction)
}

fn weighted(t: Tensor, weight: Option<&Tensor>) -> Result<Tensor> {
    weight.map_or_else(|| Ok(t.clone()), |weight| mul(&t, weight))
}

/// `binary_cross_entropy` with respect to the target
pub fn binary_cross_entropy_target_backward(
    grad: &Tensor,
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
) -> Result<Tensor> {
    let slope = sub(&at::log1p(&at::neg(input)?)?, &at::log(input)?)?;
    share(&weighted(mul(grad, &slope)?, weight)?, target, reduction)
}

/// `binary_cross_entropy_backward` with respect to the input
pub fn binary_cross_entropy_double_backward(
    grad: &Tensor,
    grad_output: &Tensor,
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
) -> Result<Tensor> {
    // The derivative of (x - t) / (x (1 - x)) is (x² - 2 x t + t) / (x (1 - x))².
    let twice = at::mul_scalar(&mul(input, target)?, &Scalar::Int(2))?;
    let above = add(&sub(&square(input)?, &twice)?, target)?;
    let curvature = at::div_tensor(&above, &square(&binary_variance(input)?)?)?;
    curved(grad, grad_output, &weighted(curvature, weight)?, input, reduction)
}

/// `binary_cross_entropy_backward` with respect to the target
pub fn binary_cross_entropy_double_backward_target(
    grad: &Tensor,
    grad_output: &Tensor,
    input: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
) -> Result<Tensor> {
    let curvature = at::neg(&at::reciprocal(&binary_variance(input)?)?)?;
    curved(grad, grad_output, &weighted(curvature, weight)?, input, reduction)
}
