//! The tensor object: layout, life and identity.
//!
//! # Note [One object per tensor]
//! The PyObject holds one strong count of its `TensorImpl`, from birth to death, and the impl knows the object's address
//! (its slot). When the impl gets a second holder it takes a reference to the PyObject, and gives it back when the PyObject is
//! the only holder again: see Note [The PyObject owns the target] in c10. So a tensor that a graph keeps alive keeps its
//! Python attributes and its class, `is` means what it says, and no object is ever resurrected.
//!
//! # Note [Tensors and the garbage collector]
//! A tensor's type takes part in cyclic collection, but most tensors have neither attributes nor hooks and cannot be in a cycle.
//! They are not tracked until they get either, so that the collector never visits them.

use std::cell::UnsafeCell;

use c10::{Tensor, TensorImpl};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::raw::{Raised, Res, StaticType};

/// The layout of a tensor object, and of the start of any subclass's.
#[repr(C)]
pub(crate) struct PyTensor {
    ob_base: ffi::PyObject,
    /// One strong count; null only while the object is being made or destroyed.
    pub(crate) tensor: *const TensorImpl,
    /// `__dict__`, or null.
    pub(crate) dict: *mut ffi::PyObject,
    /// The list of weak references, or null.
    pub(crate) weaklist: *mut ffi::PyObject,
    /// `_backward_hooks`, or null.
    pub(crate) backward_hooks: *mut ffi::PyObject,
    /// `_post_accumulate_grad_hooks`, or null.
    pub(crate) post_accumulate_grad_hooks: *mut ffi::PyObject,
}

/// `ptr.Tensor`.
pub(crate) static TENSOR: StaticType = StaticType::new();

/// Objects of exactly `ptr.Tensor` that died, kept to be born again. Guarded by the interpreter's lock.
struct FreeList(UnsafeCell<FreeObjects>);

struct FreeObjects {
    objects: [*mut ffi::PyObject; FREE_LIST_LEN],
    len: usize,
}

const FREE_LIST_LEN: usize = 128;

// SAFETY: only touched under the interpreter's lock.
unsafe impl Sync for FreeList {}

static FREE: FreeList =
    FreeList(UnsafeCell::new(FreeObjects { objects: [std::ptr::null_mut(); FREE_LIST_LEN], len: 0 }));

/// Whether `object` is of exactly the type `ptr.Tensor`.
#[inline(always)]
pub(crate) fn is_exact(object: &Bound<'_, PyAny>) -> bool {
    TENSOR.is_exact(object)
}

/// The tensor behind an object, if it is one.
#[inline(always)]
pub(crate) fn get<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a Tensor> {
    if !TENSOR.is_instance(object) {
        return None;
    }
    // SAFETY: instances of the type have the layout of PyTensor, and the object holds its tensor as long as it lives.
    unsafe {
        let tensor = &(*object.as_ptr().cast::<PyTensor>()).tensor;
        (!tensor.is_null()).then(|| Tensor::borrow_raw(tensor))
    }
}

/// The object of a tensor, as a new reference: the one it has, or a new one of type `ptr.Tensor`.
#[inline]
pub(crate) fn wrap(tensor: Tensor) -> Res<*mut ffi::PyObject> {
    let existing = tensor.pyobj().cast::<ffi::PyObject>();
    if !existing.is_null() {
        // SAFETY: the slot holds a live object while the lock is held: it is cleared before the object dies.
        unsafe { ffi::Py_INCREF(existing) };
        return Ok(existing);
    }
    let object = alloc_exact()?;
    // SAFETY: a fresh object with the layout of PyTensor.
    unsafe { attach(object, tensor) }
}

/// [`wrap`] for code that works with bound references.
pub(crate) fn wrap_bound(py: Python<'_>, tensor: Tensor) -> Res<Bound<'_, PyAny>> {
    // SAFETY: a new reference.
    Ok(unsafe { Bound::from_owned_ptr(py, wrap(tensor)?) })
}

/// Makes the object of a tensor that has none yet, of the class `type_`, a subclass of `ptr.Tensor`.
///
/// # Safety
///
/// `type_` is such a class.
pub(crate) unsafe fn wrap_as(type_: *mut ffi::PyTypeObject, tensor: Tensor) -> Res<*mut ffi::PyObject> {
    if std::ptr::eq(type_, TENSOR.get()) {
        return wrap(tensor);
    }
    if !tensor.pyobj().is_null() {
        return Err(c10::Error::runtime("Creating a new Tensor subclass but the raw Tensor object is already associated to a python object").into());
    }
    // SAFETY: the class inherits tensor's layout; generic allocation zeroes and tracks.
    unsafe {
        let object = (*type_).tp_alloc.unwrap_or(ffi::PyType_GenericAlloc)(type_, 0);
        if object.is_null() {
            return Err(Raised::already_set());
        }
        let object = attach(object, tensor)?;
        if crate::ops::torch_function::has_torch_dispatch(type_) {
            (*(*object.cast::<PyTensor>()).tensor).set_python_dispatch(true);
        }
        Ok(object)
    }
}

/// Ties a fresh object and a tensor together.
///
/// # Safety
///
/// `object` is a fresh reference with the layout of PyTensor, all zero behind the header.
#[inline]
unsafe fn attach(object: *mut ffi::PyObject, tensor: Tensor) -> Res<*mut ffi::PyObject> {
    // SAFETY: the object owns the count that `into_raw` gives, and the slot is filled under the lock.
    unsafe {
        match tensor.init_pyobj(object.cast()) {
            Ok(()) => {
                (*object.cast::<PyTensor>()).tensor = tensor.into_raw();
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

/// A zeroed, untracked object of exactly `ptr.Tensor`.
#[inline]
fn alloc_exact() -> Res<*mut ffi::PyObject> {
    // SAFETY: called with the interpreter's lock; memory on the list has the type's size and a collector's header.
    unsafe {
        let free = &mut *FREE.0.get();
        let type_ = TENSOR.get();
        let object = if free.len > 0 {
            free.len -= 1;
            ffi::PyObject_Init(free.objects[free.len], type_)
        } else {
            let object: *mut ffi::PyObject = ffi::PyObject_GC_New(type_);
            if object.is_null() {
                return Err(Raised::already_set());
            }
            object
        };
        let this = object.cast::<PyTensor>();
        (*this).tensor = std::ptr::null();
        (*this).dict = std::ptr::null_mut();
        (*this).weaklist = std::ptr::null_mut();
        (*this).backward_hooks = std::ptr::null_mut();
        (*this).post_accumulate_grad_hooks = std::ptr::null_mut();
        Ok(object)
    }
}

/// Lets the collector see a tensor that can be in a cycle from now on.
///
/// # Safety
///
/// `object` is a live tensor object.
pub(crate) unsafe fn track(object: *mut ffi::PyObject) {
    // SAFETY: the type has the collector's header.
    unsafe {
        if ffi::PyObject_GC_IsTracked(object) == 0 {
            ffi::PyObject_GC_Track(object.cast());
        }
    }
}

/// tp_traverse.
pub(super) unsafe extern "C" fn traverse(
    object: *mut ffi::PyObject,
    visit: ffi::visitproc,
    arg: *mut std::ffi::c_void,
) -> std::ffi::c_int {
    // SAFETY: CPython calls it with a tensor; what the object holds is alive.
    unsafe {
        let this = object.cast::<PyTensor>();
        let type_ = ffi::Py_TYPE(object).cast::<ffi::PyObject>();
        for held in [type_, (*this).dict, (*this).backward_hooks, (*this).post_accumulate_grad_hooks] {
            if !held.is_null() {
                let stop = visit(held, arg);
                if stop != 0 {
                    return stop;
                }
            }
        }
        let tensor = &raw const (*this).tensor;
        if (*tensor).is_null() {
            return 0;
        }
        crate::autograd::collector::traverse_tensor(Tensor::borrow_raw(&*tensor), visit, arg)
    }
}

/// tp_clear. The tensor stays: others may hold it, and the object is whole until it is destroyed.
pub(super) unsafe extern "C" fn clear(object: *mut ffi::PyObject) -> std::ffi::c_int {
    // SAFETY: CPython calls it with a tensor; each reference is taken out before it is given up.
    unsafe {
        let this = object.cast::<PyTensor>();
        for slot in [&mut (*this).dict, &mut (*this).backward_hooks, &mut (*this).post_accumulate_grad_hooks]
        {
            ffi::Py_XDECREF(std::mem::replace(slot, std::ptr::null_mut()));
        }
    }
    0
}

/// tp_dealloc.
pub(super) unsafe extern "C" fn dealloc(object: *mut ffi::PyObject) {
    // SAFETY: CPython calls it once, with a tensor that nobody refers to any more.
    unsafe {
        let this = object.cast::<PyTensor>();
        ffi::PyObject_GC_UnTrack(object.cast());
        if !(*this).weaklist.is_null() {
            ffi::PyObject_ClearWeakRefs(object);
        }
        clear(object);
        let tensor = std::mem::replace(&mut (*this).tensor, std::ptr::null());
        if !tensor.is_null() {
            (*tensor).pyobj_slot().clear();
            drop(Tensor::from_raw(tensor));
        }
        let type_ = ffi::Py_TYPE(object);
        let free = &mut *FREE.0.get();
        if std::ptr::eq(type_, TENSOR.get()) && free.len < FREE_LIST_LEN {
            free.objects[free.len] = object;
            free.len += 1;
        } else {
            match (*type_).tp_free {
                Some(free) => free(object.cast()),
                None => ffi::PyObject_GC_Del(object.cast()),
            }
        }
        ffi::Py_DECREF(type_.cast());
    }
}
