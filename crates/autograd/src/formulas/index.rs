//! Derivatives of indexing: reading is the adjoint of accumulating.

use c10::{infer_broadcast_size, Result, Scalar, SymInt, Tensor, TensorOptions};
use ops::at;

use super::pointwise::maybe_multiply;
use super::shape::sum_to;

const ZERO: Scalar = Scalar::Int(0);
const ONE: Scalar = Scalar::Int(1);

fn zeros_of(grad: &Tensor, sizes: &[SymInt], options: TensorOptions) -> Result<Tensor> {
    at::new_zeros(grad, sizes, options.dtype, None, None, None)
}

/// `index.Tensor`
pub fn index_backward(
    grad: &Tensor,
    sizes: &[SymInt],
    options: TensorOptions,
    indices: &[Option<Tensor>],
) -> Result<Tensor> {
    at::index_put(&zeros_of(grad, sizes, options)?, indices, grad, true)
}

/// `index_put` with respect to the tensor that is written
pub fn index_put_self_backward(
    grad: &Tensor,
    indices: &[Option<Tensor>],
    values: &Tensor,
    accumulate: bool,
) -> Result<Tensor> {
    if accumulate {
        return Ok(grad.clone());
    }
    let zeros = at::zeros_like(values, None, None, None, None, None)?;
    at::index_put(grad, indices, &zeros, false)
}

/// `index_put` with respect to the values, which were broadcast
pub fn index_put_values_backward(
    grad: &Tensor,
    indices: &[Option<Tensor>],
    sizes: &[SymInt],
) -> Result<Tensor> {
    sum_to(&at::index_tensor(grad, indices)?, sizes)
}

/// `index_select`
pub fn index_select_backward(grad: &Tensor, sizes: &[SymInt], dim: i64, index: &Tensor) -> Result<Tensor> {
    let zeros = at::new_zeros(grad, sizes, None, None, None, None)?;
    at::index_add(&zeros, dim, index, grad, &ONE)
}

/// `index_add` with respect to the source
pub fn index_add_source_backward(
    grad: &Tensor,
    dim: i64,
    index: &Tensor,
    sizes: &[SymInt],
    alpha: &Scalar,
) -> Result<Tensor> {
    let selected = if sizes.is_empty() {
        let index = if index.dim() == 0 { index.clone() } else { at::squeeze_dim(index, 0)? };
        at::reshape(&at::index_select(grad, dim, &index)?, sizes)?
    } else {
        at::expand(&at::index_select(grad, dim, index)?, sizes, false)?
    };
    maybe_multiply(&selected, &alpha.conj())
}

/// `gather`
pub fn gather_backward(
    grad: &Tensor,
    sizes: &[SymInt],
    options: TensorOptions,
    dim: i64,
    index: &Tensor,
) -> Result<Tensor> {
    at::scatter_add(&zeros_of(grad, sizes, options)?, dim, index, grad)
}

/// `masked_fill.Tensor` with respect to the value
pub fn masked_fill_value_backward(grad: &Tensor, mask: &Tensor) -> Result<Tensor> {
    at::sum(&at::masked_fill_scalar(grad, &at::logical_not(mask)?, &ZERO)?, None)
}

/// `masked_select`
pub fn masked_select_backward(grad: &Tensor, sizes: &[SymInt], mask: &Tensor) -> Result<Tensor> {
    // Tensor and mask broadcast against each other.
    let shape = infer_broadcast_size(sizes, &mask.sym_sizes())?;
    // An index of no dimensions selects none: a single element is put into a vector.
    let vector = [SymInt::from(1)];
    let placed: &[SymInt] = if shape.is_empty() { &vector } else { &shape };
    let zeros = at::new_zeros(grad, placed, None, None, None, None)?;
    let mask = at::expand(mask, placed, false)?;
    let full = at::index_put(&zeros, &[Some(mask)], grad, false)?;
    sum_to(&at::view(&full, &shape)?, sizes)
}

/// `embedding_dense_backward`
pub fn embedding_rows(grad: &Tensor, indices: &Tensor, padding_idx: &SymInt) -> Result<Tensor> {
    ops::composite::index::embedding_rows(grad, indices, padding_idx)
}
