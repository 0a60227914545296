//! How kernels walk tensors: `TensorIterator`, the thread pool, and the way from an operator to its kernel.
//!
//! A structured operator's meta function describes its operands with a [`TensorIteratorConfig`] and builds a
//! [`TensorIterator`] over the outputs in [`StructuredOutputs`]; a [`DispatchStub`] finds the kernel, which gives a
//! loop over one row to [`TensorIterator::for_each`]. All of it is compiled once: what is generic over dtypes is the
//! kernels' innermost loop alone.

mod build;
mod cast;
mod compute_types;
mod config;
mod dispatch_stub;
mod empty;
mod iterator;
pub mod kernel_registry;
mod loops;
pub mod mem_overlap;
mod operand;
pub mod parallel;
mod plan;
mod presets;
mod reduce;
mod resize;
mod structured_outputs;
mod symbolic;
mod type_promotion;
mod uniform;
mod warning;

pub use cast::{copy_into, has_copy_kernel, to_dtype, CopyFn, COPY_KERNEL};
pub use config::TensorIteratorConfig;
pub use dispatch_stub::DispatchStub;
pub use empty::{empty, empty_like_dtype, empty_strided};
pub use iterator::TensorIterator;
pub use loops::{Loop1d, Loop2d, SerialLoop1d, SerialLoop2d};
pub use mem_overlap::{
    assert_no_internal_overlap, assert_no_overlap, assert_no_partial_overlap, get_overlap_status,
    has_internal_overlap, MemOverlap, MemOverlapStatus,
};
pub use plan::IndexPlan;
pub use reduce::{is_reduced, make_dim_mask, make_reduction, shape_from_dim_mask, ReducedElements, ALL_DIMS};
pub use resize::{resize_impl, resize_output};
pub use structured_outputs::{type_meta_name, StructuredOutputs};
pub use type_promotion::{result_type, ResultTypeState};
pub use warning::{set_warning_handler, warn};

#[cfg(test)]
mod tests;
