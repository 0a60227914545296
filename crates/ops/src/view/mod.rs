//! Operators that return another view of the same memory.
//!
//! A view is computed from sizes, strides and offset alone, so one function serves every backend. All of them end in
//! [`alias_with_sizes_and_strides`].

mod alias;
mod complex;
mod dims;
mod split;
mod strided;

pub use alias::*;
pub use complex::*;
pub use dims::*;
pub use split::*;
pub use strided::*;
