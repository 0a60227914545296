//! A Python object that owns memory which a storage uses.

use pyo3::ffi;
use pyo3::prelude::*;

use crate::raw::call_python;

/// Keeps an object alive for a storage; let go of on whatever thread the storage dies.
pub(super) struct Owner(Option<Py<PyAny>>);

impl Owner {
    pub(super) fn new(object: &Bound<'_, PyAny>) -> Owner {
        Owner(Some(object.clone().unbind()))
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            // SAFETY: only reads a flag. In a process that is shutting down the object is leaked.
            if unsafe { ffi::Py_IsInitialized() } == 0 {
                std::mem::forget(object);
            } else {
                call_python(|py| object.drop_ref(py));
            }
        }
    }
}

/// A buffer that a Python object lends; released when the storage dies.
pub(super) struct BufferOwner(Box<ffi::Py_buffer>);

// SAFETY: the view is only touched under the interpreter's lock.
unsafe impl Send for BufferOwner {}

impl BufferOwner {
    /// Borrows the memory of an object that has some.
    pub(super) fn new(object: &Bound<'_, PyAny>, flags: std::ffi::c_int) -> crate::raw::Res<BufferOwner> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: an empty view to be filled.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &mut *view, flags) } < 0 {
            // SAFETY: CPython has set the exception.
            return Err(unsafe { crate::raw::Raised::already_set() });
        }
        Ok(BufferOwner(view))
    }

    /// Where the memory is.
    pub(super) fn data(&self) -> *mut u8 {
        self.0.buf.cast()
    }

    /// How long it is.
    pub(super) fn len(&self) -> usize {
        self.0.len as usize
    }

    /// Whether it must not be written.
    pub(super) fn is_read_only(&self) -> bool {
        self.0.readonly != 0
    }
}

impl Drop for BufferOwner {
    fn drop(&mut self) {
        // SAFETY: the view was filled by PyObject_GetBuffer and is released once, under the lock.
        unsafe {
            if ffi::Py_IsInitialized() != 0 {
                call_python(|_| ffi::PyBuffer_Release(&mut *self.0));
            }
        }
    }
}
