//! Derivatives of indexing: reading is the adjoint of accumulating.

use c10::{infer_broadcast_size, Result, Scalar, SymInt, Tensor, TensorOptions};
use ops::at;
use ops::terms::at_least_1d;

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

/// `take`
pub fn take_backward(grad: &Tensor, sizes: &[SymInt], index: &Tensor) -> Result<Tensor> {
    let zeros = at::new_zeros(grad, sizes, None, None, None, None)?;
    at::put(&zeros, index, grad, true)
}

/// `put` with respect to `self`
pub fn put_self_backward(
    grad: &Tensor,
    index: &Tensor,
    sizes: &[SymInt],
    accumulate: bool,
) -> Result<Tensor> {
    if accumulate {
        return Ok(grad.clone());
    }
    at::put(grad, index, &at::new_zeros(grad, sizes, None, None, None, None)?, false)
}

/// `index_fill` with respect to the value: each slice counts once, however often it is named.
pub fn index_fill_value_backward(grad: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
    at::sum(&at::index_select(grad, dim, &at::_unique(index, false, false)?.0)?, None)
}

/// `index_copy` with respect to the source
pub fn index_copy_source_backward(
    grad: &Tensor,
    dim: i64,
    index: &Tensor,
    sizes: &[SymInt],
) -> Result<Tensor> {
    if sizes.is_empty() {
        let index = if index.dim() == 0 { index.clone() } else { at::squeeze_dim(index, 0)? };
        return at::reshape(&at::index_select(grad, dim, &index)?, sizes);
    }
    at::expand(&at::index_select(grad, dim, index)?, sizes, false)
}

/// The backward of `masked_scatter_backward`: what it put in the source's places goes back to the mask's.
pub fn masked_scatter_backward_backward(grad: &Tensor, sizes: &[SymInt], mask: &Tensor) -> Result<Tensor> {
    at::masked_scatter(&at::new_zeros(grad, sizes, None, None, None, None)?, mask, grad)
}

/// `scatter_reduce`: for `self` and for the source.
#[allow(clippy::too_many_arguments)]
pub fn scatter_reduce_backward(
    grad: &Tensor,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    src: &Tensor,
    reduce: &str,
    include_self: bool,
    result: &Tensor,
) -> Result<(Option<Tensor>, Option<Tensor>)> {
    let one = Scalar::Int(1);
    let gather = |t: &Tensor| at::gather(t, dim, index, false);
    let (grad_self, grad_src) = match reduce {
        "sum" => (grad.clone(), gather(grad)?),
        "prod" => {
            let (zero_self, zero_src) =
                (at::eq_scalar(self_, &Scalar::Int(0))?, at::eq_scalar(src, &Scalar::Int(0))?);
            // The product without an element: by division, unless the element is zero, and then by leaving it out.
            let masked_self = at::masked_fill_scalar(self_, &zero_self, &one)?;
            let without = at::scatter_reduce_two(&masked_self, dim, index, src, reduce, include_self)?;
            let grad_self = at::div_tensor(&at::mul_tensor(grad, &without)?, &masked_self)?;
            let counted = |t: &Tensor| {
                at::scatter_add(&at::zeros_like(self_, None, None, None, None, None)?, dim, index, t)
            };
            let zeros = counted(&at::to_dtype(&zero_src, self_.dtype(), false, false, None)?)?;
            let single = at::logical_and(&zero_src, &at::eq_scalar(&gather(&zeros)?, &one)?)?;
            let masked_src = at::masked_fill_scalar(src, &single, &one)?;
            let start = if include_self {
                self_.clone()
            } else {
                at::ones_like(self_, None, None, None, None, None)?
            };
            let product =
                gather(&at::scatter_reduce_two(&start, dim, index, &masked_src, reduce, include_self)?)?;
            let safe = at::masked_fill_scalar(src, &zero_src, &one)?;
            let others = at::where_self(&single, &product, &at::div_tensor(&gather(result)?, &safe)?)?;
            let others = at::masked_fill_scalar(
                &others,
                &at::logical_and(&zero_src, &at::logical_not(&single)?)?,
                &Scalar::Int(0),
            )?;
            (grad_self, at::mul_tensor(&gather(grad)?, &others)?)
        }
        "mean" => {
            let start = if include_self {
                at::ones_like(grad, None, None, None, None, None)?
            } else {
                at::zeros_like(grad, None, None, None, None, None)?
            };
            let count =
                at::scatter_add(&start, dim, index, &at::ones_like(src, None, None, None, None, None)?)?;
            let count = at::masked_fill_scalar(&count, &at::eq_scalar(&count, &Scalar::Int(0))?, &one)?;
            (at::div_tensor(grad, &count)?, gather(&at::div_tensor(grad, &count)?)?)
        }
        _ => {
            let is_self = at::to_dtype(&at::eq_tensor(self_, result)?, self_.dtype(), false, false, None)?;
            let is_src =
                at::to_dtype(&at::eq_tensor(src, &gather(result)?)?, self_.dtype(), false, false, None)?;
            let start = if include_self {
                is_self.clone()
            } else {
                at::scatter_value(&is_self, dim, index, &Scalar::Int(0))?
            };
            let share = at::div_tensor(grad, &at::scatter_add(&start, dim, index, &is_src)?)?;
            (at::mul_tensor(&is_self, &share)?, at::mul_tensor(&is_src, &gather(&share)?)?)
        }
    };
    let grad_self =
        if include_self { grad_self } else { at::scatter_value(&grad_self, dim, index, &Scalar::Int(0))? };
    Ok((Some(grad_self), Some(grad_src)))
}

/// `index_reduce`: as [`scatter_reduce_backward`], with the index spread over the source.
#[allow(clippy::too_many_arguments)]
pub fn index_reduce_backward(
    grad: &Tensor,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    source: &Tensor,
    reduce: &str,
    include_self: bool,
    result: &Tensor,
) -> Result<(Option<Tensor>, Option<Tensor>)> {
    let (grad, own, src, result) =
        (at_least_1d(grad)?, at_least_1d(self_)?, at_least_1d(source)?, at_least_1d(result)?);
    let dim = c10::maybe_wrap_dim(dim, own.dim())?;
    let mut shape = c10::SymDimVector::from_elem(SymInt::ONE, own.dim() as usize);
    shape[dim as usize] = SymInt::from(-1);
    let places = at::expand(&at::reshape(index, &shape)?, &src.sym_sizes(), false)?;
    let places = at::to_dtype(&places, c10::ScalarType::Long, false, false, None)?;
    let (a, b) = scatter_reduce_backward(&grad, &own, dim, &places, &src, reduce, include_self, &result)?;
    let back = |t: Option<Tensor>, like: &Tensor| t.map(|t| at::reshape(&t, &like.sym_sizes())).transpose();
    Ok((back(a, self_)?, back(b, source)?))
}
