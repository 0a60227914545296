//! `div` in its three rounding modes, `floor_divide`, `remainder`, `fmod`.
//!
//! Integer division by zero is an error, found by looking at the divisors before any result is written, so that an
//! in-place operator leaves its tensor as it was.

use std::sync::atomic::{AtomicBool, Ordering};

use c10::{check, Element, Result};
use iter::TensorIterator;

use super::number::Field;
use crate::dispatch::dispatch;
use crate::loops::compute_dtype;
use crate::map::{binary, Stored};
use crate::registration::register;

pub(super) fn register() {
    register! {
        div_true_kernel: fn(&TensorIterator);
        div_mode_kernel: fn(&TensorIterator, Option<&str>);
        div_floor_kernel: fn(&TensorIterator);
        remainder_kernel: fn(&TensorIterator);
        fmod_kernel: fn(&TensorIterator);
    }
}

/// Division with a remainder.
trait Divide: Stored {
    const IS_INTEGER: bool;
    fn div_trunc(self, other: Self) -> Self;
    fn div_floor(self, other: Self) -> Self;
    fn remainder(self, other: Self) -> Self;
    fn fmod(self, other: Self) -> Self;
}

macro_rules! unsigned {
    ($($T:ty),*) => {$(
        impl Divide for $T {
            const IS_INTEGER: bool = true;
            // The divisor is not zero: see the module's documentation.
            #[inline(always)]
            fn div_trunc(self, other: $T) -> $T { self.checked_div(other).unwrap_or(0) }
            #[inline(always)]
            fn div_floor(self, other: $T) -> $T { self.checked_div(other).unwrap_or(0) }
            #[inline(always)]
            fn remainder(self, other: $T) -> $T { self.checked_rem(other).unwrap_or(0) }
            #[inline(always)]
            fn fmod(self, other: $T) -> $T { self.checked_rem(other).unwrap_or(0) }
        }
    )*};
}

macro_rules! signed {
    ($($T:ty),*) => {$(
        impl Divide for $T {
            const IS_INTEGER: bool = true;
            #[inline(always)]
            fn div_trunc(self, other: $T) -> $T {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
            #[inline(always)]
            fn div_floor(self, other: $T) -> $T {
                if other == 0 {
                    return 0;
                }
                let (quotient, rest) = (self.wrapping_div(other), self.wrapping_rem(other));
                if rest != 0 && (rest < 0) != (other < 0) { quotient - 1 } else { quotient }
            }
            #[inline(always)]
            fn remainder(self, other: $T) -> $T {
                if other == 0 {
                    return 0;
                }
                let rest = self.wrapping_rem(other);
                if rest != 0 && (rest < 0) != (other < 0) { rest + other } else { rest }
            }
            #[inline(always)]
            fn fmod(self, other: $T) -> $T {
                if other == 0 { 0 } else { self.wrapping_rem(other) }
            }
        }
    )*};
}

/// Python's definitions: the remainder has the divisor's sign, and the quotient is consistent with it.
macro_rules! floats {
    ($($T:ty),*) => {$(
        impl Divide for $T {
            const IS_INTEGER: bool = false;
            #[inline(always)]
            fn div_trunc(self, other: $T) -> $T { (self / other).trunc() }
            #[inline(always)]
            fn div_floor(self, other: $T) -> $T {
                if other == 0.0 {
                    return self / other;
                }
                let rest = self % other;
                let mut quotient = (self - rest) / other;
                if rest != 0.0 && (other < 0.0) != (rest < 0.0) {
                    quotient -= 1.0;
                }
                if quotient == 0.0 {
                    return (0.0 as $T).copysign(self / other);
                }
                let floor = quotient.floor();
                if quotient - floor > 0.5 { floor + 1.0 } else { floor }
            }
            #[inline(always)]
            fn remainder(self, other: $T) -> $T {
                let rest = self % other;
                if rest != 0.0 && (other < 0.0) != (rest < 0.0) { rest + other } else { rest }
            }
            #[inline(always)]
            fn fmod(self, other: $T) -> $T { self % other }
        }
    )*};
}

unsigned!(u8);
signed!(i8, i16, i32, i64);
floats!(f32, f64);

/// Refuses integer divisors that are zero; `arg` is the divisor's place among the operands.
fn check_divisors<T: Divide>(iter: &TensorIterator, arg: usize) -> Result<()> {
    if !T::IS_INTEGER {
        return Ok(());
    }
    let found = AtomicBool::new(false);
    iter.for_each(
        &|data, strides, n| {
            let zero = (0..n as isize).any(|i| {
                // SAFETY: the iterator's own addresses of an operand of dtype T.
                let value = unsafe { data[arg].offset(i * strides[arg] as isize).cast::<T>().read() };
                value == <T as Element>::ZERO
            });
            if zero {
                found.store(true, Ordering::Relaxed);
            }
        },
        iter::parallel::GRAIN_SIZE,
    )?;
    check!(!found.into_inner(), "ZeroDivisionError");
    Ok(())
}

fn div_true_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "div_true_kernel", FLOATING_AND_COMPLEX, |T| {
        binary::<T, T, T>(iter, 1, |a, b| a.div(b))
    })
}

fn div_mode_kernel(iter: &TensorIterator, rounding_mode: Option<&str>) -> Result<()> {
    match rounding_mode {
        None => div_true_kernel(iter),
        Some("floor") => div_floor_kernel(iter),
        Some(_) => dispatch!(compute_dtype(iter.common_dtype()), "div_trunc_kernel", ALL, |T| {
            check_divisors::<T>(iter, 2)?;
            binary::<T, T, T>(iter, 2, |a, b| a.div_trunc(b))
        }),
    }
}

fn div_floor_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "div_floor_kernel", ALL, |T| {
        check_divisors::<T>(iter, 2)?;
        binary::<T, T, T>(iter, 8, Divide::div_floor)
    })
}

fn remainder_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "remainder_kernel", ALL, |T| {
        check_divisors::<T>(iter, 2)?;
        binary::<T, T, T>(iter, 8, Divide::remainder)
    })
}

fn fmod_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "fmod_kernel", ALL, |T| {
        check_divisors::<T>(iter, 2)?;
        binary::<T, T, T>(iter, 8, |a, b| a.fmod(b))
    })
}
