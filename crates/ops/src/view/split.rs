//! Views that are lists: a dimension cut into pieces.

use c10::{check, wrap_dim, DimVector, Result, SymInt, Tensor};

use super::alias_with_sizes_and_strides;
use crate::sym::ints;

/// `aten::unbind.int`
pub fn unbind_int(self_: &Tensor, dim: i64) -> Result<Vec<Tensor>> {
    let dim = wrap_dim(dim, self_.dim(), false)? as usize;
    let mut sizes = DimVector::from_slice(self_.sizes()?);
    let mut strides = DimVector::from_slice(self_.strides()?);
    let (size, stride) = (sizes.remove(dim), strides.remove(dim));
    let offset = self_.storage_offset()?;
    (0..size).map(|i| alias_with_sizes_and_strides(self_, &sizes, &strides, offset + i * stride)).collect()
}

/// Pieces of the given lengths, which sum to the size of the dimension.
fn pieces(self_: &Tensor, dim: usize, lengths: impl Iterator<Item = i64>) -> Result<Vec<Tensor>> {
    let mut sizes = DimVector::from_slice(self_.sizes()?);
    let strides = self_.strides()?;
    let mut offset = self_.storage_offset()?;
    let mut result = Vec::with_capacity(lengths.size_hint().0);
    for length in lengths {
        sizes[dim] = length;
        result.push(alias_with_sizes_and_strides(self_, &sizes, strides, offset)?);
        offset += length * strides[dim];
    }
    Ok(result)
}

/// `aten::split.Tensor`
pub fn split_tensor(self_: &Tensor, split_size: &SymInt, dim: i64) -> Result<Vec<Tensor>> {
    check!(self_.dim() != 0, "split expects at least a 1-dimensional tensor");
    let split_size = split_size.guard_int()?;
    check!(split_size >= 0, "split expects split_size be non-negative, but got split_size={split_size}");
    let dim = wrap_dim(dim, self_.dim(), true)? as usize;
    let size = self_.sizes()?[dim];
    check!(
        split_size > 0 || size == 0,
        "split_size can only be 0 if dimension size is 0, but got dimension size of {size}"
    );
    if size == 0 || split_size >= size {
        return pieces(self_, dim, std::iter::once(size));
    }
    let whole = size / split_size;
    let rest = size % split_size;
    pieces(self_, dim, (0..whole).map(|_| split_size).chain((rest != 0).then_some(rest)))
}

/// `aten::split_with_sizes`
pub fn split_with_sizes(self_: &Tensor, split_sizes: &[SymInt], dim: i64) -> Result<Vec<Tensor>> {
    check!(self_.dim() != 0, "split expects at least a 1-dimensional tensor");
    let lengths = ints(split_sizes)?;
    let dim = wrap_dim(dim, self_.dim(), true)? as usize;
    let size = self_.sizes()?[dim];
    check!(
        lengths.iter().all(|&length| length >= 0),
        "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={lengths:?}"
    );
    let total = lengths.iter().try_fold(0_i64, |sum, &length| sum.checked_add(length));
    check!(
        total == Some(size),
        "split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension {dim}), but got \
         split_sizes={lengths:?}"
    );
    pieces(self_, dim, lengths.into_iter())
}
