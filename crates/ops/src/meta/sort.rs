//! Meta functions of the `sort` operators.

use c10::{check, wrap_dim, Result, ScalarType, SizeInt, SizeVector, SymInt, Tensor, TensorOptions};
use iter::StructuredOutputs;

use super::reduce::{check_dims_nonempty, reduced_shape};

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

fn one_of<I: SizeInt>(
    name: &'static str,
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    keepdim: bool,
) -> Result<()> {
    wrap_dim(dim, self_.dim(), true)?;
    check_dims_nonempty(name, self_, &[dim])?;
    let shape: SizeVector<I> = reduced_shape(self_, dim, keepdim)?;
    let options = TensorOptions::new().device(self_.device());
    outs.set_output_raw_strided(0, &shape, &[], options.dtype(self_.dtype()))?;
    outs.set_output_raw_strided(1, &shape, &[], options.dtype(ScalarType::Long))
}

/// `kthvalue`
pub fn kthvalue_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    k: &SymInt,
    dim: i64,
    keepdim: bool,
) -> Result<()> {
    let wrapped = wrap_dim(dim, self_.dim(), true)? as usize;
    check_dims_nonempty("kthvalue", self_, &[dim])?;
    let length = I::sizes_of(self_)?.get(wrapped).cloned().unwrap_or(I::ONE);
    let k = I::from_sym(k)?;
    check!(
        I::ONE.expect_le(&k)? && k.expect_le(&length)?,
        "kthvalue(): selected number k out of range for dimension {wrapped}"
    );
    one_of::<I>("kthvalue", outs, self_, dim, keepdim)
}

/// `median` along a dimension.
pub fn median_dim_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    keepdim: bool,
) -> Result<()> {
    one_of::<I>("median", outs, self_, dim, keepdim)
}

/// `mode`
pub fn mode_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    keepdim: bool,
) -> Result<()> {
    one_of::<I>("mode", outs, self_, dim, keepdim)
}

/// `topk`
pub fn topk_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    k: &SymInt,
    dim: i64,
    _largest: bool,
    _sorted: bool,
) -> Result<()> {
    let wrapped = wrap_dim(dim, self_.dim(), true)? as usize;
    let mut sizes = I::to_vector(&I::sizes_of(self_)?);
    let length = sizes.get(wrapped).cloned().unwrap_or(I::ONE);
    let k = I::from_sym(k)?;
    check!(k.expect_nonnegative()? && k.expect_le(&length)?, "selected index k out of range");
    if let Some(size) = sizes.get_mut(wrapped) {
        *size = k;
    }
    let options = TensorOptions::new().device(self_.device());
    outs.set_output_raw_strided(0, &sizes, &[], options.dtype(self_.dtype()))?;
    outs.set_output_raw_strided(1, &sizes, &[], options.dtype(ScalarType::Long))
}
