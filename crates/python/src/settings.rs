//! Settings of the process or thread: default dtype and device, numbers of threads, the allocator.

use ops::sdp_backends::SdpBackend;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::convert::{device, dtype};
use crate::raw::objects::{self, NewError, Number};
use crate::raw::{Res, TextArgument};

/// The dtype of tensors made from Python floats.
#[pyfunction]
fn get_default_dtype(py: Python<'_>) -> Bound<'_, PyAny> {
    dtype::object(py, c10::get_default_dtype())
}

/// Sets the dtype of tensors made from Python floats.
#[pyfunction]
fn _set_default_dtype(d: &Bound<'_, PyAny>) -> Res<()> {
    match dtype::extract(d).filter(|_| dtype::is_dtype(d)) {
        Some(dtype) => Ok(c10::set_default_dtype(dtype)?),
        None => {
            let text = format!("invalid dtype object: {}", d.str()?);
            Err(PyTypeError::error(text).into())
        }
    }
}

/// Where factories put tensors.
#[pyfunction]
fn _get_default_device(py: Python<'_>) -> Res<Bound<'_, PyAny>> {
    let cpu = c10::Device::new(c10::DeviceType::CPU, -1);
    device::object(py, c10::get_default_device().unwrap_or(cpu))
}

/// Sets where factories put tensors; `None` is the host.
#[pyfunction]
fn _set_default_device(d: &Bound<'_, PyAny>) -> Res<()> {
    let device = if d.is_none() { None } else { Some(device::extract(d)?) };
    c10::set_default_device(device);
    Ok(())
}

/// How many threads an operator uses.
#[pyfunction]
fn get_num_threads() -> Number<usize> {
    Number(iter::parallel::num_threads())
}

fn count(function: &str, object: &Bound<'_, PyAny>) -> Res<usize> {
    if !crate::convert::scalar::is_int_like(object) {
        let text = format!("{function} expects an int, but got {}", object.get_type().name()?);
        return Err(c10::Error::runtime(text).into());
    }
    match usize::try_from(crate::convert::scalar::to_i64(object)?) {
        Ok(n) if n > i32::MAX as usize => {
            Err(pyo3::exceptions::PyValueError::error("Overflow when unpacking long").into())
        }
        Ok(n) if n > 0 => Ok(n),
        _ => Err(c10::Error::runtime("Expected nthreads > 0 to be true, but got false.").into()),
    }
}

/// Sets how many threads an operator uses.
#[pyfunction]
fn set_num_threads(n: &Bound<'_, PyAny>) -> Res<()> {
    Ok(iter::parallel::set_num_threads(count("set_num_threads", n)?)?)
}

/// How many operators may run beside each other.
#[pyfunction]
fn get_num_interop_threads() -> Number<usize> {
    Number(iter::parallel::num_interop_threads())
}

/// Sets how many operators may run beside each other.
#[pyfunction]
fn set_num_interop_threads(n: &Bound<'_, PyAny>) -> Res<()> {
    Ok(iter::parallel::set_num_interop_threads(count("set_num_interop_threads", n)?)?)
}

/// Renames the `privateuseone` device type, once.
#[pyfunction]
fn _rename_privateuse1_backend(name: TextArgument<'_>) -> Res<()> {
    Ok(c10::register_privateuse1_backend(&name)?)
}

/// The name of the `privateuseone` device type.
#[pyfunction]
fn _get_privateuse1_backend_name(py: Python<'_>) -> PyResult<Bound<'_, PyString>> {
    objects::string(py, c10::get_privateuse1_backend())
}

/// A backend of attention, by PyTorch's number.
fn sdp_backend(number: i64) -> Res<SdpBackend> {
    Ok(match number {
        0 => SdpBackend::Math,
        1 => SdpBackend::Flash,
        2 => SdpBackend::Efficient,
        3 => SdpBackend::Cudnn,
        4 => SdpBackend::Overrideable,
        _ => {
            let text = format!("expected the number of a backend of attention, 0 to 4, got {number}");
            return Err(c10::Error::runtime(text).into());
        }
    })
}

/// Whether a backend of attention may be used.
#[pyfunction]
fn _get_sdp_enabled(backend: i64) -> Res<bool> {
    Ok(sdp_backend(backend)?.is_enabled())
}

/// Says whether a backend of attention may be used.
#[pyfunction]
fn _set_sdp_enabled(backend: i64, enabled: bool) -> Res<()> {
    sdp_backend(backend)?.set_enabled(enabled);
    Ok(())
}

/// Adds the functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(get_default_dtype, module)?)?;
    module.add_function(wrap_pyfunction!(_set_default_dtype, module)?)?;
    module.add_function(wrap_pyfunction!(_get_default_device, module)?)?;
    module.add_function(wrap_pyfunction!(_set_default_device, module)?)?;
    module.add_function(wrap_pyfunction!(_get_sdp_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_set_sdp_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(get_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(set_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(get_num_interop_threads, module)?)?;
    module.add_function(wrap_pyfunction!(set_num_interop_threads, module)?)?;
    module.add_function(wrap_pyfunction!(_rename_privateuse1_backend, module)?)?;
    module.add_function(wrap_pyfunction!(_get_privateuse1_backend_name, module)?)
}
