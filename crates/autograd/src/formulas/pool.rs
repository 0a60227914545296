//! Derivatives of pooling.

use c10::{MemoryFormat, Result, SymDimVector, SymInt, Tensor};
use ops::at;

/// `max_pool*_with_indices_backward` with respect to the gradient: picks what the maxima's gradients got. `dim` is the number of
/// pooled dimensions.
pub fn max_pool_double_backward(grad: &Tensor, indices: &Tensor, dim: usize) -> Result<Tensor> {
    let sizes = indices.sym_sizes();
    let lead = sizes.len().saturating_sub(dim);
    let mut flat: SymDimVector = sizes[..lead].iter().cloned().collect();
    flat.push(SymInt::from(-1));
    if indices.sym_numel().guard_eq(&SymInt::from(0))? {
        return at::new_zeros(grad, &sizes, None, None, None, None);
    }
    let indices = at::reshape(indices, &flat)?;
    let grad = at::view(&at::contiguous(grad, MemoryFormat::Contiguous)?, &flat)?;
    at::view(&at::gather(&grad, -1, &indices, false)?, &sizes)
}

/// `constant_pad_nd`: what was added is cut, what was cut had no part.
pub fn constant_pad_nd_backward(grad: &Tensor, pad: &[SymInt]) -> Result<Tensor> {
    let negated =
        pad.iter().map(|amount| SymInt::from(0).sym_sub(amount)).collect::<Result<Vec<SymInt>>>()?;
    at::constant_pad_nd(grad, &negated, &c10::Scalar::Int(0))
}

/// The last sizes of a tensor.
pub fn last_sizes(sizes: &[SymInt], count: usize) -> Result<SymDimVector> {
    ops::composite::pool::last_sizes(sizes, count)
}
