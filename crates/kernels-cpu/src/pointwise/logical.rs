//! `logical_and`, `logical_or`, `logical_xor`, `logical_not`: anything but zero is true, NaN included.

use c10::{Element, Result};
use iter::TensorIterator;

use crate::dispatch::dispatch;
use crate::loops::compute_dtype;
use crate::map::{binary, unary};
use crate::registration::register;

pub(super) fn register() {
    register! {
        logical_and_kernel: fn(&TensorIterator);
        logical_or_kernel: fn(&TensorIterator);
        logical_xor_kernel: fn(&TensorIterator);
        logical_not_kernel: fn(&TensorIterator);
    }
}

fn logical_and_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.dtype(1)), "logical_and_kernel", ALL_AND_COMPLEX + Bool, |T| {
        binary::<T, T, bool>(iter, 1, |a, b| Element::to_bool(a) & Element::to_bool(b))
    })
}

fn logical_or_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.dtype(1)), "logical_or_kernel", ALL_AND_COMPLEX + Bool, |T| {
        binary::<T, T, bool>(iter, 1, |a, b| Element::to_bool(a) | Element::to_bool(b))
    })
}

fn logical_xor_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.dtype(1)), "logical_xor_kernel", ALL_AND_COMPLEX + Bool, |T| {
        binary::<T, T, bool>(iter, 1, |a, b| Element::to_bool(a) ^ Element::to_bool(b))
    })
}

fn logical_not_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.dtype(1)), "logical_not_kernel", ALL_AND_COMPLEX + Bool, |T| {
        unary::<T, bool>(iter, 1, |a: T| !Element::to_bool(a))
    })
}
