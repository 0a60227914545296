//! `_scaled_dot_product_flash_attention_for_cpu`. See Note [Attention in blocks].

use c10::{Element, Result, Tensor};
use iter::parallel::parallel_for_result;

use super::block::{seen_keys, Block};
use super::operands::{
    dense, lanes_for, query_block, transposed, widened, widened_len, with_dense_rows, write_rows, Attended,
    Heads, KEYS, PIECE,
};
use super::scores::{absorb, scale_rows};
use super::single::{add_weighted, scores_of_query};
use crate::dispatch::dispatch;
use crate::linalg::{gemm, try_with_scratch, Matrix};
use crate::registration::register;
use crate::vec::math::Real;

pub(super) fn register() {
    register! {
        flash_attention_kernel:
            fn(&Tensor, &Tensor, &Tensor, f64, bool, Option<&Tensor>, Option<f64>, &[Tensor]);
    }
}

/// The factor of scores.
pub(super) fn scale_or_default(scale: Option<f64>, width: usize) -> f64 {
    scale.unwrap_or_else(|| 1.0 / (width as f64).sqrt())
}

/// A mask as four dimensions: one of two is the same for every batch and head.
pub(super) fn mask_of<T: Element>(mask: &Tensor) -> Result<Heads<T>> {
    if mask.dim() == 4 {
        Heads::of(mask)
    } else {
        Heads::with_dims(mask, [None, None, Some(0), Some(1)])
    }
}

/// `outs`: the result, and the logarithms of the sums of exponentials.
#[allow(clippy::too_many_arguments)] // The operator has that many.
fn flash_attention_kernel(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    _dropout_p: f64,
    is_causal: bool,
    mask: Option<&Tensor>,
    scale: Option<f64>,
    outs: &[Tensor],
) -> Result<()> {
    let [query, key, value] = [with_dense_rows(query)?, with_dense_rows(key)?, with_dense_rows(value)?];
    dispatch!(query.dtype(), "flash_attention", FLOATING_AND_HALF, |T| {
        let query = Heads::<T>::of(&query)?;
        Forward {
            query,
            key: Heads::of(&key)?,
            value: Heads::of(&value)?,
            mask: mask.map(mask_of).transpose()?,
            out: Heads::of(&outs[0])?,
            log_sums: log_sums_of(&outs[1])?,
            scale: <<T as Attended>::Score as Real>::of(scale_or_default(scale, query.width())),
            is_causal,
        }
        .run(outs[0].size(0)? as usize)
    })
}

/// The logarithms of the sums of exponentials: a number per query.
pub(super) fn log_sums_of<S: Element>(tensor: &Tensor) -> Result<Heads<S>> {
    Heads::with_dims(tensor, [Some(0), Some(1), Some(2), None])
}

struct Forward<T: Attended> {
    query: Heads<T>,
    key: Heads<T>,
    value: Heads<T>,
    mask: Option<Heads<T>>,
    out: Heads<T>,
    log_sums: Heads<T::Score>,
    scale: T::Score,
    is_causal: bool,
}

impl<T: Attended> Forward<T> {
    fn run(&self, batches: usize) -> Result<()> {
        let (queries, keys, width) = (self.query.length(), self.key.length(), self.query.width());
        let (heads, high) = (self.query.heads, query_block(queries));
        let blocks = queries.div_ceil(high);
        let work = high * keys.max(1) * width.max(1) * 2;
        parallel_for_result(0, batches * heads * blocks, (PIECE / work).max(1), &|begin, end| {
            (begin..end).try_for_each(|i| {
                let (batch, head, first) = (i / blocks / heads, i / blocks % heads, i % blocks * high);
                self.block(batch, head, first, high.min(queries - first))
            })
        })
    }

    /// One block of queries.
    fn block(&self, batch: usize, head: usize, first_query: usize, queries: usize) -> Result<()> {
        let (lanes, width) = (lanes_for(queries), self.query.width());
        let shared = self.query.heads / self.key.heads;
        let query = self.query.head(batch, head).block(first_query, queries, 0, width);
        let key = self.key.head(batch, head / shared);
        let value = self.value.head(batch, head / shared);
        let mask = self.mask.map(|mask| mask.head(batch, head));
        // SAFETY: the meta function compared the mask's sizes, and nobody writes to it.
        let seen = unsafe { seen_keys(mask, self.is_causal, (first_query, queries), key.rows) };
        let high = KEYS.min(seen.len());
        let wide = widened_len::<T>(high, width);
        let panels_len = (high.max(width)) * lanes;
        let lens = [width * lanes, panels_len, high * lanes, queries * width, wide, wide, 3 * lanes];
        try_with_scratch::<T::Score, _>(lens.iter().sum(), |scratch| {
            let [columns, panels, scores, sums, keys_buffer, values_buffer, state] = split(scratch, lens);
            let (max, state) = state.split_at_mut(lanes);
            let (sum, shrink) = state.split_at_mut(lanes);
            max.fill(-T::Score::INFINITY);
            sum.fill(<T::Score as Element>::ZERO);
            sums.fill(<T::Score as Element>::ZERO);
            // SAFETY: rows of the query, which nobody writes to.
            unsafe { transposed(query, lanes, panels, columns) };
            for first_key in seen.clone().step_by(KEYS) {
                let keys = KEYS.min(seen.end - first_key);
                let block = Block { first_query, queries, first_key, keys, lanes, is_causal: self.is_causal };
                let scores = &mut scores[..keys * lanes];
                // SAFETY: rows of keys and values, dense ones, which nobody writes to.
                let (key, value) = unsafe {
                    (
                        widened(key.block(first_key, keys, 0, width), keys_buffer),
                        widened(value.block(first_key, keys, 0, width), values_buffer),
                    )
                };
                self.scores(block, key, columns, scores)?;
                if let Some(mask) = mask {
                    // SAFETY: as above.
                    unsafe { block.add_mask(mask, scores, panels) };
                }
                block.hide_later_keys(scores);
                absorb(scores, block, max, sum, shrink);
                let is_first = first_key == seen.start;
                let one = <T::Score as Element>::ONE;
                if !is_first && width > 0 && shrink.iter().any(|&factor| factor != one) {
                    scale_rows(sums, width, shrink);
                }
                self.attend(block, value, scores, is_first, sums)?;
            }
            self.finish(batch, head, first_query, width, (sums, max, sum));
            Ok(())
        })?
    }

    /// Products of a block's keys with its queries, which are the columns of a matrix, times the scale.
    fn scores(
        &self,
        block: Block,
        key: Matrix<T::Score>,
        columns: &mut [T::Score],
        scores: &mut [T::Score],
    ) -> Result<()> {
        let (lanes, width) = (block.lanes, key.cols);
        if lanes == 1 {
            // SAFETY: the block's rows, dense ones, which nobody writes to.
            unsafe { scores_of_query(key, columns, self.scale, scores) };
            return Ok(());
        }
        let (columns, scores) = (dense(columns, width, lanes), dense(scores, block.keys, lanes));
        block.strips().try_for_each(|strip| {
            let columns = columns.block(0, width, strip.first, strip.lanes);
            let scores = scores.block(0, strip.keys, strip.first, strip.lanes);
            gemm(self.scale, key.block(0, strip.keys, 0, width), columns, None, scores)
        })
    }

    /// Adds a block's values by their weights to the sums, which hold nothing before the first one.
    fn attend(
        &self,
        block: Block,
        value: Matrix<T::Score>,
        weights: &mut [T::Score],
        is_first: bool,
        sums: &mut [T::Score],
    ) -> Result<()> {
        let (one, width) = (<T::Score as Element>::ONE, value.cols);
        if block.lanes == 1 {
            // SAFETY: the block's rows, dense ones, which nobody writes to.
            unsafe { add_weighted(value, weights, sums) };
            return Ok(());
        }
        let weights = dense(weights, block.keys, block.lanes);
        let sums = dense(sums, block.queries, width);
        block.strips().try_for_each(|strip| {
            let weights = weights.block(0, strip.keys, strip.first, strip.queries).transposed();
            let sums = sums.block(strip.first, strip.queries, 0, width);
            gemm(one, weights, value.block(0, strip.keys, 0, width), (!is_first).then_some(one), sums)
        })
    }

    /// Writes what a block of queries attends to, and the logarithms of its sums.
    fn finish(
        &self,
        batch: usize,
        head: usize,
        first: usize,
        width: usize,
        (sums, max, sum): (&mut [T::Score], &mut [T::Score], &mut [T::Score]),
    ) {
        let zero = <T::Score as Element>::ZERO;
        let log_sums = self.log_sums.head(batch, head);
        let queries = self.query.length().min(first + query_block(self.query.length())) - first;
        for (i, (max, sum)) in max.iter().zip(sum.iter_mut()).enumerate().take(queries) {
            // A query that sees nothing has zeros, here and in its gradient.
            let is_blind = *sum == zero;
            let log_sum = if is_blind {
                zero
            } else {
                *max + <T::Score as Element>::from_f64(Element::to_f64(*sum).ln())
            };
            // SAFETY: an element of an output, which belongs to this piece alone.
            unsafe { log_sums.set(first + i, 0, log_sum) };
            *sum = if is_blind { zero } else { <T::Score as Element>::ONE / *sum };
        }
        if width > 0 {
            scale_rows(sums, width, sum);
        }
        // SAFETY: rows of an output, which belong to this piece alone.
        unsafe { write_rows(sums, self.out.head(batch, head).block(first, queries, 0, width)) };
    }
}

/// Cuts a buffer into parts of these lengths.
pub(super) fn split<S, const N: usize>(mut buffer: &mut [S], lens: [usize; N]) -> [&mut [S]; N] {
    lens.map(|len| {
        let (part, rest) = std::mem::take(&mut buffer).split_at_mut(len);
        buffer = rest;
        part
    })
}
