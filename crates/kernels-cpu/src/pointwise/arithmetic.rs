//! `add`, `sub`, `mul`, `neg`, `reciprocal`, `conj_physical`.

use c10::{Result, Scalar};
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
