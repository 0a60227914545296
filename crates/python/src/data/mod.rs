//! Tensors from Python data and back: numbers and nested sequences, NumPy arrays, buffers.

mod buffer;
mod functions;
mod infer;
mod new_tensor;
mod numpy;
mod owner;
mod tolist;

pub(crate) use functions::{pinned, register};
pub(crate) use new_tensor::new_tensor;
pub(crate) use numpy::{from_array, is_array, to_numpy};
pub(crate) use tolist::tolist;

use c10::{ScalarType, Tensor};

use crate::raw::Res;

/// A tensor of bytes with the given contents.
pub(crate) fn bytes_to_tensor(bytes: &[u8]) -> Res<Tensor> {
    let tensor = c10::empty_cpu(&[bytes.len() as i64], ScalarType::Byte)?;
    // SAFETY: the fresh tensor has as many bytes.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), tensor.data_ptr(), bytes.len()) };
    Ok(tensor)
}

/// The contents of a tensor of bytes.
pub(crate) fn tensor_to_bytes(tensor: &Tensor, function: &str) -> Res<Vec<u8>> {
    if tensor.dtype() != ScalarType::Byte || !tensor.is_cpu() || !tensor.is_contiguous() {
        let text = format!(
            "{function}(): expected a torch.ByteTensor on the CPU, got torch.{}",
            tensor.dtype().name()
        );
        return Err(c10::Error::type_(text).into());
    }
    let len = tensor.numel()? as usize;
    if len == 0 {
        return Ok(Vec::new());
    }
    tensor.check_in_storage()?;
    let mut bytes = c10::try_with_capacity(len)?;
    // SAFETY: a contiguous tensor of bytes on the host, inside its storage.
    bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(tensor.const_data_ptr(), len) });
    Ok(bytes)
}
