//! Products for a single query, whose keys and values come from memory once: what counts is that rows are read at its speed.

use c10::Element;

use super::operands::{row, Score, LANES};
use super::scores::total;
use crate::linalg::Matrix;
use crate::vec::tiered;

/// Registers of sums that are kept at a time.
const REGISTERS: usize = 4;
const COLUMNS: usize = REGISTERS * LANES;

tiered! {
    /// The product of every row with the query, times the factor.
    fn row_products<S>(rows: Matrix<S>, query: &[S], factor: S, scores: &mut [S]) where { S: Score } => A {
        let (query, query_rest) = query.as_chunks::<LANES>();
        for (i, score) in scores.iter_mut().enumerate() {
            // SAFETY: the caller of `scores_of_query` vouches for the rows.
            let (row, row_rest) = unsafe { row(rows, i) }.as_chunks::<LANES>();
            let mut sums = [<S as Element>::ZERO; LANES];
            for (row, query) in row.iter().zip(query) {
                for j in 0..LANES {
                    sums[j] = row[j].fma::<A>(query[j], sums[j]);
                }
            }
            for ((sum, &a), &b) in sums.iter_mut().zip(row_rest).zip(query_rest) {
                *sum = a.fma::<A>(b, *sum);
            }
            *score = total(sums) * factor;
        }
    }

    /// Adds the rows, each times its weight, in parts of as many columns as registers hold.
    fn weighted_rows<S>(rows: Matrix<S>, weights: &[S], sums: &mut [S]) where { S: Score } => A {
        let (parts, rest) = sums.as_chunks_mut::<COLUMNS>();
        for (part, to) in parts.iter_mut().enumerate() {
            let mut sums = *to;
            for (i, &weight) in weights.iter().enumerate() {
                // SAFETY: the caller of `add_weighted` vouches for the rows.
                let row = unsafe { &row(rows, i)[part * COLUMNS..][..COLUMNS] };
                for j in 0..COLUMNS {
                    sums[j] = weight.fma::<A>(row[j], sums[j]);
                }
            }
            *to = sums;
        }
        if rest.is_empty() {
            return;
        }
        let first = rows.cols - rest.len();
        for (i, &weight) in weights.iter().enumerate() {
            // SAFETY: as above.
            let row = unsafe { &row(rows, i)[first..] };
            for (sum, &value) in rest.iter_mut().zip(row) {
                *sum = weight.fma::<A>(value, *sum);
            }
        }
    }
}

/// The scores of a query: its products with the keys, times the factor.
///
/// # Safety
/// The keys' rows exist, a dense one for each score, and nobody writes to them.
pub(super) unsafe fn scores_of_query<S: Score>(keys: Matrix<S>, query: &[S], factor: S, scores: &mut [S]) {
    row_products(keys, query, factor, scores);
}

/// Adds values to sums, each times its weight.
///
/// # Safety
/// The values' rows exist, a dense one for each weight and as long as the sums, and nobody writes to them.
pub(super) unsafe fn add_weighted<S: Score>(values: Matrix<S>, weights: &[S], sums: &mut [S]) {
    weighted_rows(values, weights, sums);
}
