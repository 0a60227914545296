//! `bitwise_and`, `bitwise_or`, `bitwise_xor`, `bitwise_not`.

use c10::Result;
use iter::TensorIterator;

use crate::dispatch::dispatch;
use crate::map::{binary, unary};
use crate::registration::register;

pub(super) fn register() {
    register! {
        bitwise_and_kernel: fn(&TensorIterator);
        bitwise_or_kernel: fn(&TensorIterator);
        bitwise_xor_kernel: fn(&TensorIterator);
        bitwise_not_kernel: fn(&TensorIterator);
    }
}

fn bitwise_and_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(iter.common_dtype(), "bitwise_and_kernel", INTEGRAL_AND_BOOL, |T| {
        binary::<T, T, T>(iter, 1, |a, b| a & b)
    })
}

fn bitwise_or_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(iter.common_dtype(), "bitwise_or_kernel", INTEGRAL_AND_BOOL, |T| {
        binary::<T, T, T>(iter, 1, |a, b| a | b)
    })
}

fn bitwise_xor_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(iter.common_dtype(), "bitwise_xor_kernel", INTEGRAL_AND_BOOL, |T| {
        binary::<T, T, T>(iter, 1, |a, b| a ^ b)
    })
}

fn bitwise_not_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(iter.common_dtype(), "bitwise_not_kernel", INTEGRAL_AND_BOOL, |T| {
        unary::<T, T>(iter, 1, |a: T| !a)
    })
}
