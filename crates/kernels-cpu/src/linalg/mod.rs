//! Products of matrices and vectors.
//!
//! [`gemm`] chooses an algorithm by shape: [`small`] for what fits registers, [`gemv`] where one side is a vector,
//! [`external`] (the `gemm` crate) for large real and complex matrices, and [`panel`], which also carries
//! convolutions, for everything else. None of them lets the number of threads change a bit of the result.

mod bmm;
mod dot;
mod element;
mod external;
mod gemm;
mod gemv;
mod matrix;
mod mm;
pub(crate) mod panel;
mod scratch;
mod small;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod timings;

pub(crate) use element::{Accumulator, LinalgElement};

/// Registers the family.
pub(crate) fn register() {
    bmm::register();
    dot::register();
    mm::register();
}
