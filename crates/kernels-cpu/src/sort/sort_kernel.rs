//! `sort` along a dimension. It is always stable: that costs nothing here.

use c10::{check, wrap_dim, Result, Tensor};
use iter::parallel;

use super::row::{sort_row, Row, Workspace};
use crate::address::{check_same_dtype, mutable_data_ptr, Address};
use crate::dispatch::dispatch;
use crate::registration::register;

pub(super) fn register() {
    register! {
        sort_kernel: fn(&Tensor, Option<bool>, i64, bool, &[Tensor]);
    }
}

/// Elements sorted by one thread at least.
const GRAIN: usize = 4096;

fn sort_kernel(
    self_: &Tensor,
    _stable: Option<bool>,
    dim: i64,
    descending: bool,
    outs: &[Tensor],
) -> Result<()> {
    check!(!self_.is_complex(), "Sort does not support complex dtypes on CPU");
    let [values, indices] = outs else { c10::bail!(Internal, "sort: {} outputs", outs.len()) };
    let numel = self_.numel()? as usize;
    if numel == 0 {
        return Ok(());
    }
    let dim = wrap_dim(dim, self_.dim(), true)? as usize;
    let sizes = self_.sizes()?;
    let n = sizes.get(dim).map_or(1, |&size| size as usize);
    check_same_dtype("sort", self_, values)?;
    mutable_data_ptr::<i64>(indices)?;
    let tensors = [self_, values, indices];
    let strides = [self_.strides()?, values.strides()?, indices.strides()?];
    let item_sizes = tensors.map(|tensor| tensor.item_size() as i64);
    let bases = [self_.const_data_ptr().cast_mut(), values.data_ptr(), indices.data_ptr()].map(Address);
    let rows_at = |row: usize| -> [Row; 3] {
        let mut offsets = [0; 3];
        let mut rest = row as i64;
        for (d, &size) in sizes.iter().enumerate().rev().filter(|&(d, _)| d != dim) {
            for (offset, strides) in offsets.iter_mut().zip(strides) {
                *offset += rest % size * strides[d];
            }
            rest /= size;
        }
        std::array::from_fn(|i| Row {
            base: bases[i].offset(offsets[i] * item_sizes[i]),
            stride: strides[i].get(dim).copied().unwrap_or(0) * item_sizes[i],
        })
    };
    dispatch!(self_.dtype(), "sort_kernel", ALL_AND_HALF + Bool + BAREBONES_UNSIGNED, |T| {
        parallel::parallel_for_result(0, numel / n, (GRAIN / n).max(1), &|begin, end| {
            let mut workspace = Workspace::default();
            for row in begin..end {
                let [input, values, indices] = rows_at(row);
                // SAFETY: rows of the tensors along `dim`, of this dtype and int64; each is sorted by one thread.
                unsafe { sort_row::<T>(&mut workspace, input, values, indices, n, descending)? };
            }
            Ok(())
        })
    })
}
