//! What stands between PyO3's trampolines and the functions behind them.
//!
//! # Note [Contained functions]
//!
//! PyO3 makes a panic an exception that `except Exception` does not see; and it raises the error that a function returned
//! outside of what it catches. Most errors are made lazily there: the text becomes an object, which panics if CPython has
//! no memory for it, and that panic ends the process. So every function that `#[pyfunction]` and `#[pymethods]` write
//! runs inside of [`contain`], which leaves PyO3 no panic to catch and no error to make. (Not getters, setters and
//! comparisons, for which PyO3 has trampolines of its own: they return no lazily made error.)

use std::any::Any;
use std::ffi::CString;
use std::panic::{catch_unwind, AssertUnwindSafe};

use pyo3::{ffi, PyErr, PyResult, Python};

/// What PyO3 panics with when CPython has not made an object, which it takes for something that cannot fail: the sign of
/// exhausted memory. It has told `sys.unraisablehook` of the exception by then.
const NO_OBJECT: &str = "PyObject pointer is null";

/// Runs a function: the error that it returns is complete, and a panic is one too.
#[inline]
pub fn contain<R>(py: Python<'_>, body: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(complete(py, error)),
        Err(payload) => Err(error_of_panic(py, payload)),
    }
}

/// The error with its value made.
#[cold]
fn complete(py: Python<'_>, error: PyErr) -> PyErr {
    let make = || {
        error.restore(py);
        PyErr::fetch(py)
    };
    catch_unwind(AssertUnwindSafe(make)).unwrap_or_else(|payload| error_of_panic(py, payload))
}

/// The exception for a panic.
#[cold]
pub fn error_of_panic(py: Python<'_>, payload: Box<dyn Any + Send>) -> PyErr {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or_default();
    let shown = match text {
        NO_OBJECT => None,
        _ => CString::new(format!("{text}. This is a bug in ptr, please report it.").replace('\0', " ")).ok(),
    };
    // SAFETY: the thread is attached. Either sets an exception, if need be one that CPython keeps for this.
    unsafe {
        match shown {
            Some(text) => ffi::PyErr_SetString(ffi::PyExc_RuntimeError, text.as_ptr()),
            None => {
                ffi::PyErr_NoMemory();
            }
        }
    }
    PyErr::fetch(py)
}

/// As PyO3's macro of the name `get_trampoline_function`, with the function contained.
#[doc(hidden)]
#[macro_export]
macro_rules! contained_trampoline {
    (noargs, $f:path) => { $crate::contained_trampoline!(@ noargs, $f, (a)) };
    (cfunction_with_keywords, $f:path) => { $crate::contained_trampoline!(@ cfunction_with_keywords, $f, (a, b, c)) };
    (fastcall_cfunction_with_keywords, $f:path) => {
        $crate::contained_trampoline!(@ fastcall_cfunction_with_keywords, $f, (a, b, c, d))
    };
    (maybe_fastcall_cfunction_with_keywords, $f:path) => {
        $crate::contained_trampoline!(@ maybe_fastcall_cfunction_with_keywords, $f, (a, b, c, d))
    };
    (getattrofunc, $f:path) => { $crate::contained_trampoline!(@ getattrofunc, $f, (a, b)) };
    (setattrofunc, $f:path) => { $crate::contained_trampoline!(@ setattrofunc, $f, (a, b, c)) };
    (binaryfunc, $f:path) => { $crate::contained_trampoline!(@ binaryfunc, $f, (a, b)) };
    (descrgetfunc, $f:path) => { $crate::contained_trampoline!(@ descrgetfunc, $f, (a, b, c)) };
    (newfunc, $f:path) => { $crate::contained_trampoline!(@ newfunc, $f, (a, b, c)) };
    (initproc, $f:path) => { $crate::contained_trampoline!(@ initproc, $f, (a, b, c)) };
    (objobjproc, $f:path) => { $crate::contained_trampoline!(@ objobjproc, $f, (a, b)) };
    (richcmpfunc, $f:path) => { $crate::contained_trampoline!(@ richcmpfunc, $f, (a, b, c)) };
    (ssizeargfunc, $f:path) => { $crate::contained_trampoline!(@ ssizeargfunc, $f, (a, b)) };
    (ternaryfunc, $f:path) => { $crate::contained_trampoline!(@ ternaryfunc, $f, (a, b, c)) };
    (getbufferproc, $f:path) => { $crate::contained_trampoline!(@ getbufferproc, $f, (a, b, c)) };
    (@ $trampoline:ident, $f:path, ($($argument:ident),*)) => {{
        struct Def;
        impl $crate::impl_::trampoline::MethodDef<$crate::impl_::trampoline::$trampoline::Func> for Def {
            const METH: $crate::impl_::trampoline::$trampoline::Func = |py, $($argument),*| {
                // SAFETY: the arguments are what CPython passed, for which the function was written.
                $crate::contain::contain(py, || unsafe { $f(py, $($argument),*) })
            };
        }
        $crate::impl_::trampoline::$trampoline::<Def>
    }};
    // The functions of one argument: getiterfunc, hashfunc, inquiry, iternextfunc, lenfunc, reprfunc, unaryfunc.
    ($trampoline:ident, $f:path) => { $crate::contained_trampoline!(@ $trampoline, $f, (a)) };
}
