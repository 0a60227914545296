//! `index_select`: whole slices.

use c10::{wrap_dim, Result, Tensor};
use iter::parallel;

use super::index_add::checked_indices;
use crate::address::{byte_stride, check_same_dtype, Address};
use crate::copy::copy_row;
use crate::registration::register;

pub(super) fn register() {
    register! {
        index_select_kernel: fn(&Tensor, i64, &Tensor, &[Tensor]);
    }
}

/// The output is dense, so its slices are; those of `self` are where their dimensions can be merged.
fn index_select_kernel(self_: &Tensor, dim: i64, index: &Tensor, outs: &[Tensor]) -> Result<()> {
    let Some(out) = outs.first() else { c10::bail!(Internal, "index_select: no output") };
    let dim = wrap_dim(dim, self_.dim(), true)? as usize;
    let (sizes, strides) = (self_.sizes()?, self_.strides()?);
    let indices = checked_indices(index, dim, sizes.get(dim).copied().unwrap_or(1), true)?;
    if out.numel()? == 0 {
        return Ok(());
    }
    if !out.is_contiguous() {
        let dense = iter::empty(out.sizes()?, &out.options())?;
        index_select_kernel(self_, dim as i64, index, std::slice::from_ref(&dense))?;
        return iter::copy_into(out, &dense, false);
    }
    check_same_dtype("index_select", self_, out)?;
    let size = self_.item_size();
    let inner_sizes = sizes.get(dim + 1..).unwrap_or(&[]);
    let inner_strides = strides.get(dim + 1..).unwrap_or(&[]);
    // The longest tail of the inner dimensions that lies in memory as one row with one stride.
    let mut row = (1_i64, 1_i64);
    let mut split = inner_sizes.len();
    while let Some(d) = split.checked_sub(1) {
        if inner_sizes[d] != 1 {
            match row {
                (1, _) => row = (inner_sizes[d], inner_strides[d]),
                (n, stride) if inner_strides[d] == n * stride => row = (n * inner_sizes[d], stride),
                _ => break,
            }
        }
        split = d;
    }
    let (n, row_stride) = row;
    // Rows in the order of the output: outer dimensions, indices, inner dimensions that are not in the row.
    let outer: Vec<(i64, i64)> = sizes.iter().copied().zip(strides.iter().copied()).take(dim).collect();
    let middle: Vec<(i64, i64)> =
        inner_sizes.iter().copied().zip(inner_strides.iter().copied()).take(split).collect();
    let middle_rows: i64 = middle.iter().map(|&(size, _)| size).product();
    let rows = out.numel()? / n;
    let item_size = size as i64;
    let dim_stride = strides.get(dim).copied().unwrap_or(0);
    let (from, to) = (Address(self_.const_data_ptr().cast_mut()), Address(out.data_ptr()));
    let offset_in = |dims: &[(i64, i64)], linear: i64| {
        let mut rest = linear;
        let mut offset = 0;
        for &(size, stride) in dims.iter().rev() {
            offset += rest % size * stride;
            rest /= size;
        }
        offset
    };
    let grain = (parallel::GRAIN_SIZE / 2 / n as usize).max(1);
    parallel::parallel_for(0, rows as usize, grain, &|begin, end| {
        for row in begin as i64..end as i64 {
            let (rest, in_middle) = (row / middle_rows, row % middle_rows);
            let (in_outer, which) = (rest / indices.len() as i64, rest % indices.len() as i64);
            let offset = offset_in(&outer, in_outer)
                + indices[which as usize] * dim_stride
                + offset_in(&middle, in_middle);
            let from = from.offset(offset * item_size);
            let to = to.offset(row * n * item_size);
            // SAFETY: indices are inside the dimension, so this is a row of `self`; the output is dense.
            unsafe {
                copy_row(
                    size,
                    from.0,
                    byte_stride(row_stride, item_size as usize),
                    to.0,
                    item_size,
                    n as usize,
                )
            };
        }
    })
}
