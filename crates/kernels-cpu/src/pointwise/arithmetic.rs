//! `add`, `sub`, `mul`, `neg`, `reciprocal`, `conj_physical`.

use c10::{BFloat16, Half, Result, Scalar, ScalarType};
use iter::TensorIterator;
use num_complex::Complex;

use super::complex_half::{self, is_complex_half, Wide};
use super::number::{Field, Number};
use crate::dispatch::dispatch;
use crate::loops::{compute_dtype, unrounded_scalar};
use crate::map::{binary, unary};
use crate::registration::register;

pub(super) fn register() {
    register! {
        add_kernel: fn(&TensorIterator, &Scalar);
        sub_kernel: fn(&TensorIterator, &Scalar);
        mul_kernel: fn(&TensorIterator);
        neg_kernel: fn(&TensorIterator);
        reciprocal_kernel: fn(&TensorIterator);
        conj_physical_kernel: fn(&TensorIterator);
    }
}

pub(crate) fn add_kernel(iter: &TensorIterator, alpha: &Scalar) -> Result<()> {
    if is_complex_half(iter.common_dtype()) {
        let alpha = alpha.to::<Wide>()?;
        return complex_half::arithmetic(iter, move |a, b| b.multiply_add(alpha, a));
    }
    if add_scaled_halves(iter, alpha, 1.0)? {
        return Ok(());
    }
    dispatch!(compute_dtype(iter.common_dtype()), "add_kernel", ALL_AND_COMPLEX + Bool, |T| {
        let alpha = alpha.to::<T>()?;
        if alpha == <T as c10::Element>::ONE {
            binary::<T, T, T>(iter, 1, |a, b| a.add(b))
        } else {
            binary::<T, T, T>(iter, 1, move |a, b| b.multiply_add(alpha, a))
        }
    })
}

fn sub_kernel(iter: &TensorIterator, alpha: &Scalar) -> Result<()> {
    if is_complex_half(iter.common_dtype()) {
        let alpha = alpha.to::<Wide>()?.neg();
        return complex_half::arithmetic(iter, move |a, b| b.multiply_add(alpha, a));
    }
    if add_scaled_halves(iter, alpha, -1.0)? {
        return Ok(());
    }
    dispatch!(compute_dtype(iter.common_dtype()), "sub_kernel", ALL_AND_COMPLEX, |T| {
        let alpha = alpha.to::<T>()?;
        if alpha == <T as c10::Element>::ONE {
            binary::<T, T, T>(iter, 1, |a, b| a.sub(b))
        } else {
            let alpha = alpha.neg();
            binary::<T, T, T>(iter, 1, move |a, b| b.multiply_add(alpha, a))
        }
    })
}

/// `a + sign·alpha·b` of halves with PyTorch's bits, if that is what is asked for. `alpha` is rounded to the dtype.
/// Where PyTorch computes 32 elements at once the product is not rounded; in what is left of a row, and where elements
/// are not side by side, it is.
fn add_scaled_halves(iter: &TensorIterator, alpha: &Scalar, sign: f32) -> Result<bool> {
    fn run<H: c10::Element>(iter: &TensorIterator, alpha: &Scalar, sign: f32) -> Result<bool> {
        let round = |value: f32| H::cast_from(value).to_f64() as f32;
        let alpha = alpha.to::<H>()?.to_f64() as f32 * sign;
        if alpha == sign {
            return Ok(false);
        }
        const AT_ONCE: i64 = 32;
        let rounded = move |a: f32, b: f32| a + round(alpha * b);
        let n = iter.numel() as i64;
        let whole = if is_row(iter) { n - n % AT_ONCE } else { 0 };
        if whole == 0 {
            binary(iter, 1, rounded)?;
            return Ok(true);
        }
        let at_once = move |a: f32, b: f32| b.multiply_add(alpha, a);
        let (mut head, mut tail) = (iter.clone(), iter.clone());
        head.narrow(0, 0, whole)?;
        tail.narrow(0, whole, n - whole)?;
        binary(&head, 1, at_once)?;
        binary(&tail, 1, rounded)?;
        Ok(true)
    }
    match iter.common_dtype() {
        ScalarType::Half => run::<Half>(iter, alpha, sign),
        ScalarType::BFloat16 => run::<BFloat16>(iter, alpha, sign),
        _ => Ok(false),
    }
}

/// Whether the operands are one row of elements side by side, all or all but one input, which is one element.
fn is_row(iter: &TensorIterator) -> bool {
    let stride = |arg: usize| iter.strides(arg)[0];
    let dense = |arg: usize| stride(arg) == iter.element_size(arg) as i64;
    iter.ndim() == 1
        && dense(0)
        && (dense(1) || stride(1) == 0)
        && (dense(2) || stride(2) == 0)
        && (dense(1) || dense(2))
}

pub(crate) fn mul_kernel(iter: &TensorIterator) -> Result<()> {
    if let Some(factor) = unrounded_scalar(iter, 2) {
        return binary::<f32, f32, f32>(iter, 1, move |a, _| a * factor);
    }
    if is_complex_half(iter.common_dtype()) {
        return complex_half::arithmetic(iter, |a, b| a.mul(b));
    }
    dispatch!(compute_dtype(iter.common_dtype()), "mul_kernel", ALL_AND_COMPLEX + Bool, |T| {
        binary::<T, T, T>(iter, 1, |a, b| a.mul(b))
    })
}

fn neg_kernel(iter: &TensorIterator) -> Result<()> {
    if complex_half::is_complex_half(iter.common_dtype()) {
        return complex_half::map(iter, |z| -z);
    }
    dispatch!(compute_dtype(iter.common_dtype()), "neg_kernel", ALL_AND_COMPLEX, |T| {
        unary::<T, T>(iter, 1, |a: T| a.neg())
    })
}

fn reciprocal_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "reciprocal_kernel", FLOATING_AND_COMPLEX, |T| {
        unary::<T, T>(iter, 2, |a: T| <T as c10::Element>::ONE.div(a))
    })
}

fn conj_physical_kernel(iter: &TensorIterator) -> Result<()> {
    match iter.common_dtype() {
        c10::ScalarType::ComplexHalf => unary(iter, 1, |a: Complex<c10::Half>| Complex::new(a.re, -a.im)),
        c10::ScalarType::ComplexFloat => unary(iter, 1, |a: Complex<f32>| a.conj()),
        c10::ScalarType::ComplexDouble => unary(iter, 1, |a: Complex<f64>| a.conj()),
        // The conjugate of a real number is the number.
        _ => iter::copy_into(iter.output(0), iter.input(0), false),
    }
}
