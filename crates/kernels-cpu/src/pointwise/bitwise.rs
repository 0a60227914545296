//! `bitwise_and`, `bitwise_or`, `bitwise_xor`, `bitwise_not`, `bitwise_left_shift`, `bitwise_right_shift`.

use c10::Result;
use iter::TensorIterator;

use crate::dispatch::dispatch;
use crate::map::{binary, unary, Stored};
use crate::registration::register;

pub(super) fn register() {
    register! {
        bitwise_and_kernel: fn(&TensorIterator);
        bitwise_or_kernel: fn(&TensorIterator);
        bitwise_xor_kernel: fn(&TensorIterator);
        bitwise_not_kernel: fn(&TensorIterator);
        bitwise_left_shift_kernel: fn(&TensorIterator);
        bitwise_right_shift_kernel: fn(&TensorIterator);
    }
}

fn bitwise_and_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(iter.common_dtype(), "bitwise_and_kernel", INTEGRAL_AND_BOOL + UInt16 + UInt32 + UInt64, |T| {
        binary::<T, T, T>(iter, 1, |a, b| a & b)
    })
}

fn bitwise_or_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(iter.common_dtype(), "bitwise_or_kernel", INTEGRAL_AND_BOOL + UInt16 + UInt32 + UInt64, |T| {
        binary::<T, T, T>(iter, 1, |a, b| a | b)
    })
}

fn bitwise_xor_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(iter.common_dtype(), "bitwise_xor_kernel", INTEGRAL_AND_BOOL + UInt16 + UInt32 + UInt64, |T| {
        binary::<T, T, T>(iter, 1, |a, b| a ^ b)
    })
}

fn bitwise_not_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(iter.common_dtype(), "bitwise_not_kernel", INTEGRAL_AND_BOOL + UInt16 + UInt32 + UInt64, |T| {
        unary::<T, T>(iter, 1, |a: T| !a)
    })
}

/// Shifts with PyTorch's answer for any distance: one that is negative, or reaches the width, moves every bit out.
trait Shift: Stored {
    /// Zeros come in.
    fn left(self, distance: Self) -> Self;
    /// The sign comes in.
    fn right(self, distance: Self) -> Self;
}

macro_rules! shift {
    ($($T:ty),*) => {$(
        impl Shift for $T {
            #[inline(always)]
            fn left(self, distance: $T) -> $T {
                // A negative distance is a large one as u64.
                if (distance as u64) < <$T>::BITS as u64 { self << distance } else { 0 }
            }
            #[inline(always)]
            fn right(self, distance: $T) -> $T {
                const LAST: u32 = <$T>::BITS - 1;
                let within = (distance as u64) <= LAST as u64;
                let vacated = if <$T>::MIN == 0 { 0 } else { self >> LAST };
                if within { self >> distance } else { vacated }
            }
        }
    )*};
}

shift!(u8, i8, i16, i32, i64);

fn bitwise_left_shift_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(iter.common_dtype(), "lshift_cpu", INTEGRAL, |T| {
        binary::<T, T, T>(iter, 1, <T as Shift>::left)
    })
}

fn bitwise_right_shift_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(iter.common_dtype(), "rshift_cpu", INTEGRAL, |T| {
        binary::<T, T, T>(iter, 1, <T as Shift>::right)
    })
}
