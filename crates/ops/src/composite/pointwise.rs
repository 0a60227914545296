//! Composites of the `pointwise` family.

use c10::{check, check_not_implemented, Result, Scalar, ScalarType, Tensor};

use crate::{at, structured, wrapped_scalar_tensor};

mod activations;

pub use activations::*;

const ONE: Scalar = Scalar::Int(1);

/// `aten::positive`
pub fn positive(self_: &Tensor) -> Result<Tensor> {
    check!(self_.dtype() != ScalarType::Bool, "The `+` operator, on a bool tensor is not supported.");
    Ok(self_.clone())
}

/// `aten::square`
pub fn square(self_: &Tensor) -> Result<Tensor> {
    at::pow_tensor_scalar(self_, &Scalar::Int(2))
}

/// `aten::square.out`
pub fn square_out(self_: &Tensor, out: &Tensor) -> Result<Tensor> {
    at::pow_tensor_scalar_out(self_, &Scalar::Int(2), out)
}

/// `aten::round.decimals_out`
pub fn round_decimals_out(self_: &Tensor, decimals: i64, out: &Tensor) -> Result<Tensor> {
    structured::check_out_dtype("round", out, self_.dtype())?;
    structured::write_out_or_input("round", out, &[self_], &round_decimals(self_, decimals)?)
}

/// `aten::round.decimals`: to a multiple of `10^-decimals`, computed in float32 for the half precisions.
pub fn round_decimals(self_: &Tensor, decimals: i64) -> Result<Tensor> {
    if decimals == 0 && !self_.dtype().is_integral(true) {
        return at::round(self_);
    }
    check_not_implemented!(
        self_.is_floating_point(),
        "\"round_cpu\" not implemented for '{}' with decimals",
        self_.dtype().short_name()
    );
    let power = Scalar::Float(10_f64.powi(i32::try_from(decimals.unsigned_abs()).unwrap_or(i32::MAX)));
    let input = if self_.dtype().is_reduced_floating_point() {
        at::to_dtype(self_, ScalarType::Float, false, false, None)?
    } else {
        self_.clone()
    };
    let rounded = if decimals > 0 {
        at::div_scalar(&at::round(&at::mul_scalar(&input, &power)?)?, &power)?
    } else {
        at::mul_scalar(&at::round(&at::div_scalar(&input, &power)?)?, &power)?
    };
    at::to_dtype(&rounded, self_.dtype(), false, false, None)
}

/// `aten::isnan`: the elements that differ from themselves.
pub fn isnan(self_: &Tensor) -> Result<Tensor> {
    at::ne_tensor(self_, self_)
}

/// `aten::isinf`
pub fn isinf(self_: &Tensor) -> Result<Tensor> {
    if self_.dtype().is_integral(true) {
        return falses(self_);
    }
    if self_.is_complex() {
        let (real, imag) = (at::real(self_)?, at::imag(self_)?);
        return at::bitwise_or_tensor(&at::isinf(&real)?, &at::isinf(&imag)?);
    }
    at::eq_scalar(&at::abs(self_)?, &Scalar::Float(f64::INFINITY))
}

fn falses(self_: &Tensor) -> Result<Tensor> {
    at::zeros_like(self_, Some(ScalarType::Bool), None, None, None, None)
}

/// `aten::isfinite`
pub fn isfinite(self_: &Tensor) -> Result<Tensor> {
    if self_.dtype().is_integral(true) {
        return at::ones_like(self_, Some(ScalarType::Bool), None, None, None, None);
    }
    if self_.is_complex() {
        let (real, imag) = (at::real(self_)?, at::imag(self_)?);
        return at::bitwise_and_tensor(&at::isfinite(&real)?, &at::isfinite(&imag)?);
    }
    // A NaN compares unequal to everything, infinity to everything but itself.
    let number = at::eq_tensor(self_, self_)?;
    at::mul_tensor(&number, &at::ne_scalar(&at::abs(self_)?, &Scalar::Float(f64::INFINITY))?)
}

/// `aten::add.Scalar`
pub fn add_scalar(self_: &Tensor, other: &Scalar, alpha: &Scalar) -> Result<Tensor> {
    at::add_tensor(self_, &wrapped_scalar_tensor(other)?, alpha)
}

/// `aten::add_.Scalar`
pub fn add__scalar(self_: &Tensor, other: &Scalar, alpha: &Scalar) -> Result<Tensor> {
    at::add__tensor(self_, &wrapped_scalar_tensor(other)?, alpha)
}

/// `aten::sub_.Scalar`
pub fn sub__scalar(self_: &Tensor, other: &Scalar, alpha: &Scalar) -> Result<Tensor> {
    at::sub__tensor(self_, &wrapped_scalar_tensor(other)?, alpha)
}

/// `aten::mul_.Scalar`
pub fn mul__scalar(self_: &Tensor, other: &Scalar) -> Result<Tensor> {
    at::mul__tensor(self_, &wrapped_scalar_tensor(other)?)
}

/// `aten::div_.Scalar`
pub fn div__scalar(self_: &Tensor, other: &Scalar) -> Result<Tensor> {
    at::div__tensor(self_, &wrapped_scalar_tensor(other)?)
}

/// `aten::sub.Scalar`
pub fn sub_scalar(self_: &Tensor, other: &Scalar, alpha: &Scalar) -> Result<Tensor> {
    at::sub_tensor(self_, &wrapped_scalar_tensor(other)?, alpha)
}

/// `aten::mul.Scalar`
pub fn mul_scalar(self_: &Tensor, other: &Scalar) -> Result<Tensor> {
    at::mul_tensor(self_, &wrapped_scalar_tensor(other)?)
}

/// `aten::div.Scalar`
pub fn div_scalar(self_: &Tensor, other: &Scalar) -> Result<Tensor> {
    at::div_tensor(self_, &wrapped_scalar_tensor(other)?)
}

/// `aten::div.Scalar_mode`
pub fn div_scalar_mode(self_: &Tensor, other: &Scalar, rounding_mode: Option<&str>) -> Result<Tensor> {
    at::div_tensor_mode(self_, &wrapped_scalar_tensor(other)?, rounding_mode)
}

/// `aten::floor_divide.Scalar`
pub fn floor_divide_scalar(self_: &Tensor, other: &Scalar) -> Result<Tensor> {
    at::floor_divide(self_, &wrapped_scalar_tensor(other)?)
}

/// `aten::rsub.Tensor`
pub fn rsub_tensor(self_: &Tensor, other: &Tensor, alpha: &Scalar) -> Result<Tensor> {
    at::sub_tensor(other, self_, alpha)
}

/// `aten::rsub.Scalar`
pub fn rsub_scalar(self_: &Tensor, other: &Scalar, alpha: &Scalar) -> Result<Tensor> {
    at::sub_tensor(&wrapped_scalar_tensor(other)?, self_, alpha)
}

/// `aten::pow_.Tensor`
pub fn pow__tensor(self_: &Tensor, exponent: &Tensor) -> Result<Tensor> {
    at::pow_tensor_tensor_out(self_, exponent, self_)
}

/// `aten::pow.Scalar`
pub fn pow_scalar(self_: &Scalar, exponent: &Tensor) -> Result<Tensor> {
    at::pow_tensor_tensor(&wrapped_scalar_tensor(self_)?, exponent)
}

/// `aten::remainder.Scalar`
pub fn remainder_scalar(self_: &Tensor, other: &Scalar) -> Result<Tensor> {
    at::remainder_tensor(self_, &wrapped_scalar_tensor(other)?)
}

/// `aten::remainder.Scalar_Tensor`
pub fn remainder_scalar_tensor(self_: &Scalar, other: &Tensor) -> Result<Tensor> {
    at::remainder_tensor(&wrapped_scalar_tensor(self_)?, other)
}

/// `aten::fmod.Scalar`
pub fn fmod_scalar(self_: &Tensor, other: &Scalar) -> Result<Tensor> {
    at::fmod_tensor(self_, &wrapped_scalar_tensor(other)?)
}

/// `aten::copysign.Scalar`
pub fn copysign_scalar(self_: &Tensor, other: &Scalar) -> Result<Tensor> {
    at::copysign_tensor(self_, &wrapped_scalar_tensor(other)?)
}

macro_rules! bitwise {
    ($(
        $tensor:ident $scalar:ident $scalar_tensor:ident, $inplace_tensor:ident $inplace_scalar:ident,
        $dunder_tensor:ident $dunder_scalar:ident;
    )*) => {$(
        #[doc = concat!("`", stringify!($scalar), "`")]
        pub fn $scalar(self_: &Tensor, other: &Scalar) -> Result<Tensor> {
            at::$tensor(self_, &wrapped_scalar_tensor(other)?)
        }

        #[doc = concat!("`", stringify!($inplace_scalar), "`")]
        pub fn $inplace_scalar(self_: &Tensor, other: &Scalar) -> Result<Tensor> {
            at::$inplace_tensor(self_, &wrapped_scalar_tensor(other)?)
        }

        #[doc = concat!("`", stringify!($scalar_tensor), "`")]
        pub fn $scalar_tensor(self_: &Scalar, other: &Tensor) -> Result<Tensor> {
            at::$tensor(&wrapped_scalar_tensor(self_)?, other)
        }

        #[doc = concat!("`", stringify!($dunder_tensor), "`")]
        pub fn $dunder_tensor(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
            at::$tensor(self_, other)
        }

        #[doc = concat!("`", stringify!($dunder_scalar), "`")]
        pub fn $dunder_scalar(self_: &Tensor, other: &Scalar) -> Result<Tensor> {
            at::$scalar(self_, other)
        }
    )*};
}

bitwise! {
    bitwise_and_tensor bitwise_and_scalar bitwise_and_scalar_tensor,
        bitwise_and__tensor bitwise_and__scalar, __and___tensor __and___scalar;
    bitwise_or_tensor bitwise_or_scalar bitwise_or_scalar_tensor,
        bitwise_or__tensor bitwise_or__scalar, __or___tensor __or___scalar;
    bitwise_xor_tensor bitwise_xor_scalar bitwise_xor_scalar_tensor,
        bitwise_xor__tensor bitwise_xor__scalar, __xor___tensor __xor___scalar;
    bitwise_left_shift_tensor bitwise_left_shift_tensor_scalar bitwise_left_shift_scalar_tensor,
        bitwise_left_shift__tensor bitwise_left_shift__tensor_scalar, __lshift___tensor __lshift___scalar;
    bitwise_right_shift_tensor bitwise_right_shift_tensor_scalar bitwise_right_shift_scalar_tensor,
        bitwise_right_shift__tensor bitwise_right_shift__tensor_scalar, __rshift___tensor __rshift___scalar;
}

macro_rules! comparison {
    ($($op:literal $scalar:ident $tensor:ident);*) => {$(
        #[doc = concat!("`aten::", $op, ".Scalar`")]
        pub fn $scalar(self_: &Tensor, other: &Scalar) -> Result<Tensor> {
            at::$tensor(self_, &wrapped_scalar_tensor(other)?)
        }
    )*};
}

comparison! {
    "eq" eq_scalar eq_tensor;
    "ne" ne_scalar ne_tensor;
    "lt" lt_scalar lt_tensor;
    "le" le_scalar le_tensor;
    "gt" gt_scalar gt_tensor;
    "ge" ge_scalar ge_tensor
}

/// `aten::isclose`
pub fn isclose(self_: &Tensor, other: &Tensor, rtol: f64, atol: f64, equal_nan: bool) -> Result<Tensor> {
    check!(
        self_.dtype() == other.dtype(),
        "{} did not match {}",
        self_.dtype().short_name(),
        other.dtype().short_name()
    );
    check!(rtol >= 0.0, "rtol must be greater than or equal to zero, but got {rtol}");
    check!(atol >= 0.0, "atol must be greater than or equal to zero, but got {atol}");
    let mut close = at::eq_tensor(self_, other)?;
    if equal_nan && (self_.is_floating_point() || self_.is_complex()) {
        let both = at::bitwise_and_tensor(&at::isnan(self_)?, &at::isnan(other)?)?;
        close = at::bitwise_or_tensor(&close, &both)?;
    }
    if rtol == 0.0 && atol == 0.0 {
        return Ok(close);
    }
    let (a, b) = if self_.dtype().is_integral(true) {
        let dtype = c10::get_default_dtype();
        (at::to_dtype(self_, dtype, false, false, None)?, at::to_dtype(other, dtype, false, false, None)?)
    } else {
        (self_.clone(), other.clone())
    };
    let allowed =
        at::add_scalar(&at::abs(&at::mul_scalar(&b, &Scalar::Float(rtol))?)?, &Scalar::Float(atol), &ONE)?;
    let error = at::abs(&at::sub_tensor(&a, &b, &ONE)?)?;
    let within = at::bitwise_and_tensor(&at::isfinite(&error)?, &at::le_tensor(&error, &allowed)?)?;
    at::bitwise_or_tensor(&close, &within)
}

/// `aten::clamp.Tensor`
pub fn clamp_tensor(self_: &Tensor, min: Option<&Tensor>, max: Option<&Tensor>) -> Result<Tensor> {
    check_not_implemented!(
        ![Some(self_), min, max].into_iter().flatten().any(|t| t.is_complex()),
        "clamp is not supported for complex types"
    );
    match (min, max) {
        (Some(min), Some(max)) => {
            let dtype = iter::result_type(&[self_, min, max])?;
            check_not_implemented!(dtype != ScalarType::Bool, "\"clamp_cpu\" not implemented for 'Bool'");
            at::minimum(&at::maximum(self_, min)?, max)
        }
        (Some(min), None) => at::maximum(self_, min),
        (None, Some(max)) => at::minimum(self_, max),
        (None, None) => {
            c10::bail!(Runtime, "torch.clamp: At least one of 'min' or 'max' must not be None")
        }
    }
}

/// `aten::clamp_min`
pub fn clamp_min(self_: &Tensor, min: &Scalar) -> Result<Tensor> {
    at::clamp(self_, Some(min), None)
}

/// `aten::clamp_max`
pub fn clamp_max(self_: &Tensor, max: &Scalar) -> Result<Tensor> {
    at::clamp(self_, None, Some(max))
}

/// `aten::clamp_min.out`
pub fn clamp_min_out(self_: &Tensor, min: &Scalar, out: &Tensor) -> Result<Tensor> {
    at::clamp_out(self_, Some(min), None, out)
}

/// `aten::clamp_max.out`
pub fn clamp_max_out(self_: &Tensor, max: &Scalar, out: &Tensor) -> Result<Tensor> {
    at::clamp_out(self_, None, Some(max), out)
}

/// `aten::clamp_min.Tensor`
pub fn clamp_min_tensor(self_: &Tensor, min: &Tensor) -> Result<Tensor> {
    at::clamp_tensor(self_, Some(min), None)
}

/// `aten::clamp_max.Tensor`
pub fn clamp_max_tensor(self_: &Tensor, max: &Tensor) -> Result<Tensor> {
    at::clamp_tensor(self_, None, Some(max))
}

/// `aten::where.ScalarSelf`
pub fn where_scalarself(condition: &Tensor, self_: &Scalar, other: &Tensor) -> Result<Tensor> {
    at::where_self(condition, &on_device(self_, other)?, other)
}

/// `aten::where.ScalarOther`
pub fn where_scalarother(condition: &Tensor, self_: &Tensor, other: &Scalar) -> Result<Tensor> {
    at::where_self(condition, self_, &on_device(other, self_)?)
}

/// `aten::where.Scalar`
pub fn where_scalar(condition: &Tensor, self_: &Scalar, other: &Scalar) -> Result<Tensor> {
    at::where_self(condition, &on_device(self_, condition)?, &on_device(other, condition)?)
}

/// A number as a tensor that a `where` beside `like` accepts.
fn on_device(value: &Scalar, like: &Tensor) -> Result<Tensor> {
    let number = wrapped_scalar_tensor(value)?;
    if like.is_cpu() {
        return Ok(number);
    }
    let moved = at::_to_copy(&number, None, None, Some(like.device()), None, false, None)?;
    moved.set_wrapped_number(true);
    Ok(moved)
}

/// `aten::fill.Scalar`
pub fn fill_scalar(self_: &Tensor, value: &Scalar) -> Result<Tensor> {
    at::fill__scalar(&at::empty_like(self_, None, None, None, None, None)?, value)
}

/// `aten::fill.Tensor`
pub fn fill_tensor(self_: &Tensor, value: &Tensor) -> Result<Tensor> {
    at::fill__tensor(&at::empty_like(self_, None, None, None, None, None)?, value)
}

/// `aten::fill_.Tensor`
pub fn fill__tensor(self_: &Tensor, value: &Tensor) -> Result<Tensor> {
    check!(
        value.dim() == 0,
        "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
        value.dim()
    );
    at::copy_(self_, value, false)
}

/// `aten::zero_`
pub fn zero_(self_: &Tensor) -> Result<Tensor> {
    at::fill__scalar(self_, &Scalar::Int(0))
}

/// `aten::isreal`
pub fn isreal(self_: &Tensor) -> Result<Tensor> {
    if self_.is_complex() {
        return at::eq_scalar(&at::imag(self_)?, &Scalar::Int(0));
    }
    at::ones_like(self_, Some(ScalarType::Bool), None, None, None, None)
}

/// `aten::rad2deg`
pub fn rad2deg(self_: &Tensor) -> Result<Tensor> {
    check!(!self_.is_complex(), "rad2deg is not supported for complex tensors.");
    at::mul_scalar(self_, &Scalar::Float(180.0 / std::f64::consts::PI))
}

/// `aten::deg2rad`
pub fn deg2rad(self_: &Tensor) -> Result<Tensor> {
    check!(!self_.is_complex(), "deg2rad is not supported for complex tensors.");
    at::mul_scalar(self_, &Scalar::Float(std::f64::consts::PI / 180.0))
}

fn power_of_two(exponent: &Tensor) -> Result<Tensor> {
    at::pow_scalar(&Scalar::Float(2.0), exponent)
}

/// `aten::ldexp.Tensor`
pub fn ldexp_tensor(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    at::mul_tensor(self_, &power_of_two(other)?)
}

/// `aten::ldexp_.Tensor`
pub fn ldexp_(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    at::mul__tensor(self_, &power_of_two(other)?)
}

/// The dtype that `float_power` computes in: double precision, whatever the inputs.
fn double_precision(complex: bool) -> ScalarType {
    if complex {
        ScalarType::ComplexDouble
    } else {
        ScalarType::Double
    }
}

fn to(tensor: &Tensor, dtype: ScalarType) -> Result<Tensor> {
    at::to_dtype(tensor, dtype, false, false, None)
}

/// `aten::float_power.Tensor_Tensor`
pub fn float_power_tensor_tensor(self_: &Tensor, exponent: &Tensor) -> Result<Tensor> {
    let dtype = double_precision(self_.is_complex() || exponent.is_complex());
    at::pow_tensor_tensor(&to(self_, dtype)?, &to(exponent, dtype)?)
}

/// `aten::float_power.Scalar`
pub fn float_power_scalar(self_: &Scalar, exponent: &Tensor) -> Result<Tensor> {
    let dtype = double_precision(self_.is_complex() || exponent.is_complex());
    at::pow_scalar(self_, &to(exponent, dtype)?)
}

/// `aten::float_power.Tensor_Scalar`
pub fn float_power_tensor_scalar(self_: &Tensor, exponent: &Scalar) -> Result<Tensor> {
    let dtype = double_precision(self_.is_complex() || exponent.is_complex());
    at::pow_tensor_scalar(&to(self_, dtype)?, exponent)
}

fn check_float_power_(self_: &Tensor, dtype: ScalarType) -> Result<()> {
    check!(
        self_.dtype() == dtype,
        "the base given to float_power_ has dtype {} but the operation's result requires dtype {}",
        self_.dtype().short_name(),
        dtype.short_name()
    );
    Ok(())
}

/// `aten::float_power_.Tensor`
pub fn float_power__tensor(self_: &Tensor, exponent: &Tensor) -> Result<Tensor> {
    let dtype = double_precision(self_.is_complex() || exponent.is_complex());
    check_float_power_(self_, dtype)?;
    at::pow__tensor(self_, &to(exponent, dtype)?)
}

/// `aten::float_power_.Scalar`
pub fn float_power__scalar(self_: &Tensor, exponent: &Scalar) -> Result<Tensor> {
    check_float_power_(self_, double_precision(self_.is_complex() || exponent.is_complex()))?;
    at::pow__scalar(self_, exponent)
}
