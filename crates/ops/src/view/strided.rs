//! Views by arithmetic on sizes and strides.

use c10::{
    check, check_in_bounds_for_storage, check_sizes_nonnegative, compute_stride, infer_size, DimVector,
    Result, ScalarType, SymInt, Tensor, TensorImpl,
};

use super::alias_with_sizes_and_strides;
use crate::sym::{ints, optional_int};

/// `aten::as_strided`
pub fn as_strided(
    self_: &Tensor,
    size: &[SymInt],
    stride: &[SymInt],
    storage_offset: Option<&SymInt>,
) -> Result<Tensor> {
    let (size, stride) = (ints(size)?, ints(stride)?);
    let offset = match optional_int(storage_offset)? {
        Some(offset) => offset,
        None => self_.storage_offset()?,
    };
    check_in_bounds_for_storage(&size, &stride, offset, self_.dtype(), self_.storage()?)?;
    alias_with_sizes_and_strides(self_, &size, &stride, offset)
}

/// `aten::view`
pub fn view(self_: &Tensor, size: &[SymInt]) -> Result<Tensor> {
    let size = infer_size(&ints(size)?, self_.numel()?)?;
    let Some(strides) = compute_stride(self_.sizes()?, self_.strides()?, &size)? else {
        c10::bail!(
            Runtime,
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two \
             contiguous subspaces). Use .reshape(...) instead."
        );
    };
    alias_with_sizes_and_strides(self_, &size, &strides, self_.storage_offset()?)
}

/// `aten::_reshape_alias`: a view whose strides `reshape` has worked out.
pub fn _reshape_alias(self_: &Tensor, size: &[SymInt], stride: &[SymInt]) -> Result<Tensor> {
    let (size, stride) = (ints(size)?, ints(stride)?);
    check_in_bounds_for_storage(&size, &stride, self_.storage_offset()?, self_.dtype(), self_.storage()?)?;
    alias_with_sizes_and_strides(self_, &size, &stride, self_.storage_offset()?)
}

/// `aten::view.dtype`: the same bytes as elements of another dtype.
pub fn view_dtype(self_: &Tensor, dtype: ScalarType) -> Result<Tensor> {
    if self_.dtype() == dtype {
        return super::alias(self_);
    }
    check!(
        !self_.is_conj(),
        "torch.Tensor.view is not supported for conjugate view tensors when converting to a different dtype."
    );
    check!(
        !self_.is_neg(),
        "torch.Tensor.view is not supported for tensors with negative bit set when converting to a different dtype."
    );
    let (from, to) = (self_.item_size() as i64, dtype.item_size() as i64);
    let mut sizes = DimVector::from_slice(self_.sizes()?);
    let mut strides = DimVector::from_slice(self_.strides()?);
    let mut offset = self_.storage_offset()?;
    if from != to {
        check!(
            !sizes.is_empty(),
            "self.dim() cannot be 0 to view {} as {dtype} (different element sizes)",
            self_.dtype()
        );
        check!(
            strides[strides.len() - 1] == 1,
            "self.stride(-1) must be 1 to view {} as {dtype} (different element sizes), but got {}",
            self_.dtype(),
            strides[strides.len() - 1]
        );
        let last = sizes.len() - 1;
        if from > to {
            let ratio = from / to;
            scale_to_smaller(&mut sizes, &mut strides, &mut offset, last, ratio)?;
        } else {
            scale_to_larger(self_, dtype, &mut sizes, &mut strides, &mut offset, last, to / from)?;
        }
    }
    check_in_bounds_for_storage(&sizes, &strides, offset, dtype, self_.storage()?)?;
    let view = TensorImpl::new_view(Some(self_.storage()?.clone()), self_.key_set(), dtype, self_.device())
        .with_sizes_and_strides(&sizes, &strides, offset)?;
    Ok(view.into())
}

fn scale_to_smaller(
    sizes: &mut DimVector,
    strides: &mut DimVector,
    offset: &mut i64,
    last: usize,
    ratio: i64,
) -> Result<()> {
    let scaled = |value: i64| {
        value
            .checked_mul(ratio)
            .ok_or_else(|| c10::Error::runtime(format!("view: {value} * {ratio} overflows")))
    };
    sizes[last] = scaled(sizes[last])?;
    *offset = scaled(*offset)?;
    for stride in &mut strides[..last] {
        *stride = scaled(*stride)?;
    }
    Ok(())
}

fn scale_to_larger(
    self_: &Tensor,
    dtype: ScalarType,
    sizes: &mut DimVector,
    strides: &mut DimVector,
    offset: &mut i64,
    last: usize,
    ratio: i64,
) -> Result<()> {
    let from = self_.dtype();
    check!(
        sizes[last] % ratio == 0,
        "self.size(-1) must be divisible by {ratio} to view {from} as {dtype} (different element sizes), but got {}",
        sizes[last]
    );
    check!(
        *offset % ratio == 0,
        "self.storage_offset() must be divisible by {ratio} to view {from} as {dtype} (different element sizes), but got {offset}"
    );
    for (dim, stride) in strides[..last].iter().enumerate() {
        check!(
            stride % ratio == 0,
            "self.stride({dim}) must be divisible by {ratio} to view {from} as {dtype} (different element sizes), but got {stride}"
        );
    }
    sizes[last] /= ratio;
    *offset /= ratio;
    for stride in &mut strides[..last] {
        *stride /= ratio;
    }
    Ok(())
}

/// `aten::expand`
pub fn expand(self_: &Tensor, size: &[SymInt], _implicit: bool) -> Result<Tensor> {
    let size = ints(size)?;
    let (sizes, strides) = c10::infer_expand_geometry(self_.sizes()?, self_.strides()?, &size)?;
    check_sizes_nonnegative(&sizes)?;
    alias_with_sizes_and_strides(self_, &sizes, &strides, self_.storage_offset()?)
}
