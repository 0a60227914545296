//! `_C._FunctionBase`: the context (`ctx`) of a custom function, which is also its node in the graph.

use std::ffi::{c_int, c_void};

use autograd::Node;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::collector;
use super::function_apply;
use super::function_node::PyFunctionNode;
use super::node_object::{self, PyNode, NODE};
use crate::convert::ivalue;
use crate::raw::objects::{self, intern, NewError};
use crate::raw::{borrow, getset, guard, guard_int, method_kw, token, Raised, Res, StaticType, TypeBuilder};
use crate::tensor;

/// The layout of a context.
#[repr(C)]
pub(super) struct PyFunction {
    base: PyNode,
    dict: *mut ffi::PyObject,
    weaklist: *mut ffi::PyObject,
    /// One truth value per argument of `apply`; or null.
    pub(super) needs_input_grad: *mut ffi::PyObject,
    /// What `save_for_backward` got, until it is saved; or null.
    pub(super) to_save: *mut ffi::PyObject,
    pub(super) saved_for_forward: *mut ffi::PyObject,
    pub(super) non_differentiable: *mut ffi::PyObject,
    pub(super) dirty_tensors: *mut ffi::PyObject,
    pub(super) materialize_grads: bool,
}

/// The type.
pub(super) static FUNCTION: StaticType = StaticType::new();

impl PyFunction {
    /// All references to Python objects.
    fn references(&mut self) -> [&mut *mut ffi::PyObject; 6] {
        [
            &mut self.dict,
            &mut self.needs_input_grad,
            &mut self.to_save,
            &mut self.saved_for_forward,
            &mut self.non_differentiable,
            &mut self.dirty_tensors,
        ]
    }
}

/// Replaces a reference that a context holds. The old one is given up last: that may run anything.
///
/// # Safety
///
/// `slot` is a field of a live context, which holds a reference or null; `value` is a new reference or null.
pub(super) unsafe fn replace(slot: *mut *mut ffi::PyObject, value: *mut ffi::PyObject) {
    // SAFETY: passed on to the caller.
    unsafe {
        let old = slot.replace(value);
        ffi::Py_XDECREF(old);
    }
}

unsafe extern "C" fn new(
    type_: *mut ffi::PyTypeObject,
    _: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with a subclass of the type; generic allocation zeroes, which is a valid context
        // without node.
        unsafe {
            let py = token();
            let name = borrow(py, type_.cast()).getattr(intern!(py, "__name__")?)?.extract::<String>()?;
            let object = (*type_).tp_alloc.unwrap_or(ffi::PyType_GenericAlloc)(type_, 0);
            if object.is_null() {
                return Err(Raised::already_set());
            }
            (*object.cast::<PyFunction>()).materialize_grads = true;
            node_object::attach(object, Node::new(Box::new(PyFunctionNode::new(name))))
        }
    })
}

unsafe extern "C" fn traverse(object: *mut ffi::PyObject, visit: ffi::visitproc, arg: *mut c_void) -> c_int {
    // SAFETY: CPython calls it with an instance; what it holds is alive.
    unsafe {
        let stop = visit(ffi::Py_TYPE(object).cast(), arg);
        if stop != 0 {
            return stop;
        }
        for held in (*object.cast::<PyFunction>()).references() {
            if !held.is_null() {
                let stop = visit(*held, arg);
                if stop != 0 {
                    return stop;
                }
            }
        }
        let node = &raw const (*object.cast::<PyNode>()).node;
        if (*node).is_null() {
            return 0;
        }
        collector::traverse_node(node_object::borrow_node(&*node), visit, arg)
    }
}

unsafe extern "C" fn clear(object: *mut ffi::PyObject) -> c_int {
    // SAFETY: CPython calls it with an instance; each reference is taken out before it is given up.
    unsafe {
        for slot in (*object.cast::<PyFunction>()).references() {
            replace(slot, std::ptr::null_mut());
        }
    }
    0
}

unsafe extern "C" fn dealloc(object: *mut ffi::PyObject) {
    // SAFETY: CPython calls it once, with an instance that nobody refers to any more.
    unsafe {
        ffi::PyObject_GC_UnTrack(object.cast());
        if !(*object.cast::<PyFunction>()).weaklist.is_null() {
            ffi::PyObject_ClearWeakRefs(object);
        }
        clear(object);
        node_object::release(object);
        let type_ = ffi::Py_TYPE(object);
        match (*type_).tp_free {
            Some(free) => free(object.cast()),
            None => ffi::PyObject_GC_Del(object.cast()),
        }
        ffi::Py_DECREF(type_.cast());
    }
}

/// The tensors saved for backward, unpacked.
unsafe extern "C" fn saved_tensors(object: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with an instance.
        let (py, node, saved_for_forward) = unsafe {
            (token(), node_object::of_self(object), (*object.cast::<PyFunction>()).saved_for_forward)
        };
        if !saved_for_forward.is_null() {
            // SAFETY: the context holds it.
            unsafe { ffi::Py_INCREF(saved_for_forward) };
            return Ok(saved_for_forward);
        }
        let Some(function) = node.function::<PyFunctionNode>() else {
            return Ok(PyTuple::empty(py).into_ptr());
        };
        let tensors = function.unpack(&node)?;
        Ok(objects::tuple_of(py, tensors.len(), |i| ivalue::into_python(py, tensors[i].clone().into()))?
            .into_ptr())
    })
}

/// An attribute that reads and writes a reference of the context.
macro_rules! reference {
    ($get:ident, $set:ident, $field:ident) => {
        unsafe extern "C" fn $get(object: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
            // SAFETY: CPython calls it with an instance; what it holds is alive.
            unsafe {
                let held = (*object.cast::<PyFunction>()).$field;
                let held = if held.is_null() { ffi::Py_None() } else { held };
                ffi::Py_INCREF(held);
                held
            }
        }

        unsafe extern "C" fn $set(
            object: *mut ffi::PyObject,
            value: *mut ffi::PyObject,
            _: *mut c_void,
        ) -> c_int {
            // SAFETY: CPython calls it with an instance and a live value or null.
            unsafe {
                let value =
                    if value.is_null() || ffi::Py_IsNone(value) != 0 { std::ptr::null_mut() } else { value };
                ffi::Py_XINCREF(value);
                replace(&raw mut (*object.cast::<PyFunction>()).$field, value);
            }
            0
        }
    };
}
reference!(get_needs_input_grad, set_needs_input_grad, needs_input_grad);
reference!(get_to_save, set_to_save, to_save);
reference!(get_saved_for_forward, set_saved_for_forward, saved_for_forward);
reference!(get_non_differentiable, set_non_differentiable, non_differentiable);
reference!(get_dirty_tensors, set_dirty_tensors, dirty_tensors);

unsafe extern "C" fn get_materialize_grads(object: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: CPython calls it with an instance.
    unsafe { ffi::PyBool_FromLong((*object.cast::<PyFunction>()).materialize_grads.into()) }
}

unsafe extern "C" fn set_materialize_grads(
    object: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
    _: *mut c_void,
) -> c_int {
    guard_int(|| {
        // SAFETY: CPython calls it with an instance and a live value or null.
        unsafe {
            // Null asks to delete the attribute.
            if value.is_null() || ffi::PyBool_Check(value) == 0 {
                return Err(PyTypeError::error("set_materialize_grads expects a bool").into());
            }
            (*object.cast::<PyFunction>()).materialize_grads = value == ffi::Py_True();
        }
        Ok(0)
    })
}

/// The tensors of an attribute that holds a tuple of tensors, or `None` among them where `allow_none`.
///
/// # Safety
///
/// `field` is null or held by a live context.
pub(super) unsafe fn tensors_of(
    py: Python<'_>,
    field: *mut ffi::PyObject,
    attribute: &str,
    allow_none: bool,
    wrong: impl Fn(usize, &str) -> PyErr,
) -> Res<Vec<Option<c10::Tensor>>> {
    if field.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: passed on to the caller.
    let field = unsafe { borrow(py, field) };
    let Ok(tuple) = field.cast::<PyTuple>() else {
        let found = field.get_type().name()?;
        let text = format!(
            "autograd internal error: {attribute} attribute is expected to be a tuple but is {found}"
        );
        return Err(PyRuntimeError::error(text).into());
    };
    let mut tensors = Vec::with_capacity(tuple.len());
    for (i, item) in tuple.iter().enumerate() {
        match tensor::get(&item) {
            Some(tensor) => tensors.push(Some(tensor.clone())),
            None if allow_none && item.is_none() => tensors.push(None),
            None => return Err(wrong(i, &item.get_type().name()?.to_string()).into()),
        }
    }
    Ok(tensors)
}

/// Makes the type.
pub(super) fn register(module: &Bound<'_, PyModule>) -> Res<()> {
    let py = module.py();
    let function = TypeBuilder::new::<PyFunction>(c"ptr._C._FunctionBase")
        .flags(ffi::Py_TPFLAGS_HAVE_GC | ffi::Py_TPFLAGS_BASETYPE)
        .doc(c"The context of a custom function, which is its node in the backward graph.")
        .offset(c"__dictoffset__", std::mem::offset_of!(PyFunction, dict))
        .offset(c"__weaklistoffset__", std::mem::offset_of!(PyFunction, weaklist))
        .slot(ffi::Py_tp_new, new as *const ())
        .slot(ffi::Py_tp_traverse, traverse as *const ())
        .slot(ffi::Py_tp_clear, clear as *const ())
        .slot(ffi::Py_tp_dealloc, dealloc as *const ())
        .methods([method_kw(c"apply", function_apply::apply, ffi::METH_CLASS)])
        .getsets([
            getset(c"saved_tensors", saved_tensors, None),
            getset(c"_saved_tensors", saved_tensors, None),
            getset(c"needs_input_grad", get_needs_input_grad, Some(set_needs_input_grad)),
            getset(c"to_save", get_to_save, Some(set_to_save)),
            getset(c"saved_for_forward", get_saved_for_forward, Some(set_saved_for_forward)),
            getset(c"non_differentiable", get_non_differentiable, Some(set_non_differentiable)),
            getset(c"dirty_tensors", get_dirty_tensors, Some(set_dirty_tensors)),
            getset(c"materialize_grads", get_materialize_grads, Some(set_materialize_grads)),
        ])
        .build(py, Some(NODE.get()))?;
    FUNCTION.set(function);
    module.add("_FunctionBase", FUNCTION.bound(py))?;
    Ok(())
}
