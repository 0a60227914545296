//! Meta functions of the `sort` operators.

use c10::{check, wrap_dim, Result, ScalarType, SizeInt, SizeVector, SymInt, Tensor, TensorOptions};
use iter::StructuredOutputs;

use super::reduce::{check_dims_nonempty, reduced_shape, set_values_and_positions};

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

/// `searchsorted`: one sequence for all values, or one for each row of them.
pub fn searchsorted_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    sorted_sequence: &Tensor,
    self_: &Tensor,
    out_int32: bool,
    right: bool,
    side: Option<&str>,
    sorter: Option<&Tensor>,
) -> Result<()> {
    if let Some(side) = side {
        check!(
            matches!(side, "left" | "right"),
            "torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        );
        check!(
            !right || side == "right",
            "torch.searchsorted(): side and right can't be set to opposites, got side of {side} while right was True"
        );
    }
    let (sequence, values) = (I::sizes_of(sorted_sequence)?, I::sizes_of(self_)?);
    check!(
        !sequence.is_empty(),
        "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got \
         boundaries tensor dim(0) and input value's dim({}) numel({})",
        values.len(),
        I::numel_of(self_)?
    );
    if sequence.len() != 1 {
        let mut same = sequence.len() == values.len();
        for (a, b) in sequence.iter().zip(values.iter()).take(sequence.len() - 1) {
            same = same && a.expect_eq(b)?;
        }
        check!(
            same,
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries \
             tensor and input value tensor must match, but we got boundaries tensor {:?} and input value tensor {:?}",
            sorted_sequence.sym_sizes(),
            self_.sym_sizes()
        );
    }
    check!(
        sorted_sequence.dtype() == self_.dtype() || self_.dim() == 0,
        "torch.searchsorted(): input value tensor and boundaries tensor should have same dtype, but got boundaries \
         tensor dtype {} and input value tensor dtype {}",
        sorted_sequence.dtype().short_name(),
        self_.dtype().short_name()
    );
    if let Some(sorter) = sorter {
        let mut same = sorter.dim() == sorted_sequence.dim();
        for (a, b) in I::sizes_of(sorter)?.iter().zip(sequence.iter()) {
            same = same && a.expect_eq(b)?;
        }
        check!(
            same,
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor {:?} and got \
             sorter tensor {:?}",
            sorted_sequence.sym_sizes(),
            sorter.sym_sizes()
        );
        check!(
            sorter.dtype() == ScalarType::Long,
            "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {}",
            sorter.dtype().short_name()
        );
    }
    let dtype = if out_int32 { ScalarType::Int } else { ScalarType::Long };
    if let Some(out) = outs.maybe_get_output(0) {
        check!(
            out.dtype() == dtype,
            "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on \
             whether out_int32 flag is True, but we got output tensor's dtype {} and out_int32 flag is {}",
            out.dtype().short_name(),
            if out_int32 { "True" } else { "False" }
        );
    }
    outs.set_output_contiguous(0, &values, self_.options().dtype(dtype))
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
    set_values_and_positions(outs, self_, &shape)
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
    set_values_and_positions(outs, self_, &sizes)
}
