//! The Python extension module `ptr._C`: the only crate that knows Python.
//!
//! It makes the tensor type and the operator callables, turns Python arguments into stacks and results into objects, and
//! maps errors to exceptions. What can be written in Python without cost is in `python/ptr`.

#![allow(non_snake_case)] // the library's file is `_C`, PyTorch's name for it

mod abi_capsule;
mod autograd;
mod convert;
mod data;
mod dispatch_modes;
mod gen;
mod indexing;
mod interop;
mod modes;
mod module_call;
mod ops;
mod random;
mod raw;
mod serialization;
mod settings;
mod shared_memory;
mod storage;
mod tensor;
mod type_info;

use pyo3::prelude::*;

use crate::raw::Res;

/// Small records are had even when the system's memory is exhausted, and the operator that wanted them fails.
#[global_allocator]
static ALLOCATOR: c10::ReserveAllocator = c10::ReserveAllocator;

/// Starts the engine, once per process.
fn start_engine() -> c10::Result<()> {
    ::ops::init()?;
    kernels_cpu::init()?;
    ::autograd::init()?;
    iter::set_warning_handler(convert::warnings::handler);
    ::autograd::set_warning_handler(convert::warnings::handler);
    Ok(())
}

fn fill(module: &Bound<'_, PyModule>) -> Res<()> {
    start_engine()?;
    convert::errors::register(module)?;
    convert::dtype::register(module)?;
    convert::layout::register(module)?;
    convert::size::register(module)?;
    convert::device::register(module)?;
    convert::numeric_limits::register(module)?;
    shared_memory::register(module)?;
    storage::register(module)?;
    ops::torch_function::register(module)?;
    ops::overridable::register(module)?;
    tensor::register(module)?;
    ops::binding::register(module)?;
    ops::operator_handle::register(module)?;
    ops::return_types::register(module)?;
    tensor::register_functions(module)?;
    convert::generator::register(module)?;
    data::register(module)?;
    modes::register(module)?;
    module_call::register(module)?;
    autograd::register(module)?;
    dispatch_modes::register(module)?;
    interop::register(module)?;
    serialization::register(module)?;
    random::register(module)?;
    settings::register(module)?;
    type_info::register(module)?;
    abi_capsule::register(module)
}

/// The module `ptr._C`.
#[pymodule]
#[pyo3(name = "_C")]
fn extension(module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(fill(module)?)
}
