//! `ptr.Size`: a tuple of integers.

use c10::SymInt;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::convert::scalar;
use crate::raw::objects::{self, NewError};
use crate::raw::{guard, method_noargs, owned, token, Raised, Res, StaticType, TypeBuilder};

/// The type.
pub(crate) static SIZE: StaticType = StaticType::new();

/// A `Size` of known numbers, as a new reference.
#[inline]
pub(crate) fn from_ints(sizes: &[i64]) -> Res<*mut ffi::PyObject> {
    // SAFETY: the type is a subtype of tuple; all items are set before anybody sees the object.
    unsafe {
        let type_ = SIZE.get();
        let alloc = (*type_).tp_alloc.unwrap_or(ffi::PyType_GenericAlloc);
        let size = alloc(type_, sizes.len() as ffi::Py_ssize_t);
        if size.is_null() {
            return Err(Raised::already_set());
        }
        for (i, &value) in sizes.iter().enumerate() {
            let item = ffi::PyLong_FromLongLong(value);
            if item.is_null() {
                ffi::Py_DECREF(size);
                return Err(Raised::already_set());
            }
            ffi::PyTuple_SET_ITEM(size, i as ffi::Py_ssize_t, item);
        }
        Ok(size)
    }
}

/// A `Size` of possibly symbolic numbers, as a new reference.
pub(crate) fn from_sym_ints(py: Python<'_>, sizes: &[SymInt]) -> Res<*mut ffi::PyObject> {
    let items = sizes.iter().map(|s| scalar::sym_int_to_python(py, s)).collect::<Res<Vec<_>>>()?;
    Ok(from_tuple(&objects::tuple(py, items)?)?.into_ptr())
}

/// A `Size` of the items of a tuple, which are integers.
fn from_tuple<'py>(tuple: &Bound<'py, PyTuple>) -> Res<Bound<'py, PyAny>> {
    let py = tuple.py();
    // SAFETY: tuple's constructor, called for a subtype with one argument.
    unsafe {
        let args = owned(py, ffi::PyTuple_Pack(1, tuple.as_ptr()))?;
        let new = (*std::ptr::addr_of!(ffi::PyTuple_Type)).tp_new;
        match new {
            Some(new) => owned(py, new(SIZE.get(), args.as_ptr(), std::ptr::null_mut())),
            None => Err(PyTypeError::error("tuple has no constructor").into()),
        }
    }
}

unsafe extern "C" fn size_new(
    _type: *mut ffi::PyTypeObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls constructors with a tuple and a dict or null.
        let (py, size) = unsafe {
            let py = token();
            let new = (*std::ptr::addr_of!(ffi::PyTuple_Type)).tp_new;
            let Some(new) = new else { return Err(PyTypeError::error("tuple has no constructor").into()) };
            (py, owned(py, new(SIZE.get(), args, kwargs))?)
        };
        let tuple = size.cast::<PyTuple>()?;
        for (i, item) in tuple.iter().enumerate() {
            if scalar::is_int(&item) {
                continue;
            }
            // Numbers of other libraries and integer tensors are taken as their value.
            // SAFETY: a live object.
            let index = unsafe { ffi::PyNumber_Index(item.as_ptr()) };
            if index.is_null() {
                // SAFETY: clears the exception that PyNumber_Index has set.
                unsafe { ffi::PyErr_Clear() };
                let name = item.get_type().name()?;
                return Err(PyTypeError::error(format!(
                    "torch.Size() takes an iterable of 'int' (item {i} is '{name}')"
                ))
                .into());
            }
            // SAFETY: nobody else has seen the tuple, which takes the new reference and lets go of the old one.
            unsafe {
                let items = size.as_ptr();
                let old = ffi::PyTuple_GET_ITEM(items, i as ffi::Py_ssize_t);
                ffi::PyTuple_SET_ITEM(items, i as ffi::Py_ssize_t, index);
                ffi::Py_DECREF(old);
            }
        }
        let _ = py;
        Ok(size.into_ptr())
    })
}

unsafe extern "C" fn size_repr(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with a Size, which is a tuple.
        let size = unsafe { crate::raw::borrow(token(), object) };
        let sizes = size.cast::<PyTuple>()?;
        // A tuple prints itself in brackets of its own, and says where a lone item is one.
        let shown = objects::tuple(size.py(), sizes.iter())?.repr()?;
        let shown = shown.to_str()?;
        let shown = shown.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(shown);
        let shown = shown.strip_suffix(',').unwrap_or(shown);
        let mut text = String::new();
        let room = shown.len() + "ptr.Size([])".len();
        text.try_reserve_exact(room).map_err(|_| c10::Error::out_of_memory("repr(): not enough memory"))?;
        for part in ["ptr.Size([", shown, "])"] {
            text.push_str(part);
        }
        Ok(objects::string(size.py(), &text)?.into_ptr())
    })
}

unsafe extern "C" fn size_numel(object: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with a Size.
        let size = unsafe { crate::raw::borrow(token(), object) };
        let mut numel = SymInt::from(1);
        for item in size.cast::<PyTuple>()?.iter() {
            numel = numel.sym_mul(&scalar::to_sym_int(&item)?)?;
        }
        Ok(scalar::sym_int_to_python(size.py(), &numel)?.into_ptr())
    })
}

unsafe extern "C" fn size_reduce(object: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with a Size.
        let size = unsafe { crate::raw::borrow(token(), object) };
        let items = objects::tuple(size.py(), size.cast::<PyTuple>()?.iter())?;
        let args = objects::tuple(size.py(), [items])?.into_any();
        Ok(objects::tuple(size.py(), [SIZE.bound(size.py()), args])?.into_ptr())
    })
}

/// Turns a tuple that an operation of tuple made into a Size.
///
/// # Safety
///
/// `result` is a new reference, or null with an exception set.
unsafe fn as_size(result: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: passed on to the caller.
        let result = unsafe { owned(token(), result)? };
        match result.cast::<PyTuple>() {
            Ok(tuple) if !SIZE.is_exact(&result) => Ok(from_tuple(tuple)?.into_ptr()),
            _ => Ok(result.into_ptr()),
        }
    })
}

unsafe extern "C" fn size_concat(a: *mut ffi::PyObject, b: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: tuple's own slots, called with a tuple first.
    unsafe {
        let methods = (*std::ptr::addr_of!(ffi::PyTuple_Type)).tp_as_sequence;
        match (*methods).sq_concat {
            Some(concat) => as_size(concat(a, b)),
            None => std::ptr::null_mut(),
        }
    }
}

unsafe extern "C" fn size_repeat(a: *mut ffi::PyObject, n: ffi::Py_ssize_t) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe {
        let methods = (*std::ptr::addr_of!(ffi::PyTuple_Type)).tp_as_sequence;
        match (*methods).sq_repeat {
            Some(repeat) => as_size(repeat(a, n)),
            None => std::ptr::null_mut(),
        }
    }
}

unsafe extern "C" fn size_subscript(a: *mut ffi::PyObject, key: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe {
        let methods = (*std::ptr::addr_of!(ffi::PyTuple_Type)).tp_as_mapping;
        match (*methods).mp_subscript {
            Some(subscript) if ffi::PySlice_Check(key) != 0 => as_size(subscript(a, key)),
            Some(subscript) => subscript(a, key),
            None => std::ptr::null_mut(),
        }
    }
}

/// Makes the type.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> Res<()> {
    let py = module.py();
    let type_ = TypeBuilder::with_size(c"ptr.Size", 0)
        .doc(c"The shape of a tensor: a tuple of integers.")
        .slot(ffi::Py_tp_new, size_new as *const ())
        .slot(ffi::Py_tp_repr, size_repr as *const ())
        .slot(ffi::Py_sq_concat, size_concat as *const ())
        .slot(ffi::Py_sq_repeat, size_repeat as *const ())
        .slot(ffi::Py_mp_subscript, size_subscript as *const ())
        .methods([method_noargs(c"numel", size_numel), method_noargs(c"__reduce__", size_reduce)])
        .build(py, Some(std::ptr::addr_of_mut!(ffi::PyTuple_Type)))?;
    SIZE.set(type_);
    module.add("Size", SIZE.bound(py))?;
    Ok(())
}
