//! What the data model is built with: errors, reference counts, small vectors, number types.

#[macro_use]
mod macros;
pub mod error;
pub mod fallible_vec;
pub mod float8;
pub mod intrusive_ptr;
pub mod maybe_owned;
pub mod reserve_allocator;
pub mod vectors;

pub use error::*;
pub use fallible_vec::*;
pub use intrusive_ptr::*;
pub use maybe_owned::*;
pub use reserve_allocator::*;
pub use vectors::*;

pub use half::{bf16 as BFloat16, f16 as Half};
pub use num_complex::Complex;
pub use smallvec::{smallvec, SmallVec};
