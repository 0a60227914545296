//! Derivatives of matrix products.

use c10::{Result, Scalar, SymInt, Tensor};
use ops::at;

use super::pointwise::{conj, maybe_multiply};
use super::reduce::restore_reduced_dims;
use super::shape::sum_to;

/// Whether a matrix of these sizes and strides is stored by columns: its gradient should be too.
fn is_column_major(sizes: &[SymInt], strides: &[SymInt]) -> bool {
    match (sizes, strides) {
        // Which order is the quicker one is not worth a guard: symbols are compared as they stand.
        ([rows, _], [row_stride, column_stride]) => *row_stride == 1 && column_stride == rows,
        _ => false,
    }
}

/// `mat1 @ mat2` with respect to `mat1`
pub fn mm_mat1_backward(
    grad: &Tensor,
    mat2: &Tensor,
    sizes: &[SymInt],
    strides: &[SymInt],
    alpha: &Scalar,
) -> Result<Tensor> {
    let product = if is_column_major(sizes, strides) {
        at::t(&at::mm(&conj(mat2)?, &at::t(grad)?)?)?
    } else {
        at::mm(grad, &conj(&at::t(mat2)?)?)?
    };
    maybe_multiply(&product, &alpha.conj())
}

/// `mat1 @ mat2` with respect to `mat2`
pub fn mm_mat2_backward(
    grad: &Tensor,
    mat1: &Tensor,
    sizes: &[SymInt],
    strides: &[SymInt],
    alpha: &Scalar,
) -> Result<Tensor> {
    let product = if is_column_major(sizes, strides) {
        at::t(&at::mm(&at::t(grad)?, &conj(mat1)?)?)?
    } else {
        at::mm(&conj(&at::t(mat1)?)?, grad)?
    };
    maybe_multiply(&product, &alpha.conj())
}

/// `addmm`, `baddbmm` with respect to the summand, which was broadcast
pub fn addmm_self_backward(grad: &Tensor, sizes: &[SymInt], beta: &Scalar) -> Result<Tensor> {
    maybe_multiply(&sum_to(grad, sizes)?, &beta.conj())
}

/// The gradient of a sum over a batch, for each of it.
fn over_batch(grad: &Tensor, count: SymInt) -> Result<Tensor> {
    let mut sizes = grad.sym_sizes();
    sizes.insert(0, count);
    at::expand(&at::unsqueeze(grad, 0)?, &sizes, false)
}

/// `addbmm` with respect to `batch1`
pub fn addbmm_batch1_backward(grad: &Tensor, batch2: &Tensor, alpha: &Scalar) -> Result<Tensor> {
    let grads = over_batch(grad, batch2.sym_size(0)?)?;
    maybe_multiply(&at::bmm(&grads, &conj(&at::transpose_int(batch2, 1, 2)?)?)?, &alpha.conj())
}

/// `addbmm` with respect to `batch2`
pub fn addbmm_batch2_backward(grad: &Tensor, batch1: &Tensor, alpha: &Scalar) -> Result<Tensor> {
    let grads = over_batch(grad, batch1.sym_size(0)?)?;
    maybe_multiply(&at::bmm(&conj(&at::transpose_int(batch1, 1, 2)?)?, &grads)?, &alpha.conj())
}

/// `linalg_vector_norm`: zero where the norm or the element is.
pub fn linalg_vector_norm_backward(
    grad: &Tensor,
    self_: &Tensor,
    ord: &Scalar,
    result: &Tensor,
    dim: Option<&[i64]>,
    keepdim: bool,
) -> Result<Tensor> {
    let dims = dim.unwrap_or(&[]);
    let ndim = self_.dim();
    let ord = ord.to_f64()?;
    let grad = restore_reduced_dims(grad, dims, keepdim, ndim)?;
    let norm = restore_reduced_dims(result, dims, keepdim, ndim)?;
    let zero = Scalar::Int(0);
    let is_zero = |t: &Tensor| at::eq_scalar(t, &zero);
    let power = |t: &Tensor, exponent: f64| at::pow_tensor_scalar(t, &Scalar::Float(exponent));
    if ord == 0.0 {
        return at::zeros_like(self_, None, None, None, None, None);
    }
    if ord == 1.0 {
        return at::mul_tensor(&at::sgn(self_)?, &grad);
    }
    if ord == 2.0 {
        let scaled = at::masked_fill_scalar(&at::div_tensor(self_, &norm)?, &is_zero(&norm)?, &zero)?;
        return at::mul_tensor(&scaled, &grad);
    }
    if ord.is_infinite() {
        let magnitude = at::abs(self_)?;
        let chosen = at::logical_or(&at::eq_tensor(&magnitude, &norm)?, &at::isnan(&magnitude)?)?;
        let count = at::sum_dim_intlist(&chosen, Some(dims), true, None)?;
        return at::mul_tensor(&at::mul_tensor(&at::sgn(self_)?, &at::div_tensor(&grad, &count)?)?, &chosen);
    }
    let magnitude = at::abs(self_)?;
    let scaled = if ord < 2.0 {
        let powers = at::masked_fill_scalar(&power(&magnitude, ord - 1.0)?, &is_zero(self_)?, &zero)?;
        at::mul_tensor(&at::sgn(self_)?, &powers)?
    } else {
        at::mul_tensor(self_, &power(&magnitude, ord - 2.0)?)?
    };
    let scale =
        at::masked_fill_scalar(&at::div_tensor(&grad, &power(&norm, ord - 1.0)?)?, &is_zero(&norm)?, &zero)?;
    at::mul_tensor(&scaled, &scale)
}
