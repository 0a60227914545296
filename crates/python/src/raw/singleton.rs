//! Types with one object per value of a small enumeration: dtype, layout, memory_format.

use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::{guard, method_noargs, owned, token, Res, StaticType, TypeBuilder};
use crate::raw::objects;

/// The layout of such an object.
#[repr(C)]
struct PySingleton {
    ob_base: ffi::PyObject,
    value: u8,
    /// The name without module, a string that lives for ever.
    name: *mut ffi::PyObject,
}

/// A type and its objects, by value.
pub(crate) struct Singletons<const N: usize> {
    pub(crate) type_: StaticType,
    objects: [AtomicPtr<ffi::PyObject>; N],
}

impl<const N: usize> Singletons<N> {
    /// Not made yet.
    pub(crate) const fn new() -> Singletons<N> {
        Singletons { type_: StaticType::new(), objects: [const { AtomicPtr::new(std::ptr::null_mut()) }; N] }
    }

    /// Makes the type.
    pub(crate) fn make_type(
        &self,
        py: Python<'_>,
        builder: fn(&'static CStr) -> TypeBuilder,
        name: &'static CStr,
    ) -> Res<()> {
        let type_ = builder(name)
            .slot(ffi::Py_tp_repr, singleton_repr as *const ())
            .methods([method_noargs(c"__reduce__", singleton_reduce)])
            .build(py, None)?;
        self.type_.set(type_);
        Ok(())
    }

    /// Makes the object for one value.
    pub(crate) fn make(&self, py: Python<'_>, value: u8, name: &str) -> Res<()> {
        let type_ = self.type_.get();
        // SAFETY: the type is complete, and its instances have the layout of PySingleton.
        unsafe {
            let object = owned(py, ffi::PyType_GenericAlloc(type_, 0))?.into_ptr();
            let singleton = object.cast::<PySingleton>();
            (*singleton).value = value;
            (*singleton).name = objects::interned(py, name)?.into_ptr();
            self.objects[value as usize].store(object, Ordering::Release);
        }
        Ok(())
    }

    /// The object for a value, as a new reference.
    #[inline]
    pub(crate) fn new_ref(&self, value: u8) -> *mut ffi::PyObject {
        let object = self.objects[value as usize].load(Ordering::Relaxed);
        // SAFETY: made at import and never freed.
        unsafe { ffi::Py_INCREF(object) };
        object
    }

    /// The object for a value.
    pub(crate) fn bound<'py>(&self, py: Python<'py>, value: u8) -> Bound<'py, PyAny> {
        // SAFETY: a new reference to a live object.
        unsafe { Bound::from_owned_ptr(py, self.new_ref(value)) }
    }

    /// The value of an object of this type.
    #[inline]
    pub(crate) fn value(&self, object: &Bound<'_, PyAny>) -> Option<u8> {
        // SAFETY: an object of exactly this type has the layout of PySingleton.
        self.type_.is_exact(object).then(|| unsafe { (*object.as_ptr().cast::<PySingleton>()).value })
    }
}

/// The basic size of instances.
pub(crate) const SIZE: usize = std::mem::size_of::<PySingleton>();

/// The value behind the `self` of a method.
///
/// # Safety
///
/// `object` is an instance of a type made by [`Singletons`].
pub(crate) unsafe fn value_of(object: *mut ffi::PyObject) -> u8 {
    // SAFETY: passed on to the caller.
    unsafe { (*object.cast::<PySingleton>()).value }
}

unsafe extern "C" fn singleton_repr(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: called by CPython with an instance.
        let (py, name) = unsafe {
            let py = token();
            (py, super::borrow(py, (*object.cast::<PySingleton>()).name))
        };
        Ok(objects::string(py, &format!("ptr.{}", name.cast::<PyString>()?.to_str()?))?.into_ptr())
    })
}

/// A string: pickle and copy then look the object up by name in its type's module.
unsafe extern "C" fn singleton_reduce(
    object: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: called by CPython with an instance, whose name lives for ever.
    unsafe {
        let name = (*object.cast::<PySingleton>()).name;
        ffi::Py_INCREF(name);
        name
    }
}
