//! Derivatives of matrix products.

use c10::{Result, Scalar, SymInt, Tensor};
use ops::at;

use super::pointwise::{conj, maybe_multiply};
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
