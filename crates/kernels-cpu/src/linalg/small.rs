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
        if T::SUMS_IN_ITSELF && b.col_stride == 1 && b.cols == NR {
            // SAFETY: a dense row of the matrix that the caller vouches for; `T` is `S`.
            *right = unsafe { b.at(p, 0).cast::<[S; NR]>().read_unaligned() };
        } else {
            let mut from = b.at(p, 0);
            for right in right.iter_mut().take(b.cols) {
                // SAFETY: an element of the row.
                *right = unsafe { *from }.widen();
                from = from.wrapping_offset(b.col_stride);
            }
        }
    }
    let plain = beta.is_none() && alpha == <S as Element>::ONE && T::SUMS_IN_ITSELF;
    for first in (0..a.rows).step_by(MR) {
        let rows = MR.min(a.rows - first);
        // Rows past the last repeat it; their sums are not stored.
        let mut left: [*mut T; MR] = std::array::from_fn(|i| a.at(first + i.min(rows - 1), 0));
        let mut sums = [[zero; NR]; MR];
        for right in right.iter().take(a.cols) {
            for i in 0..MR {
                // SAFETY: an element of the row.
                let factor = unsafe { *left[i] }.widen();
                left[i] = left[i].wrapping_offset(a.col_stride);
                for j in 0..NR {
                    sums[i][j] = factor.mul_add::<A>(right[j], sums[i][j]);
                }
            }
        }
        for (i, sums) in sums.iter().enumerate().take(rows) {
            if plain && c.col_stride == 1 && c.cols == NR {
                // SAFETY: a dense row of the output, which the caller gives to this call alone; `T` is `S`.
                unsafe { c.at(first + i, 0).cast::<[S; NR]>().write_unaligned(*sums) };
                continue;
            }
            for (j, &sum) in sums.iter().enumerate().take(c.cols) {
                let mut value = alpha.times(sum);
                if let Some(beta) = beta {
                    // SAFETY: an element of the output.
                    value = value.plus(beta.times(unsafe { c.get(first + i, j) }.widen()));
                }
                // SAFETY: as above.
                unsafe { c.set(first + i, j, T::narrow(value)) };
            }
        }
    }
}
