//! `bmm`, `baddbmm`: a product per batch.

use c10::{Element, Result, Scalar, Tensor};
use iter::parallel::parallel_for_result;

use super::element::LinalgElement;
use super::gemm::gemm;
use super::matrix::Matrix;
use super::mm::factor;
use crate::dispatch::dispatch;
use crate::registration::register;

pub(super) fn register() {
    register! {
        bmm_kernel: fn(&Tensor, &Tensor, &[Tensor]);
        baddbmm_kernel: fn(&Tensor, &Tensor, &Scalar, &Scalar, &[Tensor]);
    }
}

fn bmm_kernel(a: &Tensor, b: &Tensor, outs: &[Tensor]) -> Result<()> {
    dispatch!(outs[0].dtype(), "bmm", ALL_AND_COMPLEX + HALF, |T| {
        batched::<T>(<<T as LinalgElement>::Sum as Element>::ONE, a, b, None, &outs[0])
    })
}

/// `outs[0]` holds `self`, broadcast.
fn baddbmm_kernel(a: &Tensor, b: &Tensor, beta: &Scalar, alpha: &Scalar, outs: &[Tensor]) -> Result<()> {
    dispatch!(outs[0].dtype(), "baddbmm", ALL_AND_COMPLEX + HALF, |T| {
        batched::<T>(alpha.to::<<T as LinalgElement>::Sum>()?, a, b, factor(beta)?, &outs[0])
    })
}

/// Multiplications that a piece has at least.
const PIECE: usize = 1 << 18;

fn batched<T: LinalgElement>(
    alpha: T::Sum,
    a: &Tensor,
    b: &Tensor,
    beta: Option<T::Sum>,
    out: &Tensor,
) -> Result<()> {
    let batches = out.size(0)? as usize;
    let steps = [a.stride(0)? as isize, b.stride(0)? as isize, out.stride(0)? as isize];
    let [a, b, out]: [Matrix<T>; 3] = [Matrix::of(a)?, Matrix::of(b)?, Matrix::of(out)?];
    let nth =
        |m: Matrix<T>, step: isize, i: usize| Matrix { data: m.data.wrapping_offset(step * i as isize), ..m };
    let one = |i: usize| gemm(alpha, nth(a, steps[0], i), nth(b, steps[1], i), beta, nth(out, steps[2], i));
    let work = out.rows * out.cols * a.cols.max(1);
    // Large products are cut themselves; of small ones several make a piece.
    if batches < 4 && work >= PIECE {
        return (0..batches).try_for_each(one);
    }
    parallel_for_result(0, batches, (PIECE / work.max(1)).max(1), &|begin, end| {
        (begin..end).try_for_each(one)
    })
}
