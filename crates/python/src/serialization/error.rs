//! What is wrong with a file, as the exception that PyTorch raises for it.

use crate::raw::objects::{self, intern, NewError};
use pyo3::exceptions::{PyEOFError, PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serialize::{ErrorKind, SerializeError};

/// The exception for an error; `pickle.UnpicklingError` for everything that the pickle itself got wrong.
pub(super) fn to_python(error: &SerializeError) -> PyErr {
    if let Some(io) = error.io_error() {
        return io_error(&error.to_string(), io);
    }
    let text = error.to_string();
    match error.kind() {
        ErrorKind::Unpickling | ErrorKind::Global => unpickling_error(text),
        ErrorKind::UnknownFormat if error.message() == "the file is empty" => {
            PyEOFError::error("Ran out of input")
        }
        ErrorKind::Truncated => PyEOFError::error(text),
        ErrorKind::Memory => PyMemoryError::error(text),
        ErrorKind::ByteOrder => PyValueError::error(text),
        ErrorKind::UnknownFormat => unpickling_error(text),
        _ => PyRuntimeError::error(text),
    }
}

/// `pickle.UnpicklingError`.
pub(super) fn unpickling_error(text: String) -> PyErr {
    Python::attach(|py| {
        let error = || {
            let class = py.import(intern!(py, "pickle")?)?.getattr(intern!(py, "UnpicklingError")?)?;
            class.call1((objects::string(py, &text)?,))
        };
        error().map_or_else(|error| error, PyErr::from_value)
    })
}

/// The exception for an error of the system or of a Python file object, which comes back as it is. With a number Python
/// chooses the class: `FileNotFoundError` and the like.
pub(crate) fn io_error(text: &str, io: &std::io::Error) -> PyErr {
    Python::attach(|py| {
        if let Some(raised) = io.get_ref().and_then(|inner| inner.downcast_ref::<PyErr>()) {
            return raised.clone_ref(py);
        }
        let Some(number) = io.raw_os_error() else { return PyOSError::error(text) };
        let value = || {
            let parts = [objects::int(py, number.into())?.into_any(), objects::string(py, text)?.into_any()];
            py.get_type::<PyOSError>().call1(objects::tuple(py, parts)?)
        };
        value().map_or_else(|error| error, PyErr::from_value)
    })
}
