//! What types of callable objects share: the generic call, and binding to an instance.

use pyo3::ffi;

extern "C" {
    /// The generic `tp_call` of types with a vectorcall slot.
    pub(crate) fn PyVectorcall_Call(
        callable: *mut ffi::PyObject,
        args: *mut ffi::PyObject,
        kwargs: *mut ffi::PyObject,
    ) -> *mut ffi::PyObject;
    /// Makes a bound method.
    fn PyMethod_New(function: *mut ffi::PyObject, self_: *mut ffi::PyObject) -> *mut ffi::PyObject;
}

/// `tp_descr_get` of callables that bind as functions of a class do.
///
/// # Safety
///
/// CPython calls it, with the callable and an object or null.
pub(crate) unsafe extern "C" fn descr_get(
    callable: *mut ffi::PyObject,
    object: *mut ffi::PyObject,
    _type: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as the caller says.
    unsafe {
        if object.is_null() {
            ffi::Py_INCREF(callable);
            return callable;
        }
        PyMethod_New(callable, object)
    }
}
