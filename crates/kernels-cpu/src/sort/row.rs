//! Sorts one row of keys.
//!
//! A key of up to 32 bits shares a word with its index: then plain integers are sorted, an unstable sort of them is
//! stable in the keys, and memory holds one array instead of two. For descending order keys are complemented, so that
//! equal elements stay in the order of their indices.

use super::key::SortKey;
use super::radix;
use crate::address::Address;

/// Rows, and room to work, of one thread.
#[derive(Default)]
pub(super) struct Workspace {
    narrow: Vec<u64>,
    narrow_spare: Vec<u64>,
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
    fn at(self, i: usize) -> Address {
        self.base.offset(i as i64 * self.stride)
    }
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
) {
    let flip = if descending { u64::MAX } else { 0 };
    // SAFETY: the caller's promise.
    let raw = |i: usize| unsafe { input.at(i).read::<T::Raw>() };
    if T::NARROW && u32::try_from(n).is_ok() {
        let Workspace { narrow: entries, narrow_spare: spare, .. } = workspace;
        entries.clear();
        entries.extend((0..n).map(|i| ((T::key(raw(i)) ^ flip) & 0xffff_ffff) << 32 | i as u64));
        if n < radix::MIN_LENGTH {
            entries.sort_unstable();
        } else {
            spare.resize(n, 0);
            radix::sort(entries, spare);
            spare.truncate(n);
        }
        // SAFETY: the caller's promise.
        unsafe {
            write::<T>(entries.iter().map(|&entry| (entry & 0xffff_ffff) as usize), input, values, indices, n)
        };
        return;
    }
    let Workspace { wide: entries, wide_spare: spare, .. } = workspace;
    entries.clear();
    entries.extend((0..n).map(|i| (T::key(raw(i)) ^ flip, i as u64)));
    if n < radix::MIN_LENGTH {
        entries.sort_unstable();
    } else {
        spare.resize(n, (0, 0));
        radix::sort(entries, spare);
    }
    // SAFETY: the caller's promise.
    unsafe { write::<T>(entries.iter().map(|&(_, index)| index as usize), input, values, indices, n) };
}

/// # Safety
/// As for [`sort_row`]; `order` names each position once.
unsafe fn write<T: SortKey>(
    order: impl Iterator<Item = usize>,
    input: Row,
    values: Row,
    indices: Row,
    n: usize,
) {
    // Values are read from the input, since keys have lost the sign of zero and the kind of NaN; when that is also
    // where they go, from a copy.
    let in_place = input.base.0 == values.base.0;
    // SAFETY: the caller's promise.
    let read = |i: usize| unsafe { input.at(i).read::<T::Raw>() };
    let copy: Vec<T::Raw> = if in_place { (0..n).map(read).collect() } else { Vec::new() };
    for (place, from) in order.enumerate() {
        let value = if in_place { copy[from] } else { read(from) };
        // SAFETY: the caller's promise.
        unsafe {
            values.at(place).write(value);
            indices.at(place).write(from as i64);
        }
    }
}
