//! Sorts one row of keys.
//!
//! Wherever they fit, a key and its index share a 64-bit word: the key counted from the row's least one, above as many
//! bits as indices need. Then plain integers are sorted, an unstable sort of them is stable in the keys, and memory holds
//! one array instead of two. That covers all types of up to 32 bits, and most rows of 64-bit integers. For descending
//! order keys are complemented, so that equal elements stay in the order of their indices.

use c10::{try_collect, try_reserve, Result};

use super::key::SortKey;
use super::radix;
use crate::address::Address;

/// Room to work for one thread.
#[derive(Default)]
pub(super) struct Workspace {
    packed: Vec<u64>,
    packed_spare: Vec<u64>,
    wide: Vec<(u64, u64)>,
    wide_spare: Vec<(u64, u64)>,
}

/// A row in memory, with a byte stride.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) base: Address,
    pub(super) stride: i64,
}

impl Row {
    #[inline(always)]
    pub(super) fn at(self, i: usize) -> Address {
        self.base.offset(i as i64 * self.stride)
    }
}

/// How many bits the numbers up to `max` need.
fn bits_for(max: u64) -> u32 {
    u64::BITS - max.leading_zeros()
}

/// Sorts `n` elements of `input` to `values`, and their positions to `indices`.
///
/// # Safety
/// The rows must lie in memory: input and values of type `T::Raw`, indices of int64, the outputs touched by this
/// thread alone. The input may be `values`.
pub(super) unsafe fn sort_row<T: SortKey>(
    workspace: &mut Workspace,
    input: Row,
    values: Row,
    indices: Row,
    n: usize,
    descending: bool,
) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    let flip = if descending { u64::MAX } else { 0 };
    // SAFETY: the caller's promise.
    let key = |i: usize| T::key(unsafe { input.at(i).read::<T::Raw>() }) ^ flip;
    let (least, greatest) = (0..n)
        .map(key)
        .fold((u64::MAX, 0), |(least, greatest), key| (u64::min(least, key), u64::max(greatest, key)));
    let index_bits = bits_for(n as u64 - 1);
    let key_bits = bits_for(greatest.wrapping_sub(least));
    let Workspace { packed, packed_spare, wide, wide_spare } = workspace;
    if key_bits + index_bits <= u64::BITS {
        // Not a shift by 64: with as many bits of index as that, all keys are one.
        let shift = index_bits.min(u64::BITS - 1);
        refill(packed, n)?;
        // Wrapping: another thread may be writing what is sorted, and keys are read more than once.
        packed.extend((0..n).map(|i| key(i).wrapping_sub(least) << shift | i as u64));
        if n < radix::MIN_LENGTH {
            packed.sort_unstable();
        } else {
            try_reserve(packed_spare, n.saturating_sub(packed_spare.len()))?;
            packed_spare.resize(n, 0);
            radix::sort(packed, packed_spare, shift, key_bits);
        }
        let mask = (1 << shift) - 1;
        let sorted = packed
            .iter()
            .map(|&entry| ((entry >> shift).wrapping_add(least) ^ flip, (entry & mask) as usize));
        // SAFETY: the caller's promise; each index is there once.
        return unsafe { write::<T>(sorted, input, values, indices, n) };
    }
    refill(wide, n)?;
    wide.extend((0..n).map(|i| (key(i), i as u64)));
    if n < radix::MIN_LENGTH {
        wide.sort_unstable();
    } else {
        try_reserve(wide_spare, n.saturating_sub(wide_spare.len()))?;
        wide_spare.resize(n, (0, 0));
        radix::sort(wide, wide_spare, 0, u64::BITS);
    }
    let sorted = wide.iter().map(|&(key, index)| (key ^ flip, index as usize));
    // SAFETY: as above.
    unsafe { write::<T>(sorted, input, values, indices, n) }
}

/// Empties a buffer and makes room for `n` values.
fn refill<T>(buffer: &mut Vec<T>, n: usize) -> Result<()> {
    buffer.clear();
    try_reserve(buffer, n)
}

/// # Safety
/// As for [`sort_row`]; `sorted` gives keys and positions, each position once.
unsafe fn write<T: SortKey>(
    sorted: impl Iterator<Item = (u64, usize)>,
    input: Row,
    values: Row,
    indices: Row,
    n: usize,
) -> Result<()> {
    // Zeros and NaN, whose keys do not tell them apart, are read from the input, or from a copy if that is also where
    // values go. Others come from their keys: reading them would be a walk through memory without order.
    // SAFETY: the caller's promise.
    let read = |i: usize| unsafe { input.at(i).read::<T::Raw>() };
    let in_place = input.base.0 == values.base.0;
    let copy = if in_place { try_collect((0..n).map(read))? } else { Vec::new() };
    for (place, (key, from)) in sorted.enumerate() {
        let value = T::from_key(key).unwrap_or_else(|| if in_place { copy[from] } else { read(from) });
        // SAFETY: the caller's promise.
        unsafe {
            values.at(place).write(value);
            indices.at(place).write(from as i64);
        }
    }
    Ok(())
}
