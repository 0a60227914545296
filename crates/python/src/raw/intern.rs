//! Objects that live as long as the process.

use crate::raw::objects;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

/// A type or object that is made once, at import.
///
/// It is written under the interpreter's lock before anything can read it, so a relaxed load is enough.
pub(crate) struct StaticType(AtomicPtr<ffi::PyTypeObject>);

impl StaticType {
    /// Not made yet.
    pub(crate) const fn new() -> StaticType {
        StaticType(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// The type.
    #[inline(always)]
    pub(crate) fn get(&self) -> *mut ffi::PyTypeObject {
        self.0.load(Ordering::Relaxed)
    }

    /// Keeps the reference for ever.
    pub(crate) fn set(&self, type_: *mut ffi::PyTypeObject) {
        self.0.store(type_, Ordering::Release);
    }

    /// Whether `object` is of exactly this type.
    #[inline(always)]
    pub(crate) fn is_exact(&self, object: &Bound<'_, PyAny>) -> bool {
        // SAFETY: the object is alive.
        std::ptr::eq(unsafe { ffi::Py_TYPE(object.as_ptr()) }, self.get())
    }

    /// Whether `object` is of this type or a subclass.
    #[inline(always)]
    pub(crate) fn is_instance(&self, object: &Bound<'_, PyAny>) -> bool {
        // SAFETY: both objects are alive.
        unsafe {
            let type_ = ffi::Py_TYPE(object.as_ptr());
            std::ptr::eq(type_, self.get()) || ffi::PyType_IsSubtype(type_, self.get()) != 0
        }
    }

    /// The type as an object.
    pub(crate) fn bound<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        // SAFETY: made at import and never freed.
        unsafe { Bound::from_borrowed_ptr(py, self.get().cast()) }
    }
}

/// Leaks a reference: the object lives for ever.
pub(crate) fn immortal(object: Bound<'_, PyAny>) -> *mut ffi::PyObject {
    object.into_ptr()
}

/// An interned string that lives for ever, to be compared by address.
pub(crate) fn intern_static(py: Python<'_>, text: &str) -> PyResult<*mut ffi::PyObject> {
    Ok(objects::interned(py, text)?.into_ptr())
}
