//! `triu` and `tril`: rows are copied on one side of a diagonal and zero on the other.

use c10::{Result, Tensor};
use iter::parallel;

use crate::address::{byte_stride, check_same_dtype, Address};
use crate::index::by_size;
use crate::registration::register;

pub(super) fn register() {
    register! {
        triu_kernel: fn(&Tensor, i64, &[Tensor]);
        tril_kernel: fn(&Tensor, i64, &[Tensor]);
    }
}

fn triu_kernel(self_: &Tensor, diagonal: i64, outs: &[Tensor]) -> Result<()> {
    triangle(self_, diagonal, true, outs)
}

fn tril_kernel(self_: &Tensor, diagonal: i64, outs: &[Tensor]) -> Result<()> {
    triangle(self_, diagonal, false, outs)
}

fn triangle(self_: &Tensor, diagonal: i64, upper: bool, outs: &[Tensor]) -> Result<()> {
    let [out] = outs else { c10::bail!(Internal, "triu: {} outputs", outs.len()) };
    check_same_dtype("triu", self_, out)?;
    by_size!(out.item_size(), |W| rows::<W>(self_, diagonal, upper, out))
}

/// Zero bits are zero in every dtype.
fn rows<W: Copy + Default + Send + Sync>(
    self_: &Tensor,
    diagonal: i64,
    upper: bool,
    out: &Tensor,
) -> Result<()> {
    let sizes = self_.sizes()?;
    let ndim = sizes.len();
    if self_.numel()? == 0 || ndim < 2 {
        return Ok(());
    }
    let (n, lines) = (sizes[ndim - 1] as usize, self_.numel()? as usize / sizes[ndim - 1] as usize);
    let item_size = std::mem::size_of::<W>();
    let bases = [self_.const_data_ptr().cast_mut(), out.data_ptr()].map(Address);
    let strides = [self_.strides()?, out.strides()?];
    let along = strides.map(|s| byte_stride(s[ndim - 1], item_size));
    let in_place = bases[0].0 == bases[1].0;
    parallel::parallel_for(0, lines, (parallel::GRAIN_SIZE / n).max(1), &|begin, end| {
        for line in begin..end {
            let mut at = bases;
            let mut rest = line as i64;
            for d in (0..ndim - 1).rev() {
                for (at, strides) in at.iter_mut().zip(strides) {
                    *at = at.offset(byte_stride(strides[d], item_size) * (rest % sizes[d]));
                }
                rest /= sizes[d];
            }
            // Where the part right of the diagonal's elements begins, the diagonal with it for an upper triangle.
            let row = line as i64 % sizes[ndim - 2];
            let split =
                row.saturating_add(diagonal).saturating_add(i64::from(!upper)).clamp(0, n as i64) as usize;
            let (zero, kept) = if upper { (0..split, split..n) } else { (split..n, 0..split) };
            // SAFETY: elements of a row of each tensor; rows of the output are written by one thread each.
            unsafe {
                if along == [item_size as i64; 2] {
                    let to = |range: &std::ops::Range<usize>| {
                        at[1].offset((range.start * item_size) as i64).slice_mut::<W>(range.len())
                    };
                    to(&zero).fill(W::default());
                    if !in_place {
                        let from = at[0].offset((kept.start * item_size) as i64).slice::<W>(kept.len());
                        to(&kept).copy_from_slice(from);
                    }
                    continue;
                }
                for j in zero {
                    at[1].offset(j as i64 * along[1]).write(W::default());
                }
                for j in kept {
                    at[1].offset(j as i64 * along[1]).write(at[0].offset(j as i64 * along[0]).read::<W>());
                }
            }
        }
    })
}
