//! Arithmetic on tensors in fewer words, for composites and derivative formulas.

use c10::{bail, Result, Scalar, ScalarType, SizeInt, SymDimVector, SymInt, Tensor};

use crate::at;

/// The number one as an operand.
pub const ONE: Scalar = Scalar::Int(1);

/// `a + b`
pub fn add(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    at::add_tensor(a, b, &ONE)
}

/// `a - b`
pub fn sub(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    at::sub_tensor(a, b, &ONE)
}

/// `a * b`
pub fn mul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    at::mul_tensor(a, b)
}

/// `a * a`
pub fn square(a: &Tensor) -> Result<Tensor> {
    at::mul_tensor(a, a)
}

/// `a + b` for a number
pub fn shift(a: &Tensor, b: f64) -> Result<Tensor> {
    at::add_scalar(a, &Scalar::Float(b), &ONE)
}

/// `a * b` for a number
pub fn scale(a: &Tensor, b: f64) -> Result<Tensor> {
    at::mul_scalar(a, &Scalar::Float(b))
}

/// The sum over some dimensions; over none of them the tensor itself.
pub fn sum(a: &Tensor, dims: &[i64], keepdim: bool) -> Result<Tensor> {
    if dims.is_empty() {
        return Ok(a.clone());
    }
    at::sum_dim_intlist(a, Some(dims), keepdim, None)
}

/// The mean over some dimensions; over none of them the tensor itself.
pub fn mean(a: &Tensor, dims: &[i64], keepdim: bool) -> Result<Tensor> {
    if dims.is_empty() {
        return Ok(a.clone());
    }
    at::mean_dim(a, Some(dims), keepdim, None)
}

/// The tensor in another dtype; itself if it has it.
pub fn cast(a: &Tensor, dtype: ScalarType) -> Result<Tensor> {
    if a.dtype() == dtype {
        return Ok(a.clone());
    }
    at::to_dtype(a, dtype, false, false, None)
}

/// The tensor with at least one dimension.
pub fn at_least_1d(a: &Tensor) -> Result<Tensor> {
    if a.dim() == 0 {
        return at::unsqueeze(a, 0);
    }
    Ok(a.clone())
}

/// The slices along `dim` from the `start`-th on, without the last `without`.
pub fn part(a: &Tensor, dim: i64, start: i64, without: i64) -> Result<Tensor> {
    let end = (without > 0).then(|| SymInt::from(-without));
    at::slice_tensor(a, dim, Some(&SymInt::from(start)), end.as_ref(), &SymInt::ONE)
}

/// Zeros of a tensor's sizes and options.
pub fn zeros_like(a: &Tensor) -> Result<Tensor> {
    at::zeros_like(a, None, None, None, None, None)
}

/// A vector shaped to run along dimension `dim` of tensors with `ndim` dimensions.
pub fn along(a: &Tensor, dim: usize, ndim: i64) -> Result<Tensor> {
    let mut shape = SymDimVector::from_elem(SymInt::ONE, ndim.max(1) as usize);
    let count = shape.len();
    let Some(size) = shape.get_mut(dim) else {
        bail!(Runtime, "expected an input of at least {} dimensions, got {count}", dim + 1);
    };
    *size = if a.sym_numel().is_zero()? { SymInt::ZERO } else { SymInt::from(-1) };
    at::reshape(a, &shape)
}

/// All dimensions but the one of the channels.
pub fn but_channels(ndim: i64) -> Vec<i64> {
    (0..ndim).filter(|&d| d != 1).collect()
}
