//! Plain allocation, below dispatch.

use c10::{
    check, empty_generic, empty_strided_generic, get_allocator, DimVector, DispatchKeySet, Layout, Result,
    ScalarType, Tensor, TensorOptions,
};

/// An uninitialised row-major tensor on the device and in the dtype of `options`.
pub fn empty(sizes: &[i64], options: &TensorOptions) -> Result<Tensor> {
    empty_strided(sizes, &[], options)
}

/// An uninitialised tensor with the given strides; empty strides mean row-major.
pub fn empty_strided(sizes: &[i64], strides: &[i64], options: &TensorOptions) -> Result<Tensor> {
    let layout = options.layout_or_default();
    check!(layout == Layout::Strided, "empty_strided(): expected a strided layout, got {layout}");
    let device = options.device_or_default();
    let allocator = get_allocator(device.type_)?;
    let keys = DispatchKeySet::from_key(options.compute_dispatch_key()?);
    if strides.is_empty() {
        empty_generic(sizes, allocator, keys, options.dtype_or_default(), None)
    } else {
        empty_strided_generic(sizes, strides, allocator, keys, options.dtype_or_default())
    }
}

/// An uninitialised tensor like `tensor`, in another dtype: the same strides if it is dense, else row-major.
pub fn empty_like_dtype(tensor: &Tensor, dtype: ScalarType) -> Result<Tensor> {
    let options = TensorOptions::new().dtype(dtype).device(tensor.device());
    let strides = if tensor.is_non_overlapping_and_dense() && !tensor.is_contiguous() {
        DimVector::from_slice(tensor.strides()?)
    } else {
        DimVector::new()
    };
    empty_strided(tensor.sizes()?, &strides, &options)
}
