//! Walks a reduction: which elements are reduced where, in which pieces, on which threads.

use std::mem::MaybeUninit;

use c10::Result;
use iter::{parallel, TensorIterator};

use super::layout::{Layout, Position};
use super::monoid::{reduce_block, reduce_columns, reduce_row, Monoid, BLOCK, COLUMNS};
use crate::address::Address;

/// Elements that one thread takes at least, and that a long reduction is cut into.
const PIECE: usize = parallel::GRAIN_SIZE;
/// With fewer output elements than this, long reductions are cut.
const FEW_OUTPUTS: usize = 64;
/// With fewer blocks of columns than this, long columns are cut.
const FEW_BLOCKS: usize = 16;

/// Reduces an iterator made by `iter::make_reduction`. `M` must have its dtypes.
pub(super) fn reduce<M: Monoid>(iter: &TensorIterator) -> Result<()> {
    if iter.numel() == 0 {
        let empty = M::finish(M::total(M::identity()));
        let outputs = TensorIterator::nullary_op(iter.tensor(0))?;
        return outputs.for_each(
            &|data, strides, n| {
                for i in 0..n as i64 {
                    // SAFETY: elements of the output, whose dtype is `M::Out`'s.
                    unsafe { Address(data[0]).offset(i * strides[0]).write(empty) };
                }
            },
            PIECE,
        );
    }
    let layout = Layout::of_iterator(iter);
    match layout.column_dim(std::mem::size_of::<M::In>()) {
        Some(column) => reduce_by_columns::<M>(layout, column),
        None => reduce_by_rows::<M>(&layout),
    }
}

/// Every output element by itself.
fn reduce_by_rows<M: Monoid>(layout: &Layout) -> Result<()> {
    let (outputs, n) = (layout.kept_numel(), layout.reduced_numel());
    let write = |position: &Position<'_>, total: M::Total| {
        // SAFETY: an element of the output, whose dtype is `M::Out`'s; each is written once.
        unsafe { layout.output[0].offset(position.output[0]).write(M::finish(total)) };
    };
    if outputs == 1 && n <= PIECE {
        let position = Position::new(&layout.kept, 0);
        write(&position, reduce_range::<M>(layout, 0, 0, n));
        return Ok(());
    }
    if outputs < FEW_OUTPUTS && n > 2 * PIECE {
        let pieces = n.div_ceil(PIECE);
        let totals = Partials::new(outputs * pieces, M::total(M::identity()))?;
        parallel::parallel_for(0, outputs * pieces, 1, &|begin, end| {
            for task in begin..end {
                let (output, piece) = (task / pieces, task % pieces);
                let input = Position::new(&layout.kept, output).input;
                let total = reduce_range::<M>(layout, input, piece * PIECE, n.min((piece + 1) * PIECE));
                // SAFETY: each task has a place of its own.
                unsafe { totals.place(task).write(total) };
            }
        })?;
        let mut position = Position::new(&layout.kept, 0);
        for totals in totals.values.chunks(pieces) {
            write(&position, totals.iter().copied().reduce(M::merge).unwrap_or(M::total(M::identity())));
            position.advance(1);
        }
        return Ok(());
    }
    parallel::parallel_for(0, outputs, (PIECE / n).max(1), &|begin, end| {
        let mut position = Position::new(&layout.kept, begin);
        for _ in begin..end {
            write(&position, reduce_range::<M>(layout, position.input, 0, n));
            position.advance(1);
        }
    })
}

/// Values that tasks leave for the thread that joins them.
struct Partials<T> {
    values: Vec<T>,
    base: Address,
}

impl<T: Copy> Partials<T> {
    fn new(n: usize, value: T) -> Result<Partials<T>> {
        let mut values = c10::try_filled(value, n)?;
        let base = Address(values.as_mut_ptr().cast());
        Ok(Partials { values, base })
    }

    fn place(&self, i: usize) -> Address {
        self.base.offset((i * std::mem::size_of::<T>()) as i64)
    }
}

/// Reduces the elements `begin..end`, of those that start at a byte offset of the input.
fn reduce_range<M: Monoid>(layout: &Layout, input: i64, begin: usize, end: usize) -> M::Total {
    let item_size = std::mem::size_of::<M::In>() as i64;
    let base = layout.input.offset(input);
    match layout.reduced.as_slice() {
        [] => {
            // SAFETY: an element of the input, whose dtype is `M::In`'s.
            let element = unsafe { base.read::<M::In>() };
            return M::total(M::join(M::identity(), M::lift(element)));
        }
        [dim] if dim.input == item_size => {
            // SAFETY: a dense row of the input, which the iterator checked against its storage.
            let row = unsafe { base.offset(begin as i64 * item_size).slice::<M::In>(end - begin) };
            return reduce_row::<M>(row);
        }
        _ => {}
    }
    let mut total = None;
    for_each_block::<M::In>(layout, base, begin, end, &mut |block, _| {
        let this = M::total(reduce_block::<M>(block));
        let joined = total.map_or(this, |total| M::merge(total, this));
        total = Some(joined);
        !M::is_settled(joined)
    });
    total.unwrap_or(M::total(M::identity()))
}

/// Calls `f(block, index of its first element)` for the elements `begin..end`, gathered into dense blocks, until it
/// returns false.
pub(super) fn for_each_block<T: Copy>(
    layout: &Layout,
    base: Address,
    begin: usize,
    end: usize,
    f: &mut dyn FnMut(&[T], usize) -> bool,
) {
    let item_size = std::mem::size_of::<T>();
    let stride = layout.reduced.first().map_or(0, |dim| dim.input);
    let mut buffer = [const { MaybeUninit::<T>::uninit() }; BLOCK];
    let mut position = Position::new(&layout.reduced, begin);
    let mut index = begin;
    while index < end {
        let count = BLOCK.min(end - index);
        if stride == item_size as i64 && position.run() >= count {
            // SAFETY: a dense part of a row of the input.
            let block = unsafe { base.offset(position.input).slice::<T>(count) };
            position.advance(count);
            if !f(block, index) {
                return;
            }
            index += count;
            continue;
        }
        let mut filled = 0;
        while filled < count {
            let run = position.run().min(count - filled);
            let row = base.offset(position.input);
            for (i, place) in buffer[filled..filled + run].iter_mut().enumerate() {
                // SAFETY: elements of the input.
                place.write(unsafe { row.offset(i as i64 * stride).read::<T>() });
            }
            filled += run;
            position.advance(run);
        }
        // SAFETY: the first `count` elements were just written.
        let block = unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast::<T>(), count) };
        if !f(block, index) {
            return;
        }
        index += count;
    }
}

/// Output elements that are neighbours in the input, together.
fn reduce_by_columns<M: Monoid>(mut layout: Layout, column: usize) -> Result<()> {
    let columns = layout.kept.remove(column);
    let outer = layout.kept_numel();
    let rows = layout.reduced_numel();
    let blocks = columns.size.div_ceil(COLUMNS);
    let width = columns.size.min(COLUMNS);
    let layout = &layout;
    let identity = M::total(M::identity());
    let block_input = |position: &Position<'_>, block: usize| {
        layout.input.offset(position.input + (block * COLUMNS) as i64 * columns.input)
    };
    let write = |position: &Position<'_>, block: usize, totals: &[M::Total]| {
        let first = position.output[0] + (block * COLUMNS) as i64 * columns.output[0];
        for (i, &total) in totals.iter().enumerate() {
            let place = layout.output[0].offset(first + i as i64 * columns.output[0]);
            // SAFETY: an element of the output, whose dtype is `M::Out`'s; each is written once.
            unsafe { place.write(M::finish(total)) };
        }
    };
    let width_of = |block: usize| COLUMNS.min(columns.size - block * COLUMNS);
    let tasks = outer * blocks;
    if tasks < FEW_BLOCKS && rows * width > 2 * PIECE {
        let rows_per_piece = (PIECE / width).next_multiple_of(64);
        let pieces = rows.div_ceil(rows_per_piece);
        let partials = Partials::new(tasks * pieces * COLUMNS, identity)?;
        parallel::parallel_for(0, tasks * pieces, 1, &|begin, end| {
            for work in begin..end {
                let (task, piece) = (work / pieces, work % pieces);
                let position = Position::new(&layout.kept, task / blocks);
                // SAFETY: each piece of work has a place of its own.
                let totals = unsafe { partials.place(work * COLUMNS).slice_mut(width_of(task % blocks)) };
                let (begin, end) = (piece * rows_per_piece, rows.min((piece + 1) * rows_per_piece));
                reduce_rows::<M>(layout, block_input(&position, task % blocks), begin, end, totals);
            }
        })?;
        for (task, partials) in partials.values.chunks(pieces * COLUMNS).enumerate() {
            let mut totals = [identity; COLUMNS];
            let totals = &mut totals[..width_of(task % blocks)];
            for (piece, partial) in partials.chunks(COLUMNS).enumerate() {
                for (total, &partial) in totals.iter_mut().zip(partial) {
                    *total = if piece == 0 { partial } else { M::merge(*total, partial) };
                }
            }
            write(&Position::new(&layout.kept, task / blocks), task % blocks, totals);
        }
        return Ok(());
    }
    parallel::parallel_for(0, tasks, (PIECE / (rows * width).max(1)).max(1), &|begin, end| {
        for task in begin..end {
            let position = Position::new(&layout.kept, task / blocks);
            let mut totals = [identity; COLUMNS];
            let totals = &mut totals[..width_of(task % blocks)];
            reduce_rows::<M>(layout, block_input(&position, task % blocks), 0, rows, totals);
            write(&position, task % blocks, totals);
        }
    })
}

/// Reduces rows `begin..end` of a block of columns into their totals.
fn reduce_rows<M: Monoid>(layout: &Layout, base: Address, begin: usize, end: usize, totals: &mut [M::Total]) {
    let stride = layout.reduced.first().map_or(0, |dim| dim.input);
    let mut position = Position::new(&layout.reduced, begin);
    let mut row = begin;
    while row < end {
        let run = position.run().min(end - row);
        reduce_columns::<M>(totals, base.offset(position.input), stride, run);
        position.advance(run);
        row += run;
    }
}
