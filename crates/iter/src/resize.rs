//! Resizing tensors in place.

use c10::{
    compute_contiguous_strides, compute_storage_nbytes, contiguous_strides_of, guard_int_array,
    sym_compute_storage_nbytes, DimVector, Result, SizeInt, SymDimVector, SymInt, Tensor,
};

use crate::warning::warn;

/// Decides whether a tensor has these sizes.
#[inline]
fn has_sizes<I: SizeInt>(tensor: &Tensor, sizes: &[I]) -> Result<bool> {
    if let Some(sizes) = I::as_ints(sizes).filter(|_| !tensor.has_symbolic_sizes_strides()) {
        return Ok(tensor.sizes()? == sizes);
    }
    SymInt::guard_same(&tensor.sym_sizes(), &I::to_sym_slice(sizes))
}

/// Gives `out` the wanted sizes if it has others (row-major, growing its storage if needed), and says whether it
/// did. Warns when elements are lost or reused, as PyTorch does.
pub fn resize_output<I: SizeInt>(out: &Tensor, sizes: &[I]) -> Result<bool> {
    if has_sizes(out, sizes)? {
        return Ok(false);
    }
    if !out.sym_numel().is_zero()? {
        warn(&format!(
            "An output with one or more elements was resized since it had shape {:?}, which does not match the \
             required output shape {sizes:?}. This behavior is deprecated, and in a future release outputs will \
             not be resized unless they have zero elements. You can explicitly reuse an out tensor t by resizing \
             it, inplace, to zero elements with t.resize_(0).",
            out.sym_sizes()
        ));
    }
    resize_impl(out, sizes, None)?;
    Ok(true)
}

/// Gives `tensor` new sizes and strides (`None`: row-major) and grows its storage if needed. Elements keep their
/// places in the storage.
pub fn resize_impl<I: SizeInt>(tensor: &Tensor, sizes: &[I], strides: Option<&[I]>) -> Result<()> {
    c10::check_sizes_nonnegative(sizes)?;
    let ints = (I::as_ints(sizes), I::as_ints(strides.unwrap_or_default()));
    if let ((Some(sizes), Some(ints)), false) = (ints, tensor.has_symbolic_sizes_strides()) {
        return resize_ints(tensor, sizes, strides.map(|_| ints));
    }
    let (sizes, strides) = (I::to_sym_slice(sizes), strides.map(I::to_sym_slice));
    if tensor.is_meta() {
        return resize_symint(tensor, &sizes, strides);
    }
    let strides = strides.map(|strides| guard_int_array(&strides)).transpose()?;
    resize_ints(tensor, &guard_int_array(&sizes)?, strides.as_deref())
}

fn resize_ints(tensor: &Tensor, sizes: &[i64], strides: Option<&[i64]>) -> Result<()> {
    let strides = strides.map_or_else(|| compute_contiguous_strides(sizes), DimVector::from_slice);
    if tensor.sizes()? == sizes && *tensor.strides()? == *strides {
        return Ok(());
    }
    let storage = tensor.storage()?;
    let nbytes = compute_storage_nbytes(sizes, &strides, tensor.item_size(), tensor.storage_offset()?)?;
    if nbytes > storage.nbytes() {
        storage.resize(nbytes)?;
    }
    tensor.with_exclusive_metadata("resize_()", || {
        // SAFETY: no other thread uses the metadata here, and nothing borrowed from it is used afterwards. The storage holds
        // what the new geometry reaches, by the lines above; kernels ask again (`check_in_storage`).
        unsafe { tensor.set_sizes_and_strides(sizes, &strides, None) }
    })
}

/// Without memory, the storage only takes note of its size.
fn resize_symint(tensor: &Tensor, sizes: &[SymInt], strides: Option<SymDimVector>) -> Result<()> {
    let strides = match strides {
        Some(strides) => strides,
        None => contiguous_strides_of(sizes)?,
    };
    let storage = tensor.storage()?;
    let needed =
        sym_compute_storage_nbytes(sizes, &strides, tensor.item_size(), &tensor.sym_storage_offset())?;
    storage.set_sym_nbytes(needed.sym_max(&storage.sym_nbytes())?)?;
    tensor.with_exclusive_metadata("resize_()", || {
        // SAFETY: no memory is reached, and no other thread uses the metadata here.
        unsafe { tensor.set_sym_sizes_and_strides(sizes, &strides, None) }
    })
}
