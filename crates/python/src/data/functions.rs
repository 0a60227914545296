//! `ptr.tensor`, `ptr.as_tensor`, `ptr.from_numpy`, `ptr.frombuffer`.

use ::ops::at;
use c10::{Device, ScalarType, Tensor};
use pyo3::prelude::*;

use super::{buffer, new_tensor, numpy};
use crate::convert::{device, dtype, scalar, warnings};
use crate::ops::torch_function::handle_function;
use crate::raw::arguments::{flag, wrong_type};
use crate::raw::Res;
use crate::tensor::{self, to, Target};

fn dtype_argument(function: &str, object: Option<&Bound<'_, PyAny>>) -> Res<Option<ScalarType>> {
    match object {
        None => Ok(None),
        Some(object) => match dtype::extract(object) {
            Some(dtype) => Ok(Some(dtype)),
            None => Err(wrong_type(function, "dtype", None, "torch.dtype", object)),
        },
    }
}

fn device_argument(function: &str, object: Option<&Bound<'_, PyAny>>) -> Res<Option<Device>> {
    match object {
        None => Ok(None),
        Some(object) if device::is_device_like(object) => Ok(Some(device::extract(object)?)),
        Some(object) => Err(wrong_type(function, "device", None, "torch.device", object)),
    }
}

/// A copy of a tensor in memory that an accelerator can read.
pub(crate) fn pinned(tensor: &Tensor) -> Res<Tensor> {
    let copy = at::empty_like(tensor, None, None, None, Some(true), None)?;
    Ok(at::copy_(&copy, tensor, false)?)
}

/// A new tensor with a copy of `data`.
#[pyfunction]
#[pyo3(name = "tensor", signature = (data, *, dtype = None, device = None, requires_grad = None, pin_memory = None, names = None))]
fn tensor_function<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, PyAny>>,
    requires_grad: Option<&Bound<'py, PyAny>>,
    pin_memory: Option<&Bound<'py, PyAny>>,
    names: Option<&Bound<'py, PyAny>>,
) -> Res<Bound<'py, PyAny>> {
    let named = [
        ("dtype", dtype),
        ("device", device),
        ("requires_grad", requires_grad),
        ("pin_memory", pin_memory),
        ("names", names),
    ];
    if let Some(result) = handle_function(py, "tensor", &[data], &named, &[])? {
        return Ok(result);
    }
    if names.is_some() {
        return Err(c10::Error::not_implemented("tensor(): named tensors are not supported").into());
    }
    let pin_memory = flag("tensor", "pin_memory", None, pin_memory, false)?;
    let requires_grad = flag("tensor", "requires_grad", None, requires_grad, false)?;
    if tensor::get(data).is_some() {
        warnings::warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or \
             sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
        )?;
    }
    let dtype = dtype_argument("tensor", dtype)?;
    let mut result = new_tensor(py, data, dtype, device_argument("tensor", device)?)?;
    if pin_memory {
        result = pinned(&result)?;
    }
    if requires_grad {
        tensor::require_grad(&result)?;
    }
    tensor::wrap_bound(py, result)
}

/// `data` as a tensor: itself, or over its memory, or a copy.
#[pyfunction]
#[pyo3(signature = (data, dtype = None, device = None))]
fn as_tensor<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, PyAny>>,
) -> Res<Bound<'py, PyAny>> {
    let named = [("dtype", dtype), ("device", device)];
    if let Some(result) = handle_function(py, "as_tensor", &[data], &named, &[])? {
        return Ok(result);
    }
    let dtype = dtype_argument("as_tensor", dtype)?;
    let device = device_argument("as_tensor", device)?;
    let target = Target { dtype, device, ..Target::default() };
    let result = match tensor::get(data) {
        Some(source) => to(py, source, target)?,
        None if numpy::is_array(data) => {
            let device = device.or_else(c10::get_default_device);
            to(py, &tensor::lift_fresh(numpy::from_array(data)?)?, Target { device, ..target })?
        }
        None => new_tensor(py, data, dtype, device)?,
    };
    tensor::wrap_bound(py, result)
}

/// A tensor over the memory of a NumPy array.
#[pyfunction]
fn from_numpy<'py>(py: Python<'py>, ndarray: &Bound<'py, PyAny>) -> Res<Bound<'py, PyAny>> {
    tensor::wrap_bound(py, tensor::lift_fresh(numpy::from_array(ndarray)?)?)
}

/// A tensor over the memory of an object with Python's buffer protocol.
#[pyfunction]
#[pyo3(signature = (buffer, *, dtype, count = None, offset = None, requires_grad = false))]
fn frombuffer<'py>(
    py: Python<'py>,
    buffer: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
    count: Option<&Bound<'py, PyAny>>,
    offset: Option<&Bound<'py, PyAny>>,
    requires_grad: bool,
) -> Res<Bound<'py, PyAny>> {
    let count = count.map_or(Ok(-1), scalar::to_i64)?;
    let offset = offset.map_or(Ok(0), scalar::to_i64)?;
    let Some(dtype) = dtype_argument("frombuffer", Some(dtype))? else {
        return Err(c10::Error::type_("frombuffer(): argument 'dtype' must be torch.dtype").into());
    };
    let result = buffer::from_buffer(buffer, dtype, count, offset)?;
    if requires_grad {
        tensor::require_grad(&result)?;
    }
    tensor::wrap_bound(py, result)
}

/// Adds the functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(tensor_function, module)?)?;
    module.add_function(wrap_pyfunction!(as_tensor, module)?)?;
    module.add_function(wrap_pyfunction!(from_numpy, module)?)?;
    module.add_function(wrap_pyfunction!(frombuffer, module)?)
}
