//! Engine errors as Python exceptions, and back. The only place where the two meet.

use c10::{Error, ErrorKind};
use pyo3::create_exception;
use pyo3::exceptions::{
    PyAttributeError, PyImportError, PyIndexError, PyKeyError, PyNotImplementedError, PyOverflowError,
    PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;

create_exception!(ptr, OutOfMemoryError, PyRuntimeError, "Exception raised when a device is out of memory.");
create_exception!(ptr._C, LinAlgError, PyRuntimeError, "Error raised by the linear algebra functions.");
create_exception!(
    ptr.distributed,
    DistError,
    PyRuntimeError,
    "Exception raised when an error occurs in the distributed library."
);

/// The exception that shows `error` to the user.
#[cold]
pub(crate) fn to_python(mut error: Error) -> PyErr {
    if let Some(payload) = error.take_foreign() {
        match payload.downcast::<PyErr>() {
            Ok(error) => return *error,
            Err(_) => return PyRuntimeError::new_err(error.to_string()),
        }
    }
    let text = error.to_string();
    match error.kind() {
        ErrorKind::Index => PyIndexError::new_err(text),
        ErrorKind::Value => PyValueError::new_err(text),
        ErrorKind::Type => PyTypeError::new_err(text),
        ErrorKind::NotImplemented => PyNotImplementedError::new_err(text),
        ErrorKind::OutOfMemory => OutOfMemoryError::new_err(text),
        ErrorKind::LinAlg => LinAlgError::new_err(text),
        ErrorKind::Dist => DistError::new_err(text),
        ErrorKind::Overflow => PyOverflowError::new_err(text),
        ErrorKind::Attribute => PyAttributeError::new_err(text),
        ErrorKind::Key => PyKeyError::new_err(text),
        ErrorKind::Import => PyImportError::new_err(text),
        ErrorKind::Runtime | ErrorKind::Internal | ErrorKind::Foreign => PyRuntimeError::new_err(text),
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
