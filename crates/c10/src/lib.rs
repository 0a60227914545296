//! The data model of `ptr`: tensors, storages, dtypes, devices, dispatch keys, reference counts and errors.
//!
//! This crate has no operators and knows neither Python nor any backend. Both are reached through small
//! interfaces that others register: [`Allocator`], [`DeviceGuardImplInterface`], [`GeneratorImpl`],
//! [`PyInterpreter`], [`AutogradMetaInterface`].
//!
//! Everything is re-exported at the crate root; the modules [`core`] and [`util`] mirror PyTorch's folders.

pub mod core;
pub mod util;

pub use crate::core::*;
pub use crate::util::*;
