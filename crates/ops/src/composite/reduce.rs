//! Composites of the `reduce` family; beside it [variances and their like](moments), and [quantiles](quantile).

mod moments;
mod quantile;

use c10::{
    check, is_expandable_to, sym_multiply_integers, DimVector, Result, ScalarType, SizeInt, SymDimVector,
    SymInt, Tensor,
};

pub use moments::*;
pub use quantile::*;

use crate::sym::with_sizes;
use crate::{at, structured, sym};

/// `aten::sum`
pub fn sum(self_: &Tensor, dtype: Option<ScalarType>) -> Result<Tensor> {
    at::sum_dim_intlist(self_, None, false, dtype)
}

/// `aten::sum_to_size`
pub fn sum_to_size(self_: &Tensor, size: &[SymInt]) -> Result<Tensor> {
    with_sizes!([self_, size] checked_sum_to(self_, size))
}

fn checked_sum_to<I: SizeInt>(self_: &Tensor, size: &[SymInt]) -> Result<Tensor> {
    let (target, sizes) = (I::from_sym_slice(size)?, I::sizes_of(self_)?);
    check!(
        is_expandable_to(&target, &sizes)?,
        "size {{{target:?}}} is not expandable to size {{{:?}}}.",
        &sizes[..]
    );
    if target.is_empty() {
        // A sum of small integers is int64 even where there is nothing to add.
        return at::sum(self_, None);
    }
    sum_to(self_, &target)
}

/// Sums the dimensions that broadcasting `shape` to the tensor's shape added or stretched.
pub fn sum_to<I: SizeInt>(self_: &Tensor, shape: &[I]) -> Result<Tensor> {
    let sizes = I::sizes_of(self_)?;
    let leading = sizes.len() - shape.len();
    let mut dims: DimVector = (0..leading as i64).collect();
    for (dim, size) in sizes.iter().enumerate().skip(leading) {
        let target = &shape[dim - leading];
        if target != size && target.is_one()? && !size.is_one()? {
            dims.push(dim as i64);
        }
    }
    let summed =
        if dims.is_empty() { self_.clone() } else { at::sum_dim_intlist(self_, Some(&dims), true, None)? };
    if leading == 0 {
        return Ok(summed);
    }
    at::view(&summed, &I::to_sym_slice(shape))
}

/// `aten::mean`
pub fn mean(self_: &Tensor, dtype: Option<ScalarType>) -> Result<Tensor> {
    at::mean_dim(self_, None, false, dtype)
}

/// `aten::mean.dim`
pub fn mean_dim(
    self_: &Tensor,
    dim: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<ScalarType>,
) -> Result<Tensor> {
    let computed = dtype.unwrap_or(self_.dtype());
    let what = if dtype.is_some() { "Optional dtype" } else { "Input dtype" };
    check!(
        computed.is_floating_point() || computed.is_complex(),
        "mean(): could not infer output dtype. {what} must be either a floating point or complex dtype. Got: {}",
        computed.short_name()
    );
    let mask = iter::make_dim_mask(dim, self_.dim(), false)?;
    let sizes = self_.sym_sizes();
    let reduced = sizes.into_iter().enumerate().filter(|(dim, _)| iter::is_reduced(mask, *dim));
    let count = sym_multiply_integers(&reduced.map(|(_, size)| size).collect::<SymDimVector>())?;
    // The sum of halves may be out of their range where the mean is not, and is not to be rounded twice.
    let half = matches!(computed, ScalarType::Half | ScalarType::BFloat16);
    let summed = if half { ScalarType::Float } else { computed };
    let total = at::sum_dim_intlist(self_, dim, keepdim, Some(summed))?;
    let mean = at::div__scalar(&total, &sym::scalar(&count))?;
    if half {
        at::_to_copy(&mean, Some(computed), None, None, None, false, None)
    } else {
        Ok(mean)
    }
}

/// `aten::mean.dtype_out`
pub fn mean_out(self_: &Tensor, dtype: Option<ScalarType>, out: &Tensor) -> Result<Tensor> {
    mean_dim_out(self_, None, false, dtype, out)
}

/// `aten::mean.out`: a stated dtype is that of the output.
pub fn mean_dim_out(
    self_: &Tensor,
    dim: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<ScalarType>,
    out: &Tensor,
) -> Result<Tensor> {
    if let Some(dtype) = dtype {
        structured::check_out_dtype("mean", out, dtype)?;
    }
    structured::write_out("mean", out, &mean_dim(self_, dim, keepdim, dtype)?)
}

/// `aten::equal`
pub fn equal(self_: &Tensor, other: &Tensor) -> Result<bool> {
    check!(
        self_.device() == other.device(),
        "Cannot compare two tensors on different devices. Got: {} and {}",
        self_.device(),
        other.device()
    );
    if !sym::same_sizes(self_, other)? {
        return Ok(false);
    }
    check!(
        self_.dtype() == other.dtype(),
        "Expected object of data type {} but got data type {} for argument 'other' in call to equal",
        self_.dtype(),
        other.dtype()
    );
    at::item(&at::all(&at::eq_tensor(self_, other)?)?)?.to_bool()
}

/// `aten::allclose`
pub fn allclose(self_: &Tensor, other: &Tensor, rtol: f64, atol: f64, equal_nan: bool) -> Result<bool> {
    let close = at::isclose(self_, other, rtol, atol, equal_nan)?;
    at::item(&at::all(&close)?)?.to_bool()
}

/// `aten::is_nonzero`
pub fn is_nonzero(self_: &Tensor) -> Result<bool> {
    let numel = self_.sym_numel().guard_int()?;
    check!(numel != 0, "Boolean value of Tensor with no values is ambiguous");
    check!(numel < 2, "Boolean value of Tensor with more than one value is ambiguous");
    let value = at::item(self_)?;
    if value.is_complex() {
        let value = value.to_complex()?;
        return Ok(value.re != 0.0 || value.im != 0.0);
    }
    if value.is_floating_point() {
        return Ok(value.to_f64()? != 0.0);
    }
    value.to_bool()
}

/// The input in the dtype that a softmax is asked to compute in.
fn softmax_input(self_: &Tensor, dtype: Option<ScalarType>) -> Result<Tensor> {
    match dtype {
        Some(dtype) => at::to_dtype(self_, dtype, false, false, None),
        None => Ok(self_.clone()),
    }
}

/// `aten::softmax.int`
pub fn softmax_int(self_: &Tensor, dim: i64, dtype: Option<ScalarType>) -> Result<Tensor> {
    at::_softmax(&softmax_input(self_, dtype)?, dim, false)
}

/// `aten::log_softmax.int`
pub fn log_softmax_int(self_: &Tensor, dim: i64, dtype: Option<ScalarType>) -> Result<Tensor> {
    at::_log_softmax(&softmax_input(self_, dtype)?, dim, false)
}

/// `aten::softmax.int_out`
pub fn softmax_int_out(self_: &Tensor, dim: i64, dtype: Option<ScalarType>, out: &Tensor) -> Result<Tensor> {
    at::_softmax_out(&softmax_input(self_, dtype)?, dim, false, out)
}

/// `aten::log_softmax.int_out`
pub fn log_softmax_int_out(
    self_: &Tensor,
    dim: i64,
    dtype: Option<ScalarType>,
    out: &Tensor,
) -> Result<Tensor> {
    at::_log_softmax_out(&softmax_input(self_, dtype)?, dim, false, out)
}
