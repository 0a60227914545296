//! Tensors and what they are made of.

// Values: dtypes, scalars, devices, layouts, symbolic numbers.
pub mod default_dtype;
pub mod device;
pub mod dispatch_dtypes;
mod element;
pub mod layout;
pub mod memory_format;
pub mod scalar;
pub mod scalar_type;
pub mod sym_bool;
pub mod sym_float;
pub mod sym_int;
pub mod sym_node;
pub mod tensor_options;

pub use default_dtype::*;
pub use device::*;
pub use dispatch_dtypes::*;
pub use element::*;
pub use layout::*;
pub use memory_format::*;
pub use scalar::*;
pub use scalar_type::*;
pub use sym_bool::*;
pub use sym_float::*;
pub use sym_int::*;
pub use sym_node::*;
pub use tensor_options::*;

// Memory, devices, and the registries through which backends are reached.
pub mod allocator;
pub mod cpu_allocator;
pub mod data_ptr;
pub mod device_guard;
pub mod event;
mod fork_safe_mutex;
pub mod generator;
pub mod hooks;
pub mod os;
pub mod registry;
pub mod stream;

pub use allocator::*;
pub use cpu_allocator::*;
pub use data_ptr::*;
pub use device_guard::*;
pub use event::*;
pub use fork_safe_mutex::*;
pub use generator::*;
pub use hooks::*;
pub use os::at_fork;
pub use registry::*;
pub use stream::*;

// Dispatch keys and thread-local state.
pub mod dispatch_key;
pub mod dispatch_key_set;
pub mod grad_mode;
pub mod inference_mode;
pub mod local_dispatch_key_set;
pub mod thread_local_state;

pub use dispatch_key::*;
pub use dispatch_key_set::*;
pub use grad_mode::*;
pub use inference_mode::*;
pub use local_dispatch_key_set::*;
pub use thread_local_state::*;

// Tensors.
pub mod autograd_meta_interface;
pub mod empty_tensor;
pub mod geometry;
pub mod py_interpreter;
pub mod size_int;
pub mod sizes_and_strides;
pub mod storage_impl;
pub mod tensor;
mod tensor_display;
pub mod tensor_impl;
pub mod wrap_dim;

pub use autograd_meta_interface::*;
pub use empty_tensor::*;
pub use geometry::*;
pub use py_interpreter::*;
pub use size_int::*;
pub use sizes_and_strides::*;
pub use storage_impl::*;
pub use tensor::*;
pub use tensor_impl::*;
pub use wrap_dim::*;
