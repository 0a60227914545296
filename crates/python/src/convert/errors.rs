//! Engine errors as Python exceptions, and back. The only place where the two meet.

use crate::raw::objects::NewError;
use c10::{Error, ErrorKind};
use pyo3::create_exception;
use pyo3::exceptions::{
    PyAttributeError, PyImportError, PyIndexError, PyKeyError, PyNotImplementedError, PyOverflowError,
    PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;

#[expect(clippy::disallowed_methods, reason = "the macro writes a `new_err`, which nobody calls")]
mod classes {
    use super::{create_exception, PyRuntimeError};

    create_exception!(
        ptr,
        OutOfMemoryError,
        PyRuntimeError,
        "Exception raised when a device is out of memory."
    );
    create_exception!(ptr._C, LinAlgError, PyRuntimeError, "Error raised by the linear algebra functions.");
    create_exception!(
        ptr.distributed,
        DistError,
        PyRuntimeError,
        "Exception raised when an error occurs in the distributed library."
    );
}
pub(crate) use classes::{DistError, LinAlgError, OutOfMemoryError};

/// The exception that shows `error` to the user.
#[cold]
pub(crate) fn to_python(mut error: Error) -> PyErr {
    if let Some(payload) = error.take_foreign() {
        match payload.downcast::<PyErr>() {
            Ok(error) => return *error,
            Err(_) => return PyRuntimeError::error(error.to_string()),
        }
    }
    let text = error.to_string();
    match error.kind() {
        ErrorKind::Index => PyIndexError::error(text),
        ErrorKind::Value => PyValueError::error(text),
        ErrorKind::Type => PyTypeError::error(text),
        ErrorKind::NotImplemented => PyNotImplementedError::error(text),
        ErrorKind::OutOfMemory => OutOfMemoryError::error(text),
        ErrorKind::LinAlg => LinAlgError::error(text),
        ErrorKind::Dist => DistError::error(text),
        ErrorKind::Overflow => PyOverflowError::error(text),
        ErrorKind::Attribute => PyAttributeError::error(text),
        ErrorKind::Key => PyKeyError::error(text),
        ErrorKind::Import => PyImportError::error(text),
        ErrorKind::Runtime | ErrorKind::Internal | ErrorKind::Foreign => PyRuntimeError::error(text),
    }
}

/// Wraps an exception so that it can travel through the core and come out unchanged.
#[cold]
pub(crate) fn to_core(error: PyErr) -> Error {
    let text = Python::attach(|py| error.value(py).to_string());
    Error::foreign(Box::new(error), text)
}

/// Adds the exception classes to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("OutOfMemoryError", py.get_type::<OutOfMemoryError>())?;
    module.add("_LinAlgError", py.get_type::<LinAlgError>())?;
    module.add("_DistError", py.get_type::<DistError>())
}
