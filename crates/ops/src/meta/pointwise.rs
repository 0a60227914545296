//! Meta functions of the `pointwise` operators that need more than a preset.

use c10::{bail, check, check_not_implemented, Result, Scalar, ScalarType, SizeInt, Tensor};
use iter::{
    result_type, to_dtype, type_meta_name, ResultTypeState, StructuredOutputs, TensorIterator,
    TensorIteratorConfig,
};

use crate::structured::check_out_dtype;

/// `abs` of complex numbers is real.
pub fn abs_meta(outs: &mut StructuredOutputs, self_: &Tensor) -> Result<TensorIterator> {
    if !self_.is_complex() {
        return TensorIterator::unary_op(outs, "abs", self_);
    }
    check!(!outs.is_inplace(), "In-place abs is not supported for complex tensors.");
    outs.compute_in(0, self_.dtype().to_real_value_type(), &self_.sym_sizes())?;
    TensorIteratorConfig::new()
        .op_name("abs")
        .check_all_same_dtype(false)
        .declare_static_dtype(self_.dtype().to_real_value_type())
        .add_input(self_)
        .build(outs)
}

/// `neg` refuses bool.
pub fn neg_meta(outs: &mut StructuredOutputs, self_: &Tensor) -> Result<TensorIterator> {
    check!(
        self_.dtype() != ScalarType::Bool,
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` \
         or `logical_not()` operator instead."
    );
    TensorIterator::unary_op(outs, "neg", self_)
}

/// `relu` refuses bool.
pub fn relu_meta(outs: &mut StructuredOutputs, self_: &Tensor) -> Result<TensorIterator> {
    check!(self_.dtype() != ScalarType::Bool, "Boolean inputs not supported for relu");
    TensorIterator::unary_op(outs, "relu", self_)
}

/// `sign` refuses complex numbers.
pub fn sign_meta(outs: &mut StructuredOutputs, self_: &Tensor) -> Result<TensorIterator> {
    check_not_implemented!(
        !self_.is_complex(),
        "Unlike NumPy, torch.sign() is not intended to support complex numbers. Please use torch.sgn() instead."
    );
    TensorIterator::unary_op(outs, "sign", self_)
}

macro_rules! rounding {
    ($($name:ident $op:literal),*) => {$(
        #[doc = concat!("`", $op, "` refuses complex numbers.")]
        pub fn $name(outs: &mut StructuredOutputs, self_: &Tensor) -> Result<TensorIterator> {
            check_not_implemented!(!self_.is_complex(), concat!($op, " is not supported for complex inputs"));
            TensorIterator::unary_op(outs, $op, self_)
        }
    )*};
}

rounding!(floor_meta "floor", ceil_meta "ceil", trunc_meta "trunc", round_meta "round");

/// `alpha` has to fit the dtype that is computed in.
fn alpha_check(dtype: ScalarType, alpha: &Scalar) -> Result<()> {
    check!(
        !alpha.is_boolean() || dtype == ScalarType::Bool,
        "Boolean alpha only supported for Boolean results."
    );
    check!(
        dtype.is_floating_point() || dtype.is_complex() || alpha.is_integral(true),
        "For integral input tensors, argument alpha must not be a floating point number."
    );
    check!(
        dtype.is_complex() || !alpha.is_complex(),
        "For non-complex input tensors, argument alpha must not be a complex number."
    );
    Ok(())
}

/// `add`
pub fn add_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    other: &Tensor,
    alpha: &Scalar,
) -> Result<TensorIterator> {
    let iter = TensorIterator::binary_op(outs, "add", self_, other)?;
    alpha_check(iter.common_dtype(), alpha)?;
    Ok(iter)
}

/// `sub` refuses bool.
pub fn sub_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    other: &Tensor,
    alpha: &Scalar,
) -> Result<TensorIterator> {
    let bools = [self_.dtype(), other.dtype()].map(|dtype| dtype == ScalarType::Bool);
    check!(
        bools != [true, true],
        "Subtraction, the `-` operator, with two bool tensors is not supported, use the `^` or `logical_xor()` operator \
         instead."
    );
    check!(
        bools == [false, false],
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the \
         `~` or `logical_not()` operator instead."
    );
    let iter = TensorIterator::binary_op(outs, "sub", self_, other)?;
    alpha_check(iter.common_dtype(), alpha)?;
    Ok(iter)
}

/// `div` with a rounding mode.
pub fn div_mode_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    other: &Tensor,
    rounding_mode: Option<&str>,
) -> Result<TensorIterator> {
    match rounding_mode {
        None => TensorIterator::binary_float_op(outs, "div", self_, other),
        Some("trunc" | "floor") => TensorIterator::binary_op(outs, "div", self_, other),
        Some(mode) => {
            bail!(
                Runtime,
                "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{mode}'"
            )
        }
    }
}

/// `floor_divide`
pub fn floor_divide_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    other: &Tensor,
) -> Result<TensorIterator> {
    TensorIterator::binary_op(outs, "floor_divide", self_, other)
}

/// `pow` with a number as exponent, which takes part in promotion as Python numbers do.
pub fn pow_tensor_scalar_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    exponent: &Scalar,
) -> Result<TensorIterator> {
    let negative = exponent.is_integral(true) && exponent.to_i64().is_ok_and(|e| e < 0);
    check!(
        !(negative && self_.dtype().is_integral(true)),
        "Integers to negative integer powers are not allowed."
    );
    let base = to_dtype(self_, with_scalars(self_, &[exponent])?)?;
    promoting("pow").add_input(&base).build(outs)
}

/// The dtype that a tensor and numbers promote to.
fn with_scalars(self_: &Tensor, scalars: &[&Scalar]) -> Result<ScalarType> {
    let mut state = ResultTypeState::default();
    state.update(self_)?;
    for scalar in scalars {
        state.update_scalar(scalar)?;
    }
    Ok(state.result()?.unwrap_or(self_.dtype()))
}

/// A configuration that promotes, and casts to outputs where that is safe.
fn promoting<'a>(name: &'static str) -> TensorIteratorConfig<'a> {
    TensorIteratorConfig::new()
        .op_name(name)
        .promote_inputs_to_common_dtype(true)
        .cast_common_dtype_to_outputs(true)
        .enforce_safe_casting_to_output(true)
}

macro_rules! no_complex_binary {
    ($($name:ident $op:literal),*) => {$(
        #[doc = concat!("`", $op, "` refuses complex numbers.")]
        pub fn $name(outs: &mut StructuredOutputs, self_: &Tensor, other: &Tensor) -> Result<TensorIterator> {
            check!(
                !self_.is_complex() && !other.is_complex(),
                concat!($op, " not implemented for complex tensors.")
            );
            TensorIterator::binary_op(outs, $op, self_, other)
        }
    )*};
}

no_complex_binary!(maximum_meta "maximum", minimum_meta "minimum");

/// `addcmul`
pub fn addcmul_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    tensor1: &Tensor,
    tensor2: &Tensor,
    _value: &Scalar,
) -> Result<TensorIterator> {
    TensorIterator::ternary_op(outs, "addcmul", self_, tensor1, tensor2)
}

/// `addcdiv` refuses to divide integers.
pub fn addcdiv_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    tensor1: &Tensor,
    tensor2: &Tensor,
    _value: &Scalar,
) -> Result<TensorIterator> {
    check!(
        !(tensor1.dtype().is_integral(true) && tensor2.dtype().is_integral(true)),
        "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true \
         division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * \
         torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) \
         for float inputs."
    );
    TensorIterator::ternary_op(outs, "addcdiv", self_, tensor1, tensor2)
}

fn lerp_check(self_: &Tensor, other: &Tensor, name: &str) -> Result<()> {
    check!(
        self_.dtype() == other.dtype(),
        "expected dtype {} for `{name}` but got dtype {}",
        type_meta_name(self_.dtype()),
        type_meta_name(other.dtype())
    );
    Ok(())
}

/// `lerp` with a number as weight.
pub fn lerp_scalar_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    end: &Tensor,
    _weight: &Scalar,
) -> Result<TensorIterator> {
    lerp_check(self_, end, "end")?;
    TensorIterator::binary_op(outs, "lerp", self_, end)
}

/// `lerp` with a tensor as weight.
pub fn lerp_tensor_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    end: &Tensor,
    weight: &Tensor,
) -> Result<TensorIterator> {
    lerp_check(self_, end, "end")?;
    lerp_check(self_, weight, "weight")?;
    exact_out("lerp", outs, self_.dtype())?;
    TensorIterator::ternary_op(outs, "lerp", self_, end, weight)
}

/// `clamp`: the bounds take part in promotion.
pub fn clamp_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    min: Option<&Scalar>,
    max: Option<&Scalar>,
) -> Result<TensorIterator> {
    check!(min.is_some() || max.is_some(), "torch.clamp: At least one of 'min' or 'max' must not be None");
    check_not_implemented!(
        !self_.is_complex() && ![min, max].into_iter().flatten().any(Scalar::is_complex),
        "clamp is not supported for complex types"
    );
    let bounds: Vec<&Scalar> = [min, max].into_iter().flatten().collect();
    let dtype = with_scalars(self_, &bounds)?;
    let kernel = match (min, max) {
        (Some(_), Some(_)) => "clamp_scalar_cpu",
        (Some(_), None) => "clamp_min_scalar_cpu",
        _ => "clamp_max_scalar_cpu",
    };
    check_not_implemented!(dtype != ScalarType::Bool, "\"{kernel}\" not implemented for 'Bool'");
    check!(
        dtype == self_.dtype() || !outs.is_inplace(),
        "result type {} can't be cast to the desired output type {}",
        dtype.short_name(),
        self_.dtype().short_name()
    );
    exact_out("clamp", outs, dtype)?;
    let input = to_dtype(self_, dtype)?;
    promoting("clamp").add_input(&input).build(outs)
}

/// Refuses a given output of another dtype than the operator computes, which most operators would cast to.
fn exact_out(name: &str, outs: &StructuredOutputs, dtype: ScalarType) -> Result<()> {
    match outs.maybe_get_output(0) {
        Some(out) => check_out_dtype(name, out, dtype),
        None => Ok(()),
    }
}

/// `where`: the condition is bool; the values promote to each other.
pub fn where_meta(
    outs: &mut StructuredOutputs,
    condition: &Tensor,
    self_: &Tensor,
    other: &Tensor,
) -> Result<TensorIterator> {
    check!(
        matches!(condition.dtype(), ScalarType::Bool | ScalarType::Byte),
        "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
        condition.dtype().short_name()
    );
    let dtype = result_type(&[self_, other])?;
    if let Some(out) = outs.maybe_get_output(0) {
        check!(
            out.dtype() == dtype,
            "Expected out type to be {} but got {}",
            dtype.short_name(),
            out.dtype().short_name()
        );
    }
    let condition = to_dtype(condition, ScalarType::Bool)?;
    let (a, b) = (to_dtype(self_, dtype)?, to_dtype(other, dtype)?);
    TensorIteratorConfig::new()
        .op_name("where")
        .check_all_same_dtype(false)
        .allow_cpu_scalars(true)
        .declare_static_dtype(dtype)
        .add_input(&condition)
        .add_input(&a)
        .add_input(&b)
        .build(outs)
}

/// `threshold`
pub fn threshold_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    _threshold: &Scalar,
    _value: &Scalar,
) -> Result<TensorIterator> {
    promoting("threshold").add_input(self_).build(outs)
}

/// `threshold_backward`
pub fn threshold_backward_meta(
    outs: &mut StructuredOutputs,
    grad_output: &Tensor,
    self_: &Tensor,
    _threshold: &Scalar,
) -> Result<TensorIterator> {
    TensorIterator::binary_op(outs, "threshold_backward", grad_output, self_)
}

no_complex_binary!(fmax_meta "fmax", fmin_meta "fmin");

/// `frac` refuses complex numbers.
pub fn frac_meta(outs: &mut StructuredOutputs, self_: &Tensor) -> Result<TensorIterator> {
    check_not_implemented!(!self_.is_complex(), "frac is not supported for complex inputs");
    TensorIterator::unary_op(outs, "frac", self_)
}

/// `angle`: of complex numbers real, of integers in the default dtype.
pub fn angle_meta(outs: &mut StructuredOutputs, self_: &Tensor) -> Result<TensorIterator> {
    if !self_.is_complex() {
        return TensorIterator::unary_float_op(outs, "angle", self_);
    }
    let dtype = self_.dtype().to_real_value_type();
    outs.compute_in(0, dtype, &self_.sym_sizes())?;
    TensorIteratorConfig::new()
        .op_name("angle")
        .check_all_same_dtype(false)
        .declare_static_dtype(dtype)
        .add_input(self_)
        .build(outs)
}

macro_rules! real_predicates {
    ($($name:ident $op:literal $refusal:literal),*) => {$(
        #[doc = concat!("`", $op, "` refuses complex numbers.")]
        pub fn $name(outs: &mut StructuredOutputs, self_: &Tensor) -> Result<TensorIterator> {
            check!(!self_.is_complex(), $refusal);
            if let Some(out) = outs.maybe_get_output(0) {
                check!(
                    out.dtype() == ScalarType::Bool,
                    concat!($op, " does not support non-boolean outputs.")
                );
            }
            TensorIterator::unary_force_boolean_op(outs, $op, self_)
        }
    )*};
}

real_predicates!(
    signbit_meta "signbit" "signbit is not implemented for complex tensors.",
    isposinf_meta "isposinf" "isposinf does not support complex inputs.",
    isneginf_meta "isneginf" "isneginf does not support complex inputs."
);

/// `frexp`: the mantissa in the input's dtype, the exponent as int32.
pub fn frexp_meta<I: SizeInt>(outs: &mut StructuredOutputs, self_: &Tensor) -> Result<()> {
    check!(
        self_.is_floating_point(),
        "torch.frexp() only supports floating-point dtypes, got dtype {}",
        self_.dtype().short_name()
    );
    let sizes = I::sizes_of(self_)?;
    outs.set_output_raw_strided(0, &sizes, &[], self_.options())?;
    outs.set_output_raw_strided(1, &sizes, &[], self_.options().dtype(ScalarType::Int))
}

/// `heaviside` neither promotes nor takes complex numbers.
pub fn heaviside_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    values: &Tensor,
) -> Result<TensorIterator> {
    check!(
        !self_.is_complex()
            && !values.is_complex()
            && outs.maybe_get_output(0).is_none_or(|out| !out.is_complex()),
        "heaviside is not yet implemented for complex tensors."
    );
    check!(
        self_.dtype() == values.dtype()
            && outs.maybe_get_output(0).is_none_or(|out| out.dtype() == self_.dtype()),
        "heaviside is not yet implemented for tensors with different dtypes."
    );
    TensorIterator::binary_op(outs, "heaviside", self_, values)
}

/// Two real tensors of one dtype make a complex one.
fn complex_of_parts(
    outs: &mut StructuredOutputs,
    name: &'static str,
    a: &Tensor,
    b: &Tensor,
) -> Result<TensorIterator> {
    let real = [ScalarType::Half, ScalarType::Float, ScalarType::Double];
    check!(
        real.contains(&a.dtype()) && real.contains(&b.dtype()),
        "Expected both inputs to be Half, Float or Double tensors but got {} and {}",
        a.dtype().short_name(),
        b.dtype().short_name()
    );
    check!(
        a.dtype() == b.dtype(),
        "Expected object of scalar type {} but got scalar type {} for second argument",
        a.dtype().short_name(),
        b.dtype().short_name()
    );
    let dtype = a.dtype().to_complex()?;
    if let Some(out) = outs.maybe_get_output(0) {
        check!(
            out.dtype() == dtype,
            "Expected object of scalar type {} but got scalar type {} for argument 'out'",
            dtype.short_name(),
            out.dtype().short_name()
        );
    }
    TensorIteratorConfig::new()
        .op_name(name)
        .check_all_same_dtype(false)
        .declare_static_dtype(dtype)
        .add_input(a)
        .add_input(b)
        .build(outs)
}

/// `complex`
pub fn complex_meta(outs: &mut StructuredOutputs, real: &Tensor, imag: &Tensor) -> Result<TensorIterator> {
    complex_of_parts(outs, "complex", real, imag)
}

/// `polar`
pub fn polar_meta(outs: &mut StructuredOutputs, abs: &Tensor, angle: &Tensor) -> Result<TensorIterator> {
    complex_of_parts(outs, "polar", abs, angle)
}

/// `hardtanh`: unsigned numbers have no negative limits.
pub fn hardtanh_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    min_val: &Scalar,
    max_val: &Scalar,
) -> Result<TensorIterator> {
    check!(self_.dtype() != ScalarType::Bool, "Bool inputs not supported for hardtanh");
    if self_.dtype() == ScalarType::Byte {
        check!(
            min_val.to_f64()? >= 0.0 && max_val.to_f64()? >= 0.0,
            "cannot do hardtanh on an unsigned type with negative limits"
        );
    }
    check!(
        min_val.is_symbolic() || max_val.is_symbolic() || min_val.to_f64()? <= max_val.to_f64()?,
        "hardtanh: min_val cannot be greater than max_val"
    );
    TensorIterator::unary_op(outs, "hardtanh", self_)
}

/// `softshrink`
pub fn softshrink_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    lambd: &Scalar,
) -> Result<TensorIterator> {
    let lambda = lambd.to_f64()?;
    check!(lambda >= 0.0, "lambda must be greater or equal to 0, but found to be {lambda}.");
    TensorIterator::unary_op(outs, "softshrink", self_)
}

/// `log_sigmoid_backward`: the buffer, which other backends fill, is not looked at.
pub fn log_sigmoid_backward_meta(
    outs: &mut StructuredOutputs,
    grad_output: &Tensor,
    self_: &Tensor,
    _buffer: &Tensor,
) -> Result<TensorIterator> {
    TensorIterator::binary_op(outs, "log_sigmoid_backward", grad_output, self_)
}
