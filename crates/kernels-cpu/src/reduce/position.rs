//! Where the extremum is: `argmax`, `argmin`, and `max` and `min` along a dimension.
//!
//! A row is searched by blocks: the extremum of a block vectorizes, and only the block that holds the winner is looked
//! through for its first occurrence.

use c10::{Result, Tensor};
use iter::parallel;

use super::driver::for_each_block;
use super::extremum::{Extremum, Ordered};
use super::layout::{Layout, Position};
use super::monoid::{reduce_block, Monoid};
use crate::dispatch::dispatch;
use crate::registration::register;
use crate::vec::tiered;

pub(super) fn register() {
    register! {
        max_dim_kernel: fn(&Tensor, i64, bool, &[Tensor]);
        min_dim_kernel: fn(&Tensor, i64, bool, &[Tensor]);
        argmax_kernel: fn(&Tensor, Option<i64>, bool, &[Tensor]);
        argmin_kernel: fn(&Tensor, Option<i64>, bool, &[Tensor]);
    }
}

macro_rules! search {
    ($self_:expr, $name:literal, $largest:literal, $layout:expr, $values:literal) => {{
        if $self_.numel()? == 0 {
            return Ok(());
        }
        let layout = $layout;
        dispatch!($self_.dtype(), $name, ALL_AND_HALF + Bool + BAREBONES_UNSIGNED, |T| {
            search::<T, $largest>(layout, $values)
        })
    }};
}

fn max_dim_kernel(self_: &Tensor, dim: i64, keepdim: bool, outs: &[Tensor]) -> Result<()> {
    search!(self_, "max_dim_kernel", true, Layout::of_tensor(self_, Some(dim), keepdim, outs)?, true)
}

fn min_dim_kernel(self_: &Tensor, dim: i64, keepdim: bool, outs: &[Tensor]) -> Result<()> {
    search!(self_, "min_dim_kernel", false, Layout::of_tensor(self_, Some(dim), keepdim, outs)?, true)
}

fn argmax_kernel(self_: &Tensor, dim: Option<i64>, keepdim: bool, outs: &[Tensor]) -> Result<()> {
    search!(self_, "argmax_kernel", true, positions_only(self_, dim, keepdim, outs)?, false)
}

fn argmin_kernel(self_: &Tensor, dim: Option<i64>, keepdim: bool, outs: &[Tensor]) -> Result<()> {
    search!(self_, "argmin_kernel", false, positions_only(self_, dim, keepdim, outs)?, false)
}

/// The layout with the only output in the place of the indices.
fn positions_only(self_: &Tensor, dim: Option<i64>, keepdim: bool, outs: &[Tensor]) -> Result<Layout> {
    let mut layout = Layout::of_tensor(self_, dim, keepdim, outs)?;
    layout.output.swap(0, 1);
    for dim in &mut layout.kept {
        dim.output.swap(0, 1);
    }
    Ok(layout)
}

/// A winner: its key, and its index along the reduced dimension.
type Winner<K> = (K, usize);

/// Columns that are searched together.
const COLUMNS: usize = 256;

fn search<T: Ordered, const LARGEST: bool>(layout: Layout, with_values: bool) -> Result<()> {
    let (outputs, n) = (layout.kept_numel(), layout.reduced_numel());
    let column =
        if layout.reduced.len() == 1 { layout.column_dim(std::mem::size_of::<T::Raw>()) } else { None };
    if let Some(column) = column {
        return search_columns::<T, LARGEST>(layout, column, with_values);
    }
    let layout = &layout;
    let write = |position: &Position<'_>, (key, index): Winner<T::Key>| {
        // SAFETY: elements of the outputs: values of the input's dtype, and int64; each is written once.
        unsafe {
            if with_values {
                layout.output[0].offset(position.output[0]).write(T::from_key(key));
            }
            layout.output[1].offset(position.output[1]).write(index as i64);
        }
    };
    if outputs < 64 && n > 2 * parallel::GRAIN_SIZE {
        for output in 0..outputs {
            let position = Position::new(&layout.kept, output);
            let winner = parallel::parallel_reduce(
                0,
                n,
                parallel::GRAIN_SIZE,
                &|begin, end| search_range::<T, LARGEST>(layout, position.input, begin, end),
                |a, b| if Extremum::<T, LARGEST>::beats(b.0, a.0) { b } else { a },
            )?;
            if let Some(winner) = winner {
                write(&position, winner);
            }
        }
        return Ok(());
    }
    parallel::parallel_for(0, outputs, (parallel::GRAIN_SIZE / n.max(1)).max(1), &|begin, end| {
        let mut position = Position::new(&layout.kept, begin);
        for _ in begin..end {
            write(&position, search_range::<T, LARGEST>(layout, position.input, 0, n));
            position.advance(1);
        }
    })
}

/// The first winner among elements `begin..end`, of those that start at a byte offset of the input.
#[allow(clippy::eq_op)]
fn search_range<T: Ordered, const LARGEST: bool>(
    layout: &Layout,
    input: i64,
    begin: usize,
    end: usize,
) -> Winner<T::Key> {
    let base = layout.input.offset(input);
    let mut best: Option<Winner<T::Key>> = None;
    for_each_block::<T::Raw>(layout, base, begin, end, &mut |block, index| {
        let key = reduce_block::<Extremum<T, LARGEST>>(block);
        if best.is_none_or(|(best, _)| Extremum::<T, LARGEST>::beats(key, best)) {
            best = Some((key, index));
        }
        // The first NaN is final.
        key == key
    });
    let Some((key, block)) = best else { return (Extremum::<T, LARGEST>::identity(), begin) };
    let mut found = block;
    for_each_block::<T::Raw>(layout, base, block, end, &mut |elements, index| {
        let same = |&element: &T::Raw| {
            let other = T::key(element);
            other == key || (other != other && key != key)
        };
        found = index + elements.iter().position(same).unwrap_or(0);
        false
    });
    (key, found)
}

tiered! { memory_bound:
    /// Lets the elements of row `index` compete with the winners of their columns.
    fn compete<T, E>(keys: &mut [T::Key], indices: &mut [i64], row: &[T::Raw], index: i64, beats: E)
    where { T: Ordered, E: Fn(T::Key, T::Key) -> bool } => A {
        let _ = std::marker::PhantomData::<A>;
        for ((key, at), &element) in keys.iter_mut().zip(indices).zip(row) {
            let candidate = T::key(element);
            let wins = beats(candidate, *key);
            *key = if wins { candidate } else { *key };
            *at = if wins { index } else { *at };
        }
    }
}

fn search_columns<T: Ordered, const LARGEST: bool>(
    mut layout: Layout,
    column: usize,
    with_values: bool,
) -> Result<()> {
    let columns = layout.kept.remove(column);
    let layout = &layout;
    let rows = layout.reduced_numel();
    let stride = layout.reduced.first().map_or(0, |dim| dim.input);
    let blocks = columns.size.div_ceil(COLUMNS);
    let tasks = layout.kept_numel() * blocks;
    let grain = (parallel::GRAIN_SIZE / (rows * columns.size.min(COLUMNS)).max(1)).max(1);
    parallel::parallel_for(0, tasks, grain, &|begin, end| {
        for task in begin..end {
            let position = Position::new(&layout.kept, task / blocks);
            let first = task % blocks * COLUMNS;
            let width = COLUMNS.min(columns.size - first);
            let mut keys = [Extremum::<T, LARGEST>::identity(); COLUMNS];
            let mut indices = [0_i64; COLUMNS];
            let base = layout.input.offset(position.input + first as i64 * columns.input);
            for index in 0..rows as i64 {
                // SAFETY: a dense part of a row of the input.
                let row = unsafe { base.offset(index * stride).slice::<T::Raw>(width) };
                let beats = Extremum::<T, LARGEST>::beats;
                compete::<T, _>(&mut keys[..width], &mut indices[..width], row, index, beats);
            }
            for i in 0..width {
                let at = |output: usize| {
                    let along = (first + i) as i64 * columns.output[output];
                    layout.output[output].offset(position.output[output] + along)
                };
                // SAFETY: elements of the outputs, as in `search`.
                unsafe {
                    if with_values {
                        at(0).write(T::from_key(keys[i]));
                    }
                    at(1).write(indices[i]);
                }
            }
        }
    })
}
