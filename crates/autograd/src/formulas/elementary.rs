//! Derivatives of elementary functions.

use c10::{Result, Scalar, Tensor};
use ops::at;

use super::pointwise::{conj, div_conj, handle_r_to_c, mul_conj};

const ZERO: Scalar = Scalar::Int(0);
const ONE: Scalar = Scalar::Int(1);

/// `tensor * factor`
pub(super) fn scaled(tensor: &Tensor, factor: f64) -> Result<Tensor> {
    at::mul_scalar(tensor, &Scalar::Float(factor))
}

/// `x² + 1`
pub fn square_plus_one(self_: &Tensor) -> Result<Tensor> {
    at::add_scalar(&at::mul_tensor(self_, self_)?, &ONE, &ONE)
}

/// `1 − x²`
pub(super) fn one_minus_square(self_: &Tensor) -> Result<Tensor> {
    at::rsub_scalar(&at::mul_tensor(self_, self_)?, &ONE, &ONE)
}

/// `exp2`
pub fn exp2_backward(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
    scaled(&mul_conj(grad, result)?, std::f64::consts::LN_2)
}

/// `log2` and `log10`, by the natural logarithm of the base
pub fn log_base_backward(grad: &Tensor, self_: &Tensor, log_of_base: f64) -> Result<Tensor> {
    div_conj(grad, &scaled(self_, log_of_base)?)
}

/// `tan`
pub fn tan_backward(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
    mul_conj(grad, &square_plus_one(result)?)
}

/// `asin`; that of `acos` is its negative.
pub fn asin_backward(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
    mul_conj(grad, &at::rsqrt(&one_minus_square(self_)?)?)
}

/// `acosh`: for complex numbers in two factors, whose branches are those of `acosh`.
pub fn acosh_backward(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
    if !self_.is_complex() {
        let square = at::sub_scalar(&at::mul_tensor(self_, self_)?, &ONE, &ONE)?;
        return at::mul_tensor(grad, &at::rsqrt(&square)?);
    }
    let above = at::rsqrt(&at::add_scalar(self_, &ONE, &ONE)?)?;
    let below = at::rsqrt(&at::sub_scalar(self_, &ONE, &ONE)?)?;
    mul_conj(grad, &at::mul_tensor(&above, &below)?)
}

/// `atanh`
pub fn atanh_backward(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
    div_conj(grad, &one_minus_square(self_)?)
}

/// `angle`: of real numbers constant.
pub fn angle_backward(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
    if !self_.is_complex() {
        return at::zeros_like(self_, None, None, None, None, None);
    }
    // The direction of growing angle is i·z/|z|², and there is none at 0.
    let (real, imag) = (at::real(self_)?, at::imag(self_)?);
    let norm = at::add_tensor(&at::mul_tensor(&real, &real)?, &at::mul_tensor(&imag, &imag)?, &ONE)?;
    let scale = at::masked_fill_scalar(&at::div_tensor(grad, &norm)?, &at::eq_scalar(&norm, &ZERO)?, &ZERO)?;
    at::complex(&at::mul_tensor(&at::neg(&imag)?, &scale)?, &at::mul_tensor(&real, &scale)?)
}

/// `polar` with respect to the length
pub fn polar_abs_backward(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
    at::real(&mul_conj(grad, &at::sgn(result)?)?)
}

/// `polar` with respect to the angle
pub fn polar_angle_backward(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
    let turned = at::mul_scalar(result, &Scalar::Complex(c10::Complex::new(0.0, 1.0)))?;
    at::real(&mul_conj(grad, &turned)?)
}

/// Where `fmin` is `self_`: it is not larger, or the other is NaN.
pub fn fmin_takes_self(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    at::logical_or(&at::le_tensor(self_, other)?, &at::isnan(other)?)
}

/// Where `fmax` is `self_`: it is not smaller, or the other is NaN.
pub fn fmax_takes_self(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    at::logical_or(&at::ge_tensor(self_, other)?, &at::isnan(other)?)
}

/// `xlogy` with respect to the factor: no slope where the function is constant 0.
pub fn xlogy_self_backward(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    let flat = at::logical_and(&at::eq_scalar(self_, &ZERO)?, &at::le_scalar(other, &ZERO)?)?;
    at::masked_fill_scalar(&at::xlogy_tensor(grad, other)?, &flat, &ZERO)
}

/// `xlog1py` with respect to the factor
pub fn xlog1py_self_backward(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    let flat = at::logical_and(&at::eq_scalar(self_, &ZERO)?, &at::le_scalar(other, &Scalar::Int(-1))?)?;
    at::masked_fill_scalar(&at::special_xlog1py(grad, other)?, &flat, &ZERO)
}

/// `xlog1py` with respect to the argument of the logarithm
pub fn xlog1py_other_backward(grad: &Tensor, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    at::div_tensor(&at::mul_tensor(grad, self_)?, &at::add_scalar(other, &ONE, &ONE)?)
}

/// `sinc`: `(cos πx − sinc x) / x`, and 0 at 0, also where `x²` is.
pub fn sinc_backward(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
    let angle = scaled(self_, std::f64::consts::PI)?;
    let square = at::mul_tensor(&angle, self_)?;
    let top = at::sub_tensor(&at::mul_tensor(&angle, &at::cos(&angle)?)?, &at::sin(&angle)?, &ONE)?;
    let slope = conj(&at::div_tensor(&top, &square)?)?;
    let at_zero = at::eq_scalar(&square, &ZERO)?;
    handle_r_to_c(
        self_.scalar_type(),
        &at::masked_fill_scalar(&at::mul_tensor(grad, &slope)?, &at_zero, &ZERO)?,
    )
}

/// `logit_backward` with respect to its input; `grad` is the product of both gradients.
pub fn logit_double_backward(grad: &Tensor, self_: &Tensor, eps: Option<f64>) -> Result<Tensor> {
    let product = at::mul_tensor(self_, &at::rsub_scalar(self_, &ONE, &ONE)?)?;
    let top = at::sub_scalar(&scaled(self_, 2.0)?, &ONE, &ONE)?;
    let slope = at::div_tensor(&top, &at::mul_tensor(&product, &product)?)?;
    let result = at::mul_tensor(grad, &slope)?;
    let eps = eps.unwrap_or(0.0).max(0.0);
    let outside = at::logical_or(
        &at::lt_scalar(self_, &Scalar::Float(eps))?,
        &at::gt_scalar(self_, &Scalar::Float(1.0 - eps))?,
    )?;
    at::masked_fill_scalar(&result, &outside, &ZERO)
}
