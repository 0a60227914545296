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

pub(crate) use autograd_attributes::{require_grad, set_grad_fn_wrapper};
pub(crate) use conversions::{to, type_string, Target};
pub(crate) use interpreter::set_python_dispatch;
pub(crate) use object::{get, is_exact, track, wrap, wrap_bound, PyTensor, TENSOR};
pub(crate) use scalar_access::item;
pub(crate) use type_object::{register, register_functions};

use c10::Tensor;
use pyo3::ffi;

use crate::ops::torch_function;
use crate::raw::{borrow, token, Res};

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

/// Offers the read of an attribute to a subclass that overrides functions.
///
/// # Safety
///
/// As for [`of_self`].
#[inline(always)]
unsafe fn overridden_getter(object: *mut ffi::PyObject, name: &str) -> Res<Option<*mut ffi::PyObject>> {
    // SAFETY: a live object.
    unsafe {
        let py = token();
        let object = borrow(py, object);
        if is_exact(&object) || !torch_function::overrides(&object) {
            return Ok(None);
        }
        torch_function::handle_attribute(&object, name, "__get__", None)
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
        let py = token();
        let object = borrow(py, object);
        if !torch_function::modes_active() && (is_exact(&object) || !torch_function::overrides(&object)) {
            return Ok(None);
        }
        torch_function::handle_method(&object, name, args, nargs, keywords)
    }
}
