//! Meta functions of the `factory` operators: `out` decides dtype and device, the arguments its size.

use c10::{check, check_not_implemented, check_value, Result, Scalar, ScalarType, SizeInt, SizeVector};
use iter::StructuredOutputs;

/// How many elements `arange` gives.
pub fn arange_length<I: SizeInt>(start: &Scalar, end: &Scalar, step: &Scalar) -> Result<I> {
    if [start, end, step].into_iter().any(Scalar::is_symbolic) {
        return symbolic_arange_length(start, end, step);
    }
    plain_arange_length(start, end, step).map(I::from)
}

/// The length as an expression; a symbolic step is decided on.
fn symbolic_arange_length<I: SizeInt>(start: &Scalar, end: &Scalar, step: &Scalar) -> Result<I> {
    let (mut start, mut end) = (start.to_sym_int()?, end.to_sym_int()?);
    let mut step = step.to_sym_int()?.guard_int()?;
    check!(step != 0, "step must be nonzero");
    if step < 0 {
        (start, end) = (end, start);
        step = step.saturating_neg();
    }
    let span = end.sym_sub(&start)?;
    check!(span.expect_nonnegative()?, "upper bound and lower bound inconsistent with step sign");
    I::from_sym(&span.sym_ceildiv(&step.into())?)
}

fn plain_arange_length(start: &Scalar, end: &Scalar, step: &Scalar) -> Result<i64> {
    let integral = [start, end, step].iter().all(|scalar| scalar.is_integral(true));
    if integral {
        let (start, end, step) = (start.to_i64()?, end.to_i64()?, step.to_i64()?);
        check!(step != 0, "step must be nonzero");
        check!(
            (step > 0 && end >= start) || (step < 0 && end <= start),
            "upper bound and lower bound inconsistent with step sign"
        );
        let span = (i128::from(end) - i128::from(start)).unsigned_abs();
        let length = span.div_ceil(i128::from(step).unsigned_abs());
        return i64::try_from(length).map_err(|_| invalid_length(length as f64));
    }
    let (start, end, step) = (start.to_f64()?, end.to_f64()?, step.to_f64()?);
    check!(step != 0.0, "step must be nonzero");
    check!(start.is_finite() && end.is_finite(), "unsupported range: {start} -> {end}");
    check!(
        (step > 0.0 && end >= start) || (step < 0.0 && end <= start),
        "upper bound and lower bound inconsistent with step sign"
    );
    let length = ((end - start) / step).ceil();
    if !(0.0..=i64::MAX as f64).contains(&length) {
        return Err(invalid_length(length));
    }
    Ok(length as i64)
}

fn invalid_length(length: f64) -> c10::Error {
    c10::Error::runtime(format!("invalid size, possible overflow? (arange of {length} elements)"))
}

/// A number without its fraction.
fn truncated(value: &Scalar) -> Result<Scalar> {
    value.to_i64().map(Scalar::Int)
}

/// `arange` into `out`.
pub fn arange_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    start: &Scalar,
    end: &Scalar,
    step: &Scalar,
) -> Result<()> {
    let options = outs.output(0)?.options();
    let symbolic = [start, end, step].into_iter().any(Scalar::is_symbolic);
    let integral = options.dtype_or_default() == ScalarType::Long;
    let length: I = if symbolic {
        arange_length(start, end, step)?
    } else if integral && !step.is_complex() {
        // An int64 range is counted in integers; others, as in PyTorch, in floating point.
        let (start, end, step) = (truncated(start)?, truncated(end)?, truncated(step)?);
        check_value!(step != Scalar::Int(0), "step must be nonzero");
        arange_length(&start, &end, &step)?
    } else {
        arange_length(
            &Scalar::Float(start.to_f64()?),
            &Scalar::Float(end.to_f64()?),
            &Scalar::Float(step.to_f64()?),
        )?
    };
    set_length(outs, length)
}

/// An `out` of the right number of elements keeps its shape.
fn set_length<I: SizeInt>(outs: &mut StructuredOutputs, length: I) -> Result<()> {
    let out = outs.output(0)?;
    let options = out.options();
    let sizes = if I::numel_of(out)?.guard_eq(&length)? {
        I::to_vector(&I::sizes_of(out)?)
    } else {
        SizeVector::from_elem(length, 1)
    };
    outs.set_output_contiguous(0, &sizes, options)
}

/// `linspace` into `out`.
pub fn linspace_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    _start: &Scalar,
    _end: &Scalar,
    steps: i64,
) -> Result<()> {
    check!(steps >= 0, "number of steps must be non-negative");
    let is_bool = outs.maybe_get_output(0).is_some_and(|out| out.dtype() == ScalarType::Bool);
    check_not_implemented!(steps < 2 || !is_bool, "\"linspace_cpu\" not implemented for 'Bool'");
    set_length(outs, I::from(steps))
}
