//! Exchange of memory with other libraries: DLPack.

mod dlpack;

use pyo3::prelude::*;

/// Adds the functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    dlpack::register(module)
}
