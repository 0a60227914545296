//! `_scaled_dot_product_flash_attention_for_cpu_backward`. See Note [Attention in blocks].
//!
//! With weights `P` and what they give, `O = P·V`, the gradient of the scores is `P ∘ (dO·Vᵀ − rowsum(dO ∘ O))`, where
//! the sum of a row is that of its weights times their gradients. The weights are computed again, from the logarithms
//! that the forward pass kept.

use c10::{Element, Result, Tensor};
use iter::parallel::parallel_for_result;

use super::block::{seen_keys, Block};
use super::forward::{log_sums_of, mask_of, scale_or_default, split};
use super::operands::{
    dense, lanes_for, query_block, row, transposed, widened, widened_len, with_dense_rows, write_rows,
    Attended, Heads, KEYS, PIECE,
};
use super::scores::{dot, score_gradients, weights};
use crate::dispatch::dispatch;
use crate::linalg::{gemm, try_with_scratch, Matrix};
use crate::registration::register;
use crate::vec::math::Real;

pub(super) fn register() {
    register! {
        flash_attention_backward_kernel: fn(
            &Tensor, &Tensor, &Tensor, &Tensor, &Tensor, &Tensor, f64, bool, Option<&Tensor>, Option<f64>, &[Tensor],
        );
    }
}

/// `outs`: the gradients of query, key and value.
#[allow(clippy::too_many_arguments)] // The operator has that many.
fn flash_attention_backward_kernel(
    grad_out: &Tensor,
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    out: &Tensor,
    logsumexp: &Tensor,
    _dropout_p: f64,
    is_causal: bool,
    mask: Option<&Tensor>,
    scale: Option<f64>,
    outs: &[Tensor],
) -> Result<()> {
    let [grad_out, query, key, value, out] = [
        with_dense_rows(grad_out)?,
        with_dense_rows(query)?,
        with_dense_rows(key)?,
        with_dense_rows(value)?,
        with_dense_rows(out)?,
    ];
    dispatch!(query.dtype(), "flash_attention_backward", FLOATING_AND_HALF, |T| {
        let query_heads = Heads::<T>::of(&query)?;
        Backward {
            grad_out: Heads::of(&grad_out)?,
            query: query_heads,
            key: Heads::of(&key)?,
            value: Heads::of(&value)?,
            out: Heads::of(&out)?,
            log_sums: log_sums_of(logsumexp)?,
            mask: mask.map(mask_of).transpose()?,
            scale: <<T as Attended>::Score as Real>::of(scale_or_default(scale, query_heads.width())),
            is_causal,
            grads: [Heads::of(&outs[0])?, Heads::of(&outs[1])?, Heads::of(&outs[2])?],
        }
        .run(query.size(0)? as usize)
    })
}

struct Backward<T: Attended> {
    grad_out: Heads<T>,
    query: Heads<T>,
    key: Heads<T>,
    value: Heads<T>,
    out: Heads<T>,
    log_sums: Heads<T::Score>,
    mask: Option<Heads<T>>,
    scale: T::Score,
    is_causal: bool,
    grads: [Heads<T>; 3],
}

/// Buffers of a block of queries.
struct Queries<'a, S> {
    /// Queries and gradients of the result, transposed.
    columns: [Matrix<S>; 2],
    /// The same as rows.
    rows: [Matrix<S>; 2],
    log_sum: &'a [S],
    mean: &'a [S],
    /// The gradient of the queries.
    gradient: Matrix<S>,
}

/// Buffers of a block of scores.
struct Scores<'a, S> {
    weights: &'a mut [S],
    gradients: &'a mut [S],
    panels: &'a mut [S],
    key: &'a mut [S],
    value: &'a mut [S],
}

impl<T: Attended> Backward<T> {
    /// A piece is a head of keys and values, with all heads of queries that share it.
    fn run(&self, batches: usize) -> Result<()> {
        let (queries, keys, width) = (self.query.length(), self.key.length(), self.query.width());
        let heads = self.key.heads;
        let work = (queries * keys * width * 5).saturating_mul(self.query.heads / heads.max(1)).max(1);
        parallel_for_result(0, batches * heads, (PIECE / work).max(1), &|begin, end| {
            (begin..end).try_for_each(|i| self.head(i / heads, i % heads))
        })
    }

    fn head(&self, batch: usize, head: usize) -> Result<()> {
        let (queries, keys, width) = (self.query.length(), self.key.length(), self.query.width());
        let shared = self.query.heads / self.key.heads;
        try_with_scratch::<T::Score, _>((2 * keys).saturating_mul(width), |sums| {
            sums.fill(<T::Score as Element>::ZERO);
            let (key_sums, value_sums) = sums.split_at_mut(keys * width);
            let targets = [dense(key_sums, keys, width), dense(value_sums, keys, width)];
            let high = query_block(queries);
            for query_head in head * shared..(head + 1) * shared {
                for first in (0..queries).step_by(high) {
                    let count = high.min(queries - first);
                    self.block(batch, (head, query_head), (first, count), targets)?;
                }
            }
            // SAFETY: rows of outputs, which belong to this piece alone.
            unsafe {
                write_rows(key_sums, self.grads[1].head(batch, head));
                write_rows(value_sums, self.grads[2].head(batch, head));
            }
            Ok(())
        })?
    }

    /// One block of queries: its gradient, and what it adds to those of keys and values.
    fn block(
        &self,
        batch: usize,
        (head, query_head): (usize, usize),
        (first_query, queries): (usize, usize),
        targets: [Matrix<T::Score>; 2],
    ) -> Result<()> {
        let (lanes, width, keys) = (lanes_for(queries), self.query.width(), self.key.length());
        let rows_of = |of: &Heads<T>| of.head(batch, query_head).block(first_query, queries, 0, width);
        let (query, grad_out, out) = (rows_of(&self.query), rows_of(&self.grad_out), rows_of(&self.out));
        let mask = self.mask.map(|mask| mask.head(batch, query_head));
        // SAFETY: the meta function compared the mask's sizes, and nobody writes to it.
        let seen = unsafe { seen_keys(mask, self.is_causal, (first_query, queries), keys) };
        let high = KEYS.min(seen.len());
        let (wide, wide_keys) = (widened_len::<T>(queries, width), widened_len::<T>(high, width));
        let columns_len = width * lanes;
        let lens = [
            columns_len,
            columns_len,
            wide,
            wide,
            wide,
            2 * lanes,
            queries * width,
            high * lanes,
            high * lanes,
            high.max(width) * lanes,
            wide_keys,
            wide_keys,
        ];
        try_with_scratch::<T::Score, _>(lens.iter().sum(), |scratch| {
            let [query_columns, grad_columns, query_rows, grad_rows, out_rows, state, gradient, weights, gradients, panels, key, value] =
                split(scratch, lens);
            let (log_sum, mean) = state.split_at_mut(lanes);
            gradient.fill(<T::Score as Element>::ZERO);
            // SAFETY: rows of inputs, dense ones, which nobody writes to.
            let (rows, out) = unsafe {
                transposed(query, lanes, panels, query_columns);
                transposed(grad_out, lanes, panels, grad_columns);
                ([widened(query, query_rows), widened(grad_out, grad_rows)], widened(out, out_rows))
            };
            log_sum.fill(<T::Score as Element>::ZERO);
            mean.fill(<T::Score as Element>::ZERO);
            let log_sums = self.log_sums.head(batch, query_head);
            for i in 0..queries {
                // SAFETY: an element of an input, and rows of two, dense ones; nobody writes to them.
                unsafe {
                    log_sum[i] = log_sums.get(first_query + i, 0);
                    mean[i] = dot(row(rows[1], i), row(out, i));
                }
            }
            let of_queries = Queries {
                columns: [dense(query_columns, width, lanes), dense(grad_columns, width, lanes)],
                rows,
                log_sum,
                mean,
                gradient: dense(gradient, queries, width),
            };
            let mut of_scores = Scores { weights, gradients, panels, key, value };
            for first_key in seen.clone().step_by(KEYS) {
                let keys = KEYS.min(seen.end - first_key);
                let block = Block { first_query, queries, first_key, keys, lanes, is_causal: self.is_causal };
                let targets = targets.map(|target| target.block(first_key, keys, 0, width));
                self.keys(batch, (head, query_head), block, &of_queries, &mut of_scores, targets)?;
            }
            // SAFETY: rows of an output, which belong to this piece alone.
            unsafe { write_rows(gradient, rows_of(&self.grads[0])) };
            Ok(())
        })?
    }

    /// One block of keys.
    fn keys(
        &self,
        batch: usize,
        (head, query_head): (usize, usize),
        block: Block,
        of_queries: &Queries<'_, T::Score>,
        of_scores: &mut Scores<'_, T::Score>,
        [key_target, value_target]: [Matrix<T::Score>; 2],
    ) -> Result<()> {
        let Block { first_key, keys, lanes, .. } = block;
        let one = <T::Score as Element>::ONE;
        let width = self.query.width();
        // SAFETY: rows of keys and values, dense ones, which nobody writes to.
        let (key, value) = unsafe {
            let rows_of = |of: &Heads<T>| of.head(batch, head).block(first_key, keys, 0, width);
            (widened(rows_of(&self.key), of_scores.key), widened(rows_of(&self.value), of_scores.value))
        };
        let probabilities = &mut of_scores.weights[..keys * lanes];
        let gradients = &mut of_scores.gradients[..keys * lanes];
        let rows_before = |of: Matrix<T::Score>, keys: usize| of.block(0, keys, 0, width);
        for strip in block.strips() {
            let columns = of_queries.columns.map(|of| of.block(0, width, strip.first, strip.lanes));
            let part =
                |of: &mut [T::Score]| dense(of, keys, lanes).block(0, strip.keys, strip.first, strip.lanes);
            gemm(self.scale, rows_before(key, strip.keys), columns[0], None, part(probabilities))?;
            gemm(one, rows_before(value, strip.keys), columns[1], None, part(gradients))?;
        }
        if let Some(mask) = self.mask {
            // SAFETY: the meta function compared the mask's sizes, and nobody writes to it.
            unsafe { block.add_mask(mask.head(batch, query_head), probabilities, of_scores.panels) };
        }
        block.hide_later_keys(probabilities);
        weights(probabilities, lanes, of_queries.log_sum);
        score_gradients(gradients, probabilities, lanes, of_queries.mean, self.scale);
        for strip in block.strips() {
            let rows = of_queries.rows.map(|of| of.block(strip.first, strip.queries, 0, width));
            let part =
                |of: &mut [T::Score]| dense(of, keys, lanes).block(0, strip.keys, strip.first, strip.queries);
            let gradient = of_queries.gradient.block(strip.first, strip.queries, 0, width);
            gemm(one, part(probabilities), rows[1], Some(one), rows_before(value_target, strip.keys))?;
            gemm(one, part(gradients), rows[0], Some(one), rows_before(key_target, strip.keys))?;
            gemm(one, part(gradients).transposed(), rows_before(key, strip.keys), Some(one), gradient)?;
        }
        Ok(())
    }
}
