//! Resizing tensors in place.

use c10::{compute_contiguous_strides, compute_storage_nbytes, DimVector, Result, Tensor};

use crate::warning::warn;

/// Gives `out` the wanted sizes if it has others (row-major, growing its storage if needed), and says whether it
/// did. Warns when elements are lost or reused, as PyTorch does.
pub fn resize_output(out: &Tensor, sizes: &[i64]) -> Result<bool> {
    if out.sizes()? == sizes {
        return Ok(false);
    }
    if out.numel()? != 0 {
        warn(&format!(
            "An output with one or more elements was resized since it had shape {:?}, which does not match the \
             required output shape {sizes:?}. This behavior is deprecated, and in a future release outputs will \
             not be resized unless they have zero elements. You can explicitly reuse an out tensor t by resizing \
             it, inplace, to zero elements with t.resize_(0).",
            out.sizes()?
        ));
    }
    resize_impl(out, sizes, None)?;
    Ok(true)
}

/// Gives `tensor` new sizes and strides (`None`: row-major) and grows its storage if needed. Elements keep their
/// places in the storage.
pub fn resize_impl(tensor: &Tensor, sizes: &[i64], strides: Option<&[i64]>) -> Result<()> {
    c10::check_sizes_nonnegative(sizes)?;
    let strides = strides.map_or_else(|| compute_contiguous_strides(sizes), DimVector::from_slice);
    if tensor.sizes()? == sizes && *tensor.strides()? == *strides {
        return Ok(());
    }
    let storage = tensor.storage()?;
    let nbytes = compute_storage_nbytes(sizes, &strides, tensor.item_size(), tensor.storage_offset()?)?;
    if nbytes > storage.nbytes() {
        storage.resize(nbytes)?;
    }
    // SAFETY: the storage holds what the new geometry reaches, by the lines above; as for every in-place change of
    // metadata, the caller has exclusive logical access to the tensor.
    unsafe { tensor.set_sizes_and_strides(sizes, &strides, None) }
}
