//! Meta functions of the `sort` operators.

use c10::{check, wrap_dim, Result, ScalarType, Tensor, TensorOptions};
use iter::StructuredOutputs;

/// `sort`: values keep the input's strides where they are dense.
pub fn sort_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    _stable: Option<bool>,
    dim: i64,
    _descending: bool,
) -> Result<()> {
    wrap_dim(dim, self_.dim(), true)?;
    check!(!self_.is_complex(), "Sort currently does not support complex dtypes on CPU");
    let strides = if self_.is_non_overlapping_and_dense() { self_.strides()? } else { &[] };
    let options = TensorOptions::new().device(self_.device());
    outs.set_output_raw_strided(0, self_.sizes()?, strides, options.dtype(self_.dtype()))?;
    outs.set_output_raw_strided(1, self_.sizes()?, strides, options.dtype(ScalarType::Long))
}
