//! The node of a custom function: backward through Python.

use std::any::Any;
use std::borrow::Cow;

use autograd::{Node, NodeFunction, SavedTensorHooks, SavedVariable, VariableList, ERR_BACKWARD_TWICE};
use c10::{Error, Result, Tensor};
use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyModule, PyTuple};
use smallvec::SmallVec;

use super::function::PyFunction;
use super::hooks;
use crate::convert::{errors, ivalue};
use crate::raw::objects::{self, intern, NewError};
use crate::raw::{call_python, Res};
use crate::tensor;

/// What the node knows of the forward call.
#[derive(Default)]
pub(super) struct Call {
    /// For each argument of forward, whether it is a tensor.
    pub(super) is_variable_input: SmallVec<[bool; 8]>,
    /// For each output, whether it is a tensor.
    pub(super) is_tensor_output: SmallVec<[bool; 4]>,
}

#[derive(Default)]
struct Saved {
    variables: Vec<SavedVariable>,
    has_been_freed: bool,
}

/// The function of a context's node. Python's part of it is the context itself: the node's Python object.
pub(super) struct PyFunctionNode {
    name: String,
    call: Mutex<Call>,
    saved: Mutex<Saved>,
}

impl PyFunctionNode {
    pub(super) fn new(name: String) -> Self {
        PyFunctionNode { name, call: Mutex::default(), saved: Mutex::default() }
    }

    /// Describes the forward call.
    pub(super) fn set_call(&self, call: Call) {
        *self.call.lock() = call;
    }

    /// Keeps tensors for backward.
    pub(super) fn save(&self, variables: Vec<SavedVariable>) {
        let old = std::mem::replace(&mut *self.saved.lock(), Saved { variables, has_been_freed: false });
        drop(old);
    }

    /// The number of saved tensors; an error when they are gone.
    pub(super) fn check_not_freed(&self) -> Result<usize> {
        let saved = self.saved.lock();
        c10::check!(!saved.has_been_freed, "{ERR_BACKWARD_TWICE}");
        Ok(saved.variables.len())
    }

    /// The saved tensors with their history.
    pub(super) fn unpack(&self, node: &Node) -> Result<Vec<Option<Tensor>>> {
        let count = self.check_not_freed()?;
        (0..count).map(|i| self.unpack_one(node, i)).collect()
    }

    /// One saved tensor.
    pub(super) fn unpack_one(&self, node: &Node, i: usize) -> Result<Option<Tensor>> {
        // Outside of the lock: unpacking may call hooks.
        let variable = self.saved.lock().variables.get(i).cloned();
        match variable {
            Some(variable) => variable.unpack(Some(node)),
            None => Err(Error::runtime(ERR_BACKWARD_TWICE)),
        }
    }

    /// Sets hooks on one saved tensor.
    pub(super) fn register_saved_hooks(&self, i: usize, hooks: &dyn SavedTensorHooks) -> Result<()> {
        let variable = self.saved.lock().variables.get(i).cloned();
        let Some(mut variable) = variable else { return Err(Error::runtime(ERR_BACKWARD_TWICE)) };
        variable.register_hooks(hooks)?;
        if let Some(place) = self.saved.lock().variables.get_mut(i) {
            std::mem::swap(place, &mut variable);
        }
        Ok(())
    }

    /// The gradients as `backward` gets them: zeros where there are none, unless the function wants `None`.
    fn grads_to_python<'py>(
        &self,
        py: Python<'py>,
        node: &Node,
        context: &PyFunction,
        grads: &VariableList,
    ) -> Res<Bound<'py, PyAny>> {
        let is_tensor = self.call.lock().is_tensor_output.clone();
        objects::tuple_of(py, grads.len(), |i| {
            if let Some(grad) = &grads[i] {
                return tensor::wrap(grad.clone());
            }
            let metadata = node.input_metadata(i).filter(|_| is_tensor.get(i).copied().unwrap_or(false));
            match metadata {
                Some(metadata) if context.materialize_grads => tensor::wrap(metadata.zeros_like()?),
                _ => Ok(py.None().into_ptr()),
            }
        })
    }

    /// What `backward` returned as gradients of the tensor arguments.
    fn results(&self, result: Bound<'_, PyAny>) -> Res<VariableList> {
        let py = result.py();
        let result = match result.cast_into::<PyTuple>() {
            Ok(tuple) => tuple,
            Err(error) => objects::tuple(py, [error.into_inner()])?,
        };
        let is_variable = self.call.lock().is_variable_input.clone();
        // Too many are fine if the surplus is None: arguments with defaults that the call left out.
        let surplus_is_none = result.iter().skip(is_variable.len()).all(|grad| grad.is_none());
        if result.len() < is_variable.len() || !surplus_is_none {
            let text = format!(
                "function {} returned an incorrect number of gradients (expected {}, got {})",
                self.name,
                is_variable.len(),
                result.len()
            );
            return Err(PyRuntimeError::error(text).into());
        }
        let mut grads = VariableList::new();
        for (i, (grad, is_variable)) in result.iter().zip(is_variable).enumerate() {
            if !is_variable {
                if !grad.is_none() {
                    let text = format!(
                        "function {} returned a gradient different than None at position {}, but the corresponding \
                         forward input was not a Variable",
                        self.name,
                        i + 1
                    );
                    return Err(PyRuntimeError::error(text).into());
                }
                continue;
            }
            grads.push(match tensor::get(&grad) {
                Some(tensor) => Some(tensor.clone()),
                None if grad.is_none() => None,
                None => {
                    let found = grad.get_type().name()?;
                    return Err(
                        PyRuntimeError::error(format!("expected Variable or None (got {found})")).into()
                    );
                }
            });
        }
        Ok(grads)
    }

    fn run(&self, py: Python<'_>, node: &Node, grads: &VariableList) -> Res<VariableList> {
        let context = node.pyobj().cast::<ffi::PyObject>();
        if context.is_null() {
            return Err(Error::runtime(format!("{}: the function's context is gone", self.name)).into());
        }
        // SAFETY: the context lives as long as its node has other holders, and the caller is one. Contexts have this layout.
        let (context, fields) =
            unsafe { (Bound::from_borrowed_ptr(py, context), &*context.cast::<PyFunction>()) };
        let args = self.grads_to_python(py, node, fields, grads)?;
        let result = context.getattr(intern!(py, "apply")?)?.call1(args.cast_into::<PyTuple>()?)?;
        self.results(result)
    }
}

impl NodeFunction for PyFunctionNode {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.name)
    }

    fn apply(&self, node: &Node, grads: VariableList) -> Result<VariableList> {
        call_python(|py| self.run(py, node, &grads).map_err(|raised| errors::to_core(raised.into())))
    }

    fn release_variables(&self) {
        let released =
            std::mem::replace(&mut *self.saved.lock(), Saved { variables: Vec::new(), has_been_freed: true });
        drop(released);
    }

    fn visit_saved(&self, visit: &mut dyn FnMut(&Tensor)) {
        // Only tried: see autograd's Note [Ownership and the garbage collector].
        if let Some(saved) = self.saved.try_lock() {
            saved.variables.iter().filter_map(SavedVariable::peek).for_each(visit);
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Makes copies of tensors whose backward fails: `DelayedError(message, count)(*tensors)`.
#[pyclass(name = "DelayedError", module = "ptr._C._functions", frozen, skip_from_py_object)]
struct DelayedError {
    message: String,
}

#[pymethods]
impl DelayedError {
    #[new]
    #[pyo3(signature = (message, num_inputs = 0))]
    fn new(message: &Bound<'_, PyAny>, num_inputs: usize) -> PyResult<Self> {
        let _ = num_inputs;
        let message = match message.extract::<String>() {
            Ok(text) => text,
            Err(_) => String::from_utf8_lossy(message.extract::<&[u8]>()?).into_owned(),
        };
        Ok(DelayedError { message })
    }

    #[pyo3(signature = (*tensors))]
    fn __call__<'py>(&self, py: Python<'py>, tensors: &Bound<'py, PyTuple>) -> Res<Bound<'py, PyAny>> {
        let inputs = hooks::grads_from_python(tensors, |i| {
            format!("DelayedError: argument {i} must be a Tensor or None")
        })?;
        let outputs: Vec<Option<Tensor>> = inputs
            .iter()
            .map(|t| t.as_ref().map(autograd::variable::detach).transpose())
            .collect::<Result<_>>()?;
        if autograd::variable::compute_requires_grad(inputs.iter().map(Option::as_ref)) {
            let node = Node::new(Box::new(autograd::basic_nodes::DelayedError::new(self.message.clone())));
            let edges = autograd::variable::collect_next_edges(inputs.iter().map(Option::as_ref))?;
            // SAFETY: the node was just made.
            unsafe { node.set_next_edges(edges) };
            autograd::variable::set_history(&outputs, &node)?;
        }
        match outputs.len() {
            1 => ivalue::into_bound(py, outputs[0].clone().into()),
            n => objects::tuple_of(py, n, |i| ivalue::into_python(py, outputs[i].clone().into())),
        }
    }
}

/// Adds `_C._functions`.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let functions = PyModule::new(module.py(), "ptr._C._functions")?;
    functions.add_class::<DelayedError>()?;
    module.add("_functions", functions)
}
