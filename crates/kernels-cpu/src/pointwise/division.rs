//! `div` in its three rounding modes, `floor_divide`, `remainder`, `fmod`.
//!
//! Integer division by zero is an error, found by looking at the divisors before any result is written, so that an
//! in-place operator leaves its tensor as it was.

use std::sync::atomic::{AtomicBool, Ordering};

use c10::{check, BFloat16, Element, Half, Result, ScalarType};
use iter::TensorIterator;

use super::number::Field;
use crate::dispatch::dispatch;
use crate::loops::{compute_dtype, unrounded_scalar};
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
    /// `round` is what intermediate results go through: see [`Round`].
    fn div_trunc(self, other: Self, round: impl Fn(Self) -> Self) -> Self;
    fn div_floor(self, other: Self, round: impl Fn(Self) -> Self) -> Self;
    fn remainder(self, other: Self) -> Self;
    fn fmod(self, other: Self) -> Self;
}

macro_rules! unsigned {
    ($($T:ty),*) => {$(
        impl Divide for $T {
            const IS_INTEGER: bool = true;
            // The divisor is not zero: see the module's documentation.
            #[inline(always)]
            fn div_trunc(self, other: $T, _: impl Fn($T) -> $T) -> $T { self.checked_div(other).unwrap_or(0) }
            #[inline(always)]
            fn div_floor(self, other: $T, _: impl Fn($T) -> $T) -> $T { self.checked_div(other).unwrap_or(0) }
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
            fn div_trunc(self, other: $T, _: impl Fn($T) -> $T) -> $T {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
            #[inline(always)]
            fn div_floor(self, other: $T, _: impl Fn($T) -> $T) -> $T {
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
            fn div_trunc(self, other: $T, round: impl Fn($T) -> $T) -> $T { round(self / other).trunc() }
            #[inline(always)]
            fn div_floor(self, other: $T, round: impl Fn($T) -> $T) -> $T {
                if other == 0.0 {
                    return self / other;
                }
                let rest = round(self % other);
                let mut quotient = round(round(self - rest) / other);
                if rest != 0.0 && (other < 0.0) != (rest < 0.0) {
                    quotient = round(quotient - 1.0);
                }
                if quotient == 0.0 {
                    return (0.0 as $T).copysign(self / other);
                }
                let floor = quotient.floor();
                if round(quotient - floor) > 0.5 { round(floor + 1.0) } else { floor }
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

/// What the steps of a division are rounded to. PyTorch rounds each step of a division of half tensors to the dtype,
/// and only the result where the divisor is one number.
trait Round<T> {
    fn round(value: T) -> T;
}

/// To the type that is computed in.
struct Exact;

impl<T> Round<T> for Exact {
    #[inline(always)]
    fn round(value: T) -> T {
        value
    }
}

/// To a half.
struct To<H>(std::marker::PhantomData<H>);

impl<H: Element> Round<f32> for To<H> {
    #[inline(always)]
    fn round(value: f32) -> f32 {
        H::cast_from(value).to_f32()
    }
}

/// A division with an integral quotient.
trait IntegralQuotient {
    const NAME: &'static str;
    const COST: usize;
    fn divide<T: Divide, R: Round<T>>(a: T, b: T) -> T;
}

struct Trunc;

impl IntegralQuotient for Trunc {
    const NAME: &'static str = "div_trunc_kernel";
    const COST: usize = 2;
    #[inline(always)]
    fn divide<T: Divide, R: Round<T>>(a: T, b: T) -> T {
        a.div_trunc(b, R::round)
    }
}

struct Floor;

impl IntegralQuotient for Floor {
    const NAME: &'static str = "div_floor_kernel";
    const COST: usize = 8;
    #[inline(always)]
    fn divide<T: Divide, R: Round<T>>(a: T, b: T) -> T {
        a.div_floor(b, R::round)
    }
}

fn integral_quotient<Q: IntegralQuotient>(iter: &TensorIterator) -> Result<()> {
    if let Some(divisor) = unrounded_scalar(iter, 2) {
        return binary::<f32, f32, f32>(iter, Q::COST, move |a, _| Q::divide::<f32, Exact>(a, divisor));
    }
    match iter.common_dtype() {
        ScalarType::Half => binary(iter, Q::COST, Q::divide::<f32, To<Half>>),
        ScalarType::BFloat16 => binary(iter, Q::COST, Q::divide::<f32, To<BFloat16>>),
        dtype => dispatch!(dtype, Q::NAME, ALL, |T| {
            check_divisors::<T>(iter, 2)?;
            binary::<T, T, T>(iter, Q::COST, Q::divide::<T, Exact>)
        }),
    }
}

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
    if let Some(divisor) = unrounded_scalar(iter, 2) {
        return binary::<f32, f32, f32>(iter, 1, move |a, _| a / divisor);
    }
    dispatch!(compute_dtype(iter.common_dtype()), "div_true_kernel", FLOATING_AND_COMPLEX, |T| {
        binary::<T, T, T>(iter, 1, |a, b| a.div(b))
    })
}

fn div_mode_kernel(iter: &TensorIterator, rounding_mode: Option<&str>) -> Result<()> {
    match rounding_mode {
        None => div_true_kernel(iter),
        Some("floor") => integral_quotient::<Floor>(iter),
        Some(_) => integral_quotient::<Trunc>(iter),
    }
}

fn div_floor_kernel(iter: &TensorIterator) -> Result<()> {
    integral_quotient::<Floor>(iter)
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
