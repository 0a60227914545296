//! Hooks on tensors: what `Tensor.register_hook` and `Tensor.register_post_accumulate_grad_hook` do below Python.

use std::sync::Arc;

use autograd::{variable, AutogradMeta};
use c10::Tensor;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::hooks::{self, PyPostAccumulateHooks, PyTensorHooks};
use crate::raw::objects::NewError;
use crate::raw::Res;
use crate::tensor;

fn tensor_argument<'a>(object: &'a Bound<'_, PyAny>, function: &str) -> Res<&'a Tensor> {
    match tensor::get(object) {
        Some(tensor) => Ok(tensor),
        None => {
            let found = object.get_type().name()?;
            Err(PyTypeError::error(format!("{function}: expected a Tensor, got {found}")).into())
        }
    }
}

/// Calls `look` with the hooks on the tensor that the engine knows of: those on the leaf, or on its place in the present
/// history.
fn visit(tensor: &Tensor, look: &mut dyn FnMut(&dyn std::any::Any)) -> Res<()> {
    match variable::grad_fn(tensor)? {
        Some(node) => node.visit_tensor_hooks(variable::output_nr(tensor), &mut |hook| look(hook)),
        None => {
            if let Some(meta) = AutogradMeta::of(tensor) {
                meta.visit_hooks(&mut |hook| look(hook));
            }
        }
    }
    Ok(())
}

/// Whether the engine knows of hooks with this very dict.
fn is_registered(tensor: &Tensor, dict: *mut ffi::PyObject) -> Res<bool> {
    let mut found = false;
    visit(tensor, &mut |hook| found |= hooks::dict_of(hook).is_some_and(|d| std::ptr::eq(d, dict)))?;
    Ok(found)
}

/// Makes the engine run the hooks of the object's `_backward_hooks` on the tensor's gradient.
pub(super) fn register_dict(object: &Bound<'_, PyAny>, tensor: &Tensor) -> Res<()> {
    if let Some(dict) = tensor::backward_hooks(object) {
        if !is_registered(tensor, dict.as_ptr())? {
            variable::register_hook(tensor, Arc::new(PyTensorHooks::new(dict.unbind())))?;
        }
    }
    Ok(())
}

/// The same for `_post_accumulate_grad_hooks`, which only leaves have.
fn register_post_accumulate_dict(object: &Bound<'_, PyAny>, tensor: &Tensor) -> Res<()> {
    if let Some(dict) = tensor::post_accumulate_grad_hooks(object) {
        if !is_registered(tensor, dict.as_ptr())? {
            let hooks = PyPostAccumulateHooks::new(dict.unbind());
            variable::register_post_accumulate_grad_hook(tensor, Arc::new(hooks))?;
        }
    }
    Ok(())
}

/// Whoever assigns to `_backward_hooks` has the hooks run, and no earlier ones. A tensor that does not require gradients
/// yet registers them when it does.
pub(crate) fn backward_hooks_assigned(object: &Bound<'_, PyAny>) -> Res<()> {
    let Some(tensor) = tensor::get(object) else { return Ok(()) };
    let dict = tensor::backward_hooks(object).map_or(std::ptr::null_mut(), |dict| dict.as_ptr());
    visit(tensor, &mut |hook| {
        if hook.is::<PyTensorHooks>() {
            hooks::retire(hook, dict);
        }
    })?;
    register_assigned_hooks(object)
}

/// The same for `_post_accumulate_grad_hooks`.
pub(crate) fn post_accumulate_grad_hooks_assigned(object: &Bound<'_, PyAny>) -> Res<()> {
    let Some(tensor) = tensor::get(object) else { return Ok(()) };
    let dict = tensor::post_accumulate_grad_hooks(object).map_or(std::ptr::null_mut(), |dict| dict.as_ptr());
    visit(tensor, &mut |hook| {
        if hook.is::<PyPostAccumulateHooks>() {
            hooks::retire(hook, dict);
        }
    })?;
    register_assigned_hooks(object)
}

/// Registers the hooks of a tensor's attributes, once it requires gradients.
pub(crate) fn register_assigned_hooks(object: &Bound<'_, PyAny>) -> Res<()> {
    let Some(tensor) = tensor::get(object) else { return Ok(()) };
    if variable::requires_grad(tensor) {
        register_dict(object, tensor)?;
        if variable::is_leaf(tensor)? {
            register_post_accumulate_dict(object, tensor)?;
        }
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
    let has_history = variable::grad_fn(tensor)?.is_some();
    let dict = match tensor::backward_hooks(object) {
        Some(dict) if !has_history || !dict.is_truthy()? || is_registered(tensor, dict.as_ptr())? => dict,
        _ => {
            let dict = hooks::new_dict(py)?;
            tensor::store_backward_hooks(object, Some(dict.clone()));
            dict
        }
    };
    register_dict(object, tensor)?;
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
    let dict = match tensor::post_accumulate_grad_hooks(object) {
        Some(dict) => dict,
        None => {
            let dict = hooks::new_dict(py)?;
            tensor::store_post_accumulate_grad_hooks(object, Some(dict.clone()));
            dict
        }
    };
    register_post_accumulate_dict(object, tensor)?;
    hooks::add(py, Some(dict.as_ptr()), hook, |_| ())
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_register_tensor_hook, module)?)?;
    module.add_function(wrap_pyfunction!(_register_post_accumulate_grad_hook, module)?)
}
