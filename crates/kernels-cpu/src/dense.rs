//! Contiguous tensors for kernels that walk memory themselves.

use c10::{compute_contiguous_strides, Result, ScalarType, Tensor};

/// A tensor that is contiguous: itself, or a copy.
pub(crate) fn dense(tensor: &Tensor) -> Result<Tensor> {
    if tensor.is_contiguous() {
        return Ok(tensor.clone());
    }
    let copy = iter::empty(tensor.sizes()?, &tensor.options())?;
    iter::copy_into(&copy, tensor, false)?;
    Ok(copy)
}

/// The tensor itself if it is contiguous and of the dtype, else one that [`deliver`] copies to it.
pub(crate) fn writable(target: &Tensor, dtype: ScalarType) -> Result<Tensor> {
    if target.dtype() == dtype && target.strides()? == &compute_contiguous_strides(target.sizes()?)[..] {
        return Ok(target.clone());
    }
    iter::empty(target.sizes()?, &target.options().dtype(dtype))
}

/// Copies results of [`writable`] to the tensors that they stand for.
pub(crate) fn deliver(targets: &[Tensor], results: &[&Tensor]) -> Result<()> {
    for (target, result) in targets.iter().zip(results) {
        if !target.is_same(result) {
            iter::copy_into(target, result, false)?;
        }
    }
    Ok(())
}
