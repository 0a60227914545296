//! `Function.apply`: runs a custom function's forward and puts it into the graph.

use ::ops::at;
use std::sync::atomic::{AtomicPtr, Ordering};

use autograd::{custom_function, variable, Node, SavedVariable};
use c10::{AutoGradMode, Tensor};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use super::function::{replace, tensors_of, PyFunction, FUNCTION};
use super::function_node::{Call, PyFunctionNode};
use super::node_object;
use crate::convert::warnings;
use crate::raw::objects::{self, intern, NewError};
use crate::raw::{borrow, check_memory_for, guard, token, Res};
use crate::tensor;

/// `_SingleLevelFunction.setup_context`, which says that a class has none of its own.
static NO_SETUP_CONTEXT: AtomicPtr<ffi::PyObject> = AtomicPtr::new(std::ptr::null_mut());

fn has_setup_context(class: &Bound<'_, PyAny>) -> Res<bool> {
    let py = class.py();
    let mut base = NO_SETUP_CONTEXT.load(Ordering::Relaxed);
    if base.is_null() {
        let function = py
            .import(intern!(py, "ptr.autograd.function")?)?
            .getattr(intern!(py, "_SingleLevelFunction")?)?;
        base = crate::raw::immortal(function.getattr(intern!(py, "setup_context")?)?);
        NO_SETUP_CONTEXT.store(base, Ordering::Relaxed);
    }
    Ok(!std::ptr::eq(class.getattr(intern!(py, "setup_context")?)?.as_ptr(), base))
}

pub(super) unsafe extern "C" fn apply(
    class: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls class methods with the class, a tuple, and a dict or null.
        let (class, args, kwargs) = unsafe {
            let py = token();
            (borrow(py, class), borrow(py, args), Bound::from_borrowed_ptr_or_opt(py, kwargs))
        };
        let kwargs = kwargs.map(|kwargs| kwargs.cast_into::<PyDict>()).transpose().map_err(PyErr::from)?;
        let args = args.cast::<PyTuple>()?;
        check_memory_for(args.len())?;
        apply_to(&class, &args, kwargs.as_ref())
    })
}

/// The arguments of a call that matter to the graph.
struct Inputs {
    /// The tensors among the arguments.
    variables: Vec<Option<Tensor>>,
    /// For each argument, whether it is a tensor.
    is_variable: SmallVec<[bool; 8]>,
    /// Whether the call is recorded.
    is_executable: bool,
}

impl Inputs {
    fn new(args: &Bound<'_, PyTuple>) -> Inputs {
        let mut variables = Vec::new();
        let mut is_variable = SmallVec::new();
        for arg in args.iter() {
            let tensor = tensor::get(&arg).cloned();
            is_variable.push(tensor.is_some());
            variables.extend(tensor.map(Some));
        }
        let is_executable = variable::compute_requires_grad(variables.iter().map(Option::as_ref));
        Inputs { variables, is_variable, is_executable }
    }
}

fn apply_to(
    class: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> Res<*mut ffi::PyObject> {
    let py = class.py();
    let context = class.getattr(intern!(py, "_backward_cls")?)?.call0()?;
    if !FUNCTION.is_instance(&context) {
        let found = context.get_type().name()?;
        return Err(PyTypeError::error(format!(
            "Function.apply: _backward_cls must make contexts, got {found}"
        ))
        .into());
    }
    // SAFETY: instances of the type have this layout, and `context` keeps this one alive.
    let fields = context.as_ptr().cast::<PyFunction>();
    // SAFETY: as above.
    let node = unsafe { node_object::of_self(context.as_ptr()) };
    let inputs = Inputs::new(args);

    let needs: Vec<_> = args
        .iter()
        .map(|arg| objects::boolean(py, tensor::get(&arg).is_some_and(variable::requires_grad)))
        .collect();
    // SAFETY: a field of a live context and a new reference.
    unsafe { replace(&raw mut (*fields).needs_input_grad, objects::tuple(py, needs)?.into_ptr()) };
    if inputs.is_executable {
        let edges = variable::collect_next_edges(inputs.variables.iter().map(Option::as_ref))?;
        // SAFETY: nothing leads to the node before its outputs are attached to it.
        unsafe { node.set_next_edges(edges) };
    }

    let uses_setup_context = has_setup_context(class)?;
    let output = run_forward(class, &context, args, kwargs, uses_setup_context)?;
    let result = attach_outputs(&context, fields, &node, inputs, output, uses_setup_context)?;
    warnings::emit_pending()?;
    Ok(result)
}

/// Runs the user's forward, without recording.
fn run_forward<'py>(
    class: &Bound<'py, PyAny>,
    context: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    uses_setup_context: bool,
) -> Res<Bound<'py, PyAny>> {
    let py = class.py();
    let _grad_mode = AutoGradMode::new(false);
    let forward = class.getattr(intern!(py, "forward")?)?;
    if uses_setup_context {
        let output = forward.call(args, kwargs)?;
        class.getattr(intern!(py, "setup_context")?)?.call1((context, args, &output))?;
        return Ok(output);
    }
    let mut with_context = Vec::with_capacity(args.len() + 1);
    with_context.push(context.clone());
    with_context.extend(args.iter());
    let with_context = objects::tuple(py, with_context)?;
    Ok(forward.call(with_context, kwargs)?)
}

/// Makes what forward returned outputs of the node, and saves what it asked for.
fn attach_outputs(
    context: &Bound<'_, PyAny>,
    fields: *mut PyFunction,
    node: &Node,
    inputs: Inputs,
    output: Bound<'_, PyAny>,
    uses_setup_context: bool,
) -> Res<*mut ffi::PyObject> {
    let py = context.py();
    let is_tuple = output.is_instance_of::<PyTuple>();
    let outputs = match output.cast_into::<PyTuple>() {
        Ok(tuple) => tuple,
        Err(error) => objects::tuple(py, [error.into_inner()])?,
    };
    // SAFETY: fields of a live context.
    let (dirty, non_differentiable, to_save) = unsafe {
        let dirty = tensors_of(py, (*fields).dirty_tensors, "dirty_tensors", false, |i, found| {
            PyRuntimeError::error(format!(
                "mark_dirty can only accept variables, but argument {i} is of type {found}"
            ))
        })?;
        let non_differentiable =
            tensors_of(py, (*fields).non_differentiable, "non_differentiable", false, |_, found| {
                PyRuntimeError::error(format!(
                    "mark_non_differentiable only accepts variable arguments, but got {found}"
                ))
            })?;
        let to_save = tensors_of(py, (*fields).to_save, "to_save", true, |i, found| {
            PyTypeError::error(format!(
                "save_for_backward can only save variables, but argument {i} is of type {found}"
            ))
        })?;
        (dirty, non_differentiable, to_save)
    };
    let raw: Vec<Option<Tensor>> = outputs.iter().map(|output| tensor::get(&output).cloned()).collect();
    if let Some(function) = node.function::<PyFunctionNode>() {
        function.set_call(Call {
            is_variable_input: inputs.is_variable,
            is_tensor_output: raw.iter().map(Option::is_some).collect(),
        });
    }
    let saved_by_setup: Vec<Tensor> =
        if uses_setup_context { to_save.iter().flatten().cloned().collect() } else { Vec::new() };
    let wrapped = custom_function::wrap_outputs(
        &inputs.variables,
        &non_differentiable.into_iter().flatten().collect::<Vec<_>>(),
        &dirty.into_iter().flatten().collect::<Vec<_>>(),
        raw,
        inputs.is_executable.then_some(node),
        &saved_by_setup,
        &|tensor| at::view_as(tensor, tensor),
    )?;
    if inputs.is_executable {
        save(node, &to_save)?;
    }
    // What concerned the forward call alone is given up with it.
    // SAFETY: fields of a live context.
    unsafe {
        for slot in [
            &raw mut (*fields).to_save,
            &raw mut (*fields).non_differentiable,
            &raw mut (*fields).dirty_tensors,
        ] {
            replace(slot, std::ptr::null_mut());
        }
    }
    let result = objects::tuple_of(py, wrapped.len(), |i| match &wrapped[i] {
        Some(tensor) => {
            let object = tensor::wrap(tensor.clone())?;
            if inputs.is_executable {
                // The context can refer back to its output, and the collector must see that cycle.
                // SAFETY: a live tensor object.
                unsafe { tensor::track(object) };
            }
            Ok(object)
        }
        None => Ok(outputs.get_item(i)?.into_ptr()),
    })?;
    if is_tuple {
        return Ok(result.into_ptr());
    }
    Ok(result.cast::<PyTuple>()?.get_item(0)?.into_ptr())
}

fn save(node: &Node, tensors: &[Option<Tensor>]) -> Res<()> {
    let Some(function) = node.function::<PyFunctionNode>() else {
        return Err(PyRuntimeError::error("the context's node is not that of a custom function").into());
    };
    let mut variables = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        let is_output = match tensor {
            Some(tensor) => variable::grad_fn(tensor)?.is_some_and(|grad_fn| grad_fn.ptr_eq(node)),
            None => false,
        };
        variables.push(SavedVariable::new(tensor.as_ref(), is_output)?);
    }
    function.save(variables);
    Ok(())
}
