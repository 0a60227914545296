//! Hooks written in Python.
//!
//! A tensor or node registers one hook with the engine for all of its Python hooks: an ordered dict that
//! `RemovableHandle`s take entries out of. The dict is what the garbage collector sees of a hook.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};

use autograd::{FunctionPostHook, FunctionPreHook, Node, PostAccumulateGradHook, TensorHook, VariableList};
use c10::{Error, Result, Tensor};
use parking_lot::Mutex;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

use crate::convert::{errors, ivalue};
use crate::raw::objects::{self, intern, NewError};
use crate::raw::{call_python, Res};
use crate::tensor;

/// The hooks on one tensor's gradient.
pub(super) struct PyTensorHooks {
    pub(super) dict: Py<PyAny>,
    /// The name of the hook that replaced the gradient last, for the engine's message.
    culprit: Mutex<String>,
    /// Whether another dict has been assigned to the tensor since.
    retired: AtomicBool,
}

/// The hooks before a node.
pub(super) struct PyPreHook(pub(super) Py<PyAny>);

/// The hooks after a node.
pub(super) struct PyPostHook(pub(super) Py<PyAny>);

/// The hooks after a leaf's gradient has been accumulated.
pub(super) struct PyPostAccumulateHooks {
    pub(super) dict: Py<PyAny>,
    /// As above.
    retired: AtomicBool,
}

/// Switches a tensor's hooks off, if they are ours and not those of `dict`.
pub(super) fn retire(hook: &dyn Any, dict: *mut ffi::PyObject) {
    let (held, retired) = if let Some(hooks) = hook.downcast_ref::<PyTensorHooks>() {
        (&hooks.dict, &hooks.retired)
    } else if let Some(hooks) = hook.downcast_ref::<PyPostAccumulateHooks>() {
        (&hooks.dict, &hooks.retired)
    } else {
        return;
    };
    retired.store(!std::ptr::eq(held.as_ptr(), dict), Ordering::Relaxed);
}

/// The dict of a hook, if it is one of ours. Borrowed.
pub(super) fn dict_of(hook: &dyn Any) -> Option<*mut ffi::PyObject> {
    let dict = if let Some(hooks) = hook.downcast_ref::<PyTensorHooks>() {
        &hooks.dict
    } else if let Some(hooks) = hook.downcast_ref::<PyPreHook>() {
        &hooks.0
    } else if let Some(hooks) = hook.downcast_ref::<PyPostHook>() {
        &hooks.0
    } else {
        &hook.downcast_ref::<PyPostAccumulateHooks>()?.dict
    };
    Some(dict.as_ptr())
}

/// The dict of the first hook of a node that `select` knows.
pub(super) fn find_dict(
    node: &Node,
    select: impl Fn(&dyn Any) -> Option<&Py<PyAny>>,
) -> Option<*mut ffi::PyObject> {
    let mut found = None;
    node.visit_hooks(&mut |hook| {
        if found.is_none() {
            found = select(hook).map(Py::as_ptr);
        }
    });
    found
}

/// An empty dict for hooks, which can be referred to weakly.
pub(super) fn new_dict(py: Python<'_>) -> Res<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import(intern!(py, "collections")?)?.getattr(intern!(py, "OrderedDict")?)?.unbind())
    })?;
    Ok(class.bind(py).call0()?)
}

/// Adds a hook to the existing dict, or to a new one which is then registered. Returns the handle.
pub(super) fn add<'py>(
    py: Python<'py>,
    existing: Option<*mut ffi::PyObject>,
    hook: &Bound<'py, PyAny>,
    register: impl FnOnce(Py<PyAny>),
) -> Res<Bound<'py, PyAny>> {
    static HANDLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let handle = HANDLE.get_or_try_init(py, || {
        Ok::<_, PyErr>(
            py.import(intern!(py, "ptr.utils.hooks")?)?.getattr(intern!(py, "RemovableHandle")?)?.unbind(),
        )
    })?;
    let dict = match existing {
        // SAFETY: the hook that holds it is registered, and the lock has been held since.
        Some(dict) => unsafe { Bound::from_borrowed_ptr(py, dict) },
        None => {
            let dict = new_dict(py)?;
            register(dict.clone().unbind());
            dict
        }
    };
    let handle = handle.bind(py).call1((&dict,))?;
    dict.set_item(handle.getattr(intern!(py, "id")?)?, hook)?;
    Ok(handle)
}

impl PyPostAccumulateHooks {
    pub(super) fn new(dict: Py<PyAny>) -> Self {
        PyPostAccumulateHooks { dict, retired: AtomicBool::new(false) }
    }
}

impl PyTensorHooks {
    pub(super) fn new(dict: Py<PyAny>) -> Self {
        PyTensorHooks { dict, culprit: Mutex::new(String::new()), retired: AtomicBool::new(false) }
    }

    fn run(&self, py: Python<'_>, grad: &Tensor) -> PyResult<Option<Tensor>> {
        let mut current = tensor::wrap_bound(py, grad.clone()).map_err(PyErr::from)?;
        let mut replaced = false;
        for hook in values(self.dict.bind(py))? {
            let result = hook.call1((&current,))?;
            if result.is_none() {
                continue;
            }
            if tensor::get(&result).is_none() {
                let found = result.get_type().name()?;
                return Err(PyTypeError::error(format!("expected Variable, but hook returned '{found}'")));
            }
            *self.culprit.lock() = name_of(&hook);
            current = result;
            replaced = true;
        }
        Ok(tensor::get(&current).filter(|_| replaced).cloned())
    }
}

/// The hooks of a dict, as they are now: a hook may add and remove hooks.
fn values<'py>(dict: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    Ok(objects::dict_values(dict.cast::<PyDict>()?)?.iter().collect())
}

fn name_of(hook: &Bound<'_, PyAny>) -> String {
    let name = intern!(hook.py(), "__name__").and_then(|name| hook.getattr(name)?.extract());
    name.unwrap_or_else(|_| "<unknown>".to_owned())
}

impl TensorHook for PyTensorHooks {
    fn call(&self, grad: &Tensor) -> Result<Option<Tensor>> {
        if self.retired.load(Ordering::Relaxed) {
            return Ok(None);
        }
        call_python(|py| self.run(py, grad).map_err(errors::to_core))
    }

    fn name(&self) -> String {
        self.culprit.lock().clone()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl FunctionPreHook for PyPreHook {
    fn call(&self, grads: VariableList) -> Result<VariableList> {
        call_python(|py| {
            let mut current = grads_to_python(py, &grads)?;
            for hook in values(self.0.bind(py)).map_err(errors::to_core)? {
                let result = hook.call1((&current,)).map_err(errors::to_core)?;
                current =
                    replacement(&hook, result, current).map_err(|raised| errors::to_core(raised.into()))?;
            }
            unpack(&current)
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl FunctionPostHook for PyPostHook {
    fn call(&self, outputs: VariableList, inputs: &[Option<Tensor>]) -> Result<VariableList> {
        call_python(|py| {
            let mut current = grads_to_python(py, &outputs)?;
            let inputs = grads_to_python(py, inputs)?;
            for hook in values(self.0.bind(py)).map_err(errors::to_core)? {
                let result = hook.call1((&current, &inputs)).map_err(errors::to_core)?;
                current =
                    replacement(&hook, result, current).map_err(|raised| errors::to_core(raised.into()))?;
            }
            unpack(&current)
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl PostAccumulateGradHook for PyPostAccumulateHooks {
    fn call(&self, leaf: &Tensor) -> Result<()> {
        if self.retired.load(Ordering::Relaxed) {
            return Ok(());
        }
        call_python(|py| {
            let leaf =
                tensor::wrap_bound(py, leaf.clone()).map_err(|raised| errors::to_core(raised.into()))?;
            for hook in values(self.dict.bind(py)).map_err(errors::to_core)? {
                let result = hook.call1((&leaf,)).map_err(errors::to_core)?;
                if !result.is_none() {
                    return Err(Error::runtime("Tensor post accumulate grad hooks should return None."));
                }
            }
            Ok(())
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// What a hook returned instead of `current`, checked; `current` if it returned `None`.
fn replacement<'py>(
    hook: &Bound<'py, PyAny>,
    result: Bound<'py, PyAny>,
    current: Bound<'py, PyTuple>,
) -> Res<Bound<'py, PyTuple>> {
    if result.is_none() {
        return Ok(current);
    }
    let result = match result.cast_into::<PyTuple>() {
        Ok(tuple) => tuple,
        Err(error) => {
            let found = error.into_inner().get_type().name()?;
            return Err(PyTypeError::error(format!("expected tuple, but hook returned '{found}'")).into());
        }
    };
    if result.len() != current.len() {
        let text = format!(
            "hook '{}' has returned an incorrect number of values (got {}, but expected {})",
            name_of(hook),
            result.len(),
            current.len()
        );
        return Err(PyRuntimeError::error(text).into());
    }
    for (original, result) in current.iter().zip(result.iter()) {
        check_single(hook, &original, &result)?;
    }
    Ok(result)
}

fn check_single(hook: &Bound<'_, PyAny>, original: &Bound<'_, PyAny>, result: &Bound<'_, PyAny>) -> Res<()> {
    if result.is_none() {
        return Ok(());
    }
    let Some(result) = tensor::get(result) else {
        let found = result.get_type().name()?;
        return Err(PyTypeError::error(format!("expected Variable, but hook returned '{found}'")).into());
    };
    let Some(original) = tensor::get(original) else {
        return Err(PyRuntimeError::error("can't replace a None gradient with a non-None value").into());
    };
    let problem = if original.dtype() != result.dtype() || original.device() != result.device() {
        Some(format!(
            "type of value (was {} on {} got {} on {})",
            original.dtype().name(),
            original.device(),
            result.dtype().name(),
            result.device()
        ))
    } else if original.sym_sizes() != result.sym_sizes() {
        Some("size of value".to_owned())
    } else {
        None
    };
    match problem {
        Some(problem) => {
            Err(PyRuntimeError::error(format!("hook '{}' has changed the {problem}", name_of(hook))).into())
        }
        None => Ok(()),
    }
}

/// Gradients as a tuple, `None` for those of zeros that nobody made.
pub(super) fn grads_to_python<'py>(py: Python<'py>, grads: &[Option<Tensor>]) -> Result<Bound<'py, PyTuple>> {
    let tuple = objects::tuple_of(py, grads.len(), |i| ivalue::into_python(py, grads[i].clone().into()));
    tuple.map_err(PyErr::from).and_then(|tuple| Ok(tuple.cast_into::<PyTuple>()?)).map_err(errors::to_core)
}

fn unpack(grads: &Bound<'_, PyTuple>) -> Result<VariableList> {
    grads_from_python(grads, |_| "expected Variable or None".to_owned())
        .map_err(|raised| errors::to_core(raised.into()))
}

/// The tensors of a tuple of tensors and `None`. `what` begins the message for anything else at a position.
pub(super) fn grads_from_python(
    grads: &Bound<'_, PyTuple>,
    what: impl Fn(usize) -> String,
) -> Res<VariableList> {
    let mut list = VariableList::with_capacity(grads.len());
    for (i, grad) in grads.iter().enumerate() {
        list.push(match tensor::get(&grad) {
            Some(tensor) => Some(tensor.clone()),
            None if grad.is_none() => None,
            None => {
                let found = grad.get_type().name()?;
                return Err(PyTypeError::error(format!("{} (got {found})", what(i))).into());
            }
        });
    }
    Ok(list)
}
