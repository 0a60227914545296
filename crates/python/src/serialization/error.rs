//! What is wrong with a file, as the exception that PyTorch raises for it.

use pyo3::exceptions::{PyEOFError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serialize::{ErrorKind, SerializeError};

/// The exception for an error; `pickle.UnpicklingError` for everything that the pickle itself got wrong.
pub(super) fn to_python(error: &SerializeError) -> PyErr {
    if let Some(io) = error.io_error() {
        return io_error(error, io);
    }
    let text = error.to_string();
    match error.kind() {
        ErrorKind::Unpickling | ErrorKind::Global => unpickling_error(text),
        ErrorKind::UnknownFormat if error.message() == "the file is empty" => {
            PyEOFError::new_err("Ran out of input")
        }
        ErrorKind::Truncated => PyEOFError::new_err(text),
        ErrorKind::ByteOrder => PyValueError::new_err(text),
        ErrorKind::UnknownFormat => unpickling_error(text),
        _ => PyRuntimeError::new_err(text),
    }
}

/// `pickle.UnpicklingError`.
pub(super) fn unpickling_error(text: String) -> PyErr {
    Python::attach(|py| {
        let class = py.import("pickle").and_then(|pickle| pickle.getattr("UnpicklingError"));
        match class.and_then(|class| class.call1((text,))) {
            Ok(error) => PyErr::from_value(error),
            Err(error) => error,
        }
    })
}

fn io_error(error: &SerializeError, io: &std::io::Error) -> PyErr {
    // An exception of a Python file object comes back as it is.
    if let Some(raised) = io.get_ref().and_then(|inner| inner.downcast_ref::<PyErr>()) {
        return Python::attach(|py| raised.clone_ref(py));
    }
    match io.raw_os_error() {
        // With a number Python chooses the class: FileNotFoundError and the like.
        Some(number) => PyOSError::new_err((number, error.to_string())),
        None => PyOSError::new_err(error.to_string()),
    }
}
