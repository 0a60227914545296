//! Operators written in terms of others, one file per family.
//!
//! A composite that its entry calls `implicit` is differentiated through what it calls; an `explicit` one has a
//! derivative of its own. Either way it calls through `at`, so that every backend and transform sees the parts.

pub mod attention;
pub mod conv;
pub mod factory;
pub mod index;
pub mod linalg;
pub mod loss;
pub mod norm;
pub mod pointwise;
pub mod pool;
pub mod random;
pub mod reduce;
pub mod rnn;
pub mod scan;
pub mod shape;
pub mod sort;
pub mod special;
