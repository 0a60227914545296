//! Meta functions of the `scan` operators: every output has the input's sizes.

use c10::{wrap_dim, Result, ScalarType, SizeInt, Tensor, TensorOptions};
use iter::StructuredOutputs;

use super::reduce::set_values_and_positions;

/// `cumsum`, `cumprod`: the dtype is the stated one, that of `out=`, or int64 for integers.
pub fn cumulative_meta<I: SizeInt>(
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

/// `logcumsumexp`
pub fn logcumsumexp_meta<I: SizeInt>(outs: &mut StructuredOutputs, self_: &Tensor, dim: i64) -> Result<()> {
    wrap_dim(dim, self_.dim(), true)?;
    outs.set_output_contiguous(0, &I::sizes_of(self_)?, self_.options())
}

/// `cummax`, `cummin`
pub fn cumulative_extreme_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
) -> Result<()> {
    wrap_dim(dim, self_.dim(), true)?;
    set_values_and_positions(outs, self_, &I::sizes_of(self_)?)
}
