//! Seeds and states of the default generators.

use c10::{Device, DeviceType};
use pyo3::prelude::*;

use crate::convert::generator::seed_of;
use crate::raw::Res;

/// Sets the seed of the default generator of the host.
#[pyfunction]
fn _manual_seed(seed: &Bound<'_, PyAny>) -> Res<()> {
    let seed = seed_of(seed, "manual_seed")?;
    c10::get_default_generator(Device::new(DeviceType::CPU, -1))?.set_current_seed(seed);
    Ok(())
}

/// Adds the functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_manual_seed, module)?)
}
