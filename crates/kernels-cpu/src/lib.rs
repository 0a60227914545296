//! The CPU kernels.
//!
//! Kernels only compute: shapes, dtypes, outputs and errors were settled by the operator's meta function.
//! Each kernel is registered by name with [`iter::kernel_registry`]; the generated wrappers in `ops` find it
//! there, so that neither crate depends on the other.

pub mod vec;
