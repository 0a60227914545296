//! Copies: from any layout and dtype to any other.
//!
//! Elements of one dtype move by their size, whatever they mean. Conjugation and negation bits were resolved before.

mod contiguous;
mod convert;
mod strided;
#[cfg(test)]
mod tests;
mod transposed;

use c10::Result;
use iter::TensorIterator;

use crate::registration::register;

pub(crate) use strided::copy_row;

/// Registers the family.
pub(crate) fn register() {
    register! {
        copy_kernel: fn(&TensorIterator, bool);
    }
}

/// What `iter::COPY_KERNEL` finds. There is nothing to wait for on the CPU, so the flag `non_blocking` says nothing.
pub(crate) fn copy_kernel(iter: &TensorIterator, _non_blocking: bool) -> Result<()> {
    if iter.numel() == 0 {
        return Ok(());
    }
    if iter.dtype(0) != iter.dtype(1) {
        return convert::convert(iter);
    }
    if iter.data_ptr(0) == iter.data_ptr(1) && iter.strides(0) == iter.strides(1) {
        return Ok(());
    }
    if iter.is_contiguous() {
        return contiguous::copy(iter);
    }
    match transposed::Plan::new(iter) {
        Some(plan) => plan.run(),
        None => strided::copy(iter),
    }
}
