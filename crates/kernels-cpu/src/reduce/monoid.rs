//! What a reduction computes, and its two inner loops: along a dense row, and down dense columns.
//!
//! # Note [Lanes]
//! A row is added up in 64 lanes, four elements of a lane at a time, which the compiler keeps in vector registers, and
//! the lanes are joined in a fixed tree. After [`BLOCK`] elements the result moves to a wider total (double for float32
//! and the halves). So an element goes through at most 2 + 8 + 6 additions in the narrow type, whatever the length of
//! the row: rounding errors do not grow with it, and the order of additions does not depend on vector width or threads.

use crate::address::Address;
use crate::vec::tiered;

/// Lanes of a row.
const LANES: usize = 64;
/// Elements that are added up before they join the total.
pub(super) const BLOCK: usize = 32 * LANES;
/// Rows that are added up before they join the totals of their columns.
const ROWS: usize = 64;

/// An associative operation with an identity, on elements that are lifted into lanes first.
pub(super) trait Monoid: 'static {
    /// An element in memory.
    type In: Copy + Send + Sync;
    /// What lanes hold.
    type Lane: Copy;
    /// What blocks are joined in.
    type Total: Copy + Send + Sync;
    /// A result in memory.
    type Out: Copy + Send + Sync;

    fn identity() -> Self::Lane;
    fn lift(element: Self::In) -> Self::Lane;
    fn join(a: Self::Lane, b: Self::Lane) -> Self::Lane;
    fn total(lane: Self::Lane) -> Self::Total;
    fn merge(a: Self::Total, b: Self::Total) -> Self::Total;
    fn finish(total: Self::Total) -> Self::Out;

    /// Whether nothing can change the total any more.
    #[inline(always)]
    fn is_settled(_total: Self::Total) -> bool {
        false
    }
}

/// Joins lanes pairwise: the first half with the second, until one is left.
macro_rules! tree {
    ($lanes:ident, $M:ident; $($width:literal)*) => {
        $(for lane in 0..$width {
            $lanes[lane] = $M::join($lanes[lane], $lanes[lane + $width]);
        })*
    };
}

tiered! { memory_bound:
    /// The lanes of up to [`BLOCK`] elements, joined.
    fn reduce_block_tiered<M>(block: &[M::In]) -> M::Lane where { M: Monoid } => A {
        let _ = std::marker::PhantomData::<A>;
        if block.len() < 4 * LANES {
            // Joining many lanes would take longer than the row.
            let mut lanes = [M::identity(); 16];
            let (rows, rest) = block.as_chunks::<16>();
            for row in rows {
                for (lane, &element) in lanes.iter_mut().zip(row) {
                    *lane = M::join(*lane, M::lift(element));
                }
            }
            for (lane, &element) in lanes.iter_mut().zip(rest) {
                *lane = M::join(*lane, M::lift(element));
            }
            tree!(lanes, M; 8 4 2 1);
            return lanes[0];
        }
        let mut lanes = [M::identity(); LANES];
        let (groups, rest) = block.as_chunks::<{ 4 * LANES }>();
        for group in groups {
            for lane in 0..LANES {
                let lifted = |row: usize| M::lift(group[row * LANES + lane]);
                let pairs = M::join(M::join(lifted(0), lifted(1)), M::join(lifted(2), lifted(3)));
                lanes[lane] = M::join(lanes[lane], pairs);
            }
        }
        let (rows, rest) = rest.as_chunks::<LANES>();
        for row in rows {
            for lane in 0..LANES {
                lanes[lane] = M::join(lanes[lane], M::lift(row[lane]));
            }
        }
        for (lane, &element) in lanes.iter_mut().zip(rest) {
            *lane = M::join(*lane, M::lift(element));
        }
        tree!(lanes, M; 32 16 8 4 2 1);
        lanes[0]
    }

    /// Joins `rows` rows, `stride` bytes apart, into the lanes of their columns.
    fn accumulate_rows<M>(lanes: &mut [M::Lane], first: Address, stride: i64, rows: usize)
    where { M: Monoid } => A {
        let _ = std::marker::PhantomData::<A>;
        let columns = lanes.len();
        // SAFETY: callers give rows of the input, which the iterator checked against its storage.
        let row = |i: usize| unsafe { first.offset(i as i64 * stride).slice::<M::In>(columns) };
        let mut i = 0;
        while i + 4 <= rows {
            let (a, b, c, d) = (row(i), row(i + 1), row(i + 2), row(i + 3));
            for ((((lane, &a), &b), &c), &d) in lanes.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                let ab = M::join(M::lift(a), M::lift(b));
                let cd = M::join(M::lift(c), M::lift(d));
                *lane = M::join(*lane, M::join(ab, cd));
            }
            i += 4;
        }
        while i < rows {
            for (lane, &a) in lanes.iter_mut().zip(row(i)) {
                *lane = M::join(*lane, M::lift(a));
            }
            i += 1;
        }
    }
}

/// The lanes of up to [`BLOCK`] elements, joined.
pub(super) fn reduce_block<M: Monoid>(block: &[M::In]) -> M::Lane {
    reduce_block_tiered::<M>(block)
}

/// A dense row, reduced.
pub(super) fn reduce_row<M: Monoid>(row: &[M::In]) -> M::Total {
    let mut blocks = row.chunks(BLOCK);
    let mut total = M::total(blocks.next().map_or(M::identity(), reduce_block::<M>));
    for block in blocks {
        if M::is_settled(total) {
            break;
        }
        total = M::merge(total, M::total(reduce_block::<M>(block)));
    }
    total
}

/// Columns that are reduced together: their lanes and totals fit the first cache level.
pub(super) const COLUMNS: usize = 512;

/// Reduces rows into the totals of their columns, of which there are at most [`COLUMNS`].
pub(super) fn reduce_columns<M: Monoid>(totals: &mut [M::Total], first: Address, stride: i64, rows: usize) {
    let mut lanes = [M::identity(); COLUMNS];
    let lanes = &mut lanes[..totals.len()];
    for begin in (0..rows).step_by(ROWS) {
        if begin > 0 {
            lanes.fill(M::identity());
        }
        accumulate_rows::<M>(lanes, first.offset(begin as i64 * stride), stride, ROWS.min(rows - begin));
        for (total, &lane) in totals.iter_mut().zip(lanes.iter()) {
            *total = M::merge(*total, M::total(lane));
        }
    }
}
