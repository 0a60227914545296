//! Running backward, and what can be asked while it runs.

use autograd::{engine, variable, Edge, GradientTarget, Node, VariableList};
use c10::Tensor;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::node_attributes::node_argument;
use super::node_object::{self, wrap_bound};
use crate::convert::{errors, ivalue, warnings};
use crate::raw::objects::{self, NewError, Number};
use crate::raw::{call_python, check_memory_for_items, Res};
use crate::tensor;

/// A tensor or an edge, held for the length of a call.
enum Target {
    Tensor(Tensor),
    Edge(Edge),
}

impl Target {
    fn new(object: &Bound<'_, PyAny>, describe: impl Fn() -> String) -> Res<Target> {
        if let Some(tensor) = tensor::get(object) {
            return Ok(Target::Tensor(tensor.clone()));
        }
        // A `GradientEdge` is a named tuple that begins with a node and a number.
        if let Ok(tuple) = object.cast::<PyTuple>() {
            if tuple.len() >= 2 {
                if let Some(node) = node_object::get(&tuple.get_item(0)?) {
                    return Ok(Target::Edge(Edge::new(node, tuple.get_item(1)?.extract()?)));
                }
            }
        }
        let found = object.get_type().name()?;
        Err(PyTypeError::error(format!("{} must be a Tensor or GradientEdge, but got {found}", describe()))
            .into())
    }

    fn list(objects: &Bound<'_, PyAny>, name: &str) -> Res<Vec<Target>> {
        check_memory_for_items(objects)?;
        objects
            .try_iter()?
            .enumerate()
            .map(|(i, object)| Target::new(&object?, || format!("element {i} of {name}")))
            .collect()
    }

    fn as_gradient_target(&self) -> GradientTarget<'_> {
        match self {
            Target::Tensor(tensor) => GradientTarget::Tensor(tensor),
            Target::Edge(edge) => GradientTarget::Edge(edge),
        }
    }

    fn borrow(targets: &[Target]) -> Vec<GradientTarget<'_>> {
        targets.iter().map(Target::as_gradient_target).collect()
    }
}

/// Gradients given by the caller; `None` stands for an implicit one.
fn grads(objects: Option<&Bound<'_, PyAny>>, name: &str) -> Res<VariableList> {
    let mut grads = VariableList::new();
    let Some(objects) = objects else { return Ok(grads) };
    for (i, object) in objects.try_iter()?.enumerate() {
        let object = object?;
        grads.push(match tensor::get(&object) {
            Some(grad) => Some(grad.clone()),
            None if object.is_none() => None,
            None => {
                let found = object.get_type().name()?;
                let text = format!("{name} can be either Tensors or None, but got {found} at position {i}");
                return Err(PyTypeError::error(text).into());
            }
        });
    }
    Ok(grads)
}

/// Runs `body` without the interpreter's lock and issues the warnings it caused, also when it fails.
fn run<T: Send>(py: Python<'_>, body: impl FnOnce() -> c10::Result<T> + Send) -> Res<T> {
    let result = py.detach(body);
    warnings::emit_pending()?;
    autograd::ownership::drop_left_over();
    Ok(result?)
}

fn optional_grads(py: Python<'_>, grads: Vec<Option<Tensor>>) -> Res<Bound<'_, PyAny>> {
    objects::tuple_of(py, grads.len(), |i| ivalue::into_python(py, grads[i].clone().into()))
}

/// The engine call: gradients are complete, nothing is filled in.
#[pyfunction]
#[pyo3(signature = (tensors, grad_tensors, keep_graph, create_graph, inputs = None, allow_unreachable = false, accumulate_grad = false))]
#[allow(clippy::too_many_arguments)]
fn _engine_run_backward<'py>(
    py: Python<'py>,
    tensors: &Bound<'py, PyAny>,
    grad_tensors: &Bound<'py, PyAny>,
    keep_graph: bool,
    create_graph: bool,
    inputs: Option<&Bound<'py, PyAny>>,
    allow_unreachable: bool,
    accumulate_grad: bool,
) -> Res<Bound<'py, PyAny>> {
    let outputs = Target::list(tensors, "tensors")?;
    let grads = grads(Some(grad_tensors), "gradients")?;
    let inputs = inputs.map_or_else(|| Ok(Vec::new()), |inputs| Target::list(inputs, "inputs"))?;
    if grads.len() != outputs.len() {
        let text = format!("got {} tensors and {} gradients", outputs.len(), grads.len());
        return Err(c10::Error::runtime(text).into());
    }
    let results = run(py, || {
        let (outputs, inputs) = (Target::borrow(&outputs), Target::borrow(&inputs));
        autograd::run_backward(
            &outputs,
            grads,
            keep_graph,
            create_graph,
            &inputs,
            allow_unreachable,
            accumulate_grad,
        )
    })?;
    optional_grads(py, results)
}

/// `ptr.autograd.backward` for sequences.
#[pyfunction]
#[pyo3(signature = (tensors, grad_tensors, retain_graph, create_graph, inputs))]
fn _backward(
    py: Python<'_>,
    tensors: &Bound<'_, PyAny>,
    grad_tensors: Option<&Bound<'_, PyAny>>,
    retain_graph: Option<bool>,
    create_graph: bool,
    inputs: Option<&Bound<'_, PyAny>>,
) -> Res<()> {
    let outputs = Target::list(tensors, "tensors")?;
    let grads = grads(grad_tensors, "gradients")?;
    let inputs = inputs.map(|inputs| Target::list(inputs, "inputs")).transpose()?;
    run(py, || {
        let inputs = inputs.as_deref().map(Target::borrow);
        autograd::backward_targets(
            &Target::borrow(&outputs),
            &grads,
            retain_graph,
            create_graph,
            inputs.as_deref(),
        )
    })
}

/// `ptr.autograd.grad` for sequences.
#[pyfunction]
#[pyo3(signature = (outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads))]
#[allow(clippy::too_many_arguments)]
fn _grad<'py>(
    py: Python<'py>,
    outputs: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyAny>,
    grad_outputs: Option<&Bound<'py, PyAny>>,
    retain_graph: Option<bool>,
    create_graph: bool,
    allow_unused: Option<bool>,
    materialize_grads: bool,
) -> Res<Bound<'py, PyAny>> {
    let outputs = Target::list(outputs, "outputs")?;
    let inputs = Target::list(inputs, "inputs")?;
    let grads = grads(grad_outputs, "gradients")?;
    let results = run(py, || {
        let (outputs, inputs) = (Target::borrow(&outputs), Target::borrow(&inputs));
        autograd::grad_targets(
            &outputs,
            &inputs,
            &grads,
            retain_graph,
            create_graph,
            allow_unused,
            materialize_grads,
        )
    })?;
    optional_grads(py, results)
}

/// Calls `callback` when the running backward pass is complete.
#[pyfunction]
fn _queue_callback(callback: Py<PyAny>) -> Res<()> {
    Ok(engine::queue_callback(Box::new(move || {
        call_python(|py| callback.call0(py).map(drop).map_err(errors::to_core))
    }))?)
}

/// The node and number where a tensor's gradient arrives.
#[pyfunction]
fn _get_gradient_edge<'py>(object: &Bound<'py, PyAny>) -> Res<(Bound<'py, PyAny>, u32)> {
    let py = object.py();
    let Some(tensor) = tensor::get(object) else {
        let found = object.get_type().name()?;
        return Err(PyTypeError::error(format!("get_gradient_edge: expected a Tensor, got {found}")).into());
    };
    let edge = variable::gradient_edge(tensor)?;
    match edge.function {
        Some(node) => Ok((wrap_bound(py, node)?, edge.input_nr)),
        None => {
            let text =
                "It is not possible to get the gradient edge for a Tensor that does not require gradients";
            Err(c10::Error::value(text).into())
        }
    }
}

/// Counts a modification of a tensor's memory that the engine did not see.
#[pyfunction]
fn _increment_version(object: &Bound<'_, PyAny>) -> Res<()> {
    match tensor::get(object) {
        Some(tensor) => Ok(tensor.bump_version()?),
        None => {
            let found = object.get_type().name()?;
            Err(PyTypeError::error(format!("increment_version: expected a Tensor, got {found}")).into())
        }
    }
}

/// Whether the running pass will run a node.
#[pyfunction]
fn _will_engine_execute_node(node: &Bound<'_, PyAny>) -> Res<bool> {
    Ok(engine::will_engine_execute_node(&node_argument(node, "_will_engine_execute_node")?)?)
}

fn node_or_none(py: Python<'_>, node: Option<Node>) -> Res<Bound<'_, PyAny>> {
    match node {
        Some(node) => wrap_bound(py, node),
        None => Ok(py.None().into_bound(py)),
    }
}

/// The node that this thread runs.
#[pyfunction]
fn _current_autograd_node(py: Python<'_>) -> Res<Bound<'_, PyAny>> {
    node_or_none(py, engine::current_node())
}

/// The nodes that the running pass runs, in order.
#[pyfunction]
fn _current_graph_task_execution_order(py: Python<'_>) -> Res<Bound<'_, PyAny>> {
    let nodes = engine::current_graph_task_execution_order()?;
    objects::list_of(py, nodes.len(), |i| node_object::wrap(py, nodes[i].clone()))
}

/// The number of the running pass, or -1.
#[pyfunction]
fn _current_graph_task_id() -> Number<i64> {
    Number(engine::current_graph_task_id())
}

/// Whether the running pass keeps its graph.
#[pyfunction]
fn _get_current_graph_task_keep_graph() -> bool {
    engine::current_graph_task_keep_graph()
}

/// Whether reentrant checkpointing works in the running pass.
#[pyfunction]
fn _is_checkpoint_valid() -> bool {
    engine::is_checkpoint_valid()
}

/// The sequence number that this thread's next node will get.
#[pyfunction]
fn _get_sequence_nr() -> Number<u64> {
    Number(autograd::peek_sequence_nr())
}

/// Whether the engine may use threads of its own.
#[pyfunction]
fn _is_multithreading_enabled() -> bool {
    engine::is_multithreading_enabled()
}

/// Sets whether the engine may use threads of its own.
#[pyfunction]
fn _set_multithreading_enabled(enabled: bool) {
    engine::set_multithreading_enabled(enabled);
}

pub(super) fn register(module: &Bound<'_, PyModule>, submodule: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_engine_run_backward, module)?)?;
    module.add_function(wrap_pyfunction!(_will_engine_execute_node, module)?)?;
    module.add_function(wrap_pyfunction!(_current_autograd_node, module)?)?;
    module.add_function(wrap_pyfunction!(_current_graph_task_execution_order, module)?)?;
    module.add_function(wrap_pyfunction!(_current_graph_task_id, module)?)?;
    module.add_function(wrap_pyfunction!(_is_multithreading_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_set_multithreading_enabled, module)?)?;
    submodule.add_function(wrap_pyfunction!(_backward, submodule)?)?;
    submodule.add_function(wrap_pyfunction!(_grad, submodule)?)?;
    submodule.add_function(wrap_pyfunction!(_queue_callback, submodule)?)?;
    submodule.add_function(wrap_pyfunction!(_get_gradient_edge, submodule)?)?;
    submodule.add_function(wrap_pyfunction!(_increment_version, submodule)?)?;
    submodule.add_function(wrap_pyfunction!(_get_current_graph_task_keep_graph, submodule)?)?;
    submodule.add_function(wrap_pyfunction!(_is_checkpoint_valid, submodule)?)?;
    submodule.add_function(wrap_pyfunction!(_get_sequence_nr, submodule)?)
}
