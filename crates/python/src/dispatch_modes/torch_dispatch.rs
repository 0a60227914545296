//! The kernel of the Python key: `__torch_dispatch__`.
//!
//! Below autograd and everything else above the Python key, a call with tensors of a class that has a
//! `__torch_dispatch__`, or under a mode, is handed to Python: first to the innermost mode, then to the arguments' classes,
//! subclasses before their bases. The handler sees the operator as `ptr.ops` has it and arguments as a call would
//! write them.

use std::collections::HashMap;

use c10::{DispatchKey, DispatchKeySet, ExcludeDispatchKeyGuard, Result};
use dispatch::{KernelFunction, Library, LibraryKind, OperatorHandle, Stack};
use parking_lot::Mutex;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use super::arguments;
use super::stack::Stashed;
use crate::convert::errors;
use crate::ops::operator_handle::PyOperatorHandle;
use crate::ops::torch_function;
use crate::raw::objects::{self, intern, NewError};
use crate::raw::{call_python, Res, TextArgument};

/// Everything that comes before the Python key in a call: it is over when Python handles the call.
const ABOVE_PYTHON: DispatchKeySet =
    DispatchKeySet::FULL.difference(DispatchKeySet::full_after(DispatchKey::Python).add(DispatchKey::Python));

/// `ptr.ops` objects by operator number.
static OVERLOADS: Mutex<Option<HashMap<u32, Py<PyAny>>>> = Mutex::new(None);

/// The `OpOverload` of an operator.
pub(super) fn overload<'py>(py: Python<'py>, op: OperatorHandle) -> Res<Bound<'py, PyAny>> {
    if let Some(object) = OVERLOADS.lock().as_ref().and_then(|cache| cache.get(&op.id())) {
        return Ok(object.bind(py).clone());
    }
    static FIND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let find = FIND.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import(intern!(py, "ptr._ops")?)?.getattr(intern!(py, "_find_overload")?)?.unbind())
    })?;
    let name = op.name();
    let overload = if name.overload.is_empty() { "default" } else { name.overload.as_str() };
    let object = find.bind(py).call1((objects::string(py, &name.name)?, objects::string(py, overload)?))?;
    OVERLOADS.lock().get_or_insert_default().insert(op.id(), object.clone().unbind());
    Ok(object)
}

fn python_fallback(op: OperatorHandle, _: DispatchKeySet, stack: &mut Stack) -> Result<()> {
    dispatch_to_python(op, stack)
}

/// Serves one call.
fn dispatch_to_python(op: OperatorHandle, stack: &mut Stack) -> Result<()> {
    let _above = ExcludeDispatchKeyGuard::new(ABOVE_PYTHON);
    call_python(|py| run(py, op, stack).map_err(|raised| errors::to_core(raised.into())))
}

fn run(py: Python<'_>, op: OperatorHandle, stack: &mut Stack) -> Res<()> {
    let values = arguments::pop(op, stack)?;
    let (args, kwargs) = arguments::to_python(py, op, &values)?;
    let handlers = handlers(py, &values);
    drop(values);
    let func = overload(py, op)?;
    let types = objects::tuple(py, &handlers)?;
    let stashed = Stashed::innermost();
    let not_implemented = py.NotImplemented();
    if let Some(mode) = stashed.mode() {
        let result = mode
            .bind(py)
            .call_method1(intern!(py, "__torch_dispatch__")?, (&func, &types, &args, &kwargs))?;
        if !result.is(&not_implemented) {
            return arguments::push_result(op, &result, stack);
        }
    }
    for class in &handlers {
        let result =
            class.getattr(intern!(py, "__torch_dispatch__")?)?.call1((&func, &types, &args, &kwargs))?;
        if !result.is(&not_implemented) {
            return arguments::push_result(op, &result, stack);
        }
    }
    Err(all_refused(&func, &types, stashed.mode().map(|mode| mode.bind(py))).into())
}

#[cold]
fn all_refused(
    func: &Bound<'_, PyAny>,
    types: &Bound<'_, PyTuple>,
    mode: Option<&Bound<'_, PyAny>>,
) -> PyErr {
    let mut text = format!(
        "Multiple dispatch failed for '{func}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n"
    );
    if let Some(mode) = mode {
        text.push_str(&format!("  - mode object {mode}\n"));
    }
    for class in types.iter() {
        text.push_str(&format!("  - tensor subclass {class}\n"));
    }
    text.push_str("\nFor more information, try re-running with TORCH_LOGS=not_implemented");
    PyTypeError::error(text)
}

/// The classes of the arguments that handle operators: each once, subclasses before their bases.
fn handlers<'py>(py: Python<'py>, values: &[dispatch::IValue]) -> Vec<Bound<'py, PyType>> {
    let mut classes: Vec<Bound<'py, PyType>> = Vec::new();
    arguments::for_each_tensor(values, &mut |tensor| {
        let object = tensor.pyobj().cast::<ffi::PyObject>();
        if object.is_null() || !tensor.key_set().has(DispatchKey::Python) {
            return;
        }
        // SAFETY: while the lock is held an object in a tensor's slot is alive.
        let class = unsafe { Bound::<PyAny>::from_borrowed_ptr(py, object) }.get_type();
        // SAFETY: a live class.
        let dispatches = unsafe { torch_function::has_torch_dispatch(class.as_type_ptr()) };
        if !dispatches || classes.iter().any(|c| c.is(&class)) {
            return;
        }
        let place =
            classes.iter().position(|c| class.is_subclass(c).unwrap_or(false)).unwrap_or(classes.len());
        classes.insert(place, class);
    });
    classes
}

/// The object of `ptr.ops` for an operator.
#[pyfunction]
fn _overload_object<'py>(handle: &Bound<'py, PyOperatorHandle>) -> Res<Bound<'py, PyAny>> {
    overload(handle.py(), handle.get().op)
}

/// Calls an operator's kernel for one dispatch key, whatever the arguments are.
#[pyfunction]
#[pyo3(signature = (handle, key, args, kwargs = None))]
fn _call_for_dispatch_key<'py>(
    handle: &Bound<'py, PyOperatorHandle>,
    key: TextArgument<'_>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> Res<Bound<'py, PyAny>> {
    let key = key.parse::<DispatchKey>()?;
    let op = handle.get().op;
    crate::ops::operator_handle::call_boxed(handle.py(), op, args, kwargs, |stack| {
        Ok(op.call_boxed_for_dispatch_key(key, stack)?)
    })
}

/// Serves the Python key.
pub(super) fn register(module: &Bound<'_, PyModule>) -> Res<()> {
    let mut library = Library::new(LibraryKind::Impl, "_");
    library.fallback(DispatchKey::Python, KernelFunction::from_boxed(python_fallback))?;
    library.leak();
    crate::tensor::set_python_dispatch(dispatch_to_python);
    module.add_function(wrap_pyfunction!(_overload_object, module)?)?;
    module.add_function(wrap_pyfunction!(_call_for_dispatch_key, module)?)?;
    Ok(())
}
