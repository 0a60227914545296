//! `TypeBuilder`: heap types from slots, methods and attributes.

use std::ffi::{c_int, c_uint, c_void, CStr};

use pyo3::ffi;
use pyo3::prelude::*;

use super::{Raised, Res};

/// Collects what a heap type is made of. Tables are leaked: types made here are never freed.
pub(crate) struct TypeBuilder {
    name: &'static CStr,
    basicsize: usize,
    flags: std::ffi::c_ulong,
    slots: Vec<ffi::PyType_Slot>,
    methods: Vec<ffi::PyMethodDef>,
    getsets: Vec<ffi::PyGetSetDef>,
    members: Vec<ffi::PyMemberDef>,
}

impl TypeBuilder {
    /// A type of the given full name, whose instances have the layout of `T`.
    pub(crate) fn new<T>(name: &'static CStr) -> TypeBuilder {
        TypeBuilder::with_size(name, std::mem::size_of::<T>())
    }

    /// A type whose instances have `basicsize` bytes; 0 inherits the base's.
    pub(crate) fn with_size(name: &'static CStr, basicsize: usize) -> TypeBuilder {
        TypeBuilder {
            name,
            basicsize,
            flags: ffi::Py_TPFLAGS_DEFAULT,
            slots: Vec::new(),
            methods: Vec::new(),
            getsets: Vec::new(),
            members: Vec::new(),
        }
    }

    /// Adds flags.
    pub(crate) fn flags(mut self, flags: std::ffi::c_ulong) -> TypeBuilder {
        self.flags |= flags;
        self
    }

    /// Fills a slot. `function` must have the slot's C type.
    pub(crate) fn slot(mut self, slot: c_int, function: *const ()) -> TypeBuilder {
        self.slots.push(ffi::PyType_Slot { slot, pfunc: function as *mut c_void });
        self
    }

    /// Sets the docstring.
    pub(crate) fn doc(self, doc: &'static CStr) -> TypeBuilder {
        self.slot(ffi::Py_tp_doc, doc.as_ptr().cast())
    }

    /// Adds methods.
    pub(crate) fn methods(mut self, methods: impl IntoIterator<Item = ffi::PyMethodDef>) -> TypeBuilder {
        self.methods.extend(methods);
        self
    }

    /// Adds attributes.
    pub(crate) fn getsets(mut self, getsets: impl IntoIterator<Item = ffi::PyGetSetDef>) -> TypeBuilder {
        self.getsets.extend(getsets);
        self
    }

    /// Names the place of an offset that CPython reads (`__dictoffset__` and the like).
    pub(crate) fn offset(mut self, name: &'static CStr, offset: usize) -> TypeBuilder {
        self.members.push(ffi::PyMemberDef {
            name: name.as_ptr(),
            type_code: ffi::Py_T_PYSSIZET,
            offset: offset as ffi::Py_ssize_t,
            flags: ffi::Py_READONLY,
            doc: std::ptr::null(),
        });
        self
    }

    /// Makes the type.
    pub(crate) fn build(
        mut self,
        py: Python<'_>,
        base: Option<*mut ffi::PyTypeObject>,
    ) -> Res<*mut ffi::PyTypeObject> {
        if !self.methods.is_empty() {
            self.methods.push(ffi::PyMethodDef::zeroed());
            let methods = Box::leak(self.methods.into_boxed_slice()).as_mut_ptr();
            self.slots.push(ffi::PyType_Slot { slot: ffi::Py_tp_methods, pfunc: methods.cast() });
        }
        if !self.getsets.is_empty() {
            self.getsets.push(ffi::PyGetSetDef::default());
            let getsets = Box::leak(self.getsets.into_boxed_slice()).as_mut_ptr();
            self.slots.push(ffi::PyType_Slot { slot: ffi::Py_tp_getset, pfunc: getsets.cast() });
        }
        if !self.members.is_empty() {
            self.members.push(ffi::PyMemberDef {
                name: std::ptr::null(),
                type_code: 0,
                offset: 0,
                flags: 0,
                doc: std::ptr::null(),
            });
            let members = Box::leak(self.members.into_boxed_slice()).as_mut_ptr();
            self.slots.push(ffi::PyType_Slot { slot: ffi::Py_tp_members, pfunc: members.cast() });
        }
        self.slots.push(ffi::PyType_Slot { slot: 0, pfunc: std::ptr::null_mut() });
        let mut spec = ffi::PyType_Spec {
            name: self.name.as_ptr(),
            basicsize: self.basicsize as c_int,
            itemsize: 0,
            flags: self.flags as c_uint,
            slots: self.slots.as_mut_ptr(),
        };
        let bases = match base {
            // SAFETY: the base is a live type.
            Some(base) => unsafe { super::owned(py, ffi::PyTuple_Pack(1, base))? }.into_ptr(),
            None => std::ptr::null_mut(),
        };
        // SAFETY: the spec and its tables are complete and end with empty entries.
        let type_ = unsafe { ffi::PyType_FromSpecWithBases(&mut spec, bases) };
        // SAFETY: our own reference, or null.
        unsafe { ffi::Py_XDECREF(bases) };
        if type_.is_null() {
            // SAFETY: CPython has set the exception.
            return Err(unsafe { Raised::already_set() });
        }
        Ok(type_.cast())
    }
}

/// An attribute; without a setter it is read-only.
pub(crate) fn getset(name: &'static CStr, get: ffi::getter, set: Option<ffi::setter>) -> ffi::PyGetSetDef {
    ffi::PyGetSetDef {
        name: name.as_ptr(),
        get: Some(get),
        set,
        doc: std::ptr::null(),
        closure: std::ptr::null_mut(),
    }
}

/// A method without arguments.
pub(crate) fn method_noargs(name: &'static CStr, f: ffi::PyCFunction) -> ffi::PyMethodDef {
    method(name, ffi::PyMethodDefPointer { PyCFunction: f }, ffi::METH_NOARGS)
}

/// A method with positional arguments.
pub(crate) fn method_varargs(name: &'static CStr, f: ffi::PyCFunction) -> ffi::PyMethodDef {
    method(name, ffi::PyMethodDefPointer { PyCFunction: f }, ffi::METH_VARARGS)
}

/// A method with any arguments; more flags (`METH_CLASS`, `METH_STATIC`) may be given.
pub(crate) fn method_kw(
    name: &'static CStr,
    f: ffi::PyCFunctionWithKeywords,
    flags: c_int,
) -> ffi::PyMethodDef {
    method(
        name,
        ffi::PyMethodDefPointer { PyCFunctionWithKeywords: f },
        ffi::METH_VARARGS | ffi::METH_KEYWORDS | flags,
    )
}

/// A method with any arguments and the fast calling convention; more flags may be given.
pub(crate) fn method_fast(
    name: &'static CStr,
    f: ffi::PyCFunctionFastWithKeywords,
    flags: c_int,
) -> ffi::PyMethodDef {
    method(
        name,
        ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: f },
        ffi::METH_FASTCALL | ffi::METH_KEYWORDS | flags,
    )
}

fn method(name: &'static CStr, meth: ffi::PyMethodDefPointer, flags: c_int) -> ffi::PyMethodDef {
    ffi::PyMethodDef { ml_name: name.as_ptr(), ml_meth: meth, ml_flags: flags, ml_doc: std::ptr::null() }
}
