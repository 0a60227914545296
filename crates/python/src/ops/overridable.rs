//! `ptr._C._overridable`: makes a Python function one that modes and overriding arguments take over.
//!
//! A function so decorated is an object that looks at its arguments, as the operators do, and calls the Python function
//! if nobody takes over. It costs a look at the type of each argument; written in Python the same check would double the
//! cost of a small function, and would have to stand in each.
//!
//! Who takes over is given the call in PyTorch's form, however it was made: parameters without a default by position, all
//! others by name, those too that were not given (`ptr.overrides._normalized`).

use std::ffi::c_void;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use smallvec::SmallVec;

use super::torch_function::{dispatch, insert_overloaded, modes_active, overrides};
use crate::raw::objects::{self, intern};
use crate::raw::{
    borrow, callable, getset, guard, method_varargs, owned, token, Raised, Res, StaticType, TypeBuilder,
};
use crate::tensor;

/// The layout of the objects. They are never freed: functions of modules live as long as the process.
#[repr(C)]
struct PyOverridable {
    ob_base: ffi::PyObject,
    vectorcall: Option<ffi::vectorcallfunc>,
    function: *mut ffi::PyObject,
}

static OVERRIDABLE: StaticType = StaticType::new();

/// # Safety
///
/// `object` is one of ours.
unsafe fn function_of(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: passed on to the caller; the function is owned by the object.
    unsafe { (*object.cast::<PyOverridable>()).function }
}

/// Whether the class of `object` can have no `__torch_function__`: most arguments are of these.
#[inline]
fn is_plain(object: *mut ffi::PyObject) -> bool {
    // SAFETY: a live object.
    let type_ = unsafe { ffi::Py_TYPE(object) };
    [
        &raw mut ffi::PyLong_Type,
        &raw mut ffi::PyFloat_Type,
        &raw mut ffi::PyBool_Type,
        &raw mut ffi::PyUnicode_Type,
        &raw mut ffi::PyTuple_Type,
        &raw mut ffi::PyList_Type,
    ]
    .contains(&type_)
        // SAFETY: a live object.
        || unsafe { ffi::Py_IsNone(object) } != 0
}

unsafe extern "C" fn vectorcall(
    callable: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargsf: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: CPython calls it with one of our objects and the arguments of a vectorcall.
    let (function, values, num_positional) = unsafe {
        let nargs = ffi::PyVectorcall_NARGS(nargsf) as usize;
        let keywords = if names.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(names) as usize };
        let values: &[*mut ffi::PyObject] =
            if nargs + keywords == 0 { &[] } else { std::slice::from_raw_parts(args, nargs + keywords) };
        (function_of(callable), values, nargs)
    };
    let taken_over = modes_active()
        || values.iter().any(|&value| {
            // SAFETY: arguments live as long as the call, which has the interpreter's lock.
            !is_plain(value) && overrides(&*unsafe { borrow(token(), value) })
        });
    if taken_over {
        return guard(|| {
            // SAFETY: as above.
            let callable = unsafe { borrow(token(), callable) };
            offer(&callable, values, num_positional, names)
        });
    }
    // SAFETY: the same arguments, to another callable.
    unsafe { ffi::PyObject_Vectorcall(function, args, nargsf, names) }
}

/// Offers a call to modes and overriding arguments; nobody having taken it, makes it.
#[cold]
fn offer(
    callable: &Bound<'_, PyAny>,
    values: &[*mut ffi::PyObject],
    num_positional: usize,
    names: *mut ffi::PyObject,
) -> Res<*mut ffi::PyObject> {
    let py = callable.py();
    // SAFETY: arguments live as long as the call.
    let at = |object| unsafe { borrow(py, object) }.to_owned();
    // SAFETY: one of ours.
    let function = at(unsafe { function_of(callable.as_ptr()) });
    let args = objects::tuple(py, values[..num_positional].iter().map(|&value| at(value)))?;
    let kwargs = objects::dict(py)?;
    for (i, &value) in values[num_positional..].iter().enumerate() {
        // SAFETY: a tuple of as many names as there are values behind the positional ones.
        kwargs.set_item(at(unsafe { ffi::PyTuple_GET_ITEM(names, i as isize) }), at(value))?;
    }
    let mut overloaded: SmallVec<[*mut ffi::PyObject; 2]> = SmallVec::new();
    for &value in values {
        let object = at(value);
        // Modes are told of all tensors.
        if overrides(&object) || tensor::get(&object).is_some() {
            insert_overloaded(&mut overloaded, value);
        }
    }
    let overloaded: Vec<_> = overloaded.iter().map(|&object| at(object)).collect();
    let normalized = py
        .import(intern!(py, "ptr.overrides")?)?
        .getattr(intern!(py, "_normalized")?)?
        .call1((&function, args, kwargs))?;
    let (args, kwargs) = normalized.extract::<(Bound<'_, PyTuple>, Bound<'_, PyDict>)>()?;
    match dispatch(py, callable, &args, &kwargs, &overloaded)? {
        Some(result) => Ok(result),
        None => Ok(function.call(args, Some(&kwargs))?.into_ptr()),
    }
}

/// What the type itself does not have is the function's: its names, its documentation, its signature, its attributes.
unsafe extern "C" fn getattr(object: *mut ffi::PyObject, name: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: CPython calls it with one of our objects and a name.
    unsafe {
        let own = ffi::PyDict_GetItemWithError((*ffi::Py_TYPE(object)).tp_dict, name);
        if own.is_null() || is_documentation(name) {
            return ffi::PyObject_GetAttr(function_of(object), name);
        }
        ffi::PyObject_GenericGetAttr(object, name)
    }
}

/// Heap types have these two for themselves.
///
/// # Safety
///
/// `name` is a live string.
unsafe fn is_documentation(name: *mut ffi::PyObject) -> bool {
    // SAFETY: as the caller says.
    unsafe {
        ffi::PyUnicode_CompareWithASCIIString(name, c"__doc__".as_ptr()) == 0
            || ffi::PyUnicode_CompareWithASCIIString(name, c"__module__".as_ptr()) == 0
    }
}

unsafe extern "C" fn setattr(
    object: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> std::ffi::c_int {
    // SAFETY: CPython calls it with one of our objects, a name, and a value or null to delete.
    unsafe { ffi::PyObject_SetAttr(function_of(object), name, value) }
}

unsafe extern "C" fn repr(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: CPython calls it with one of our objects.
    unsafe { ffi::PyObject_Repr(function_of(object)) }
}

unsafe extern "C" fn wrapped(object: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: CPython calls it with one of our objects.
    unsafe {
        let function = function_of(object);
        ffi::Py_INCREF(function);
        function
    }
}

/// By name: pickle finds the object in its module.
unsafe extern "C" fn reduce(object: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with one of our objects.
        let function = unsafe { borrow(token(), function_of(object)) };
        Ok(function
            .getattr(intern!(function.py(), "__qualname__")?)?
            .cast_into::<PyString>()
            .map_err(PyErr::from)?
            .into_ptr())
    })
}

/// Returns `function` as one that an argument's `__torch_function__`, or a mode, may take over. They are given the
/// decorated function; its name, documentation, signature and attributes are those of `function`.
#[pyfunction]
fn _overridable<'py>(function: &Bound<'py, PyAny>) -> Res<Bound<'py, PyAny>> {
    let py = function.py();
    // SAFETY: the type is ready, and the new object's fields are filled in before anybody sees it.
    unsafe {
        let object = ffi::PyType_GenericAlloc(OVERRIDABLE.get(), 0);
        if object.is_null() {
            return Err(Raised::already_set());
        }
        let fields = object.cast::<PyOverridable>();
        (*fields).vectorcall = Some(vectorcall);
        (*fields).function = function.clone().into_ptr();
        // Immortal, as its type says: whoever decorates keeps it for the life of the process.
        ffi::Py_INCREF(object);
        owned(py, object)
    }
}

/// Makes the type, and the function that decorates.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> Res<()> {
    let py = module.py();
    let type_ = TypeBuilder::new::<PyOverridable>(c"ptr._C._Overridable")
        .doc(c"A Python function that modes and overriding arguments take over.")
        .flags(
            ffi::Py_TPFLAGS_HAVE_VECTORCALL
                | ffi::Py_TPFLAGS_METHOD_DESCRIPTOR
                | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION,
        )
        .slot(ffi::Py_tp_call, callable::PyVectorcall_Call as *const ())
        .slot(ffi::Py_tp_descr_get, callable::descr_get as *const ())
        .slot(ffi::Py_tp_getattro, getattr as *const ())
        .slot(ffi::Py_tp_setattro, setattr as *const ())
        .slot(ffi::Py_tp_repr, repr as *const ())
        .getsets([getset(c"__wrapped__", wrapped, None)])
        .methods([method_varargs(c"__reduce_ex__", reduce)])
        .offset(c"__vectorcalloffset__", std::mem::offset_of!(PyOverridable, vectorcall))
        .build(py, None)?;
    OVERRIDABLE.set(type_);
    module.add_function(wrap_pyfunction!(_overridable, module)?)?;
    Ok(())
}
