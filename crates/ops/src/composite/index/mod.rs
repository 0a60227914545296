//! Composites of the `index` family: here indexing by tensors and masks, beside it [by places](placed).

mod embedding;
mod placed;

pub use embedding::*;

use c10::{check, infer_broadcast_size, MemoryFormat, Result, Scalar, ScalarType, SymInt, Tensor};

pub use placed::*;

use crate::at;
use crate::sym::sym_ints;
use crate::terms::at_least_1d;

/// `aten::index_put`
pub fn index_put(
    self_: &Tensor,
    indices: &[Option<Tensor>],
    values: &Tensor,
    accumulate: bool,
) -> Result<Tensor> {
    let result = at::clone(self_, Some(MemoryFormat::Preserve))?;
    at::index_put_(&result, indices, values, accumulate)
}

/// `aten::index_put_`
pub fn index_put_(
    self_: &Tensor,
    indices: &[Option<Tensor>],
    values: &Tensor,
    accumulate: bool,
) -> Result<Tensor> {
    // One mask and one number, which may be an element of the tensor itself, is the common case and a quick one. As a number
    // it may be of any dtype.
    if !accumulate && values.device().is_cpu() && is_number(values) {
        if let Some(mask) = single_mask(self_, indices)? {
            return at::masked_fill__scalar(self_, &mask, &at::item(values)?);
        }
    }
    at::_index_put_impl_(self_, indices, values, accumulate, false)
}

fn is_number(values: &Tensor) -> bool {
    values.sym_numel().maybe_as_int() == Some(1) && !values.is_meta()
}

/// The only index, if it is a mask, with dimensions of size 1 for those of `self` after it.
fn single_mask(self_: &Tensor, indices: &[Option<Tensor>]) -> Result<Option<Tensor>> {
    let mut given = indices.iter().enumerate().filter_map(|(at, index)| Some((at, index.as_ref()?)));
    let (Some((at, mask)), None) = (given.next(), given.next()) else { return Ok(None) };
    let is_mask =
        matches!(mask.dtype(), ScalarType::Bool | ScalarType::Byte) && mask.device() == self_.device();
    let end = at as i64 + mask.dim();
    if !is_mask || mask.dim() == 0 || end > self_.dim() || self_.has_symbolic_sizes_strides() {
        return Ok(None);
    }
    if self_.sizes()?[at..end as usize] != *mask.sizes()? {
        return Ok(None);
    }
    let mut shape = sym_ints(mask.sizes()?);
    shape.resize(shape.len() + (self_.dim() - end) as usize, SymInt::ONE);
    let mask =
        if mask.dtype() == ScalarType::Byte { at::ne_scalar(mask, &Scalar::Int(0))? } else { mask.clone() };
    at::reshape(&mask, &shape).map(Some)
}

/// `aten::masked_fill_.Tensor`
pub fn masked_fill__tensor(self_: &Tensor, mask: &Tensor, value: &Tensor) -> Result<Tensor> {
    check!(
        value.dim() == 0,
        "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
        value.dim()
    );
    at::masked_fill__scalar(self_, mask, &at::item(value)?)
}

/// A row-major copy of `self` over the shape that it and the mask broadcast to.
fn broadcast_copy(self_: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let sizes = infer_broadcast_size(&self_.sym_sizes(), &mask.sym_sizes())?;
    at::clone(&at::expand(self_, &sizes, false)?, Some(MemoryFormat::Contiguous))
}

/// `aten::masked_fill.Scalar`
pub fn masked_fill_scalar(self_: &Tensor, mask: &Tensor, value: &Scalar) -> Result<Tensor> {
    at::masked_fill__scalar(&broadcast_copy(self_, mask)?, mask, value)
}

/// `aten::masked_fill.Tensor`
pub fn masked_fill_tensor(self_: &Tensor, mask: &Tensor, value: &Tensor) -> Result<Tensor> {
    at::masked_fill__tensor(&broadcast_copy(self_, mask)?, mask, value)
}

/// `aten::masked_select`
pub fn masked_select(self_: &Tensor, mask: &Tensor) -> Result<Tensor> {
    check!(mask.dtype() == ScalarType::Bool, "masked_select: expected BoolTensor for mask");
    let sizes = infer_broadcast_size(&self_.sym_sizes(), &mask.sym_sizes())?;
    let mask = at::expand(mask, &sizes, false)?;
    let self_ = at::expand(self_, &sizes, false)?;
    if self_.dim() == 0 {
        let (mask, self_) = (at::unsqueeze(&mask, 0)?, at::unsqueeze(&self_, 0)?);
        return at::index_tensor(&self_, &[Some(mask)]);
    }
    at::index_tensor(&self_, &[Some(mask)])
}

/// `aten::nonzero_numpy`
pub fn nonzero_numpy(self_: &Tensor) -> Result<Vec<Tensor>> {
    // One position per true element even without dimensions, as NumPy gives.
    let self_ = at_least_1d(self_)?;
    at::unbind_int(&at::nonzero(&self_)?, 1)
}

/// `aten::where`
pub fn where_(condition: &Tensor) -> Result<Vec<Tensor>> {
    at::nonzero_numpy(condition)
}
