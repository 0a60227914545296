//! Pack and unpack hooks of saved tensors: `graph.saved_tensors_hooks`.

use std::sync::Arc;

use autograd::saved_tensor_hooks as core;
use autograd::{PackedTensor, SavedTensorHooks};
use c10::{Error, Result, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::convert::errors;
use crate::raw::objects::{NewError, Text};
use crate::raw::{call_python, Res, TextArgument};
use crate::tensor;

/// A pair of Python functions.
pub(super) struct PySavedTensorHooks {
    pack: Py<PyAny>,
    unpack: Arc<Py<PyAny>>,
}

impl PySavedTensorHooks {
    pub(super) fn new(pack: &Bound<'_, PyAny>, unpack: &Bound<'_, PyAny>) -> Self {
        PySavedTensorHooks { pack: pack.clone().unbind(), unpack: Arc::new(unpack.clone().unbind()) }
    }
}

/// What the pack function returned.
struct PyPacked {
    data: Py<PyAny>,
    unpack: Arc<Py<PyAny>>,
}

impl SavedTensorHooks for PySavedTensorHooks {
    fn pack(&self, tensor: &Tensor) -> Result<Arc<dyn PackedTensor>> {
        call_python(|py| {
            let object =
                tensor::wrap_bound(py, tensor.clone()).map_err(|raised| errors::to_core(raised.into()))?;
            let data = self.pack.bind(py).call1((object,)).map_err(errors::to_core)?;
            Ok(Arc::new(PyPacked { data: data.unbind(), unpack: self.unpack.clone() })
                as Arc<dyn PackedTensor>)
        })
    }
}

impl PackedTensor for PyPacked {
    fn unpack(&self) -> Result<Tensor> {
        call_python(|py| {
            let result = self.unpack.bind(py).call1((self.data.bind(py),)).map_err(errors::to_core)?;
            match tensor::get(&result) {
                Some(tensor) => Ok(tensor.clone()),
                None => {
                    let found = result.get_type().name().map_err(errors::to_core)?;
                    Err(Error::type_(format!(
                        "Output of saved tensor unpack_hook expected to be a Tensor but got result of type {found}"
                    )))
                }
            }
        })
    }
}

fn check_callable(hook: &Bound<'_, PyAny>, name: &str) -> Res<()> {
    if hook.is_callable() {
        return Ok(());
    }
    let found = hook.get_type().name()?;
    Err(PyTypeError::error(format!("saved_tensors_hooks: {name} must be callable, got {found}")).into())
}

/// Puts a pair of hooks on top of this thread's stack.
#[pyfunction]
fn _push_saved_tensors_default_hooks(
    pack_hook: &Bound<'_, PyAny>,
    unpack_hook: &Bound<'_, PyAny>,
) -> Res<()> {
    check_callable(pack_hook, "pack_hook")?;
    check_callable(unpack_hook, "unpack_hook")?;
    Ok(core::push(Arc::new(PySavedTensorHooks::new(pack_hook, unpack_hook)))?)
}

/// Takes the topmost pair off.
#[pyfunction]
fn _pop_saved_tensors_default_hooks() {
    drop(core::pop());
}

/// Makes pushing fail with a message.
#[pyfunction]
fn _saved_tensors_hooks_disable(error_message: TextArgument<'_>) -> Res<()> {
    Ok(core::disable(&error_message)?)
}

/// Allows pushing again.
#[pyfunction]
fn _saved_tensors_hooks_enable() {
    core::enable();
}

/// Whether pushing is allowed.
#[pyfunction]
fn _saved_tensors_hooks_is_enabled() -> bool {
    core::disabled_message().is_none()
}

/// The message that pushing fails with, or `None`.
#[pyfunction]
fn _saved_tensors_hooks_get_disabled_error_message() -> Option<Text<String>> {
    core::disabled_message().map(Text)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_push_saved_tensors_default_hooks, module)?)?;
    module.add_function(wrap_pyfunction!(_pop_saved_tensors_default_hooks, module)?)?;
    module.add_function(wrap_pyfunction!(_saved_tensors_hooks_disable, module)?)?;
    module.add_function(wrap_pyfunction!(_saved_tensors_hooks_enable, module)?)?;
    module.add_function(wrap_pyfunction!(_saved_tensors_hooks_is_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_saved_tensors_hooks_get_disabled_error_message, module)?)
}
