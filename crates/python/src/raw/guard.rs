//! The edge between CPython and Rust: exceptions out, panics contained.

use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::convert::errors;

/// Says that the exception which tells what went wrong is set in the interpreter, as CPython's own functions do with null.
///
/// It makes `?` work across the three worlds: an engine error and a `PyErr` become the interpreter's exception at once.
#[derive(Debug)]
#[must_use]
pub(crate) struct Raised(());

/// The result of anything that may raise.
pub(crate) type Res<T> = Result<T, Raised>;

impl Raised {
    /// For functions of CPython that have just failed.
    ///
    /// # Safety
    ///
    /// An exception is set.
    pub(crate) unsafe fn already_set() -> Raised {
        Raised(())
    }

    /// Takes the exception back out of the interpreter.
    #[cold]
    pub(crate) fn fetch(self, py: Python<'_>) -> PyErr {
        PyErr::fetch(py)
    }
}

impl From<c10::Error> for Raised {
    #[cold]
    fn from(error: c10::Error) -> Raised {
        Python::attach(|py| errors::to_python(error).restore(py));
        Raised(())
    }
}

impl From<PyErr> for Raised {
    #[cold]
    fn from(error: PyErr) -> Raised {
        Python::attach(|py| error.restore(py));
        Raised(())
    }
}

impl From<std::convert::Infallible> for Raised {
    fn from(never: std::convert::Infallible) -> Raised {
        match never {}
    }
}

impl From<Raised> for PyErr {
    #[cold]
    fn from(raised: Raised) -> PyErr {
        Python::attach(|py| raised.fetch(py))
    }
}

impl<'a, 'py> From<pyo3::CastError<'a, 'py>> for Raised {
    #[cold]
    fn from(error: pyo3::CastError<'a, 'py>) -> Raised {
        PyErr::from(error).into()
    }
}

impl<'py> From<pyo3::CastIntoError<'py>> for Raised {
    #[cold]
    fn from(error: pyo3::CastIntoError<'py>) -> Raised {
        PyErr::from(error).into()
    }
}

#[cold]
fn raise_panic(payload: Box<dyn Any + Send>) {
    Python::attach(|py| pyo3::contain::error_of_panic(py, payload).restore(py));
}

/// Runs the body of a slot that returns an object; null when it raised.
#[inline]
pub(crate) fn guard(body: impl FnOnce() -> Res<*mut ffi::PyObject>) -> *mut ffi::PyObject {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(object)) => object,
        Ok(Err(Raised(()))) => std::ptr::null_mut(),
        Err(payload) => {
            raise_panic(payload);
            std::ptr::null_mut()
        }
    }
}

/// Runs the body of a slot that returns a truth value or nothing; -1 when it raised.
#[inline]
pub(crate) fn guard_int(body: impl FnOnce() -> Res<i32>) -> i32 {
    guard_len(|| body().map(|v| v as isize)) as i32
}

/// Runs the body of a slot that returns a length or hash; -1 when it raised.
#[inline]
pub(crate) fn guard_len(body: impl FnOnce() -> Res<isize>) -> isize {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value,
        Ok(Err(Raised(()))) => -1,
        Err(payload) => {
            raise_panic(payload);
            -1
        }
    }
}
