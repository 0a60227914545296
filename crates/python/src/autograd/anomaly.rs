//! What anomaly mode keeps of a node: a dict with the Python traceback of its forward call.

use std::any::Any;
use std::sync::Arc;

use autograd::anomaly_mode::{self, AnomalyMetadata};
use autograd::Node;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};

use super::node_object;
use crate::convert::warnings;
use crate::raw::objects::{self, intern};
use crate::raw::Res;

const TRACEBACK: &str = "traceback_";
const PARENT: &str = "parent_";

/// The dict behind `grad_fn.metadata`, made at its first use.
struct PyAnomalyMetadata {
    dict: PyOnceLock<Py<PyDict>>,
}

impl PyAnomalyMetadata {
    fn dict<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyDict>> {
        Ok(self.dict.get_or_try_init(py, || objects::dict(py).map(Bound::unbind))?.bind(py))
    }

    fn traceback(&self, py: Python<'_>) -> PyResult<Option<String>> {
        match self.dict(py)?.get_item(intern!(py, TRACEBACK)?)? {
            Some(lines) => Ok(Some(
                lines.try_iter()?.map(|line| line?.extract::<String>()).collect::<PyResult<String>>()?,
            )),
            None => Ok(None),
        }
    }
}

impl AnomalyMetadata for PyAnomalyMetadata {
    fn store_stack(&self) {
        // A failure here must not hide the computation's own result; the node is then said to have no information.
        let _ = Python::attach(|py| -> PyResult<()> {
            let lines = py.import(intern!(py, "traceback")?)?.call_method0(intern!(py, "format_stack")?)?;
            self.dict(py)?.set_item(intern!(py, TRACEBACK)?, lines.cast::<PyList>()?)
        });
    }

    fn print_stack(&self, node_name: &str) {
        let stored = Python::attach(|py| self.traceback(py)).ok().flatten();
        warnings::handler(&match stored {
            Some(stack) => {
                format!("Error detected in {node_name}. Traceback of forward call that caused the error:\n{stack}")
            }
            None => format!(
                "Error detected in {node_name}. No forward pass information available. Enable detect anomaly during \
                 forward pass for more information."
            ),
        });
    }

    fn assign_parent(&self, parent: Option<Node>) {
        let Some(parent) = parent else { return };
        let _ = Python::attach(|py| -> PyResult<()> {
            self.dict(py)?.set_item(intern!(py, PARENT)?, node_object::wrap_bound(py, parent)?)
        });
    }

    fn parent(&self) -> Option<Node> {
        Python::attach(|py| {
            let parent = self.dict(py).and_then(|dict| dict.get_item(intern!(py, PARENT)?)).ok().flatten()?;
            node_object::get(&parent)
        })
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

/// The dict of a node, made on demand: users keep notes in it.
pub(super) fn metadata_of<'py>(py: Python<'py>, node: &Node) -> Res<Bound<'py, PyAny>> {
    let metadata = node.metadata_or_init();
    match metadata.as_any().and_then(|any| any.downcast_ref::<PyAnomalyMetadata>()) {
        Some(metadata) => Ok(metadata.dict(py)?.clone().into_any()),
        None => Ok(objects::dict(py)?.into_any()),
    }
}

/// Makes nodes keep Python tracebacks.
pub(super) fn register() {
    anomaly_mode::set_metadata_factory(|| Arc::new(PyAnomalyMetadata { dict: PyOnceLock::new() }));
}
