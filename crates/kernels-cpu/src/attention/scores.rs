//! Blocks of scores: masks, and the softmax along their columns.

use c10::Element;

use super::operands::{Attended, Score, LANES};
use crate::linalg::{pack, Matrix};
use crate::vec::math::exp;
use crate::vec::tiered;

/// A block of keys and queries: which keys and queries they are.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) first_query: usize,
    pub(super) queries: usize,
    pub(super) first_key: usize,
    pub(super) keys: usize,
    /// Columns of the scores.
    pub(super) lanes: usize,
}

impl Block {
    /// Adds a head's mask, a row per query, to the scores. `panels` has room for a block of scores.
    ///
    /// # Safety
    /// The mask has an element for every query and key, and nobody writes to it.
    pub(super) unsafe fn add_mask<T: Attended>(
        self,
        mask: Matrix<T>,
        scores: &mut [T::Score],
        panels: &mut [T::Score],
    ) {
        let part = Matrix {
            data: mask.at(self.first_query, self.first_key),
            rows: self.queries,
            cols: self.keys,
            ..mask
        };
        if self.lanes == 1 {
            for (key, score) in scores.iter_mut().enumerate().take(self.keys) {
                // SAFETY: an element of the mask, as the caller promises.
                *score = *score + unsafe { part.get(0, key) }.widen();
            }
            return;
        }
        let panels = &mut panels[..self.keys * self.lanes];
        pack(part, LANES, panels);
        add_panels(scores, panels, self.lanes, self.keys);
    }

    /// Takes keys that come after a query from it.
    pub(super) fn hide_later_keys<S: Score>(self, scores: &mut [S]) {
        for (key, row) in (self.first_key..).zip(scores.chunks_exact_mut(self.lanes).take(self.keys)) {
            let earlier = key.saturating_sub(self.first_query).min(self.lanes);
            row[..earlier].fill(-S::INFINITY);
        }
    }
}

#[inline(always)]
fn part<S: Copy>(row: &[S], first: usize) -> [S; LANES] {
    std::array::from_fn(|i| row[first + i])
}

/// The larger one; the first if the second is not a number.
#[inline(always)]
fn larger<S: Score>(a: S, b: S) -> S {
    if b > a {
        b
    } else {
        a
    }
}

/// What scores are taken relative to: their maximum, if there is a score at all.
#[inline(always)]
fn base<S: Score>(max: S) -> S {
    if max == -S::INFINITY {
        <S as Element>::ZERO
    } else {
        max
    }
}

tiered! {
    fn add_panels<S>(scores: &mut [S], panels: &[S], lanes: usize, keys: usize) where { S: Score } => A {
        let _ = std::marker::PhantomData::<A>;
        for (i, panel) in panels.chunks_exact(keys * LANES).enumerate() {
            for (row, mask) in scores.chunks_exact_mut(lanes).zip(panel.chunks_exact(LANES)) {
                for (score, &mask) in row[i * LANES..][..LANES].iter_mut().zip(mask) {
                    *score = *score + mask;
                }
            }
        }
    }

    /// A block of scores becomes exponentials relative to the maximum so far, which are added to the sums; `shrink` is
    /// what earlier exponentials are to be multiplied by.
    fn absorb_columns<S>(scores: &mut [S], lanes: usize, max: &mut [S], sum: &mut [S], shrink: &mut [S])
    where { S: Score } => A {
        for first in (0..lanes).step_by(LANES) {
            let old = part(max, first);
            let mut new = old;
            for row in scores.chunks_exact(lanes) {
                let row = &row[first..first + LANES];
                for i in 0..LANES {
                    new[i] = larger(new[i], row[i]);
                }
            }
            let base: [S; LANES] = std::array::from_fn(|i| base(new[i]));
            let mut total = [<S as Element>::ZERO; LANES];
            for row in scores.chunks_exact_mut(lanes) {
                let row = &mut row[first..first + LANES];
                for i in 0..LANES {
                    let value = exp::<A, S>(row[i] - base[i]);
                    row[i] = value;
                    total[i] = total[i] + value;
                }
            }
            for i in 0..LANES {
                let factor = exp::<A, S>(old[i] - base[i]);
                shrink[first + i] = factor;
                sum[first + i] = sum[first + i] * factor + total[i];
                max[first + i] = new[i];
            }
        }
    }

    /// The same for the scores of one query.
    fn absorb_column<S>(scores: &mut [S], max: &mut S, sum: &mut S, shrink: &mut S) where { S: Score } => A {
        let (rows, rest) = scores.as_chunks_mut::<LANES>();
        let mut highest = [*max; LANES];
        for row in rows.iter() {
            for i in 0..LANES {
                highest[i] = larger(highest[i], row[i]);
            }
        }
        let mut new = *max;
        for &score in highest.iter().chain(rest.iter()) {
            new = larger(new, score);
        }
        let base = base(new);
        let mut totals = [<S as Element>::ZERO; LANES];
        for row in rows {
            for i in 0..LANES {
                let value = exp::<A, S>(row[i] - base);
                row[i] = value;
                totals[i] = totals[i] + value;
            }
        }
        for (total, score) in totals.iter_mut().zip(rest) {
            *score = exp::<A, S>(*score - base);
            *total = *total + *score;
        }
        let mut total = <S as Element>::ZERO;
        for value in totals {
            total = total + value;
        }
        *shrink = exp::<A, S>(*max - base);
        *sum = *sum * *shrink + total;
        *max = new;
    }

    /// Multiplies every row by its factor.
    pub(super) fn scale_rows<S>(rows: &mut [S], width: usize, factors: &[S]) where { S: Score } => A {
        let _ = std::marker::PhantomData::<A>;
        for (row, &factor) in rows.chunks_exact_mut(width).zip(factors) {
            for value in row {
                *value = *value * factor;
            }
        }
    }

    /// Scores become weights: their exponentials relative to the logarithm of the sum of a query's.
    pub(super) fn weights<S>(scores: &mut [S], lanes: usize, log_sum: &[S]) where { S: Score } => A {
        for row in scores.chunks_exact_mut(lanes) {
            for (score, &log_sum) in row.iter_mut().zip(log_sum) {
                *score = exp::<A, S>(*score - log_sum);
            }
        }
    }

    /// The gradients of weights become those of scores before the factor: `weight · (gradient − mean) · scale`.
    pub(super) fn score_gradients<S>(gradients: &mut [S], weights: &[S], lanes: usize, mean: &[S], scale: S)
    where { S: Score } => A {
        let _ = std::marker::PhantomData::<A>;
        for (gradients, weights) in gradients.chunks_exact_mut(lanes).zip(weights.chunks_exact(lanes)) {
            for ((gradient, &weight), &mean) in gradients.iter_mut().zip(weights).zip(mean) {
                *gradient = weight * (*gradient - mean) * scale;
            }
        }
    }

    /// The sum of products of two rows.
    pub(super) fn dot<S>(a: &[S], b: &[S]) -> S where { S: Score } => A {
        let mut sums = [<S as Element>::ZERO; LANES];
        let (a_rows, a_rest) = a.as_chunks::<LANES>();
        let (b_rows, b_rest) = b.as_chunks::<LANES>();
        for (a, b) in a_rows.iter().zip(b_rows) {
            for i in 0..LANES {
                sums[i] = a[i].fma::<A>(b[i], sums[i]);
            }
        }
        for ((sum, &a), &b) in sums.iter_mut().zip(a_rest).zip(b_rest) {
            *sum = a.fma::<A>(b, *sum);
        }
        let mut total = <S as Element>::ZERO;
        for sum in sums {
            total = total + sum;
        }
        total
    }
}

/// A block of scores becomes exponentials relative to the maximum so far, which are added to the sums; `shrink` is what
/// earlier exponentials are to be multiplied by.
pub(super) fn absorb<S: Score>(
    scores: &mut [S],
    lanes: usize,
    max: &mut [S],
    sum: &mut [S],
    shrink: &mut [S],
) {
    if lanes == 1 {
        absorb_column(scores, &mut max[0], &mut sum[0], &mut shrink[0]);
    } else {
        absorb_columns(scores, lanes, max, sum, shrink);
    }
}
