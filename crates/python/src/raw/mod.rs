//! What hand-made CPython types need: entry guards, a builder for heap types, interned names.
//!
//! The types that every operator call touches (Tensor, the operator callables, Size, dtype, device) are written
//! against CPython's own interface, because their layout, allocation and slots decide what a call costs.

pub(crate) mod arguments;
pub(crate) mod callable;
mod guard;
mod intern;
mod large;
pub(crate) mod objects;
pub(crate) mod singleton;
mod type_builder;

pub(crate) use guard::{guard, guard_int, guard_len, Raised, Res};
pub(crate) use intern::{immortal, intern_static, StaticType};
pub(crate) use large::{check_memory_for, check_memory_for_items, text_of, TextArgument};
pub(crate) use type_builder::{getset, method_fast, method_kw, method_noargs, method_varargs, TypeBuilder};

use pyo3::ffi;
use pyo3::prelude::*;

/// The interpreter token, for code that CPython has called.
///
/// # Safety
///
/// The thread is attached to the interpreter for as long as the token is used.
#[inline(always)]
pub(crate) unsafe fn token<'py>() -> Python<'py> {
    // SAFETY: passed on to the caller.
    unsafe { Python::assume_attached() }
}

/// Runs Python code on behalf of an operator or of the engine: with the interpreter's lock, and without the thread's holds
/// on tensors, because that code may wait for anything (c10's Note [Pinned tensors]).
#[inline]
pub(crate) fn call_python<R>(body: impl FnOnce(Python<'_>) -> R) -> R {
    let _lifted = c10::WithoutHolds::new();
    Python::attach(body)
}

/// Views a borrowed pointer as an object.
///
/// # Safety
///
/// `object` is a live object for as long as the result is used.
#[inline(always)]
pub(crate) unsafe fn borrow<'a, 'py>(
    py: Python<'py>,
    object: *mut ffi::PyObject,
) -> Borrowed<'a, 'py, PyAny> {
    // SAFETY: passed on to the caller.
    unsafe { Borrowed::from_ptr(py, object) }
}

/// Takes a new reference returned by CPython; null means that an exception is set.
///
/// # Safety
///
/// `object` is null with an exception set, or a new reference.
#[inline]
pub(crate) unsafe fn owned<'py>(py: Python<'py>, object: *mut ffi::PyObject) -> Res<Bound<'py, PyAny>> {
    if object.is_null() {
        // SAFETY: the caller says that an exception is set.
        return Err(unsafe { Raised::already_set() });
    }
    // SAFETY: a new reference, as the caller says.
    Ok(unsafe { Bound::from_owned_ptr(py, object) })
}
