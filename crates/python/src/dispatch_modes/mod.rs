//! Python in the dispatcher: `__torch_dispatch__` of classes and modes, dispatch keys, and operators whose kernels are
//! Python functions.

mod arguments;
mod keys;
mod library;
mod stack;
mod torch_dispatch;

use pyo3::prelude::*;

use crate::raw::Res;

/// Adds the classes and functions, and serves the Python key.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> Res<()> {
    keys::register(module)?;
    stack::register(module)?;
    library::register(module)?;
    torch_dispatch::register(module)?;
    Ok(())
}
