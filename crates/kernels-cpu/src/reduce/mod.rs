//! Reductions. Everything here has the same bits for any number of threads: how elements are grouped follows from
//! shapes and strides alone.

mod accumulate;
mod driver;
mod extremum;
mod layout;
mod monoid;
mod position;
mod product;
mod softmax;
mod sum;
#[cfg(test)]
mod tests;
mod truth;

pub(crate) use accumulate::{Accumulated, Ring};
pub(crate) use extremum::Ordered;
pub(crate) use truth::Bits;

/// Registers the family.
pub(crate) fn register() {
    extremum::register();
    position::register();
    product::register();
    softmax::register();
    sum::register();
    truth::register();
}
