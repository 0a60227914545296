//! Making tensors with uninitialised memory: what every factory ends in.

use crate::core::tensor_impl::TensorImpl;
use crate::{
    check_sizes_nonnegative, compute_storage_nbytes, compute_storage_nbytes_contiguous,
    compute_strides_for_memory_format, get_allocator, sym_compute_storage_nbytes, sym_multiply_integers,
    Allocator, Device, DeviceType, DispatchKey, DispatchKeySet, MemoryFormat, Result, ScalarType, Storage,
    SymInt, Tensor,
};

/// An uninitialised tensor with the given strides, in a resizable storage of exactly the bytes they reach.
pub fn empty_strided_generic(
    sizes: &[i64],
    strides: &[i64],
    allocator: &'static dyn Allocator,
    key_set: DispatchKeySet,
    dtype: ScalarType,
) -> Result<Tensor> {
    check_sizes_nonnegative(sizes)?;
    let nbytes = compute_storage_nbytes(sizes, strides, dtype.item_size(), 0)?;
    let storage = Storage::new(nbytes, allocator, true)?;
    let device = storage.device();
    let tensor =
        TensorImpl::new(Some(storage), key_set, dtype, device).with_sizes_and_strides(sizes, strides, 0)?;
    Tensor::new(tensor)
}

/// An uninitialised tensor in a memory format, row-major by default.
pub fn empty_generic(
    sizes: &[i64],
    allocator: &'static dyn Allocator,
    key_set: DispatchKeySet,
    dtype: ScalarType,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    check_sizes_nonnegative(sizes)?;
    if let Some(format) = memory_format.filter(|&format| format != MemoryFormat::Contiguous) {
        let strides = compute_strides_for_memory_format(sizes, format)?;
        return empty_strided_generic(sizes, &strides, allocator, key_set, dtype);
    }
    let nbytes = compute_storage_nbytes_contiguous(sizes, dtype.item_size(), 0)?;
    let storage = Storage::new(nbytes, allocator, true)?;
    let device = storage.device();
    let tensor = TensorImpl::new(Some(storage), key_set, dtype, device).with_sizes_contiguous(sizes)?;
    Tensor::new(tensor)
}

/// An uninitialised row-major CPU tensor.
pub fn empty_cpu(sizes: &[i64], dtype: ScalarType) -> Result<Tensor> {
    let keys = const { DispatchKeySet::from_key(DispatchKey::CPU) };
    empty_generic(sizes, get_allocator(DeviceType::CPU)?, keys, dtype, None)
}

/// An uninitialised strided CPU tensor.
pub fn empty_strided_cpu(sizes: &[i64], strides: &[i64], dtype: ScalarType) -> Result<Tensor> {
    let keys = const { DispatchKeySet::from_key(DispatchKey::CPU) };
    empty_strided_generic(sizes, strides, get_allocator(DeviceType::CPU)?, keys, dtype)
}

/// A strided tensor without memory.
pub fn empty_strided_meta(sizes: &[i64], strides: &[i64], dtype: ScalarType) -> Result<Tensor> {
    let keys = const { DispatchKeySet::from_key(DispatchKey::Meta) };
    empty_strided_generic(sizes, strides, get_allocator(DeviceType::Meta)?, keys, dtype)
}

/// A row-major tensor without memory.
pub fn empty_meta(sizes: &[i64], dtype: ScalarType) -> Result<Tensor> {
    let keys = const { DispatchKeySet::from_key(DispatchKey::Meta) };
    empty_generic(sizes, get_allocator(DeviceType::Meta)?, keys, dtype, None)
}

/// A strided tensor without memory whose geometry may be symbolic; empty strides mean row-major.
pub fn empty_strided_symint_meta(
    sizes: &[SymInt],
    strides: &[SymInt],
    key_set: DispatchKeySet,
    dtype: ScalarType,
) -> Result<Tensor> {
    check_sizes_nonnegative(sizes)?;
    let storage = Storage::new(0, get_allocator(DeviceType::Meta)?, true)?;
    let device = storage.device();
    let tensor = TensorImpl::new(Some(storage.clone()), key_set, dtype, device);
    let (tensor, nbytes) = if strides.is_empty() {
        let nbytes = sym_multiply_integers(sizes)?.sym_mul(&SymInt::from(dtype.item_size() as i64))?;
        (tensor.with_sym_sizes_contiguous(sizes)?, nbytes)
    } else {
        let nbytes = sym_compute_storage_nbytes(sizes, strides, dtype.item_size(), &SymInt::ZERO)?;
        (tensor.with_sym_sizes_and_strides(sizes, strides, &SymInt::ZERO)?, nbytes)
    };
    storage.set_sym_nbytes(nbytes)?;
    Tensor::new(tensor)
}

/// A tensor over memory that somebody else allocated (NumPy, DLPack, a mapped file).
///
/// # Safety
///
/// `data` has `nbytes` valid bytes that nobody frees before the storage does.
pub unsafe fn from_blob(
    data: crate::DataPtr,
    nbytes: usize,
    sizes: &[i64],
    strides: &[i64],
    storage_offset: i64,
    key_set: DispatchKeySet,
    dtype: ScalarType,
) -> Result<Tensor> {
    let device: Device = data.device();
    crate::check_aligned(data.get(), dtype)?;
    let storage = Storage::from_data_ptr(data, nbytes, None, false);
    crate::check_in_bounds_for_storage(sizes, strides, storage_offset, dtype, &storage)?;
    let tensor = TensorImpl::new(Some(storage), key_set, dtype, device).with_sizes_and_strides(
        sizes,
        strides,
        storage_offset,
    )?;
    Tensor::new(tensor)
}
