//! Meta functions of the `sort` operators.

use c10::{wrap_dim, Result, ScalarType, SizeInt, Tensor, TensorOptions};
use iter::StructuredOutputs;

/// `sort`: values keep the input's strides where they are dense.
pub fn sort_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    _stable: Option<bool>,
    dim: i64,
    _descending: bool,
) -> Result<()> {
    wrap_dim(dim, self_.dim(), true)?;
    let (sizes, own_strides) = (I::sizes_of(self_)?, I::strides_of(self_)?);
    let strides = if self_.is_non_overlapping_and_dense() { &own_strides[..] } else { &[] };
    let options = TensorOptions::new().device(self_.device());
    outs.set_output_raw_strided(0, &sizes, strides, options.dtype(self_.dtype()))?;
    outs.set_output_raw_strided(1, &sizes, strides, options.dtype(ScalarType::Long))
}
