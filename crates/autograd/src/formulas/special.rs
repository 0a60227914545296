//! Derivatives of special functions.

use std::f64::consts::PI;

use c10::{Result, Scalar, Tensor};
use ops::at;

use super::elementary::scaled;

const ZERO: Scalar = Scalar::Int(0);
const ONE: Scalar = Scalar::Int(1);

fn square(tensor: &Tensor) -> Result<Tensor> {
    at::mul_tensor(tensor, tensor)
}

/// `exp(−x²·factor)`
fn bell(self_: &Tensor, factor: f64) -> Result<Tensor> {
    at::exp(&scaled(&square(self_)?, -factor)?)
}

/// `erf`; that of `erfc` is its negative.
pub fn erf_backward(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
    at::mul_tensor(&scaled(&bell(self_, 1.0)?, std::f64::consts::FRAC_2_SQRT_PI)?, grad)
}

/// `erfinv`
pub fn erfinv_backward(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
    at::mul_tensor(&scaled(&bell(result, -1.0)?, 0.5 * PI.sqrt())?, grad)
}

/// `ndtr`
pub fn ndtr_backward(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
    at::mul_tensor(&scaled(&bell(self_, 0.5)?, 1.0 / (2.0 * PI).sqrt())?, grad)
}

/// `ndtri`
pub fn ndtri_backward(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
    at::mul_tensor(&scaled(&bell(result, -0.5)?, (2.0 * PI).sqrt())?, grad)
}

/// `log_ndtr`
pub fn log_ndtr_backward(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
    let exponent = at::add_tensor(result, &scaled(&square(self_)?, 0.5)?, &ONE)?;
    let slope = scaled(&at::exp(&at::neg(&exponent)?)?, 1.0 / (2.0 * PI).sqrt())?;
    at::mul_tensor(grad, &slope)
}

/// `entr`
pub fn entr_backward(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
    at::mul_tensor(grad, &at::neg(&at::add_scalar(&at::log(self_)?, &ONE, &ONE)?)?)
}

/// `erfcx`
pub fn erfcx_backward(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
    let product = scaled(&at::mul_tensor(self_, result)?, 2.0)?;
    let slope = at::sub_scalar(&product, &Scalar::Float(std::f64::consts::FRAC_2_SQRT_PI), &ONE)?;
    at::mul_tensor(grad, &slope)
}

/// `i0e`
pub fn i0e_backward(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
    let fall = at::mul_tensor(&at::sgn(self_)?, result)?;
    at::mul_tensor(grad, &at::sub_tensor(&at::special_i1e(self_)?, &fall, &ONE)?)
}

/// `result / self`, where it is `½` at 0.
fn ratio_at_zero(self_: &Tensor, result: &Tensor) -> Result<Tensor> {
    let zero = at::eq_scalar(self_, &ZERO)?;
    // The divisor is made 1 where it is 0, so that second derivatives stay finite.
    let divisor = at::masked_fill_scalar(self_, &zero, &ONE)?;
    at::masked_fill_scalar(&at::div_tensor(result, &divisor)?, &zero, &Scalar::Float(0.5))
}

/// `i1`: `I₀ − I₁/x`.
pub fn i1_backward(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
    let slope = at::sub_tensor(&at::i0(self_)?, &ratio_at_zero(self_, result)?, &ONE)?;
    at::mul_tensor(grad, &slope)
}

/// `i1e`: `e^{−|x|}·(I₀ − I₁·(sgn x + 1/x))`.
pub fn i1e_backward(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
    let fall = at::mul_tensor(&at::sgn(self_)?, result)?;
    let slope = at::sub_tensor(&at::special_i0e(self_)?, &fall, &ONE)?;
    at::mul_tensor(grad, &at::sub_tensor(&slope, &ratio_at_zero(self_, result)?, &ONE)?)
}

/// `zeta` with respect to the offset
pub fn zeta_backward(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    let next = at::special_zeta(&at::add_scalar(self_, &ONE, &ONE)?, other)?;
    at::mul_tensor(&at::mul_tensor(grad, &at::neg(self_)?)?, &next)
}

/// `igamma` with respect to the limit; that of `igammac` is its negative.
pub fn igamma_backward(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    let power = at::mul_tensor(&at::sub_scalar(self_, &ONE, &ONE)?, &at::log(other)?)?;
    let exponent = at::sub_tensor(&at::sub_tensor(&power, other, &ONE)?, &at::lgamma(self_)?, &ONE)?;
    at::mul_tensor(grad, &at::exp(&exponent)?)
}
