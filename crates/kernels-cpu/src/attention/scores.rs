//! The softmax along the columns of a block of scores, and its gradient.

use c10::Element;

use super::block::Block;
use super::operands::{Score, LANES};
use crate::vec::math::exp_of_negative as exp;
use crate::vec::tiered;

/// The sum of a register's numbers.
#[inline(always)]
pub(super) fn total<S: Score>(mut values: [S; LANES]) -> S {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            values[i] = values[i] + values[half + i];
        }
        half /= 2;
    }
    values[0]
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
    /// Adds numbers, packed in panels of [`LANES`] columns.
    pub(super) fn add_panels<S>(scores: &mut [S], panels: &[S], lanes: usize, keys: usize) where { S: Score } => A {
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
    fn absorb_columns<S>(scores: &mut [S], block: Block, max: &mut [S], sum: &mut [S], shrink: &mut [S])
    where { S: Score } => A {
        let lanes = block.lanes;
        for first in (0..lanes).step_by(LANES) {
            let (scores, later) = scores.split_at_mut(block.keys_of_lanes(first) * lanes);
            for row in later.chunks_exact_mut(lanes) {
                row[first..first + LANES].fill(<S as Element>::ZERO);
            }
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
        *shrink = exp::<A, S>(*max - base);
        *sum = *sum * *shrink + total(totals);
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
                // Rounding aside, no weight is above one.
                let relative = *score - log_sum;
                let zero = <S as Element>::ZERO;
                *score = exp::<A, S>(if relative > zero { zero } else { relative });
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
        total(sums)
    }
}

/// A block of scores becomes exponentials relative to the maximum so far, which are added to the sums; `shrink` is what
/// earlier exponentials are to be multiplied by.
pub(super) fn absorb<S: Score>(
    scores: &mut [S],
    block: Block,
    max: &mut [S],
    sum: &mut [S],
    shrink: &mut [S],
) {
    if block.lanes == 1 {
        absorb_column(scores, &mut max[0], &mut sum[0], &mut shrink[0]);
    } else {
        absorb_columns(scores, block, max, sum, shrink);
    }
}
