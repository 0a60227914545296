//! Checkpoint files: for `ptr.save` and `ptr.load` over the `serialize` crate, for `ptr.safetensors` over the crate of that
//! name.
//!
//! Python decides what is saved and how tensors are rebuilt (`ptr/serialization.py`); containers, pickles and the check of what
//! a file may name are Rust's.

mod error;
mod reader;
mod safetensors;
mod unpickle;
mod writer;

use pyo3::prelude::*;

pub(crate) use error::io_error;

/// Adds the classes.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    reader::register(module)?;
    safetensors::register(module)?;
    writer::register(module)
}
