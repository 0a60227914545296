//! `ptr.Tensor`: the object, its attributes, methods, operators, and its ties to the core's tensor.

mod attributes;
mod autograd_attributes;
mod construct;
mod conversions;
mod interpreter;
mod methods;
mod number;
mod object;
mod scalar_access;
mod type_object;

pub(crate) use autograd_attributes::{
    backward_hooks, post_accumulate_grad_hooks, require_grad, set_grad_fn_wrapper, store_backward_hooks,
    store_post_accumulate_grad_hooks,
};
pub(crate) use conversions::{to, type_string, Target};
pub(crate) use interpreter::set_python_dispatch;
pub(crate) use object::{get, is_exact, track, wrap, wrap_bound, PyTensor, TENSOR};
pub(crate) use scalar_access::{dispatch_modes_active, item, item_below_modes, lift_fresh};
pub(crate) use type_object::{register, register_functions};

use c10::Tensor;
use pyo3::ffi;

use crate::ops::torch_function;
use crate::raw::{borrow, owned, token, Res};

/// The tensor behind the `self` of a slot, attribute or method of the type.
///
/// # Safety
///
/// CPython called with `object`, an instance of the type.
#[inline(always)]
unsafe fn of_self<'a>(object: *mut ffi::PyObject) -> &'a Tensor {
    // SAFETY: instances hold their tensor for as long as they live.
    unsafe { Tensor::borrow_raw(&(*object.cast::<PyTensor>()).tensor) }
}

/// Offers the read of an attribute to a subclass that overrides functions, or to a mode.
///
/// # Safety
///
/// As for [`of_self`].
#[inline(always)]
unsafe fn overridden_getter(object: *mut ffi::PyObject, name: &str) -> Res<Option<*mut ffi::PyObject>> {
    // SAFETY: a live object.
    unsafe {
        let object = borrow(token(), object);
        if !torch_function::is_offered(&object) {
            return Ok(None);
        }
        torch_function::handle_attribute(&object, name, "__get__", None)
    }
}

/// Offers the assignment of an attribute (its deletion, if `value` is null) to a subclass that overrides functions, or to a
/// mode. Whether one has taken it.
///
/// # Safety
///
/// As for [`of_self`]; `value` is a live object or null.
#[inline(always)]
unsafe fn overridden_setter(object: *mut ffi::PyObject, name: &str, value: *mut ffi::PyObject) -> Res<bool> {
    // SAFETY: live objects.
    unsafe {
        let py = token();
        let object = borrow(py, object);
        if !torch_function::is_offered(&object) {
            return Ok(false);
        }
        let result = match value.is_null() {
            true => torch_function::handle_attribute(&object, name, "__delete__", None)?,
            false => torch_function::handle_attribute(&object, name, "__set__", Some(&borrow(py, value)))?,
        };
        // What the handler returns means nothing.
        Ok(result.map(|result| owned(py, result)).transpose()?.is_some())
    }
}

/// Offers the call of a method to a subclass that overrides functions, or to a mode.
///
/// # Safety
///
/// As for [`of_self`]; the rest is what CPython passed.
#[inline(always)]
unsafe fn overridden_method(
    object: *mut ffi::PyObject,
    name: &str,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> Res<Option<*mut ffi::PyObject>> {
    // SAFETY: a live object.
    unsafe {
        let object = borrow(token(), object);
        if !torch_function::is_offered(&object) {
            return Ok(None);
        }
        torch_function::handle_method(&object, name, args, nargs, keywords)
    }
}
