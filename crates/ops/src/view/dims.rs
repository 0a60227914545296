//! Views that reorder, add or drop dimensions.

use c10::{check, check_index, wrap_dim, DimVector, Result, SymInt, Tensor};

use super::alias_with_sizes_and_strides;
use crate::sym::optional_int;

/// `aten::transpose.int`
pub fn transpose_int(self_: &Tensor, dim0: i64, dim1: i64) -> Result<Tensor> {
    let ndim = self_.dim();
    let (dim0, dim1) = (wrap_dim(dim0, ndim, true)? as usize, wrap_dim(dim1, ndim, true)? as usize);
    let mut sizes = DimVector::from_slice(self_.sizes()?);
    let mut strides = DimVector::from_slice(self_.strides()?);
    if dim0 != dim1 {
        sizes.swap(dim0, dim1);
        strides.swap(dim0, dim1);
    }
    alias_with_sizes_and_strides(self_, &sizes, &strides, self_.storage_offset()?)
}

/// `aten::t`
pub fn t(self_: &Tensor) -> Result<Tensor> {
    check!(self_.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is {}D", self_.dim());
    transpose_int(self_, 0, if self_.dim() < 2 { 0 } else { 1 })
}

/// `aten::permute`
pub fn permute(self_: &Tensor, dims: &[i64]) -> Result<Tensor> {
    let ndim = self_.dim();
    check!(
        dims.len() as i64 == ndim,
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering \
         of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {}",
        dims.len()
    );
    let (old_sizes, old_strides) = (self_.sizes()?, self_.strides()?);
    let mut seen = 0_u64;
    let (mut sizes, mut strides) = (DimVector::new(), DimVector::new());
    for &dim in dims {
        let dim = wrap_dim(dim, ndim, true)? as usize;
        check!(dim >= 64 || seen & (1 << dim) == 0, "permute(): duplicate dims are not allowed.");
        seen |= 1_u64.checked_shl(dim as u32).unwrap_or(0);
        sizes.push(old_sizes[dim]);
        strides.push(old_strides[dim]);
    }
    alias_with_sizes_and_strides(self_, &sizes, &strides, self_.storage_offset()?)
}

fn squeeze_where(self_: &Tensor, drop: impl Fn(usize) -> bool) -> Result<Tensor> {
    let (old_sizes, old_strides) = (self_.sizes()?, self_.strides()?);
    let (mut sizes, mut strides) = (DimVector::new(), DimVector::new());
    for (dim, (&size, &stride)) in old_sizes.iter().zip(old_strides).enumerate() {
        if size != 1 || !drop(dim) {
            sizes.push(size);
            strides.push(stride);
        }
    }
    alias_with_sizes_and_strides(self_, &sizes, &strides, self_.storage_offset()?)
}

/// `aten::squeeze`
pub fn squeeze(self_: &Tensor) -> Result<Tensor> {
    squeeze_where(self_, |_| true)
}

/// `aten::squeeze.dim`
pub fn squeeze_dim(self_: &Tensor, dim: i64) -> Result<Tensor> {
    let dim = wrap_dim(dim, self_.dim(), true)? as usize;
    squeeze_where(self_, |d| d == dim)
}

/// `aten::squeeze.dims`
pub fn squeeze_dims(self_: &Tensor, dim: &[i64]) -> Result<Tensor> {
    let mask = iter::make_dim_mask(Some(dim), self_.dim(), true)?;
    squeeze_where(self_, |d| d < 64 && mask & (1 << d) != 0)
}

/// `aten::unsqueeze`
pub fn unsqueeze(self_: &Tensor, dim: i64) -> Result<Tensor> {
    let dim = wrap_dim(dim, self_.dim() + 1, true)? as usize;
    let mut sizes = DimVector::from_slice(self_.sizes()?);
    let mut strides = DimVector::from_slice(self_.strides()?);
    let stride = if dim < sizes.len() { sizes[dim].saturating_mul(strides[dim]) } else { 1 };
    sizes.insert(dim, 1);
    strides.insert(dim, stride);
    alias_with_sizes_and_strides(self_, &sizes, &strides, self_.storage_offset()?)
}

/// `aten::select.int`
pub fn select_int(self_: &Tensor, dim: i64, index: &SymInt) -> Result<Tensor> {
    let ndim = self_.dim();
    check_index!(ndim != 0, "select() cannot be applied to a 0-dim tensor.");
    let dim = wrap_dim(dim, ndim, true)? as usize;
    let index = index.guard_int()?;
    let size = self_.sizes()?[dim];
    check_index!(
        -size <= index && index < size,
        "select(): index {index} out of range for tensor of size {:?} at dimension {dim}",
        self_.sizes()?
    );
    let index = if index < 0 { index + size } else { index };
    let mut sizes = DimVector::from_slice(self_.sizes()?);
    let mut strides = DimVector::from_slice(self_.strides()?);
    let offset = self_.storage_offset()? + index * strides[dim];
    sizes.remove(dim);
    strides.remove(dim);
    alias_with_sizes_and_strides(self_, &sizes, &strides, offset)
}

/// Start and end of a slice of `size` elements, wrapped and clamped as Python does.
pub fn slice_bounds(start: Option<i64>, end: Option<i64>, size: i64) -> (i64, i64) {
    let wrap = |value: i64| if value < 0 { value.saturating_add(size) } else { value };
    let start = wrap(start.unwrap_or(0)).clamp(0, size);
    let end = wrap(end.unwrap_or(i64::MAX)).clamp(start, size.max(start));
    (start, end)
}

/// `aten::slice.Tensor`
pub fn slice_tensor(
    self_: &Tensor,
    dim: i64,
    start: Option<&SymInt>,
    end: Option<&SymInt>,
    step: &SymInt,
) -> Result<Tensor> {
    let ndim = self_.dim();
    check!(ndim != 0, "slice() cannot be applied to a 0-dim tensor.");
    let dim = wrap_dim(dim, ndim, true)? as usize;
    let step = step.guard_int()?;
    check!(step > 0, "slice step must be positive");
    let mut sizes = DimVector::from_slice(self_.sizes()?);
    let mut strides = DimVector::from_slice(self_.strides()?);
    let (start, end) = slice_bounds(optional_int(start)?, optional_int(end)?, sizes[dim]);
    let offset = self_.storage_offset()? + start * strides[dim];
    let length = end - start;
    sizes[dim] = length / step + i64::from(length % step != 0);
    // A step beyond the only element is never taken.
    strides[dim] = strides[dim].saturating_mul(step);
    alias_with_sizes_and_strides(self_, &sizes, &strides, offset)
}

/// `aten::diagonal`
pub fn diagonal(self_: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
    let ndim = self_.dim();
    let (dim1_, dim2_) = (wrap_dim(dim1, ndim, true)?, wrap_dim(dim2, ndim, true)?);
    check!(dim1_ != dim2_, "diagonal dimensions cannot be identical {dim1}, {dim2}");
    let (dim1, dim2) = (dim1_ as usize, dim2_ as usize);
    let mut sizes = DimVector::from_slice(self_.sizes()?);
    let mut strides = DimVector::from_slice(self_.strides()?);
    check_index!(
        dim1 < sizes.len() && dim2 < sizes.len(),
        "diagonal(): expected at least 2 dimensions, got {ndim}"
    );
    let length = if offset >= 0 {
        sizes[dim1].min(sizes[dim2].saturating_sub(offset)).max(0)
    } else {
        sizes[dim1].saturating_add(offset).min(sizes[dim2]).max(0)
    };
    let mut storage_offset = self_.storage_offset()?;
    if length > 0 {
        storage_offset += if offset >= 0 { offset * strides[dim2] } else { -offset * strides[dim1] };
    }
    let stride = strides[dim1] + strides[dim2];
    for dim in [dim1.max(dim2), dim1.min(dim2)] {
        sizes.remove(dim);
        strides.remove(dim);
    }
    sizes.push(length);
    strides.push(stride);
    alias_with_sizes_and_strides(self_, &sizes, &strides, storage_offset)
}

/// `aten::unfold`
pub fn unfold(self_: &Tensor, dimension: i64, size: i64, step: i64) -> Result<Tensor> {
    let ndim = self_.dim();
    let dim = wrap_dim(dimension, ndim, true)? as usize;
    let mut sizes = DimVector::from_slice(self_.sizes()?);
    let mut strides = DimVector::from_slice(self_.strides()?);
    let (old_size, old_stride) = if ndim == 0 { (1, 1) } else { (sizes[dim], strides[dim]) };
    check!(size >= 0, "size is {size} but must be >= 0");
    check!(size <= old_size, "maximum size for tensor at dimension {dim} is {old_size} but size is {size}");
    check!(step > 0, "step is {step} but must be > 0");
    sizes.push(size);
    strides.push(old_stride);
    if ndim > 0 {
        sizes[dim] = (old_size - size) / step + 1;
        strides[dim] = old_stride.saturating_mul(step);
    }
    alias_with_sizes_and_strides(self_, &sizes, &strides, self_.storage_offset()?)
}
