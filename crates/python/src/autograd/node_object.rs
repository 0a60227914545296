//! The objects behind `t.grad_fn`: one per node, of a class named after the node.

use std::collections::HashMap;
use std::ffi::{c_int, c_void, CStr, CString};

use autograd::{Node, NodeImpl};
use parking_lot::Mutex;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyModule;

use super::{collector, node_attributes};
use crate::raw::{borrow, guard, owned, Raised, Res, StaticType, TypeBuilder};

/// The layout of a node object, and of the start of a custom function's context.
#[repr(C)]
pub(super) struct PyNode {
    pub(super) ob_base: ffi::PyObject,
    /// One strong count; null only while the object is being made or destroyed.
    pub(super) node: *const NodeImpl,
}

/// The base of all node classes.
pub(super) static NODE: StaticType = StaticType::new();

/// Classes by name, as addresses: they live for ever.
static CLASSES: Mutex<Option<HashMap<String, usize>>> = Mutex::new(None);

/// The node behind an object, if it is a node object.
pub(crate) fn get(object: &Bound<'_, PyAny>) -> Option<Node> {
    if !NODE.is_instance(object) {
        return None;
    }
    // SAFETY: instances have the layout of PyNode and hold their node as long as they live.
    unsafe {
        let node = (*object.as_ptr().cast::<PyNode>()).node;
        (!node.is_null()).then(|| Node::clone_from_raw(node))
    }
}

/// The node behind the `self` of a slot.
///
/// # Safety
///
/// CPython called with `object`, an instance of the base class.
pub(super) unsafe fn of_self(object: *mut ffi::PyObject) -> Node {
    // SAFETY: instances hold their node as long as they live.
    unsafe { Node::clone_from_raw((*object.cast::<PyNode>()).node) }
}

/// The object of a node, a new reference: the one it has, or a new one.
pub(crate) fn wrap(py: Python<'_>, node: Node) -> Res<*mut ffi::PyObject> {
    autograd::ownership::drop_left_over();
    let existing = node.pyobj().cast::<ffi::PyObject>();
    if !existing.is_null() {
        // SAFETY: while the lock is held an object in the slot is alive.
        unsafe { ffi::Py_INCREF(existing) };
        return Ok(existing);
    }
    let class = class_of(py, &node.name())?;
    // SAFETY: the class's instances have the layout of PyNode; generic allocation zeroes and tracks.
    unsafe {
        let object = ffi::PyType_GenericAlloc(class, 0);
        if object.is_null() {
            return Err(Raised::already_set());
        }
        attach(object, node)
    }
}

/// [`wrap`] for code that works with bound references.
pub(super) fn wrap_bound(py: Python<'_>, node: Node) -> Res<Bound<'_, PyAny>> {
    // SAFETY: a new reference.
    unsafe { owned(py, wrap(py, node)?) }
}

/// Ties a fresh object and a node together.
///
/// # Safety
///
/// `object` is a fresh reference with the layout of PyNode.
pub(super) unsafe fn attach(object: *mut ffi::PyObject, node: Node) -> Res<*mut ffi::PyObject> {
    // SAFETY: the object owns the count that `into_raw` gives, and the slot is filled under the lock.
    unsafe {
        match node.init_pyobj(object.cast()) {
            Ok(()) => {
                (*object.cast::<PyNode>()).node = node.into_raw();
                Ok(object)
            }
            Err(winner) => {
                ffi::Py_DECREF(object);
                let winner = winner.cast::<ffi::PyObject>();
                ffi::Py_INCREF(winner);
                Ok(winner)
            }
        }
    }
}

/// Unties an object that is being destroyed from its node.
///
/// # Safety
///
/// Called once, from `tp_dealloc` of an object with the layout of PyNode.
pub(super) unsafe fn release(object: *mut ffi::PyObject) {
    // SAFETY: the count was the object's; the slot is cleared before it goes.
    unsafe {
        let node = std::mem::replace(&mut (*object.cast::<PyNode>()).node, std::ptr::null());
        if !node.is_null() {
            let node = Node::from_raw(node);
            node.pyobj_slot().clear();
            drop(node);
        }
    }
}

/// The class for nodes of a name, made when first needed.
fn class_of(py: Python<'_>, name: &str) -> Res<*mut ffi::PyTypeObject> {
    if let Some(class) = CLASSES.lock().as_ref().and_then(|classes| classes.get(name)) {
        return Ok(*class as *mut ffi::PyTypeObject);
    }
    // "builtins" because such classes belong to no module and CPython wants one.
    let full_name = CString::new(format!("builtins.{}", name.replace('\0', ""))).unwrap_or_default();
    let full_name: &'static CStr = Box::leak(full_name.into_boxed_c_str());
    let class = TypeBuilder::with_size(full_name, 0)
        .flags(ffi::Py_TPFLAGS_HAVE_GC | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION)
        .slot(ffi::Py_tp_traverse, traverse as *const ())
        .slot(ffi::Py_tp_dealloc, dealloc as *const ())
        .build(py, Some(NODE.get()))?;
    // What is shown has no module.
    // SAFETY: a live class, and a name that lives for ever.
    unsafe { (*class).tp_name = full_name.as_ptr().add("builtins.".len()) };
    // Making a class can run other threads; the first one counts.
    let class = *CLASSES.lock().get_or_insert_default().entry(name.to_owned()).or_insert(class as usize);
    Ok(class as *mut ffi::PyTypeObject)
}

unsafe extern "C" fn traverse(object: *mut ffi::PyObject, visit: ffi::visitproc, arg: *mut c_void) -> c_int {
    // SAFETY: CPython calls it with an instance.
    unsafe {
        let stop = visit(ffi::Py_TYPE(object).cast(), arg);
        let node = &raw const (*object.cast::<PyNode>()).node;
        if stop != 0 || (*node).is_null() {
            return stop;
        }
        // The handle is looked at where it lies: another one would look like another owner.
        collector::traverse_node(borrow_node(&*node), visit, arg)
    }
}

/// Views a raw handle as a node.
///
/// # Safety
///
/// `node` is not null and its holder outlives the result.
pub(super) unsafe fn borrow_node(node: &*const NodeImpl) -> &Node {
    // SAFETY: a Node is a transparent wrapper of a non-null pointer to its contents.
    unsafe { &*std::ptr::from_ref(node).cast::<Node>() }
}

unsafe extern "C" fn dealloc(object: *mut ffi::PyObject) {
    // SAFETY: CPython calls it once, with an instance that nobody refers to any more.
    unsafe {
        ffi::PyObject_GC_UnTrack(object.cast());
        release(object);
        let type_ = ffi::Py_TYPE(object);
        match (*type_).tp_free {
            Some(free) => free(object.cast()),
            None => ffi::PyObject_GC_Del(object.cast()),
        }
        ffi::Py_DECREF(type_.cast());
    }
}

/// Attribute access: what the class has, then the node's saved values.
unsafe extern "C" fn getattro(object: *mut ffi::PyObject, name: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with an instance and a string.
        unsafe {
            let found = ffi::PyObject_GenericGetAttr(object, name);
            if !found.is_null() || ffi::PyErr_ExceptionMatches(ffi::PyExc_AttributeError) == 0 {
                return if found.is_null() { Err(Raised::already_set()) } else { Ok(found) };
            }
            let py = Python::assume_attached();
            let missing = PyErr::fetch(py);
            match node_attributes::saved(py, &of_self(object), &borrow(py, name))? {
                Some(value) => Ok(value.into_ptr()),
                None => Err(missing.into()),
            }
        }
    })
}

/// Makes the base class.
pub(super) fn register(module: &Bound<'_, PyModule>) -> Res<()> {
    let py = module.py();
    let node = TypeBuilder::new::<PyNode>(c"ptr._C._NodeBase")
        .flags(ffi::Py_TPFLAGS_HAVE_GC | ffi::Py_TPFLAGS_BASETYPE | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION)
        .doc(c"A step of the backward graph.")
        .slot(ffi::Py_tp_traverse, traverse as *const ())
        .slot(ffi::Py_tp_dealloc, dealloc as *const ())
        .slot(ffi::Py_tp_getattro, getattro as *const ())
        .slot(ffi::Py_tp_call, node_attributes::call as *const ())
        .methods(node_attributes::methods())
        .getsets(node_attributes::attributes())
        .build(py, None)?;
    NODE.set(node);
    module.add("_NodeBase", NODE.bound(py))?;
    Ok(())
}
