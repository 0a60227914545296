//! The few operators that the machinery itself calls, by name: it must work with whatever backend defines them.

use std::sync::atomic::{AtomicBool, Ordering};

use c10::{Device, Layout, MemoryFormat, Result, Scalar, ScalarType, SymInt, Tensor};
use dispatch::Dispatcher;
use ops::at;

/// `a + b`
pub(crate) fn add(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    at::add_tensor(a, b, &Scalar::Int(1))
}

/// `a += b`
pub(crate) fn add_(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    at::add__tensor(a, b, &Scalar::Int(1))
}

/// `tensor.clone()`
pub(crate) fn clone(tensor: &Tensor) -> Result<Tensor> {
    at::clone(tensor, None)
}

/// `tensor.clone(memory_format=contiguous)`
pub(crate) fn clone_contiguous(tensor: &Tensor) -> Result<Tensor> {
    at::clone(tensor, Some(MemoryFormat::Contiguous))
}

/// `dst.copy_(src)`
pub(crate) fn copy_(dst: &Tensor, src: &Tensor) -> Result<Tensor> {
    at::copy_(dst, src, false)
}

/// `zeros(sizes, ...)`
pub(crate) fn zeros(sizes: &[SymInt], dtype: ScalarType, layout: Layout, device: Device) -> Result<Tensor> {
    at::zeros(sizes, Some(dtype), Some(layout), Some(device), None)
}

/// `ones_like(tensor, memory_format=preserve)`
pub(crate) fn ones_like(tensor: &Tensor) -> Result<Tensor> {
    at::ones_like(tensor, None, None, None, None, Some(MemoryFormat::Preserve))
}

/// `zeros_like(tensor)`
pub(crate) fn zeros_like(tensor: &Tensor) -> Result<Tensor> {
    at::zeros_like(tensor, None, None, None, None, None)
}

/// `tensor.new_empty_strided(sizes, strides)`
pub(crate) fn new_empty_strided(tensor: &Tensor, sizes: &[SymInt], strides: &[SymInt]) -> Result<Tensor> {
    at::new_empty_strided(tensor, sizes, strides, None, None, None, None)
}

/// `base.as_strided(sizes, strides, offset)`
pub(crate) fn as_strided(
    base: &Tensor,
    sizes: &[SymInt],
    strides: &[SymInt],
    offset: &SymInt,
) -> Result<Tensor> {
    at::as_strided(base, sizes, strides, Some(offset))
}

/// The view of `base` that `view` is.
pub(crate) fn as_strided_like(base: &Tensor, view: &Tensor) -> Result<Tensor> {
    as_strided(base, &view.sym_sizes(), &view.sym_strides(), &view.sym_storage_offset())
}

/// Whether `as_strided` is defined, so that plain views need no replay function.
pub(crate) fn has_as_strided() -> bool {
    static DEFINED: AtomicBool = AtomicBool::new(false);
    if DEFINED.load(Ordering::Relaxed) {
        return true;
    }
    let defined = Dispatcher::find_schema("aten::as_strided", "").is_some();
    if defined {
        DEFINED.store(true, Ordering::Relaxed);
    }
    defined
}

/// `tensor.to(dtype)`
pub(crate) fn to_dtype(tensor: &Tensor, dtype: ScalarType) -> Result<Tensor> {
    at::_to_copy(tensor, Some(dtype), None, None, None, false, None)
}

/// `tensor.to(device)`
pub(crate) fn to_device(tensor: &Tensor, device: Device) -> Result<Tensor> {
    at::_to_copy(tensor, None, None, Some(device), None, false, None)
}

/// Whether any element is NaN.
pub(crate) fn has_nan(tensor: &Tensor) -> Result<bool> {
    let is_nan = at::ne_tensor(tensor, tensor)?;
    at::_local_scalar_dense(&at::any(&is_nan)?)?.to_bool()
}
