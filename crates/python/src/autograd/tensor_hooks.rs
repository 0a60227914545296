//! Hooks on tensors: what `Tensor.register_hook` and `Tensor.register_post_accumulate_grad_hook` do below Python.

use std::sync::Arc;

use autograd::{variable, AutogradMeta};
use c10::Tensor;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::hooks::{self, PyPostAccumulateHooks, PyTensorHooks};
use crate::raw::Res;
use crate::tensor;

fn tensor_argument<'a>(object: &'a Bound<'_, PyAny>, function: &str) -> Res<&'a Tensor> {
    match tensor::get(object) {
        Some(tensor) => Ok(tensor),
        None => {
            let found = object.get_type().name()?;
            Err(PyTypeError::new_err(format!("{function}: expected a Tensor, got {found}")).into())
        }
    }
}

/// Whether the engine knows of hooks with this very dict: on the leaf, or on the tensor's present history.
fn is_registered(tensor: &Tensor, dict: *mut ffi::PyObject) -> Res<bool> {
    let mut found = false;
    let mut look =
        |hook: &dyn std::any::Any| found |= hooks::dict_of(hook).is_some_and(|d| std::ptr::eq(d, dict));
    match variable::grad_fn(tensor)? {
        Some(node) => node.visit_hooks(&mut look),
        None => {
            if let Some(meta) = AutogradMeta::of(tensor) {
                meta.visit_hooks(&mut look);
            }
        }
    }
    Ok(found)
}

/// Makes the engine run the hooks of the object's `_backward_hooks` on the tensor's gradient.
pub(super) fn register_dict(object: &Bound<'_, PyAny>, tensor: &Tensor) -> Res<()> {
    let dict = object.getattr("_backward_hooks")?;
    if !dict.is_none() && !is_registered(tensor, dict.as_ptr())? {
        variable::register_hook(tensor, Arc::new(PyTensorHooks::new(dict.unbind())))?;
    }
    Ok(())
}

/// Registers a hook on a tensor's gradient and returns the handle that removes it.
///
/// The hooks of a tensor share one dict, unless the tensor has been modified in place since: hooks registered before
/// see the gradient with respect to the old value, and later ones get a dict of their own.
#[pyfunction]
fn _register_tensor_hook<'py>(
    object: &Bound<'py, PyAny>,
    hook: &Bound<'py, PyAny>,
) -> Res<Bound<'py, PyAny>> {
    let py = object.py();
    let tensor = tensor_argument(object, "register_hook()")?;
    let mut dict = object.getattr("_backward_hooks")?;
    let has_history = variable::grad_fn(tensor)?.is_some();
    if dict.is_none() || (has_history && dict.is_truthy()? && !is_registered(tensor, dict.as_ptr())?) {
        dict = hooks::new_dict(py)?;
        object.setattr("_backward_hooks", &dict)?;
    }
    if !is_registered(tensor, dict.as_ptr())? {
        variable::register_hook(tensor, Arc::new(PyTensorHooks::new(dict.clone().unbind())))?;
    }
    hooks::add(py, Some(dict.as_ptr()), hook, |_| ())
}

/// Registers a hook that runs when the leaf's gradient has been accumulated, and returns the handle that removes it.
#[pyfunction]
fn _register_post_accumulate_grad_hook<'py>(
    object: &Bound<'py, PyAny>,
    hook: &Bound<'py, PyAny>,
) -> Res<Bound<'py, PyAny>> {
    let py = object.py();
    let tensor = tensor_argument(object, "register_post_accumulate_grad_hook()")?;
    let mut dict = object.getattr("_post_accumulate_grad_hooks")?;
    if dict.is_none() {
        dict = hooks::new_dict(py)?;
    }
    if !is_registered(tensor, dict.as_ptr())? {
        let hooks = PyPostAccumulateHooks(dict.clone().unbind());
        variable::register_post_accumulate_grad_hook(tensor, Arc::new(hooks))?;
        object.setattr("_post_accumulate_grad_hooks", &dict)?;
    }
    hooks::add(py, Some(dict.as_ptr()), hook, |_| ())
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_register_tensor_hook, module)?)?;
    module.add_function(wrap_pyfunction!(_register_post_accumulate_grad_hook, module)?)
}
