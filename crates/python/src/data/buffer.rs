//! `ptr.frombuffer`: a tensor over the memory of any object that lends some.

use c10::{DataPtr, Device, DeviceType, DispatchKey, DispatchKeySet, ScalarType, Tensor};
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::owner::BufferOwner;
use crate::convert::warnings;
use crate::raw::objects::NewError;
use crate::raw::Res;

/// A one-dimensional tensor that shares the object's memory from `offset` bytes on.
pub(super) fn from_buffer(
    object: &Bound<'_, PyAny>,
    dtype: ScalarType,
    count: i64,
    offset: i64,
) -> Res<Tensor> {
    // SAFETY: a live object.
    if unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } == 0 {
        return Err(PyValueError::error("object does not implement Python buffer protocol.").into());
    }
    let buffer = match BufferOwner::new(object, ffi::PyBUF_WRITABLE) {
        Ok(buffer) => buffer,
        Err(raised) => {
            drop(raised.fetch(object.py()));
            BufferOwner::new(object, ffi::PyBUF_SIMPLE).map_err(|raised| {
                let error = raised.fetch(object.py());
                c10::Error::runtime(format!("frombuffer(): could not retrieve buffer from object: {error}"))
            })?
        }
    };
    let len = buffer.len() as i64;
    let itemsize = dtype.item_size() as i64;
    let value_error = |text: String| Err(PyValueError::error(text).into());
    if len <= 0 || count == 0 {
        return value_error(format!("both buffer length ({len}) and count ({count}) must not be 0"));
    }
    if offset < 0 || offset >= len {
        return value_error(format!(
            "offset ({offset} bytes) must be non-negative and no greater than buffer length ({len} bytes) minus 1"
        ));
    }
    if count < 0 && (len - offset) % itemsize != 0 {
        let rest = len - offset;
        return value_error(format!(
            "buffer length ({rest} bytes) after offset ({offset} bytes) must be a multiple of element size ({itemsize})"
        ));
    }
    let numel = if count < 0 { (len - offset) / itemsize } else { count };
    if numel.checked_mul(itemsize).and_then(|n| n.checked_add(offset)).is_none_or(|end| end > len) {
        return value_error(format!(
            "requested buffer length ({numel} * {itemsize} bytes) after offset ({offset} bytes) must not be greater than \
             actual buffer length ({len} bytes)"
        ));
    }
    if buffer.is_read_only() {
        warnings::warn(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you can write to \
             the underlying (supposedly non-writable) buffer using the tensor. You may want to copy the buffer to protect its \
             data or make it writable before converting it to a tensor. This type of warning will be suppressed for the rest of \
             this program.",
        )?;
    }
    let data = buffer.data().wrapping_add(offset as usize);
    let device = Device::new(DeviceType::CPU, -1);
    let data = DataPtr::from_owner(data, buffer, device);
    let keys = const { DispatchKeySet::from_key(DispatchKey::CPU) };
    // SAFETY: the buffer has these elements, and the storage keeps it.
    Ok(unsafe { c10::from_blob(data, (numel * itemsize) as usize, &[numel], &[1], 0, keys, dtype) }?)
}
