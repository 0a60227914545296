//! Thread-local modes: recording of gradients, inference, anomaly detection.

use c10::{FwGradMode, GradMode, InferenceMode, InferenceModeGuard};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Switches the recording of gradients.
#[pyfunction]
fn _set_grad_enabled(enabled: bool) {
    GradMode::set_enabled(enabled);
}

/// Whether gradients are recorded.
#[pyfunction]
fn is_grad_enabled() -> bool {
    GradMode::is_enabled()
}

/// Switches the recording of forward gradients.
#[pyfunction]
fn _set_fwd_grad_enabled(enabled: bool) {
    FwGradMode::set_enabled(enabled);
}

/// Whether forward gradients are recorded.
#[pyfunction]
fn _is_fwd_grad_enabled() -> bool {
    FwGradMode::is_enabled()
}

/// Whether inference mode is on.
#[pyfunction]
fn is_inference_mode_enabled() -> bool {
    InferenceMode::is_enabled()
}

/// Context in which inference mode is on or off.
#[pyclass(module = "ptr._C", unsendable, skip_from_py_object)]
struct _InferenceMode {
    mode: bool,
    guards: Vec<InferenceModeGuard>,
}

#[pymethods]
impl _InferenceMode {
    #[new]
    #[pyo3(signature = (mode = true))]
    fn new(mode: bool) -> Self {
        _InferenceMode { mode, guards: Vec::new() }
    }
    fn __enter__(&mut self) {
        self.guards.push(InferenceModeGuard::new(self.mode));
    }
    #[pyo3(signature = (*_exc))]
    fn __exit__(&mut self, _exc: &Bound<'_, PyTuple>) {
        drop(self.guards.pop());
    }
}

/// Switches the recording of where graph nodes were made, and the check for nan in gradients.
#[pyfunction]
#[pyo3(signature = (enabled, check_nan = true))]
fn set_anomaly_enabled(enabled: bool, check_nan: bool) {
    autograd::anomaly_mode::set_enabled(enabled, check_nan);
}

/// Whether anomaly detection is on.
#[pyfunction]
fn is_anomaly_enabled() -> bool {
    autograd::anomaly_mode::is_enabled()
}

/// Whether anomaly detection looks for nan.
#[pyfunction]
fn is_anomaly_check_nan_enabled() -> bool {
    autograd::anomaly_mode::should_check_nan()
}

/// Adds the functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_set_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(is_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_set_fwd_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_is_fwd_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(is_inference_mode_enabled, module)?)?;
    module.add_class::<_InferenceMode>()?;
    module.add_function(wrap_pyfunction!(set_anomaly_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(is_anomaly_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(is_anomaly_check_nan_enabled, module)?)
}
