//! Plain allocation, below dispatch.

use c10::{
    bail, check, empty_generic, empty_strided_generic, empty_strided_symint_meta, get_accelerator,
    get_accelerator_hooks, get_allocator, guard_int_array, Allocator, Device, DeviceGuard, DimVector,
    DispatchKeySet, Layout, Result, ScalarType, SizeInt, SymDimVector, SymInt, Tensor, TensorOptions,
};

/// An uninitialised row-major tensor on the device and in the dtype of `options`.
pub fn empty<I: SizeInt>(sizes: &[I], options: &TensorOptions) -> Result<Tensor> {
    empty_strided(sizes, &[], options)
}

/// An uninitialised tensor with the given strides; empty strides mean row-major.
#[inline]
pub fn empty_strided<I: SizeInt>(sizes: &[I], strides: &[I], options: &TensorOptions) -> Result<Tensor> {
    match (I::as_ints(sizes), I::as_ints(strides)) {
        (Some(sizes), Some(strides)) => empty_strided_ints(sizes, strides, options),
        _ => empty_strided_symint(&I::to_sym_slice(sizes), &I::to_sym_slice(strides), options),
    }
}

fn keys_of(options: &TensorOptions) -> Result<DispatchKeySet> {
    let layout = options.layout_or_default();
    check!(layout == Layout::Strided, "empty_strided(): expected a strided layout, got {layout}");
    Ok(DispatchKeySet::from_key(options.compute_dispatch_key()?))
}

fn empty_strided_ints(sizes: &[i64], strides: &[i64], options: &TensorOptions) -> Result<Tensor> {
    let keys = keys_of(options)?;
    let device = options.device_or_default();
    let allocator = if options.pinned_memory_or_default() && !device.is_meta() {
        pinned_memory_allocator(device)?
    } else {
        get_allocator(device.type_)?
    };
    // Allocators serve the current device of their type.
    let _current = (!device.is_cpu()).then(|| DeviceGuard::new(device)).transpose()?;
    if strides.is_empty() {
        empty_generic(sizes, allocator, keys, options.dtype_or_default(), None)
    } else {
        empty_strided_generic(sizes, strides, allocator, keys, options.dtype_or_default())
    }
}

/// The allocator of host memory that the accelerator can read.
#[cold]
fn pinned_memory_allocator(device: Device) -> Result<&'static dyn Allocator> {
    check!(device.is_cpu(), "Only dense CPU tensors can be pinned, got a tensor on {device}");
    let Some(accelerator) = get_accelerator(true) else {
        bail!(
            Runtime,
            "Cannot access accelerator device when none is available: memory is pinned for an accelerator to read"
        );
    };
    let hooks = get_accelerator_hooks(accelerator);
    hooks.init()?;
    hooks.get_pinned_memory_allocator()
}

/// Memory of a symbolic size cannot be allocated: only the Meta device keeps it symbolic.
#[cold]
fn empty_strided_symint(sizes: &[SymInt], strides: &[SymInt], options: &TensorOptions) -> Result<Tensor> {
    if options.device_or_default().is_meta() {
        return empty_strided_symint_meta(sizes, strides, keys_of(options)?, options.dtype_or_default());
    }
    empty_strided_ints(&guard_int_array(sizes)?, &guard_int_array(strides)?, options)
}

/// An uninitialised tensor like `tensor`, in another dtype: the same strides if it is dense, else row-major.
pub fn empty_like_dtype(tensor: &Tensor, dtype: ScalarType) -> Result<Tensor> {
    let options = TensorOptions::new().dtype(dtype).device(tensor.device());
    let keeps_strides = tensor.is_non_overlapping_and_dense() && !tensor.is_contiguous();
    if tensor.has_symbolic_sizes_strides() {
        let strides = if keeps_strides { tensor.sym_strides() } else { SymDimVector::new() };
        return empty_strided(&tensor.sym_sizes(), &strides, &options);
    }
    let strides = if keeps_strides { DimVector::from_slice(tensor.strides()?) } else { DimVector::new() };
    empty_strided(tensor.sizes()?, &strides, &options)
}
