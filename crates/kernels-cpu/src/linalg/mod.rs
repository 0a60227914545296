//! Products of matrices and vectors.
//!
//! [`gemm`] chooses an algorithm by shape: [`small`] for what fits registers, [`gemv`] where one side is a vector, and
//! [`blocked`] for everything else; convolutions multiply [`panel`]s that they pack themselves. The last two are made
//! of the same [`tile`]s. None of them lets the number of threads change a bit of the result.

pub(crate) mod blocked;
mod bmm;
mod dot;
mod element;
pub(crate) mod gemm;
mod gemv;
pub(crate) mod implicit;
mod interleave;
mod lanes;
pub(crate) mod matrix;
mod mm;
pub(crate) mod pack;
mod scratch;
mod small;
#[cfg(test)]
mod tests;
pub(crate) mod tile;
#[cfg(test)]
pub(crate) mod timings;
mod triangle;

pub(crate) use element::{Accumulator, LinalgElement};
pub(crate) use gemm::gemm;
pub(crate) use matrix::Matrix;
pub(crate) use pack::pack;
pub(crate) use scratch::{try_with_scratch, PlainNumber};

/// Registers the family.
pub(crate) fn register() {
    bmm::register();
    dot::register();
    mm::register();
    triangle::register();
}
