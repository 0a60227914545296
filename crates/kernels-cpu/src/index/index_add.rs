//! `index_add`.

use c10::{check_index, internal_assert, wrap_dim, Element, Result, Scalar, ScalarType, SmallVec, Tensor};
use iter::to_dtype;

use super::lines::{for_each_line, Operand};
use super::scatter_gather::Summand;
use crate::address::{byte_stride, check_same_dtype, Address};
use crate::dispatch::dispatch;
use crate::map::Stored;
use crate::registration::register;

pub(super) fn register() {
    register! {
        index_add_kernel: fn(i64, &Tensor, &Tensor, &Scalar, &[Tensor]);
    }
}

/// Checks a vector of indices, and gives them as dense int64.
pub(super) fn checked_indices(index: &Tensor, dim: usize, size: i64, of_slices: bool) -> Result<Vec<i64>> {
    let index = to_dtype(index, ScalarType::Long)?;
    let n = index.numel()?;
    let stride = index.strides()?.first().map_or(0, |&stride| byte_stride(stride, index.item_size()));
    let base = Address(index.const_data_ptr().cast_mut());
    let mut indices = c10::try_with_capacity(n as usize)?;
    for i in 0..n {
        // SAFETY: an element of the index tensor, which is int64.
        let index = unsafe { base.offset(i * stride).read::<i64>() };
        if !(0..size).contains(&index) {
            // PyTorch's paths differ in what they say.
            check_index!(!of_slices, "index out of range in self");
            return Err(super::bounds::error(c10::ErrorKind::Runtime, index, dim, size));
        }
        indices.push(index);
    }
    Ok(indices)
}

/// Slices of `source` are added in the order of `index`, so that sums are the same for any number of threads.
fn index_add_kernel(
    dim: i64,
    index: &Tensor,
    source: &Tensor,
    alpha: &Scalar,
    outs: &[Tensor],
) -> Result<()> {
    let Some(out) = outs.first() else { c10::bail!(Internal, "index_add: no output") };
    check_same_dtype("index_add", source, out)?;
    let dim = wrap_dim(dim, out.dim(), true)? as usize;
    let (size, stride) = match out.sizes()?.get(dim) {
        Some(&size) => (size, byte_stride(out.strides()?[dim], out.item_size())),
        None => (1, 0),
    };
    let indices = checked_indices(index, dim, size, out.dim() <= 1)?;
    let shape = source.sizes()?;
    internal_assert!(
        indices.len() as i64 == shape.get(dim).copied().unwrap_or(1),
        "index_add: {} indices for a source of shape {shape:?}",
        indices.len()
    );
    let strides = |tensor: &Tensor, still: bool| -> Result<SmallVec<[i64; 6]>> {
        let item_size = tensor.item_size();
        let strides = tensor.strides()?.iter().enumerate();
        Ok(strides
            .map(|(d, &stride)| if still && d == dim { 0 } else { byte_stride(stride, item_size) })
            .collect())
    };
    let index_strides =
        (0..shape.len()).map(|d| if d == dim { size_of::<i64>() as i64 } else { 0 }).collect();
    let operands = [
        Operand { base: Address(out.data_ptr()), strides: strides(out, true)? },
        Operand { base: Address(source.const_data_ptr().cast_mut()), strides: strides(source, false)? },
        Operand { base: Address(indices.as_ptr().cast_mut().cast()), strides: index_strides },
    ];
    dispatch!(out.dtype(), "index_add_kernel", EVERY, |T| {
        let alpha = alpha.to::<T>()?;
        let unscaled = alpha == <T as Element>::ONE;
        for_each_line(shape, dim, &operands, &|at, strides, n| {
            for i in 0..n as i64 {
                // SAFETY: indices are inside the output's dimension; the other elements are those of the source. What
                // may be the same place is added to by one thread.
                unsafe {
                    let index = at[2].offset(i * strides[2]).read::<i64>();
                    let place = at[0].offset(i * strides[0] + index * stride);
                    let value = <T as Stored>::load(at[1].offset(i * strides[1]).read());
                    let value = if unscaled { value } else { value.times(alpha) };
                    place.write(<T as Stored>::load(place.read()).plus(value).store());
                }
            }
        })
    })
}
