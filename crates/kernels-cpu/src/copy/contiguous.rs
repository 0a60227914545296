//! Dense copies: bytes, split over the threads.

use c10::Result;
use iter::{parallel, TensorIterator};

use crate::address::Address;

/// Bytes that one thread copies at a time: a multiple of the page size, large enough to hide the hand-over.
const PIECE: usize = 1 << 19;

/// Copies an iterator that is one dense row in both operands.
pub(super) fn copy(iter: &TensorIterator) -> Result<()> {
    let nbytes = iter.numel() * iter.element_size(0);
    let (to, from) = (Address(iter.data_ptr(0)), Address(iter.data_ptr(1)));
    parallel::parallel_for(0, nbytes, PIECE, &|begin, end| {
        let (to, from) = (to.offset(begin as i64), from.offset(begin as i64));
        // SAFETY: the iterator checked that both operands have these bytes; pieces are disjoint. `copy` allows for
        // an operand that lies partly over the other, which the iterator refuses only where it can tell.
        unsafe { std::ptr::copy(from.0, to.0, end - begin) };
    })
}
