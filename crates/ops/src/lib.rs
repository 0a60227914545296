//! The operator catalogue: declarations, shape functions, views and composites.
//!
//! `yaml/` declares every operator once; `tools/opgen` makes [`gen`] from it: typed calls ([`at`]), schemas, and the
//! registrations that tie an operator to its meta function, its view function or its composite.
//!
//! This crate computes nothing. A structured operator's wrapper runs the meta function, which checks, promotes and
//! allocates, and then hands the plan to a kernel that a backend registered by name (see `iter::DispatchStub`).

// An in-place operator's underscore stays in its name: `add_.Tensor` is `add__tensor`.
#![allow(non_snake_case)]

pub mod composite;
pub mod fallback;
pub mod gen;
mod lists;
pub mod meta;
pub mod operands;
mod registrar;
mod scalar_tensor;
pub mod sdp_backends;
pub mod structured;
pub mod sym;
pub mod terms;
pub mod view;

use std::sync::OnceLock;

pub use scalar_tensor::{ints_of, scalar_to_tensor, tensor_of_ints, wrapped_scalar_tensor};

/// Typed calls of every operator: `at::add_tensor(&a, &b, &Scalar::Int(1))`.
///
/// The name is the operator's, then its overload in lower case: `sum.dim_IntList` is `sum_dim_intlist`,
/// `add_.Tensor` is `add__tensor`.
pub mod at {
    pub use crate::gen::calls::*;
}

/// The same calls for kernels that pass a call on with a reduced key set.
pub mod redispatch {
    pub use crate::gen::redispatch::*;
}

/// Defines every operator, registers what runs on every backend, and waits for the backends' kernels, which may be
/// registered before or after. Further calls do nothing.
pub fn init() -> c10::Result<()> {
    static DONE: OnceLock<c10::Result<()>> = OnceLock::new();
    let done = DONE.get_or_init(|| {
        let mut registrar = registrar::Registrar::new();
        gen::register::register_all(&mut registrar)?;
        registrar.finish();
        fallback::register()
    });
    match done {
        Ok(()) => Ok(()),
        Err(error) => Err(c10::Error::new(error.kind(), error.message())),
    }
}

/// Whether an operator is of the catalogue, and not a third party's.
pub fn is_built_in(op: dispatch::OperatorHandle) -> bool {
    op.name().namespace().is_some_and(|namespace| gen::NAMESPACES.contains(&namespace))
}

/// Why declared kernels cannot run for a backend's key: one error for each that its backend has not registered, or has
/// under another type. Empty when the backend is complete.
pub fn missing_kernels(key: c10::DispatchKey) -> Vec<c10::Error> {
    let mut missing = gen::register::missing_kernels(key);
    missing.extend(registrar::failed(key));
    missing
}

#[cfg(test)]
mod tests;
