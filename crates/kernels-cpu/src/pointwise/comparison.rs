//! `eq`, `ne`, `lt`, `le`, `gt`, `ge`, `maximum`, `minimum`, `fmax`, `fmin`.
//!
//! A comparison computes in the operands' common dtype and writes booleans; with an `out=` of another dtype the
//! iterator keeps a boolean temporary.

use c10::{Result, ScalarType};
use iter::TensorIterator;

use super::complex_half::{self, is_complex_half};
use crate::dispatch::dispatch;
use crate::loops::compute_dtype;
use crate::map::{binary, Stored};
use crate::registration::register;

pub(super) fn register() {
    register! {
        eq_kernel: fn(&TensorIterator);
        ne_kernel: fn(&TensorIterator);
        lt_kernel: fn(&TensorIterator);
        le_kernel: fn(&TensorIterator);
        gt_kernel: fn(&TensorIterator);
        ge_kernel: fn(&TensorIterator);
        maximum_kernel: fn(&TensorIterator);
        minimum_kernel: fn(&TensorIterator);
        fmax_kernel: fn(&TensorIterator);
        fmin_kernel: fn(&TensorIterator);
    }
}

/// The order of a dtype, with NaN the largest for `maximum` and the smallest for `minimum`.
pub(crate) trait Ordered: Stored + PartialOrd {
    /// The larger; NaN if either is.
    fn maximum(self, other: Self) -> Self;
    /// The smaller; NaN if either is.
    fn minimum(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($T:ty),*) => {$(
        impl Ordered for $T {
            #[inline(always)]
            fn maximum(self, other: $T) -> $T { self.max(other) }
            #[inline(always)]
            fn minimum(self, other: $T) -> $T { self.min(other) }
        }
    )*};
}

macro_rules! floats {
    ($($T:ty),*) => {$(
        impl Ordered for $T {
            #[inline(always)]
            fn maximum(self, other: $T) -> $T {
                // A comparison with NaN is false, so `other` comes out; a NaN in `self` is put back.
                let larger = if self > other { self } else { other };
                if self.is_nan() { self } else { larger }
            }
            #[inline(always)]
            fn minimum(self, other: $T) -> $T {
                let smaller = if self < other { self } else { other };
                if self.is_nan() { self } else { smaller }
            }
        }
    )*};
}

integers!(bool, u8, i8, i16, i32, i64);
floats!(f32, f64);

/// A comparison writes one byte per element whatever the output's dtype says: `uint8` outputs exist for `uint8` inputs.
macro_rules! comparison {
    ($($name:ident $op:literal, $sets:ident $(+ $more:ident)*, |$a:ident, $b:ident| $body:expr);* $(;)?) => {$(
        fn $name(iter: &TensorIterator) -> Result<()> {
            debug_assert!(matches!(iter.dtype(0), ScalarType::Bool | ScalarType::Byte));
            dispatch!(compute_dtype(iter.dtype(1)), $op, $sets $(+ $more)*, |T| {
                binary::<T, T, bool>(iter, 1, |$a, $b| $body)
            })
        }
    )*};
}

comparison! {
    wider_eq_kernel "eq_kernel", ALL_AND_COMPLEX + Bool + UInt16 + UInt32 + UInt64, |a, b| a == b;
    wider_ne_kernel "ne_kernel", ALL_AND_COMPLEX + Bool + UInt16 + UInt32 + UInt64, |a, b| a != b;
    lt_kernel "lt_kernel", ALL_AND_BOOL, |a, b| a < b;
    le_kernel "le_kernel", ALL_AND_BOOL, |a, b| a <= b;
    gt_kernel "gt_kernel", ALL_AND_BOOL, |a, b| a > b;
    ge_kernel "ge_kernel", ALL_AND_BOOL, |a, b| a >= b;
}

fn eq_kernel(iter: &TensorIterator) -> Result<()> {
    if is_complex_half(iter.dtype(1)) {
        return complex_half::comparison(iter, |a, b| a == b);
    }
    wider_eq_kernel(iter)
}

fn ne_kernel(iter: &TensorIterator) -> Result<()> {
    if is_complex_half(iter.dtype(1)) {
        return complex_half::comparison(iter, |a, b| a != b);
    }
    wider_ne_kernel(iter)
}

fn maximum_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "maximum_kernel", ALL_AND_BOOL, |T| {
        binary::<T, T, T>(iter, 1, Ordered::maximum)
    })
}

fn minimum_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "minimum_kernel", ALL_AND_BOOL, |T| {
        binary::<T, T, T>(iter, 1, Ordered::minimum)
    })
}

/// `chosen` of the two, or the one that is a number.
macro_rules! ignoring_nan {
    ($($name:ident, $choose:ident);*) => {$(
        fn $name(iter: &TensorIterator) -> Result<()> {
            dispatch!(compute_dtype(iter.common_dtype()), stringify!($name), ALL_AND_BOOL, |T| {
                binary::<T, T, T>(iter, 1, |a: T, b: T| {
                    #[allow(clippy::eq_op)]
                    let (a_is_nan, b_is_nan) = (a != a, b != b);
                    let chosen = if a_is_nan { b } else { Ordered::$choose(a, b) };
                    if b_is_nan { a } else { chosen }
                })
            })
        }
    )*};
}

ignoring_nan!(fmax_kernel, maximum; fmin_kernel, minimum);
