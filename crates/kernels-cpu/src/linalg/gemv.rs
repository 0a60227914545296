//! Matrix times vector: bound by the bandwidth of reading the matrix once.

use c10::{Element, Result};
use iter::parallel::{parallel_for, GRAIN_SIZE};

use super::dot::{dot, gather};
use super::element::{Accumulator, LinalgElement};
use super::gemm::store;
use super::matrix::Matrix;
use crate::vec::tiered;

/// Sums that the column-wise form keeps in the first cache level.
const SUMS: usize = 1024;

/// `y = alpha·A·x + beta·y`; `x` and `y` are matrices of one row.
pub(super) fn gemv<T: LinalgElement>(
    alpha: T::Sum,
    a: Matrix<T>,
    x: Matrix<T>,
    beta: Option<T::Sum>,
    y: Matrix<T>,
) -> Result<()> {
    // The pieces are whole rows, so a row's sum does not depend on them.
    let rows_per_piece = (4 * GRAIN_SIZE / a.cols.max(1)).max(1);
    if a.row_stride == 1 && a.col_stride != 1 {
        // Long runs of every column, for the sake of prefetching; still several pieces.
        let piece = (a.rows / 8).max(rows_per_piece).next_multiple_of(64).clamp(256, SUMS);
        return parallel_for(0, a.rows, piece, &|begin, end| {
            for first in (begin..end).step_by(SUMS) {
                by_columns(alpha, a, x, beta, y, first, SUMS.min(end - first));
            }
        });
    }
    let mut dense = Vec::new();
    let x = if x.col_stride == 1 || !T::SUMS_IN_ITSELF {
        x
    } else {
        dense.extend((0..x.cols).map(|i| {
            // SAFETY: an element of the vector.
            unsafe { x.get(0, i) }
        }));
        Matrix { data: dense.as_mut_ptr(), row_stride: 0, col_stride: 1, ..x }
    };
    parallel_for(0, a.rows, rows_per_piece, &|begin, end| {
        for row in begin..end {
            let sum = dot(a.block(row, 1, 0, a.cols), x, 0, a.cols);
            store(alpha, sum, beta, y, 0, row);
        }
    })
}

/// Rows `first..first + count` of a matrix whose columns are dense.
fn by_columns<T: LinalgElement>(
    alpha: T::Sum,
    a: Matrix<T>,
    x: Matrix<T>,
    beta: Option<T::Sum>,
    y: Matrix<T>,
    first: usize,
    count: usize,
) {
    let zero = <T::Sum as Element>::ZERO;
    let mut sums = [zero; SUMS];
    let mut columns = [[zero; SUMS]; 4];
    let sums = &mut sums[..count];
    for group in (0..a.cols).step_by(4) {
        let wide = 4.min(a.cols - group);
        let factors: [T::Sum; 4] = std::array::from_fn(|i| {
            // SAFETY: an element of the vector.
            if i < wide {
                // SAFETY: an element of the vector.
                unsafe { x.get(0, group + i) }.widen()
            } else {
                zero
            }
        });
        let column = |i: usize| a.transposed().block(group + i, 1, first, count);
        if T::SUMS_IN_ITSELF && wide == 4 {
            // SAFETY: `count` dense elements of a column; `Sum` is the same type as `T`.
            let slice = |i| unsafe { std::slice::from_raw_parts(column(i).data.cast::<T::Sum>(), count) };
            add_columns(sums, [slice(0), slice(1), slice(2), slice(3)], factors);
        } else {
            for (i, buffer) in columns.iter_mut().enumerate().take(wide) {
                gather(column(i), 0, &mut buffer[..count]);
            }
            // Columns beyond the last may hold anything from before: they must not meet a factor, even zero.
            for (buffer, &factor) in columns.iter().zip(&factors).take(wide) {
                add_column(sums, &buffer[..count], factor);
            }
        }
    }
    for (i, &sum) in sums.iter().enumerate() {
        store(alpha, sum, beta, y, 0, first + i);
    }
}

tiered! {
    fn add_columns<S>(sums: &mut [S], columns: [&[S]; 4], factors: [S; 4]) where { S: Accumulator } => A {
        let [a, b, c, d] = columns;
        for ((((sum, &a), &b), &c), &d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            let partial = b.mul_add::<A>(factors[1], a.mul_add::<A>(factors[0], *sum));
            *sum = d.mul_add::<A>(factors[3], c.mul_add::<A>(factors[2], partial));
        }
    }
    fn add_column<S>(sums: &mut [S], column: &[S], factor: S) where { S: Accumulator } => A {
        for (sum, &a) in sums.iter_mut().zip(column) {
            *sum = a.mul_add::<A>(factor, *sum);
        }
    }
}
