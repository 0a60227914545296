//! Inner products of vectors.

use c10::{Element, Result, Tensor};
use iter::parallel::parallel_reduce;

use super::element::{Accumulator, LinalgElement};
use super::matrix::Matrix;
use crate::address::{const_data_ptr, mutable_data_ptr};
use crate::dispatch::dispatch;
use crate::registration::register;
use crate::vec::tiered;

pub(super) fn register() {
    register! {
        dot_kernel: fn(&Tensor, &Tensor, &[Tensor]);
    }
}

/// Independent sums of an inner product: two registers' worth of the widest tier, several of the others.
const LANES: usize = 32;
/// Elements that are widened at a time.
pub(super) const BLOCK: usize = 256;
/// Elements per parallel piece.
const PIECE: usize = 1 << 16;

tiered! {
    /// `sum + x·y`: 32 interleaved partial sums, folded by halves. The order depends on the length alone.
    pub(super) fn dot_dense<S>(x: &[S], y: &[S]) -> S where { S: Accumulator } => A {
        let zero = <S as Element>::ZERO;
        let mut sums = [zero; LANES];
        let (x_chunks, y_chunks) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
        let (x_rest, y_rest) = (x_chunks.remainder(), y_chunks.remainder());
        for (x, y) in x_chunks.zip(y_chunks) {
            for i in 0..LANES {
                sums[i] = x[i].mul_add::<A>(y[i], sums[i]);
            }
        }
        for ((sum, &x), &y) in sums.iter_mut().zip(x_rest).zip(y_rest) {
            *sum = x.mul_add::<A>(y, *sum);
        }
        let mut width = LANES / 2;
        while width > 0 {
            for i in 0..width {
                sums[i] = sums[i].plus(sums[i + width]);
            }
            width /= 2;
        }
        sums[0]
    }
}

/// The inner product of two strided vectors, given as matrices of one row.
pub(super) fn dot<T: LinalgElement>(x: Matrix<T>, y: Matrix<T>, begin: usize, end: usize) -> T::Sum {
    if T::SUMS_IN_ITSELF && x.col_stride == 1 && y.col_stride == 1 {
        // SAFETY: `begin..end` lies within both vectors, whose elements are dense; `Sum` is the same type as `T`.
        let slice = |v: Matrix<T>| unsafe {
            std::slice::from_raw_parts(v.at(0, begin).cast::<T::Sum>(), end - begin)
        };
        return dot_dense(slice(x), slice(y));
    }
    let zero = <T::Sum as Element>::ZERO;
    let (mut x_buffer, mut y_buffer) = ([zero; BLOCK], [zero; BLOCK]);
    let mut sum = zero;
    for first in (begin..end).step_by(BLOCK) {
        let count = BLOCK.min(end - first);
        gather(x, first, &mut x_buffer[..count]);
        gather(y, first, &mut y_buffer[..count]);
        sum = sum.plus(dot_dense(&x_buffer[..count], &y_buffer[..count]));
    }
    sum
}

/// Widens elements of a vector from `first` on.
pub(super) fn gather<T: LinalgElement>(vector: Matrix<T>, first: usize, out: &mut [T::Sum]) {
    if vector.col_stride == 1 {
        // SAFETY: callers stay within the vector.
        T::widen_slice(unsafe { std::slice::from_raw_parts(vector.at(0, first), out.len()) }, out);
        return;
    }
    let mut from = vector.at(0, first);
    for out in out {
        // SAFETY: as above.
        *out = unsafe { *from }.widen();
        from = from.wrapping_offset(vector.col_stride);
    }
}

/// A vector as a matrix of one row.
fn row<T: Element>(vector: &Tensor) -> Result<Matrix<T>> {
    let cols = vector.numel()? as usize;
    let col_stride = if vector.dim() == 0 { 1 } else { vector.stride(0)? as isize };
    Ok(Matrix { data: const_data_ptr::<T>(vector)?.cast_mut(), rows: 1, cols, row_stride: 0, col_stride })
}

fn dot_kernel(a: &Tensor, b: &Tensor, outs: &[Tensor]) -> Result<()> {
    dispatch!(a.dtype(), "dot", ALL_AND_COMPLEX + HALF, |T| {
        let (x, y) = (row::<T>(a)?, row::<T>(b)?);
        let sum = parallel_reduce(0, x.cols, PIECE, &|begin, end| dot(x, y, begin, end), Accumulator::plus)?;
        let value = T::narrow(sum.unwrap_or(<<T as LinalgElement>::Sum as Element>::ZERO));
        // SAFETY: the output has one element of the operands' dtype.
        unsafe { mutable_data_ptr::<T>(&outs[0])?.write(value) };
        Ok(())
    })
}
