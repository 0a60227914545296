//! Derivatives of element-wise operators.
//!
//! Gradients of complex functions follow PyTorch's convention: the conjugate Wirtinger derivative.

use c10::{Error, Result, Scalar, ScalarType, Tensor};
use ops::at;

const ZERO: Scalar = Scalar::Int(0);
const ONE: Scalar = Scalar::Int(1);
const TWO: Scalar = Scalar::Int(2);

/// The conjugate; the tensor itself when it is real.
pub fn conj(tensor: &Tensor) -> Result<Tensor> {
    if tensor.is_complex() {
        at::conj(tensor)
    } else {
        Ok(tensor.clone())
    }
}

/// The gradient for an input of dtype `dtype`: a real input takes the real part of a complex gradient.
pub fn handle_r_to_c(dtype: ScalarType, grad: &Tensor) -> Result<Tensor> {
    if !dtype.is_complex() && grad.is_complex() {
        at::real(grad)
    } else {
        Ok(grad.clone())
    }
}

/// `tensor * factor`, without the multiplication when the factor is one.
pub fn maybe_multiply(tensor: &Tensor, factor: &Scalar) -> Result<Tensor> {
    if !factor.is_symbolic() && factor.equal(ONE)? {
        Ok(tensor.clone())
    } else {
        at::mul_scalar(tensor, factor)
    }
}

/// `grad * conj(factor)`
pub fn mul_conj(grad: &Tensor, factor: &Tensor) -> Result<Tensor> {
    at::mul_tensor(grad, &conj(factor)?)
}

/// `grad / conj(divisor)`
pub fn div_conj(grad: &Tensor, divisor: &Tensor) -> Result<Tensor> {
    at::div_tensor(grad, &conj(divisor)?)
}

fn zeros_like(tensor: &Tensor, dtype: Option<ScalarType>) -> Result<Tensor> {
    at::zeros_like(tensor, dtype, None, None, None, None)
}

/// `abs`
pub fn abs_backward(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
    at::mul_tensor(grad, &at::sgn(self_)?)
}

/// `sgn`
pub fn sgn_backward(self_: &Tensor, grad: &Tensor, result: &Tensor) -> Result<Tensor> {
    if !grad.is_complex() {
        return zeros_like(result, None);
    }
    let abs = at::abs(self_)?;
    let radial = at::mul_tensor(&at::real(&at::div_tensor(grad, result)?)?, result)?;
    let tangential = at::sub_tensor(&at::div_tensor(grad, &abs)?, &at::div_tensor(&radial, &abs)?, &ONE)?;
    at::masked_fill_scalar(&tangential, &at::eq_scalar(&abs, &ZERO)?, &ZERO)
}

/// `expm1`
pub fn expm1_backward(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
    at::mul_tensor(grad, &at::add_scalar(&conj(result)?, &ONE, &ONE)?)
}

/// `log1p`
pub fn log1p_backward(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
    div_conj(grad, &at::add_scalar(self_, &ONE, &ONE)?)
}

/// `sqrt`
pub fn sqrt_backward(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
    at::div_tensor(grad, &at::mul_scalar(&conj(result)?, &TWO)?)
}

/// `rsqrt`
pub fn rsqrt_backward(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
    let cubed = at::pow_tensor_scalar(result, &Scalar::Int(3))?;
    at::mul_tensor(&at::mul_scalar(grad, &Scalar::Float(-0.5))?, &conj(&cubed)?)
}

/// `reciprocal`
pub fn reciprocal_backward(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
    at::mul_tensor(&at::neg(grad)?, &conj(&at::mul_tensor(result, result)?)?)
}

/// `tanh_backward` with respect to `output`
pub fn tanh_double_backward(grad: &Tensor, grad_output: &Tensor, output: &Tensor) -> Result<Tensor> {
    let inner = at::mul_tensor(&at::mul_scalar(&conj(output)?, &Scalar::Int(-2))?, grad_output)?;
    at::mul_tensor(&conj(grad)?, &inner)
}

/// `sigmoid_backward` with respect to `output`
pub fn sigmoid_double_backward(grad: &Tensor, grad_output: &Tensor, output: &Tensor) -> Result<Tensor> {
    let slope = at::add_scalar(&at::mul_scalar(&conj(output)?, &Scalar::Int(-2))?, &ONE, &ONE)?;
    at::mul_tensor(&at::mul_tensor(&conj(grad)?, grad_output)?, &slope)
}

/// `mul.Tensor`, either side; `other` is the other side.
pub fn mul_tensor_backward(grad: &Tensor, other: &Tensor, dtype: ScalarType) -> Result<Tensor> {
    handle_r_to_c(dtype, &mul_conj(grad, other)?)
}

/// `mul.Scalar`
pub fn mul_scalar_backward(grad: &Tensor, other: &Scalar, dtype: ScalarType) -> Result<Tensor> {
    handle_r_to_c(dtype, &at::mul_scalar(grad, &other.conj())?)
}

/// `div.Tensor` and `div.Tensor_mode` with respect to the dividend
pub fn div_tensor_self_backward(
    grad: &Tensor,
    other: &Tensor,
    dtype: ScalarType,
    rounding_mode: Option<&str>,
) -> Result<Tensor> {
    if rounding_mode.is_some() {
        return zeros_like(grad, Some(dtype));
    }
    handle_r_to_c(dtype, &div_conj(grad, other)?)
}

/// `div.Tensor` and `div.Tensor_mode` with respect to the divisor
pub fn div_tensor_other_backward(
    grad: &Tensor,
    self_: &Tensor,
    other: &Tensor,
    rounding_mode: Option<&str>,
) -> Result<Tensor> {
    if rounding_mode.is_some() {
        return zeros_like(grad, Some(other.scalar_type()));
    }
    let quotient = at::div_tensor(&at::div_tensor(self_, other)?, other)?;
    handle_r_to_c(other.scalar_type(), &mul_conj(&at::neg(grad)?, &quotient)?)
}

/// `div.Scalar` and `div.Scalar_mode`
pub fn div_scalar_backward(
    grad: &Tensor,
    other: &Scalar,
    dtype: ScalarType,
    rounding_mode: Option<&str>,
) -> Result<Tensor> {
    if rounding_mode.is_some() {
        return zeros_like(grad, Some(dtype));
    }
    handle_r_to_c(dtype, &at::div_scalar(grad, &other.conj())?)
}

/// `remainder.Tensor` and `fmod.Tensor` with respect to the divisor
pub fn remainder_other_backward(grad: &Tensor, self_: &Tensor, other: &Tensor, mode: &str) -> Result<Tensor> {
    at::mul_tensor(&at::neg(grad)?, &at::div_tensor_mode(self_, other, Some(mode))?)
}

/// `remainder.Scalar_Tensor` with respect to the divisor
pub fn remainder_scalar_backward(grad: &Tensor, self_: &Scalar, other: &Tensor) -> Result<Tensor> {
    remainder_other_backward(grad, &ops::wrapped_scalar_tensor(self_)?, other, "floor")
}

fn minus_one(exponent: &Scalar) -> Result<Scalar> {
    Ok(match exponent {
        Scalar::Int(n) => n.checked_sub(1).map_or(Scalar::Float(*n as f64 - 1.0), Scalar::Int),
        Scalar::Complex(z) => Scalar::Complex(*z - 1.0),
        other => Scalar::Float(other.to_f64()? - 1.0),
    })
}

/// `pow.Tensor_Scalar`
pub fn pow_backward(grad: &Tensor, self_: &Tensor, exponent: &Scalar) -> Result<Tensor> {
    if exponent.equal(ZERO)? {
        return zeros_like(self_, None);
    }
    let slope = at::mul_scalar(&at::pow_tensor_scalar(self_, &minus_one(exponent)?)?, exponent)?;
    handle_r_to_c(self_.scalar_type(), &mul_conj(grad, &slope)?)
}

/// `pow.Tensor_Tensor` with respect to the base
pub fn pow_backward_self(grad: &Tensor, self_: &Tensor, exponent: &Tensor) -> Result<Tensor> {
    let lowered = at::pow_tensor_tensor(self_, &at::sub_scalar(exponent, &ONE, &ONE)?)?;
    let slope = at::mul_tensor(exponent, &lowered)?;
    let gradient = mul_conj(grad, &slope)?;
    let constant = at::eq_scalar(exponent, &ZERO)?;
    handle_r_to_c(self_.scalar_type(), &at::masked_fill_scalar(&gradient, &constant, &ZERO)?)
}

/// Where an exponent is a non-negative real number, so that zero to its power doesn't depend on it.
fn is_non_negative_real(exponent: &Tensor) -> Result<Tensor> {
    if exponent.is_complex() {
        let real = at::ge_scalar(&at::real(exponent)?, &ZERO)?;
        return at::logical_and(&at::eq_scalar(&at::imag(exponent)?, &ZERO)?, &real);
    }
    at::ge_scalar(exponent, &ZERO)
}

/// `pow.Tensor_Tensor` with respect to the exponent
pub fn pow_backward_exponent(
    grad: &Tensor,
    self_: &Tensor,
    exponent: &Tensor,
    result: &Tensor,
) -> Result<Tensor> {
    let flat = at::logical_and(&at::eq_scalar(self_, &ZERO)?, &is_non_negative_real(exponent)?)?;
    let slope = conj(&at::mul_tensor(result, &at::log(self_)?)?)?;
    let gradient = at::mul_tensor(grad, &at::masked_fill_scalar(&slope, &flat, &ZERO)?)?;
    handle_r_to_c(exponent.scalar_type(), &gradient)
}

/// `pow.Scalar`
pub fn pow_scalar_backward(
    grad: &Tensor,
    base: &Scalar,
    exponent: &Tensor,
    result: &Tensor,
) -> Result<Tensor> {
    let mut slope = conj(&at::mul_scalar(result, &base.log()?)?)?;
    if base.equal(ZERO)? {
        slope = at::masked_fill_scalar(&slope, &is_non_negative_real(exponent)?, &ZERO)?;
    }
    handle_r_to_c(exponent.scalar_type(), &at::mul_tensor(grad, &slope)?)
}

/// `atan2`
pub fn atan2_backward(
    grad: &Tensor,
    self_: &Tensor,
    other: &Tensor,
    mask: [bool; 2],
) -> Result<(Option<Tensor>, Option<Tensor>)> {
    let norm = at::add_tensor(&at::mul_tensor(self_, self_)?, &at::mul_tensor(other, other)?, &ONE)?;
    let scaled = at::mul_tensor(grad, &at::reciprocal(&norm)?)?;
    let for_self = mask[0].then(|| at::mul_tensor(&scaled, other)).transpose()?;
    let for_other = mask[1].then(|| at::mul_tensor(&scaled, &at::neg(self_)?)).transpose()?;
    Ok((for_self, for_other))
}

/// `hypot` with respect to `side`
pub fn hypot_backward(grad: &Tensor, side: &Tensor, result: &Tensor) -> Result<Tensor> {
    at::mul_tensor(grad, &at::div_tensor(side, result)?)
}

/// `logaddexp` with respect to `self_`: its share of the sum, `1 / (1 + exp(other - self))`
pub fn logaddexp_backward(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    let ratio = at::exp(&at::sub_tensor(other, self_, &ONE)?)?;
    at::div_tensor(grad, &conj(&at::add_scalar(&ratio, &ONE, &ONE)?)?)
}

/// `logaddexp2` with respect to `self_`
pub fn logaddexp2_backward(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    let ratio = at::pow_scalar(&Scalar::Int(2), &at::sub_tensor(other, self_, &ONE)?)?;
    at::div_tensor(grad, &at::add_scalar(&ratio, &ONE, &ONE)?)
}

/// `copysign` with respect to the magnitude: whether the sign was kept, and 0 at 0, where there is no slope
pub fn copysign_self_backward(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
    let ratio = at::div_tensor(result, self_)?;
    let slope = at::masked_fill_scalar(&ratio, &at::eq_scalar(self_, &ZERO)?, &ZERO)?;
    at::mul_tensor(grad, &slope)
}

/// `maximum` with respect to `self_`; ties share the gradient.
pub fn maximum_backward(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    let shared = share_ties(grad, self_, other)?;
    at::masked_fill_scalar(&shared, &at::lt_tensor(self_, other)?, &ZERO)
}

/// `minimum` with respect to `self_`; ties share the gradient.
pub fn minimum_backward(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    let shared = share_ties(grad, self_, other)?;
    at::masked_fill_scalar(&shared, &at::gt_tensor(self_, other)?, &ZERO)
}

fn share_ties(grad: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    at::where_self(&at::eq_tensor(a, b)?, &at::div_scalar(grad, &TWO)?, grad)
}

/// `clamp`, `clamp_min`, `clamp_max` with scalar bounds
pub fn clamp_backward(
    grad: &Tensor,
    self_: &Tensor,
    min: Option<&Scalar>,
    max: Option<&Scalar>,
) -> Result<Tensor> {
    let above = min.map(|min| at::ge_scalar(self_, min)).transpose()?;
    let below = max.map(|max| at::le_scalar(self_, max)).transpose()?;
    keep_inside(grad, above, below)
}

/// `clamp.Tensor` with respect to the clamped tensor
pub fn clamp_tensor_backward(
    grad: &Tensor,
    self_: &Tensor,
    min: Option<&Tensor>,
    max: Option<&Tensor>,
) -> Result<Tensor> {
    let above = min.map(|min| at::ge_tensor(self_, min)).transpose()?;
    let below = max.map(|max| at::le_tensor(self_, max)).transpose()?;
    keep_inside(grad, above, below)
}

fn keep_inside(grad: &Tensor, above: Option<Tensor>, below: Option<Tensor>) -> Result<Tensor> {
    let inside = match (above, below) {
        (Some(above), Some(below)) => at::logical_and(&above, &below)?,
        (Some(mask), None) | (None, Some(mask)) => mask,
        (None, None) => return Ok(grad.clone()),
    };
    keep_where(grad, &inside)
}

/// `grad` where the mask does not hold, zero elsewhere.
pub fn drop_where(grad: &Tensor, mask: &Tensor) -> Result<Tensor> {
    at::masked_fill_scalar(grad, mask, &ZERO)
}

/// `grad` where the mask holds, zero elsewhere.
pub fn keep_where(grad: &Tensor, mask: &Tensor) -> Result<Tensor> {
    at::masked_fill_scalar(grad, &at::logical_not(mask)?, &ZERO)
}

/// `clamp.Tensor` with respect to the bounds
pub fn clamp_min_max_backward(
    grad: &Tensor,
    self_: &Tensor,
    min: Option<&Tensor>,
    max: Option<&Tensor>,
    mask: [bool; 2],
) -> Result<(Option<Tensor>, Option<Tensor>)> {
    let for_min = match min.filter(|_| mask[0]) {
        Some(min) => {
            let mut active = at::lt_tensor(self_, min)?;
            if let Some(max) = max {
                // Bounds that cross: the upper one wins.
                active = at::logical_and(&active, &at::lt_tensor(min, max)?)?;
            }
            Some(keep_where(grad, &active)?)
        }
        None => None,
    };
    let for_max = match max.filter(|_| mask[1]) {
        Some(max) => {
            let mut active = at::gt_tensor(self_, max)?;
            if let Some(min) = min {
                active = at::logical_or(&active, &at::lt_tensor(max, min)?)?;
            }
            Some(keep_where(grad, &active)?)
        }
        None => None,
    };
    Ok((for_min, for_max))
}

/// `where` with respect to the values taken where the condition holds
pub fn where_self_backward(grad: &Tensor, condition: &Tensor, dtype: ScalarType) -> Result<Tensor> {
    handle_r_to_c(dtype, &keep_where(grad, &as_mask(condition)?)?)
}

/// `where` with respect to the values taken where the condition doesn't hold
pub fn where_other_backward(grad: &Tensor, condition: &Tensor, dtype: ScalarType) -> Result<Tensor> {
    handle_r_to_c(dtype, &at::masked_fill_scalar(grad, &as_mask(condition)?, &ZERO)?)
}

/// A condition may be of bytes.
fn as_mask(condition: &Tensor) -> Result<Tensor> {
    match condition.dtype() {
        ScalarType::Bool => Ok(condition.clone()),
        _ => at::ne_scalar(condition, &ZERO),
    }
}

/// `addcmul` with respect to one factor; `other` is the other factor.
pub fn addcmul_backward(grad: &Tensor, other: &Tensor, value: &Scalar, dtype: ScalarType) -> Result<Tensor> {
    handle_r_to_c(dtype, &mul_conj(grad, &maybe_multiply(other, value)?)?)
}

/// `addcdiv` with respect to the dividend
pub fn addcdiv_tensor1_backward(
    grad: &Tensor,
    tensor2: &Tensor,
    value: &Scalar,
    dtype: ScalarType,
) -> Result<Tensor> {
    handle_r_to_c(dtype, &div_conj(&maybe_multiply(grad, &value.conj())?, tensor2)?)
}

/// `addcdiv` with respect to the divisor
pub fn addcdiv_tensor2_backward(
    grad: &Tensor,
    tensor1: &Tensor,
    tensor2: &Tensor,
    value: &Scalar,
) -> Result<Tensor> {
    let quotient = at::div_tensor(tensor1, &at::mul_tensor(tensor2, tensor2)?)?;
    let gradient = mul_conj(&at::neg(grad)?, &maybe_multiply(&quotient, value)?)?;
    handle_r_to_c(tensor2.scalar_type(), &gradient)
}

/// `lerp.Scalar` with respect to the start
pub fn lerp_self_backward(grad: &Tensor, weight: &Scalar) -> Result<Tensor> {
    let rest = match weight.conj() {
        Scalar::Complex(z) => Scalar::Complex(1.0 - z),
        real => Scalar::Float(1.0 - real.to_f64()?),
    };
    at::mul_scalar(grad, &rest)
}

/// `lerp.Tensor` with respect to the start
pub fn lerp_tensor_self_backward(grad: &Tensor, weight: &Tensor) -> Result<Tensor> {
    if weight.scalar_type() == ScalarType::Bool {
        return Err(Error::internal("lerp: a boolean weight has no gradient"));
    }
    mul_conj(grad, &at::rsub_scalar(weight, &ONE, &ONE)?)
}
