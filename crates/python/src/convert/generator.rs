//! `ptr.Generator`.

use c10::{Device, DeviceType, Generator};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::convert::{device, scalar};
use crate::raw::objects::{self, intern, NewError, Number};
use crate::raw::Res;
use crate::tensor;

/// A source of random numbers with a state of its own.
#[pyclass(name = "Generator", module = "ptr._C", subclass, frozen, from_py_object)]
#[derive(Clone)]
pub(crate) struct PyGenerator {
    pub(crate) generator: Generator,
}

#[pymethods]
impl PyGenerator {
    /// Makes a generator with the default seed.
    #[new]
    #[pyo3(signature = (device = None))]
    fn new(device: Option<&Bound<'_, PyAny>>) -> Res<PyGenerator> {
        let device = match device {
            Some(object) => device::extract(object)?,
            None => Device::new(DeviceType::CPU, -1),
        };
        let generator = c10::get_default_generator(device)?.clone_generator();
        generator.set_current_seed(c10::DEFAULT_RNG_SEED);
        c10::check_memory()?;
        Ok(PyGenerator { generator })
    }

    /// Where the numbers are made.
    #[getter]
    fn device<'py>(&self, py: Python<'py>) -> Res<Bound<'py, PyAny>> {
        device::object(py, self.generator.device())
    }

    /// Sets the seed, and returns the generator.
    fn manual_seed<'py>(slf: Bound<'py, Self>, seed: &Bound<'py, PyAny>) -> Res<Bound<'py, Self>> {
        slf.get().generator.set_current_seed(seed_of(seed, "manual_seed")?);
        Ok(slf)
    }

    /// The seed that was set last.
    fn initial_seed(&self) -> Number<u64> {
        Number(self.generator.current_seed())
    }

    /// Sets a seed that cannot be guessed, and returns it.
    fn seed(&self) -> Res<Number<u64>> {
        Ok(Number(self.generator.seed()?))
    }

    /// The state, as a tensor of bytes.
    fn get_state<'py>(&self, py: Python<'py>) -> Res<Bound<'py, PyAny>> {
        let state = self.generator.get_state()?;
        tensor::wrap_bound(py, crate::data::bytes_to_tensor(&state)?)
    }

    /// Goes back to a state given by [`get_state`](Self::get_state).
    fn set_state<'py>(slf: Bound<'py, Self>, new_state: &Bound<'py, PyAny>) -> Res<Bound<'py, Self>> {
        let Some(state) = tensor::get(new_state) else {
            return Err(PyTypeError::error("expected a torch.ByteTensor").into());
        };
        slf.get().generator.set_state(&crate::data::tensor_to_bytes(state, "set_state")?)?;
        Ok(slf)
    }

    /// Another generator in the same state.
    fn clone_state(&self) -> PyGenerator {
        PyGenerator { generator: self.generator.clone_generator() }
    }

    /// Another generator in the same state.
    fn graphsafe_get_state(&self) -> PyGenerator {
        self.clone_state()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Res<Bound<'py, PyTuple>> {
        let py = slf.py();
        let generator = slf.get();
        let state = generator.get_state(py)?;
        let args = objects::tuple(py, [device::object(py, generator.generator.device())?])?.into_any();
        let rebuild = py.import(intern!(py, "ptr.random")?)?.getattr(intern!(py, "_rebuild_generator")?)?;
        Ok(objects::tuple(py, [rebuild, objects::tuple(py, [args, state.into_any()])?.into_any()])?)
    }
}

/// The seed that a number stands for; negative ones wrap around.
pub(crate) fn seed_of(seed: &Bound<'_, PyAny>, function: &str) -> Res<u64> {
    if !scalar::is_int_like(seed) {
        let text = format!("{function} expected a long, but got {}", seed.get_type().name()?);
        return Err(PyRuntimeError::error(text).into());
    }
    if let Ok(seed) = seed.extract::<u64>() {
        return Ok(seed);
    }
    match seed.extract::<i64>() {
        Ok(seed) => Ok(seed as u64),
        Err(_) => Err(pyo3::exceptions::PyValueError::error("Overflow when unpacking long long").into()),
    }
}

/// The generator that an argument is.
pub(crate) fn extract(object: &Bound<'_, PyAny>) -> Option<Generator> {
    object.cast::<PyGenerator>().ok().map(|g| g.get().generator.clone())
}

/// Adds the class and the default generator.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> Res<()> {
    module.add_class::<PyGenerator>()?;
    let generator = c10::get_default_generator(Device::new(DeviceType::CPU, -1))?;
    module.add("default_generator", PyGenerator { generator })?;
    Ok(())
}
