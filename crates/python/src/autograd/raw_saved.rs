//! `grad_fn._raw_saved_*`: saved tensors before they are unpacked, on which hooks can be set.

use autograd::{Node, SavedVariableRef};
use c10::Tensor;
use pyo3::prelude::*;

use super::function_node::PyFunctionNode;
use super::saved_tensor_hooks::PySavedTensorHooks;
use crate::convert::ivalue;
use crate::raw::objects;
use crate::raw::Res;

/// Where the variable is.
enum Place {
    /// In a node of an operator.
    Operator(SavedVariableRef),
    /// In a custom function's node, by position.
    Function(Node, usize),
}

/// A tensor that a node has saved.
#[pyclass(name = "SavedTensor", module = "ptr._C._autograd", frozen, skip_from_py_object)]
struct SavedTensor {
    place: Place,
}

impl SavedTensor {
    fn unpack(&self) -> c10::Result<Option<Tensor>> {
        match &self.place {
            Place::Operator(saved) => saved.unpack(),
            Place::Function(node, i) => match node.function::<PyFunctionNode>() {
                Some(function) => function.unpack_one(node, *i),
                None => Ok(None),
            },
        }
    }
}

#[pymethods]
impl SavedTensor {
    /// Keeps what `pack_hook` makes of the tensor instead of the tensor; `unpack_hook` gives it back.
    fn register_hooks(&self, pack_hook: &Bound<'_, PyAny>, unpack_hook: &Bound<'_, PyAny>) -> Res<()> {
        let hooks = PySavedTensorHooks::new(pack_hook, unpack_hook);
        match &self.place {
            Place::Operator(saved) => saved.register_hooks(&hooks)?,
            Place::Function(node, i) => {
                if let Some(function) = node.function::<PyFunctionNode>() {
                    function.register_saved_hooks(*i, &hooks)?;
                }
            }
        }
        Ok(())
    }

    /// The tensor.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Res<Bound<'py, PyAny>> {
        ivalue::into_bound(py, self.unpack()?.into())
    }
}

/// The saved tensors of a name: one object, or a tuple of them for a list of tensors.
pub(super) fn get<'py>(py: Python<'py>, node: &Node, name: &str) -> Res<Option<Bound<'py, PyAny>>> {
    if let Some(function) = node.function::<PyFunctionNode>() {
        if name != "tensors" {
            return Ok(None);
        }
        let count = function.check_not_freed()?;
        let place = |i| Place::Function(node.clone(), i);
        return Ok(Some(objects::tuple_of(py, count, |i| {
            Ok(Bound::new(py, SavedTensor { place: place(i) })?.into_ptr())
        })?));
    }
    let Some(mut saved) = node.raw_saved(name) else { return Ok(None) };
    if saved.len() == 1 {
        let Some(saved) = saved.pop() else { return Ok(None) };
        return Ok(Some(Bound::new(py, SavedTensor { place: Place::Operator(saved) })?.into_any()));
    }
    let mut saved = saved.into_iter();
    let tuple = objects::tuple_of(py, saved.len(), |_| match saved.next() {
        Some(saved) => Ok(Bound::new(py, SavedTensor { place: Place::Operator(saved) })?.into_ptr()),
        None => Ok(py.None().into_ptr()),
    })?;
    Ok(Some(tuple))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SavedTensor>()
}
