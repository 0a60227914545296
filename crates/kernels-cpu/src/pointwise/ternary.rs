//! `where`, `addcmul`, `addcdiv`, `lerp`.

use c10::{Element, Result, Scalar};
use iter::TensorIterator;

use super::number::{Field, Number};
use crate::dispatch::dispatch;
use crate::loops::compute_dtype;
use crate::map::{binary, ternary};
use crate::registration::register;

pub(super) fn register() {
    register! {
        where_kernel: fn(&TensorIterator);
        addcmul_kernel: fn(&TensorIterator, &Scalar);
        addcdiv_kernel: fn(&TensorIterator, &Scalar);
        lerp_scalar_kernel: fn(&TensorIterator, &Scalar);
        lerp_tensor_kernel: fn(&TensorIterator);
    }
}

fn where_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.dtype(0)), "where_kernel", EVERY, |T| {
        ternary::<bool, T, T>(iter, 1, |condition, a, b| if condition { a } else { b })
    })
}

fn addcmul_kernel(iter: &TensorIterator, value: &Scalar) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "addcmul_kernel", ALL_AND_COMPLEX, |T| {
        let value = value.to::<T>()?;
        ternary::<T, T, T>(iter, 2, move |a, b, c| Number::add(a, Number::mul(Number::mul(value, b), c)))
    })
}

fn addcdiv_kernel(iter: &TensorIterator, value: &Scalar) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "addcdiv_kernel", FLOATING_AND_COMPLEX, |T| {
        let value = value.to::<T>()?;
        ternary::<T, T, T>(iter, 2, move |a, b, c| Number::add(a, Field::div(Number::mul(value, b), c)))
    })
}

/// Interpolates from the nearer end, so that both ends are reached exactly.
#[inline(always)]
fn lerp<T: Number>(start: T, end: T, weight: T, weight_is_small: bool) -> T {
    let span = Number::sub(end, start);
    if weight_is_small {
        Number::add(start, Number::mul(weight, span))
    } else {
        Number::sub(end, Number::mul(span, Number::sub(<T as Element>::ONE, weight)))
    }
}

/// Whether a weight is nearer to the start.
#[inline(always)]
fn is_small<T: Element>(weight: T) -> bool {
    let (re, im) = (weight.to_f64(), weight.imag_f64());
    if im == 0.0 {
        re.abs() < 0.5
    } else {
        re.hypot(im) < 0.5
    }
}

fn lerp_scalar_kernel(iter: &TensorIterator, weight: &Scalar) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "lerp_scalar_kernel", FLOATING_AND_COMPLEX, |T| {
        let weight = weight.to::<T>()?;
        let small = is_small(weight);
        binary::<T, T, T>(iter, 2, move |start, end| lerp(start, end, weight, small))
    })
}

fn lerp_tensor_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "lerp_tensor_kernel", FLOATING_AND_COMPLEX, |T| {
        ternary::<T, T, T>(iter, 2, |start, end, weight| lerp(start, end, weight, is_small(weight)))
    })
}
