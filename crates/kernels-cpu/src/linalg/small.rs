//! Products so small that calling anything would cost more than computing them.

use c10::Element;

use super::element::{Accumulator, LinalgElement};
use super::matrix::Matrix;
use crate::vec::tiered;

/// The largest rows, columns and depth.
pub(super) const MAX: usize = 16;

/// Whether [`small`] takes a product.
pub(super) fn is_small(rows: usize, cols: usize, depth: usize) -> bool {
    rows <= MAX && cols <= MAX && depth <= MAX
}

tiered! {
    /// `c = alpha·a·b + beta·c`, reading `c` only if `beta` is given.
    pub(super) fn small<T, S>(alpha: S, a: Matrix<T>, b: Matrix<T>, beta: Option<S>, c: Matrix<T>)
    where { T: LinalgElement<Sum = S>, S: Accumulator } => A {
        if b.cols <= 4 {
            product::<A, T, S, 4>(alpha, a, b, beta, c);
        } else if b.cols <= 8 {
            product::<A, T, S, 8>(alpha, a, b, beta, c);
        } else {
            product::<A, T, S, 16>(alpha, a, b, beta, c);
        }
    }
}

#[inline(always)]
fn product<A: crate::vec::math::Arith, T: LinalgElement<Sum = S>, S: Accumulator, const NR: usize>(
    alpha: S,
    a: Matrix<T>,
    b: Matrix<T>,
    beta: Option<S>,
    c: Matrix<T>,
) {
    const MR: usize = 4;
    let zero = <S as Element>::ZERO;
    let mut right = [[zero; NR]; MAX];
    for (p, right) in right.iter_mut().enumerate().take(b.rows) {
        for (j, right) in right.iter_mut().enumerate().take(b.cols) {
            // SAFETY: an index within the matrix that the caller vouches for.
            *right = unsafe { b.get(p, j) }.widen();
        }
    }
    for first in (0..a.rows).step_by(MR) {
        let rows = MR.min(a.rows - first);
        let mut left = [[zero; MR]; MAX];
        for i in 0..rows {
            for (p, left) in left.iter_mut().enumerate().take(a.cols) {
                // SAFETY: as above.
                left[i] = unsafe { a.get(first + i, p) }.widen();
            }
        }
        let mut sums = [[zero; NR]; MR];
        for (left, right) in left.iter().zip(&right).take(a.cols) {
            for i in 0..MR {
                for j in 0..NR {
                    sums[i][j] = left[i].mul_add::<A>(right[j], sums[i][j]);
                }
            }
        }
        for (i, sums) in sums.iter().enumerate().take(rows) {
            for (j, &sum) in sums.iter().enumerate().take(c.cols) {
                let mut value = alpha.times(sum);
                if let Some(beta) = beta {
                    // SAFETY: as above.
                    value = value.plus(beta.times(unsafe { c.get(first + i, j) }.widen()));
                }
                // SAFETY: as above; the caller gives the output to this call alone.
                unsafe { c.set(first + i, j, T::narrow(value)) };
            }
        }
    }
}
