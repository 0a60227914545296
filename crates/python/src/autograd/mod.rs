//! Autograd as Python sees it: graph nodes, hooks, custom functions, the engine.
//!
//! Nodes and tensors follow one rule (c10's Note [The PyObject owns the target]): the Python object holds one count of its
//! node, and the node's other holders keep the object alive. So `t.grad_fn is t.grad_fn`, attributes of a custom function's
//! context live as long as its place in the graph, and the garbage collector can follow both ways (`collector`).

mod anomaly;
pub(crate) mod collector;
mod engine;
mod function;
mod function_apply;
mod function_node;
mod hooks;
mod node_attributes;
mod node_object;
mod raw_saved;
mod saved_tensor_hooks;
mod tensor_hooks;

pub(crate) use tensor_hooks::{
    backward_hooks_assigned, post_accumulate_grad_hooks_assigned, register_assigned_hooks,
};

use pyo3::prelude::*;
use pyo3::types::PyModule;

use crate::raw::Res;

/// Adds the types to `_C` and the functions to `_C._autograd`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> Res<()> {
    let py = module.py();
    let submodule = PyModule::new(py, "ptr._C._autograd")?;
    node_object::register(module)?;
    function::register(module)?;
    function_node::register(module)?;
    engine::register(module, &submodule)?;
    tensor_hooks::register(&submodule)?;
    saved_tensor_hooks::register(&submodule)?;
    raw_saved::register(&submodule)?;
    anomaly::register();
    module.add("_autograd", submodule)?;
    crate::tensor::set_grad_fn_wrapper(node_object::wrap);
    Ok(())
}
