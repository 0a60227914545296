//! The `gemm` crate behind a trait, cut into pieces for our threads.
//!
//! # Note [Pieces of an external product]
//! The crate sums each element over the depth in blocks whose length depends on the depth alone, unless both other
//! sizes are at most 64, their product is at most 256, or one of them is 1. So as long as pieces stay above these
//! bounds, how a product is cut does not show in its bits, and it may follow the number of threads: a thread alone
//! computes it in one piece. The tests beside this file hold the crate to that.

use c10::Result;
use gemm::Parallelism;
use iter::parallel::{in_parallel_region, num_threads, parallel_for};
use num_complex::Complex;

use super::element::LinalgElement;
use super::matrix::Matrix;

/// A type that the crate multiplies.
pub(super) trait External: LinalgElement {
    /// `c = a·b·alpha + beta·c`, on this thread.
    fn gemm(alpha: Self, a: Matrix<Self>, b: Matrix<Self>, beta: Option<Self>, c: Matrix<Self>);
}

macro_rules! external {
    ($($T:ty),*) => {$(
        impl External for $T {
            fn gemm(alpha: $T, a: Matrix<$T>, b: Matrix<$T>, beta: Option<$T>, c: Matrix<$T>) {
                // SAFETY: the three matrices have matching shapes and exist as their makers promised; `c` overlaps
                // neither operand.
                unsafe {
                    gemm::gemm(
                        c.rows,
                        c.cols,
                        a.cols,
                        c.data,
                        c.col_stride,
                        c.row_stride,
                        beta.is_some(),
                        a.data,
                        a.col_stride,
                        a.row_stride,
                        b.data,
                        b.col_stride,
                        b.row_stride,
                        beta.unwrap_or(<$T as c10::Element>::ZERO),
                        alpha,
                        false,
                        false,
                        false,
                        Parallelism::None,
                    );
                }
            }
        }
    )*};
}

external!(f32, f64, Complex<f32>, Complex<f64>);

/// Multiplications that are worth a piece: about 40 µs.
const PIECE: usize = 1 << 21;
/// Pieces have at least as many rows and columns, if the product has; see Note [Pieces of an external product].
const MIN_SIDE: usize = 96;

/// How many pieces to cut rows and columns into.
pub(super) fn pieces(rows: usize, cols: usize, depth: usize, threads: usize) -> (usize, usize) {
    let work = rows.saturating_mul(cols).saturating_mul(depth) / PIECE;
    if threads <= 1 || work <= 1 {
        return (1, 1);
    }
    // Two per thread, so that one that is held up does not hold up the rest.
    let wanted = work.min(2 * threads);
    // The longer side first: each piece then packs the whole of the shorter operand again.
    let along = |long: usize, short: usize| {
        let least = MIN_SIDE.max(272 / short.max(1) + 16);
        let first = wanted.min(long / least).max(1);
        let second = wanted.div_ceil(first).min(short / MIN_SIDE).max(1);
        (first, second)
    };
    if cols >= rows {
        let (across, down) = along(cols, rows);
        (down, across)
    } else {
        along(rows, cols)
    }
}

/// Piece `i` of `n`: its begin and end, on boundaries of 16 elements.
pub(super) fn piece(size: usize, n: usize, i: usize) -> (usize, usize) {
    let bound = |i: usize| if i == n { size } else { size * i / n / 16 * 16 };
    (bound(i), bound(i + 1))
}

/// `c = alpha·a·b + beta·c`, in parallel.
pub(super) fn multiply<T: External>(
    alpha: T,
    a: Matrix<T>,
    b: Matrix<T>,
    beta: Option<T>,
    c: Matrix<T>,
) -> Result<()> {
    let threads = if in_parallel_region() { 1 } else { num_threads() };
    let (down, across) = pieces(c.rows, c.cols, a.cols, threads);
    parallel_for(0, down * across, 1, &|begin, end| {
        for i in begin..end {
            let (row, row_end) = piece(c.rows, down, i / across);
            let (col, col_end) = piece(c.cols, across, i % across);
            T::gemm(
                alpha,
                a.block(row, row_end - row, 0, a.cols),
                b.block(0, b.rows, col, col_end - col),
                beta,
                c.block(row, row_end - row, col, col_end - col),
            );
        }
    })
}
