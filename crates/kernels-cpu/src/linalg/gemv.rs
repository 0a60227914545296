//! Matrix times vector: bound by the bandwidth of reading the matrix once.

use c10::{Element, Result};
use iter::parallel::{in_parallel_region, num_threads, parallel_for, GRAIN_SIZE};

use super::dot::{dot_dense, gather, BLOCK};
use super::element::{Accumulator, LinalgElement};
use super::gemm::store;
use super::matrix::Matrix;
use crate::vec::tiered;

/// Columns that are read side by side: one alone does not keep the memory busy.
const ABREAST: usize = 4;
/// The most sums that the column-wise form keeps, and their bytes: half of the first cache level.
const SUMS: usize = 4096;
const SUMS_BYTES: usize = 16 << 10;

/// `y = alpha·A·x + beta·y`; `x` and `y` are matrices of one row.
///
/// How rows are cut into pieces does not show in their sums.
pub(super) fn gemv<T: LinalgElement>(
    alpha: T::Sum,
    a: Matrix<T>,
    x: Matrix<T>,
    beta: Option<T::Sum>,
    y: Matrix<T>,
) -> Result<()> {
    let rows_per_piece = (4 * GRAIN_SIZE / a.cols.max(1)).max(1);
    if a.row_stride == 1 && a.col_stride != 1 {
        // Runs of every column as long as the threads allow, for the sake of prefetching.
        let threads = if in_parallel_region() { 1 } else { num_threads() };
        let most = SUMS.min(SUMS_BYTES / std::mem::size_of::<T::Sum>());
        let piece =
            a.rows.div_ceil(threads).next_multiple_of(64).clamp(256, most).max(rows_per_piece.min(most));
        return parallel_for(0, a.rows, piece, &|begin, end| {
            by_columns(alpha, a, x, beta, y, begin, end - begin)
        });
    }
    let mut dense = c10::try_filled(<T::Sum as Element>::ZERO, x.cols)?;
    gather(x, 0, &mut dense);
    parallel_for(0, a.rows, rows_per_piece, &|begin, end| {
        for row in begin..end {
            store(alpha, sum_of_row(a.block(row, 1, 0, a.cols), &dense), beta, y, 0, row);
        }
    })
}

/// The inner product of a row with `x`.
fn sum_of_row<T: LinalgElement>(row: Matrix<T>, x: &[T::Sum]) -> T::Sum {
    if T::SUMS_IN_ITSELF && row.col_stride == 1 {
        // SAFETY: a dense row of the matrix; `Sum` is the same type as `T`.
        return dot_dense(unsafe { std::slice::from_raw_parts(row.data.cast::<T::Sum>(), row.cols) }, x);
    }
    let mut buffer = [<T::Sum as Element>::ZERO; BLOCK];
    x.chunks(BLOCK).enumerate().fold(<T::Sum as Element>::ZERO, |sum, (i, x)| {
        let buffer = &mut buffer[..x.len()];
        gather(row, i * BLOCK, buffer);
        sum.plus(dot_dense(buffer, x))
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
    let mut sums = [<T::Sum as Element>::ZERO; SUMS];
    let sums = &mut sums[..count];
    // SAFETY: an element of the vector.
    let factor = |col: usize| unsafe { x.get(0, col) }.widen();
    // SAFETY: `count` dense elements of a column.
    let column = |col: usize| unsafe { std::slice::from_raw_parts(a.at(first, col).cast_const(), count) };
    let mut col = 0;
    if T::WIDENS_IN_LOOPS {
        while col + ABREAST <= a.cols {
            let columns = std::array::from_fn(|i| column(col + i));
            add_columns(sums, columns, std::array::from_fn(|i| factor(col + i)));
            col += ABREAST;
        }
    }
    let mut buffer = [<T::Sum as Element>::ZERO; BLOCK];
    for col in col..a.cols {
        for (sums, column) in sums.chunks_mut(BLOCK).zip(column(col).chunks(BLOCK)) {
            let buffer = &mut buffer[..column.len()];
            T::widen_slice(column, buffer);
            add_column(sums, buffer, factor(col));
        }
    }
    for (i, &sum) in sums.iter().enumerate() {
        store(alpha, sum, beta, y, 0, first + i);
    }
}

tiered! {
    fn add_columns<T, S>(sums: &mut [S], columns: [&[T]; ABREAST], factors: [S; ABREAST])
    where { T: LinalgElement<Sum = S>, S: Accumulator } => A {
        let [a, b, c, d] = columns;
        for ((((sum, &a), &b), &c), &d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            let (a, b, c, d) = (a.widen(), b.widen(), c.widen(), d.widen());
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
