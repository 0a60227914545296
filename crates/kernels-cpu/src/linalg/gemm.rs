//! `C = alpha·A·B + beta·C`, by the algorithm that suits the shape.

use c10::{Element, Result};
use iter::parallel::{parallel_for, GRAIN_SIZE};

use super::blocked;
use super::element::{Accumulator, LinalgElement};
use super::gemv::gemv;
use super::matrix::Matrix;
use super::small::{is_small, small};

/// Writes `alpha·sum + beta·c` to an element of `c`, which is read only if `beta` is given.
#[inline(always)]
pub(super) fn store<T: LinalgElement>(
    alpha: T::Sum,
    sum: T::Sum,
    beta: Option<T::Sum>,
    c: Matrix<T>,
    row: usize,
    col: usize,
) {
    let mut value = alpha.times(sum);
    if let Some(beta) = beta {
        // SAFETY: an index within the output.
        value = value.plus(beta.times(unsafe { c.get(row, col) }.widen()));
    }
    // SAFETY: as above; each element belongs to one caller.
    unsafe { c.set(row, col, T::narrow(value)) };
}

/// `c = alpha·a·b + beta·c`; without `beta`, `c` is written without being read, so it may hold anything.
///
/// `a` is `c.rows × k`, `b` is `k × c.cols`; `c` overlaps neither, nor itself.
pub(crate) fn gemm<T: LinalgElement>(
    alpha: T::Sum,
    a: Matrix<T>,
    b: Matrix<T>,
    beta: Option<T::Sum>,
    c: Matrix<T>,
) -> Result<()> {
    if c.rows == 0 || c.cols == 0 {
        return Ok(());
    }
    if a.cols == 0 || alpha == <T::Sum as Element>::ZERO {
        return scale(beta, c);
    }
    if is_small(c.rows, c.cols, a.cols) {
        small::<T, T::Sum>(alpha, a, b, beta, c);
        return Ok(());
    }
    if c.cols == 1 {
        return gemv(alpha, a, b.transposed(), beta, c.transposed());
    }
    if c.rows == 1 {
        return gemv(alpha, b.transposed(), a, beta, c);
    }
    blocked::multiply(alpha, a, b, beta, c)
}

/// `c = beta·c`: what is left of a product without terms.
fn scale<T: LinalgElement>(beta: Option<T::Sum>, c: Matrix<T>) -> Result<()> {
    let zero = <T::Sum as Element>::ZERO;
    parallel_for(0, c.rows, (GRAIN_SIZE / c.cols).max(1), &|begin, end| {
        for row in begin..end {
            for col in 0..c.cols {
                store(zero, zero, beta, c, row, col);
            }
        }
    })
}
