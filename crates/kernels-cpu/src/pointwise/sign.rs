//! `abs`, `sign`, `sgn`, `copysign`.

use c10::{Element, Result, ScalarType};
use iter::TensorIterator;
use num_complex::Complex;

use super::complex_half;
use crate::dispatch::dispatch;
use crate::loops::compute_dtype;
use crate::map::{binary, unary, Stored};
use crate::registration::register;

pub(super) fn register() {
    register! {
        abs_kernel: fn(&TensorIterator);
        sign_kernel: fn(&TensorIterator);
        sgn_kernel: fn(&TensorIterator);
        copysign_kernel: fn(&TensorIterator);
    }
}

trait Signed: Stored {
    fn abs(self) -> Self;
    fn sign(self) -> Self;
}

macro_rules! signed {
    ($($T:ty: |$a:ident| $abs:expr),* $(,)?) => {$(
        impl Signed for $T {
            #[inline(always)]
            fn abs(self) -> $T {
                let $a = self;
                $abs
            }
            #[inline(always)]
            fn sign(self) -> $T {
                // NaN is neither above nor below zero, and has the sign 0.
                let zero = <$T as Element>::ZERO;
                if self > zero {
                    <$T as Element>::ONE
                } else if self < zero {
                    zero - <$T as Element>::ONE
                } else {
                    zero
                }
            }
        }
    )*};
}

signed! {
    i8: |a| a.wrapping_abs(), i16: |a| a.wrapping_abs(), i32: |a| a.wrapping_abs(), i64: |a| a.wrapping_abs(),
    f32: |a| a.abs(), f64: |a| a.abs(),
}

impl Signed for u8 {
    #[inline(always)]
    fn abs(self) -> u8 {
        self
    }
    #[inline(always)]
    fn sign(self) -> u8 {
        (self != 0) as u8
    }
}

impl Signed for bool {
    #[inline(always)]
    fn abs(self) -> bool {
        self
    }
    #[inline(always)]
    fn sign(self) -> bool {
        self
    }
}

/// Of a complex tensor the result is real; `hypot` neither overflows nor underflows on the way.
fn abs_kernel(iter: &TensorIterator) -> Result<()> {
    match iter.dtype(1) {
        ScalarType::ComplexHalf => return complex_half::abs(iter),
        ScalarType::ComplexFloat => return unary(iter, 8, |z: Complex<f32>| z.re.hypot(z.im)),
        ScalarType::ComplexDouble => return unary(iter, 8, |z: Complex<f64>| z.re.hypot(z.im)),
        _ => {}
    }
    dispatch!(compute_dtype(iter.dtype(1)), "abs_cpu", ALL, |T| {
        unary::<T, T>(iter, 1, |a: T| Signed::abs(a))
    })
}

fn sign_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "sign_kernel", ALL_AND_BOOL, |T| {
        unary::<T, T>(iter, 1, |a: T| Signed::sign(a))
    })
}

/// `z / |z|`, and 0 at 0.
fn sgn_kernel(iter: &TensorIterator) -> Result<()> {
    match iter.common_dtype() {
        ScalarType::ComplexFloat => unary(iter, 8, |z: Complex<f32>| {
            let length = z.re.hypot(z.im);
            if length == 0.0 {
                Complex::new(0.0, 0.0)
            } else {
                z / length
            }
        }),
        ScalarType::ComplexDouble => unary(iter, 8, |z: Complex<f64>| {
            let length = z.re.hypot(z.im);
            if length == 0.0 {
                Complex::new(0.0, 0.0)
            } else {
                z / length
            }
        }),
        _ => sign_kernel(iter),
    }
}

fn copysign_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "copysign_cpu", FLOATING, |T| {
        binary::<T, T, T>(iter, 1, |a: T, b: T| a.copysign(b))
    })
}
