//! The walk of `gather`, `scatter` and `index_add`: every position of a shape, where one operand stands still along a
//! dimension because an index says how far it goes there.

use c10::{Result, SmallVec};
use iter::parallel;

use crate::address::Address;

/// An operand: its first element, and its byte stride in each dimension of the shape.
pub(crate) struct Operand {
    pub(crate) base: Address,
    pub(crate) strides: SmallVec<[i64; 6]>,
}

/// A row of the walk: addresses and strides of the `N` operands, and the number of elements.
pub(crate) type Row<'a, const N: usize> = &'a (dyn Fn([Address; N], [i64; N], usize) + Sync);

/// Calls `f` for rows that together are the shape. All positions that differ in `dim` alone are visited by one thread,
/// in order. The first operand must have stride 0 in `dim`.
pub(crate) fn for_each_line<const N: usize>(
    shape: &[i64],
    dim: usize,
    operands: &[Operand; N],
    f: Row<'_, N>,
) -> Result<()> {
    if shape.contains(&0) {
        return Ok(());
    }
    let length = shape.get(dim).map_or(1, |&size| size as usize);
    let strides_in = |d: usize| -> [i64; N] {
        std::array::from_fn(|arg| operands[arg].strides.get(d).copied().unwrap_or(0))
    };
    let along = strides_in(dim);
    // The innermost of the other dimensions, walked in runs.
    let inner = (0..shape.len()).rev().find(|&d| d != dim && shape[d] > 1);
    let run = inner.map_or(1, |d| shape[d] as usize);
    let across = inner.map_or([0; N], strides_in);
    let outer: SmallVec<[usize; 6]> =
        (0..shape.len()).rev().filter(|&d| d != dim && Some(d) != inner && shape[d] > 1).collect();
    let planes: usize = outer.iter().map(|&d| shape[d] as usize).product();
    // Whichever dimension lies closer together in the indices and the other operand goes innermost.
    let along_is_inner = inner.is_none() || {
        let distance =
            |strides: &[i64; N]| strides[1..].iter().map(|stride| stride.unsigned_abs()).sum::<u64>();
        distance(&along) <= distance(&across)
    };
    let piece = (parallel::GRAIN_SIZE / 2 / length.max(1)).clamp(1, run);
    let pieces = run.div_ceil(piece);
    let grain = (parallel::GRAIN_SIZE / 2 / (length * piece)).max(1);
    let bases: [Address; N] = std::array::from_fn(|arg| operands[arg].base);
    let moved = |at: [Address; N], strides: &[i64; N], steps: i64| -> [Address; N] {
        std::array::from_fn(|arg| at[arg].offset(strides[arg] * steps))
    };
    parallel::parallel_for(0, planes * pieces, grain, &|begin, end| {
        for task in begin..end {
            let (plane, first) = (task / pieces, task % pieces * piece);
            let width = piece.min(run - first);
            let mut at = bases;
            let mut rest = plane as i64;
            for &d in &outer {
                at = moved(at, &strides_in(d), rest % shape[d]);
                rest /= shape[d];
            }
            at = moved(at, &across, first as i64);
            if along_is_inner {
                for i in 0..width as i64 {
                    f(moved(at, &across, i), along, length);
                }
            } else {
                for i in 0..length as i64 {
                    f(moved(at, &along, i), across, width);
                }
            }
        }
    })
}
