//! The SIMD layer: which instructions the machine has, and functions compiled once per tier.
//!
//! Kernels are plain loops over slices. [`tiered!`] compiles a loop for each tier, so that LLVM vectorizes it
//! with that tier's registers, and picks one when called. Elementary functions are branch-free polynomials in
//! [`math`], inlined into those loops.

mod capability;
pub mod math;
mod tiered;

pub use capability::{capability, CpuCapability};
pub(crate) use tiered::{tier_instance, tier_instances, tiered, tiered_functions};
