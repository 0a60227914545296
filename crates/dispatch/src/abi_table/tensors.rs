//! Tensors across the interface: a handle is a `Tensor` (one counted reference) turned raw.

use std::ffi::c_void;
use std::mem::ManuallyDrop;

use abi::{AbiError, AbiTensor};
use c10::{
    empty_strided_generic, get_allocator, Device, DeviceType, DispatchKeySet, Error, Result, ScalarType,
    Tensor, TensorOptions,
};

use super::errors::catch;

/// Gives a reference out.
pub(super) fn into_raw(tensor: Tensor) -> *mut AbiTensor {
    tensor.into_raw().cast_mut().cast()
}

/// Takes a reference over.
///
/// # Safety
/// `raw` must be an owned reference.
pub(super) unsafe fn from_raw(raw: *mut AbiTensor) -> Tensor {
    // SAFETY: the caller's promise; `into_raw` made it.
    unsafe { Tensor::from_raw(raw.cast()) }
}

/// Looks at a tensor without owning it.
///
/// # Safety
/// `raw` must be a live reference.
pub(super) unsafe fn peek(raw: *const AbiTensor) -> ManuallyDrop<Tensor> {
    // SAFETY: the caller's promise; the reference is not given back.
    ManuallyDrop::new(unsafe { from_raw(raw.cast_mut()) })
}

/// A device as one number: type in the high 32 bits, index in the low 32.
pub(super) fn device_to_int(device: Device) -> i64 {
    (i64::from(device.type_ as i8) << 32) | i64::from(device.index as i32 as u32)
}

/// The inverse of [`device_to_int`].
pub(super) fn device_from_int(value: i64) -> Result<Device> {
    let unknown = || Error::runtime(format!("{value:#x} is not a device of the ABI"));
    let type_ =
        i8::try_from(value >> 32).ok().and_then(|t| DeviceType::try_from(t).ok()).ok_or_else(unknown)?;
    Device::checked(type_, i64::from(value as i32))
}

/// PyTorch's number of a dtype.
pub(super) fn dtype_from_int(value: i64) -> Result<ScalarType> {
    u8::try_from(value)
        .ok()
        .and_then(|v| ScalarType::try_from(v).ok())
        .ok_or_else(|| Error::runtime(format!("{value} is not the number of a dtype")))
}

pub(super) unsafe extern "C" fn tensor_clone(tensor: *mut AbiTensor) -> *mut AbiTensor {
    // SAFETY: a live reference.
    into_raw(Tensor::clone(&*unsafe { peek(tensor) }))
}

pub(super) unsafe extern "C" fn tensor_free(tensor: *mut AbiTensor) {
    // SAFETY: an owned reference, given back once.
    drop(unsafe { from_raw(tensor) });
}

pub(super) unsafe extern "C" fn tensor_dim(tensor: *const AbiTensor) -> i64 {
    // SAFETY: a live reference.
    unsafe { peek(tensor) }.dim()
}

pub(super) unsafe extern "C" fn tensor_sizes(tensor: *const AbiTensor, out: *mut i64) -> *mut AbiError {
    catch(|| {
        // SAFETY: a live reference, and `out` has room for `dim` values.
        unsafe {
            let tensor = peek(tensor);
            let sizes = tensor.sizes()?;
            std::ptr::copy_nonoverlapping(sizes.as_ptr(), out, sizes.len());
        }
        Ok(())
    })
}

pub(super) unsafe extern "C" fn tensor_strides(tensor: *const AbiTensor, out: *mut i64) -> *mut AbiError {
    catch(|| {
        // SAFETY: a live reference, and `out` has room for `dim` values.
        unsafe {
            let tensor = peek(tensor);
            let strides = tensor.strides()?;
            std::ptr::copy_nonoverlapping(strides.as_ptr(), out, strides.len());
        }
        Ok(())
    })
}

pub(super) unsafe extern "C" fn tensor_dtype(tensor: *const AbiTensor) -> u32 {
    // SAFETY: a live reference.
    unsafe { peek(tensor) }.dtype() as u32
}

pub(super) unsafe extern "C" fn tensor_device(tensor: *const AbiTensor) -> i64 {
    // SAFETY: a live reference.
    device_to_int(unsafe { peek(tensor) }.device())
}

pub(super) unsafe extern "C" fn tensor_data(tensor: *const AbiTensor) -> *mut c_void {
    // SAFETY: a live reference.
    unsafe { peek(tensor) }.data_ptr().cast()
}

pub(super) unsafe extern "C" fn tensor_empty_strided(
    sizes: *const i64,
    strides: *const i64,
    dim: usize,
    dtype: u32,
    device: i64,
    out: *mut *mut AbiTensor,
) -> *mut AbiError {
    catch(|| {
        let slice = |data: *const i64| match dim {
            0 => &[][..],
            // SAFETY: the extension promises `dim` values.
            _ => unsafe { std::slice::from_raw_parts(data, dim) },
        };
        let dtype = dtype_from_int(i64::from(dtype))?;
        let device = device_from_int(device)?;
        let options = TensorOptions::new().dtype(dtype).device(device);
        let keys = DispatchKeySet::from_key(options.compute_dispatch_key()?);
        let allocator = get_allocator(device.type_)?;
        let tensor = empty_strided_generic(slice(sizes), slice(strides), allocator, keys, dtype)?;
        // SAFETY: `out` is writable.
        unsafe { *out = into_raw(tensor) };
        Ok(())
    })
}
