//! `_softmax` and `_log_softmax`.

use c10::{check, try_filled, Element, Result, Tensor};
use iter::parallel;

use super::{columns, dense, dense_output, finish, rows, Extent, Floating, Real, GRAIN};
use crate::address::Address;
use crate::dispatch::dispatch;
use crate::reduce::extremum::Extremum;
use crate::reduce::monoid::{reduce_row, Monoid};
use crate::registration::register;

pub(super) fn register() {
    register! {
        softmax_kernel: fn(&Tensor, i64, bool, &[Tensor]);
        log_softmax_kernel: fn(&Tensor, i64, bool, &[Tensor]);
    }
}

fn softmax_kernel(self_: &Tensor, dim: i64, half_to_float: bool, outs: &[Tensor]) -> Result<()> {
    run::<false>(self_, dim, half_to_float, outs, "softmax_kernel")
}

fn log_softmax_kernel(self_: &Tensor, dim: i64, half_to_float: bool, outs: &[Tensor]) -> Result<()> {
    run::<true>(self_, dim, half_to_float, outs, "log_softmax_kernel")
}

fn run<const LOG: bool>(
    self_: &Tensor,
    dim: i64,
    half_to_float: bool,
    outs: &[Tensor],
    name: &'static str,
) -> Result<()> {
    check!(!half_to_float, "softmax with half to float conversion is not supported on CPU");
    let extent = Extent::new(self_, dim)?;
    if extent.numel() == 0 {
        return Ok(());
    }
    let out = dense_output(outs)?;
    let input = dense(self_, out.dtype())?;
    let (from, to) = (Address(input.const_data_ptr().cast_mut()), Address(out.data_ptr()));
    dispatch!(out.dtype(), name, FLOATING_AND_HALF, |T| {
        // SAFETY: dense tensors of one shape and this dtype, the output being this kernel's.
        unsafe {
            if extent.inner == 1 {
                by_rows::<T, LOG>(extent, from, to)
            } else {
                by_columns::<T, LOG>(extent, from, to)
            }
        }
    })?;
    finish(outs, &out)
}

type C<T> = <T as Floating>::Compute;

/// # Safety
/// Dense tensors of this extent and dtype must lie at the addresses, the last one for this call alone.
unsafe fn by_rows<T: Floating, const LOG: bool>(extent: Extent, from: Address, to: Address) -> Result<()> {
    let n = extent.n;
    parallel::parallel_for_result(0, extent.outer, (GRAIN / n).max(1), &|begin, end| {
        let mut scratch = try_filled(<C<T> as Element>::ZERO, n)?;
        for row in begin..end {
            let offset = (row * n * std::mem::size_of::<T>()) as i64;
            // SAFETY: both tensors are dense, of this dtype, and have this row; rows are written by one thread each.
            let (input, output) =
                unsafe { (from.offset(offset).slice::<T>(n), to.offset(offset).slice_mut::<T>(n)) };
            rows::lift_row::<T>(&mut scratch, input);
            let max = reduce_row::<Extremum<C<T>, true>>(&scratch);
            if LOG {
                let sum = rows::exp_sum(&scratch, max);
                rows::shift_row::<T>(output, &scratch, max, Real::ln(sum));
            } else {
                let sum = rows::exp_row(&mut scratch, max);
                rows::scale_row::<T>(output, &scratch, sum.recip());
            }
        }
        Ok(())
    })
}

/// # Safety
/// Dense tensors of this extent and dtype must lie at the addresses, the last one for this call alone.
unsafe fn by_columns<T: Floating, const LOG: bool>(extent: Extent, from: Address, to: Address) -> Result<()> {
    let Extent { n, inner, .. } = extent;
    let width = extent.block();
    let blocks = inner.div_ceil(width);
    let grain = (GRAIN / (n * width)).max(1);
    parallel::parallel_for_result(0, extent.outer * blocks, grain, &|begin, end| {
        let zero = <C<T> as Element>::ZERO;
        let mut scratch = try_filled(zero, n * width)?;
        let (mut max, mut sum) = (try_filled(zero, width)?, try_filled(zero, width)?);
        for task in begin..end {
            let (outer, first) = (task / blocks, task % blocks * width);
            let width = width.min(inner - first);
            let (max, sum) = (&mut max[..width], &mut sum[..width]);
            let offset = |row: usize| (((outer * n + row) * inner + first) * std::mem::size_of::<T>()) as i64;
            max.fill(Extremum::<C<T>, true>::identity());
            sum.fill(zero);
            for (row, scratch) in scratch.chunks_mut(width).take(n).enumerate() {
                // SAFETY: the input is dense, of this dtype, and has these elements.
                rows::lift_row::<T>(scratch, unsafe { from.offset(offset(row)).slice::<T>(width) });
                columns::max_into(max, scratch);
            }
            for scratch in scratch.chunks_mut(width).take(n) {
                if LOG {
                    columns::exp_sum_into(scratch, max, sum);
                } else {
                    columns::exp_into(scratch, max, sum);
                }
            }
            for sum in sum.iter_mut() {
                *sum = if LOG { Real::ln(*sum) } else { sum.recip() };
            }
            for (row, scratch) in scratch.chunks(width).take(n).enumerate() {
                // SAFETY: as above for the output; blocks of columns are written by one thread each.
                let output = unsafe { to.offset(offset(row)).slice_mut::<T>(width) };
                if LOG {
                    columns::shift::<T>(output, scratch, max, sum);
                } else {
                    columns::scale::<T>(output, scratch, sum);
                }
            }
        }
        Ok(())
    })
}
