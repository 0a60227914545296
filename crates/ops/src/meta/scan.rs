//! Meta functions of the `scan` operators: every output has the input's sizes.

use c10::{wrap_dim, Result, ScalarType, SizeInt, Tensor, TensorOptions};
use iter::StructuredOutputs;

/// The dtype is the stated one, that of `out=`, or int64 for integers.
fn cumulative<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    dtype: Option<ScalarType>,
) -> Result<()> {
    wrap_dim(dim, self_.dim(), true)?;
    let given = outs.maybe_get_output(0).map(|out| out.dtype());
    let by_input = if self_.dtype().is_integral(true) { ScalarType::Long } else { self_.dtype() };
    let dtype = dtype.or(given).unwrap_or(by_input);
    let options = TensorOptions::new().device(self_.device()).dtype(dtype);
    outs.set_output_raw_strided(0, &I::sizes_of(self_)?, &[], options)
}

/// `cumsum`
pub fn cumsum_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    dtype: Option<ScalarType>,
) -> Result<()> {
    cumulative::<I>(outs, self_, dim, dtype)
}

/// `cumprod`
pub fn cumprod_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    dtype: Option<ScalarType>,
) -> Result<()> {
    cumulative::<I>(outs, self_, dim, dtype)
}

/// `logcumsumexp`
pub fn logcumsumexp_meta<I: SizeInt>(outs: &mut StructuredOutputs, self_: &Tensor, dim: i64) -> Result<()> {
    wrap_dim(dim, self_.dim(), true)?;
    outs.set_output_contiguous(0, &I::sizes_of(self_)?, self_.options())
}

fn with_indices<I: SizeInt>(outs: &mut StructuredOutputs, self_: &Tensor, dim: i64) -> Result<()> {
    wrap_dim(dim, self_.dim(), true)?;
    let sizes = I::sizes_of(self_)?;
    let options = TensorOptions::new().device(self_.device());
    outs.set_output_raw_strided(0, &sizes, &[], options.dtype(self_.dtype()))?;
    outs.set_output_raw_strided(1, &sizes, &[], options.dtype(ScalarType::Long))
}

/// `cummax`
pub fn cummax_meta<I: SizeInt>(outs: &mut StructuredOutputs, self_: &Tensor, dim: i64) -> Result<()> {
    with_indices::<I>(outs, self_, dim)
}

/// `cummin`
pub fn cummin_meta<I: SizeInt>(outs: &mut StructuredOutputs, self_: &Tensor, dim: i64) -> Result<()> {
    with_indices::<I>(outs, self_, dim)
}
