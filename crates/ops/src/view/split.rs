//! Views that are lists: a dimension cut into pieces.

use c10::{check, try_with_capacity, wrap_dim, Result, SizeInt, SymInt, Tensor};

use super::alias_with_sizes_and_strides;

/// `aten::unbind.int`: the number of views is the size, which is guarded on.
pub fn unbind_int<I: SizeInt>(self_: &Tensor, dim: i64) -> Result<Vec<Tensor>> {
    let dim = wrap_dim(dim, self_.dim(), false)? as usize;
    let mut sizes = I::to_vector(&I::sizes_of(self_)?);
    let mut strides = I::to_vector(&I::strides_of(self_)?);
    let (size, stride) = (sizes.remove(dim), strides.remove(dim));
    let mut offset = I::storage_offset_of(self_)?;
    let count = size.guard_int()?;
    let mut result = try_with_capacity(count as usize)?;
    for _ in 0..count {
        result.push(alias_with_sizes_and_strides(self_, &sizes, &strides, &offset)?);
        // The step after the last view leads nowhere.
        offset = offset.stride_add(&stride)?;
    }
    Ok(result)
}

/// Pieces of the given lengths, which sum to the size of the dimension.
fn pieces<I: SizeInt>(self_: &Tensor, dim: usize, lengths: impl Iterator<Item = I>) -> Result<Vec<Tensor>> {
    let mut sizes = I::to_vector(&I::sizes_of(self_)?);
    let strides = I::strides_of(self_)?;
    let mut offset = I::storage_offset_of(self_)?;
    let mut result = try_with_capacity(lengths.size_hint().0)?;
    for length in lengths {
        let next = offset.stride_add(&length.stride_mul(&strides[dim])?)?;
        sizes[dim] = length;
        result.push(alias_with_sizes_and_strides(self_, &sizes, &strides, &offset)?);
        offset = next;
    }
    Ok(result)
}

/// `aten::split.Tensor`: the number of views is guarded on.
pub fn split_tensor<I: SizeInt>(self_: &Tensor, split_size: &SymInt, dim: i64) -> Result<Vec<Tensor>> {
    check!(self_.dim() != 0, "split expects at least a 1-dimensional tensor");
    let split_size = I::from_sym(split_size)?;
    check!(
        split_size.expect_nonnegative()?,
        "split expects split_size be non-negative, but got split_size={split_size}"
    );
    let dim = wrap_dim(dim, self_.dim(), true)? as usize;
    let size = I::sizes_of(self_)?[dim].clone();
    let is_zero = split_size.is_zero()?;
    check!(
        !is_zero || size.is_zero()?,
        "split_size can only be 0 if dimension size is 0, but got dimension size of {size}"
    );
    if is_zero || split_size == size {
        return pieces(self_, dim, std::iter::once(size));
    }
    // One piece at least, which may be empty.
    let count = size.sym_ceildiv(&split_size)?.guard_int()?.max(1);
    let last = size.sym_sub(&split_size.sym_mul(&I::from(count - 1))?)?;
    pieces(self_, dim, (1..count).map(|_| split_size.clone()).chain(std::iter::once(last)))
}

/// `aten::split_with_sizes`
pub fn split_with_sizes<I: SizeInt>(self_: &Tensor, split_sizes: &[SymInt], dim: i64) -> Result<Vec<Tensor>> {
    check!(self_.dim() != 0, "split expects at least a 1-dimensional tensor");
    let lengths = I::from_sym_slice(split_sizes)?;
    let dim = wrap_dim(dim, self_.dim(), true)? as usize;
    let size = I::sizes_of(self_)?[dim].clone();
    let mut total = Some(I::ZERO);
    for length in &lengths {
        check!(
            length.expect_nonnegative()?,
            "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={lengths:?}"
        );
        total = total.and_then(|total| total.sym_add(length).ok());
    }
    check!(
        total.map_or(Ok(false), |total| total.expect_eq(&size))?,
        "split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension {dim}), but got \
         split_sizes={lengths:?}"
    );
    pieces(self_, dim, lengths.into_iter())
}
