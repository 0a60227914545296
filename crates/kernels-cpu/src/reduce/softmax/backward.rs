//! The derivatives of `_softmax` and `_log_softmax`, from the output and its gradient.

use c10::{try_filled, Element, Result, Tensor};
use iter::parallel;

use super::{columns, dense, dense_output, finish, rows, Extent, Floating, GRAIN};
use crate::address::Address;
use crate::dispatch::dispatch;
use crate::reduce::monoid::reduce_row;
use crate::reduce::sum::Sum;
use crate::registration::register;

pub(super) fn register() {
    register! {
        softmax_backward_kernel: fn(&Tensor, &Tensor, i64, &[Tensor]);
        log_softmax_backward_kernel: fn(&Tensor, &Tensor, i64, &[Tensor]);
    }
}

fn softmax_backward_kernel(grad_output: &Tensor, output: &Tensor, dim: i64, outs: &[Tensor]) -> Result<()> {
    run::<false>(grad_output, output, dim, outs, "softmax_backward_kernel")
}

fn log_softmax_backward_kernel(
    grad_output: &Tensor,
    output: &Tensor,
    dim: i64,
    outs: &[Tensor],
) -> Result<()> {
    run::<true>(grad_output, output, dim, outs, "log_softmax_backward_kernel")
}

fn run<const LOG: bool>(
    grad_output: &Tensor,
    output: &Tensor,
    dim: i64,
    outs: &[Tensor],
    name: &'static str,
) -> Result<()> {
    let extent = Extent::new(output, dim)?;
    if extent.numel() == 0 {
        return Ok(());
    }
    let out = dense_output(outs)?;
    // A gradient in float32 of an input in float16 is computed in float32 and rounded at the end.
    let computed = if out.dtype() == output.dtype() {
        out.clone()
    } else {
        iter::empty(output.sizes()?, &output.options())?
    };
    let (grad, value) = (dense(grad_output, computed.dtype())?, dense(output, computed.dtype())?);
    let grad = Address(grad.const_data_ptr().cast_mut());
    let value = Address(value.const_data_ptr().cast_mut());
    let to = Address(computed.data_ptr());
    dispatch!(computed.dtype(), name, FLOATING_AND_HALF, |T| {
        // SAFETY: dense tensors of one shape and this dtype, the output being this kernel's.
        unsafe {
            if extent.inner == 1 {
                by_rows::<T, LOG>(extent, grad, value, to)
            } else {
                by_columns::<T, LOG>(extent, grad, value, to)
            }
        }
    })?;
    if !computed.is_same(&out) {
        iter::copy_into(&out, &computed, false)?;
    }
    finish(outs, &out)
}

type C<T> = <T as Floating>::Compute;

/// # Safety
/// Dense tensors of this extent and dtype must lie at the addresses, the last one for this call alone.
unsafe fn by_rows<T: Floating, const LOG: bool>(
    extent: Extent,
    grad: Address,
    value: Address,
    to: Address,
) -> Result<()> {
    let n = extent.n;
    parallel::parallel_for_result(0, extent.outer, (GRAIN / n).max(1), &|begin, end| {
        let zero = <C<T> as Element>::ZERO;
        let (mut g, mut y) = (try_filled(zero, n)?, try_filled(zero, n)?);
        for row in begin..end {
            let offset = (row * n * std::mem::size_of::<T>()) as i64;
            // SAFETY: the tensors are dense, of this dtype, and have this row; rows are written by one thread each.
            let output = unsafe {
                rows::lift_row::<T>(&mut g, grad.offset(offset).slice::<T>(n));
                rows::lift_row::<T>(&mut y, value.offset(offset).slice::<T>(n));
                to.offset(offset).slice_mut::<T>(n)
            };
            if LOG {
                let sum = <C<T> as Element>::from_f64(reduce_row::<Sum<C<T>>>(&g));
                rows::log_softmax_gradient::<T>(output, &g, &y, sum);
            } else {
                let sum = rows::dot(&g, &y);
                rows::softmax_gradient::<T>(output, &g, &y, sum);
            }
        }
        Ok(())
    })
}

/// # Safety
/// Dense tensors of this extent and dtype must lie at the addresses, the last one for this call alone.
unsafe fn by_columns<T: Floating, const LOG: bool>(
    extent: Extent,
    grad: Address,
    value: Address,
    to: Address,
) -> Result<()> {
    let Extent { n, inner, .. } = extent;
    let width = extent.block();
    let blocks = inner.div_ceil(width);
    let grain = (GRAIN / (n * width)).max(1);
    parallel::parallel_for_result(0, extent.outer * blocks, grain, &|begin, end| {
        let zero = <C<T> as Element>::ZERO;
        let (mut g, mut y) = (try_filled(zero, n * width)?, try_filled(zero, n * width)?);
        let mut sum = try_filled(zero, width)?;
        for task in begin..end {
            let (outer, first) = (task / blocks, task % blocks * width);
            let width = width.min(inner - first);
            let sum = &mut sum[..width];
            let offset = |row: usize| (((outer * n + row) * inner + first) * std::mem::size_of::<T>()) as i64;
            sum.fill(zero);
            for (row, (g, y)) in g.chunks_mut(width).zip(y.chunks_mut(width)).take(n).enumerate() {
                // SAFETY: the inputs are dense, of this dtype, and have these elements.
                unsafe {
                    rows::lift_row::<T>(g, grad.offset(offset(row)).slice::<T>(width));
                    rows::lift_row::<T>(y, value.offset(offset(row)).slice::<T>(width));
                }
                if LOG {
                    columns::add_into(g, sum);
                } else {
                    columns::dot_into(g, y, sum);
                }
            }
            for (row, (g, y)) in g.chunks(width).zip(y.chunks(width)).take(n).enumerate() {
                // SAFETY: as above for the output; blocks of columns are written by one thread each.
                let output = unsafe { to.offset(offset(row)).slice_mut::<T>(width) };
                if LOG {
                    columns::log_softmax_gradient::<T>(output, g, y, sum);
                } else {
                    columns::softmax_gradient::<T>(output, g, y, sum);
                }
            }
        }
        Ok(())
    })
}
