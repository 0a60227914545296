//! The functions behind the stable ABI (crate `abi`): how separately built extensions reach this dispatcher.
//!
//! Handles are the process's own objects behind opaque pointers: a tensor handle is a `Tensor` turned raw, an
//! operator handle the leaked entry's box, a stack handle a `Stack`. No function unwinds into an extension.

mod calls;
mod devices;
mod errors;
mod registration;
mod stacks;
mod tensors;
mod values;

use std::ffi::c_void;

use abi::{Abi, AbiError, AbiKernel, AbiStack, AbiStr};

/// What other crates put into the table, because it needs operators or gradients.
pub struct FromAbove {
    /// [`Abi::cpu_fallback`].
    pub cpu_fallback: AbiKernel,
    /// [`Abi::autograd_record`].
    pub autograd_record: unsafe extern "C" fn(
        *mut AbiStack,
        usize,
        usize,
        AbiStr,
        AbiKernel,
        *mut c_void,
        Option<unsafe extern "C" fn(*mut c_void)>,
    ) -> *mut AbiError,
}

/// Makes the table.
pub fn make_table(from_above: FromAbove) -> Abi {
    Abi {
        version: abi::VERSION,
        size: std::mem::size_of::<Abi>() as u32,
        error_new: errors::error_new,
        error_kind: errors::error_kind,
        error_message: errors::error_message,
        error_free: errors::error_free,
        tensor_clone: tensors::tensor_clone,
        tensor_free: tensors::tensor_free,
        tensor_dim: tensors::tensor_dim,
        tensor_sizes: tensors::tensor_sizes,
        tensor_strides: tensors::tensor_strides,
        tensor_dtype: tensors::tensor_dtype,
        tensor_device: tensors::tensor_device,
        tensor_data: tensors::tensor_data,
        tensor_empty_strided: tensors::tensor_empty_strided,
        stack_new: stacks::stack_new,
        stack_free: stacks::stack_free,
        stack_len: stacks::stack_len,
        stack_get: stacks::stack_get,
        stack_set: stacks::stack_set,
        stack_push: stacks::stack_push,
        stack_drop: stacks::stack_drop,
        op_find: calls::op_find,
        op_name: calls::op_name,
        op_arity: calls::op_arity,
        op_call: calls::op_call,
        op_redispatch: calls::op_redispatch,
        keyset_below: calls::keyset_below,
        keys_change: calls::keys_change,
        keys_restore: calls::keys_restore,
        keyset_of: calls::keyset_of,
        library_new: registration::library_new,
        library_free: registration::library_free,
        library_def: registration::library_def,
        library_impl: registration::library_impl,
        library_fallback: registration::library_fallback,
        device_register: devices::device_register,
        device_rename: devices::device_rename,
        cpu_fallback: from_above.cpu_fallback,
        autograd_record: from_above.autograd_record,
    }
}

pub use calls::op_from_raw;
pub use errors::catch;
pub use registration::ForeignKernel;
pub use stacks::stack_from_raw;
