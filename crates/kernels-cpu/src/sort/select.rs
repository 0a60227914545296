//! Elements by their rank along a dimension: `kthvalue`, `median`, `topk`; and the most frequent one, `mode`. Ranks are
//! found by selection, which does not sort what lies beside them.

use c10::{check, wrap_dim, DimVector, Result, Tensor};
use iter::parallel;

use super::key::SortKey;
use super::row::Row;
use crate::address::{byte_stride, check_same_dtype, mutable_data_ptr, Address};
use crate::dispatch::dispatch;
use crate::registration::register;

pub(super) fn register() {
    register! {
        kthvalue_kernel: fn(&Tensor, i64, i64, bool, &[Tensor]);
        median_dim_kernel: fn(&Tensor, i64, bool, &[Tensor]);
        nanmedian_dim_kernel: fn(&Tensor, i64, bool, &[Tensor]);
        mode_kernel: fn(&Tensor, i64, bool, &[Tensor]);
        topk_kernel: fn(&Tensor, i64, i64, bool, bool, &[Tensor]);
    }
}

/// Elements that one thread takes at least.
const GRAIN: usize = 4096;

/// A key and the position it is at, in that order of importance.
trait Entry: Copy + Ord {
    fn new(key: u64, position: usize) -> Self;
    fn key(self) -> u64;
    fn position(self) -> usize;
}

impl Entry for (u64, u64) {
    #[inline(always)]
    fn new(key: u64, position: usize) -> Self {
        (key, position as u64)
    }
    #[inline(always)]
    fn key(self) -> u64 {
        self.0
    }
    #[inline(always)]
    fn position(self) -> usize {
        self.1 as usize
    }
}

/// Keys of up to 32 bits, before positions of up to 32.
impl Entry for u64 {
    #[inline(always)]
    fn new(key: u64, position: usize) -> Self {
        key << 32 | position as u64
    }
    #[inline(always)]
    fn key(self) -> u64 {
        self >> 32
    }
    #[inline(always)]
    fn position(self) -> usize {
        (self & u64::from(u32::MAX)) as usize
    }
}

/// Calls `f` for each line along `dim`, with the rows of input, values and indices. `f` chooses positions of elements.
///
/// # Safety
/// `T` must be the dtype of `self`.
unsafe fn for_each_line<T: SortKey>(
    self_: &Tensor,
    dim: i64,
    outs: &[Tensor],
    f: &(dyn Fn(Row, Row, Row, usize) -> Result<()> + Sync),
) -> Result<()> {
    let [values, indices] = outs else { c10::bail!(Internal, "select: {} outputs", outs.len()) };
    check_same_dtype("select", self_, values)?;
    mutable_data_ptr::<i64>(indices)?;
    let numel = self_.numel()? as usize;
    let dim = wrap_dim(dim, self_.dim(), true)? as usize;
    let sizes = self_.sizes()?;
    let n = sizes.get(dim).map_or(1, |&size| size as usize);
    if numel == 0 {
        return Ok(());
    }
    let tensors = [self_, values, indices];
    let mut strides: [DimVector; 3] = Default::default();
    for (strides, tensor) in strides.iter_mut().zip(tensors) {
        strides.extend(tensor.strides()?.iter().map(|&s| byte_stride(s, tensor.item_size())));
        if strides.len() < sizes.len() {
            // The reduction dropped the dimension.
            strides.insert(dim, 0);
        }
    }
    let bases = [self_.const_data_ptr().cast_mut(), values.data_ptr(), indices.data_ptr()].map(Address);
    parallel::parallel_for_result(0, numel / n, (GRAIN / n).max(1), &|begin, end| {
        for line in begin..end {
            let mut at = bases;
            let mut rest = line as i64;
            for (d, &size) in sizes.iter().enumerate().rev().filter(|&(d, _)| d != dim) {
                for (at, strides) in at.iter_mut().zip(&strides) {
                    *at = at.offset(rest % size * strides[d]);
                }
                rest /= size;
            }
            let row = |i: usize| Row { base: at[i], stride: strides[i].get(dim).copied().unwrap_or(0) };
            f(row(0), row(1), row(2), n)?;
        }
        Ok(())
    })
}

/// The entries of a row, with flipped keys if the largest come first.
///
/// # Safety
/// The row must lie in memory, of type `T::Raw`.
unsafe fn entries<T: SortKey, E: Entry>(row: Row, n: usize, flip: u64) -> Result<Vec<E>> {
    let mut entries = c10::try_with_capacity(n)?;
    // SAFETY: the caller's promise.
    entries.extend((0..n).map(|i| E::new(T::key(unsafe { row.at(i).read::<T::Raw>() }) ^ flip, i)));
    Ok(entries)
}

/// The bits of a dtype's keys.
fn key_bits<T: SortKey>() -> u32 {
    8 * std::mem::size_of::<T::Raw>() as u32
}

/// Whether [`Entry`] for one word will do.
fn is_packed<T: SortKey>(n: usize) -> bool {
    key_bits::<T>() <= 32 && u32::try_from(n).is_ok()
}

/// Writes an element of a row and its position.
///
/// # Safety
/// The rows must lie in memory: input and values of type `T::Raw`, indices of int64.
unsafe fn write<T: SortKey>(input: Row, values: Row, indices: Row, place: usize, position: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        values.at(place).write(input.at(position).read::<T::Raw>());
        indices.at(place).write(position as i64);
    }
}

/// The position of the element of rank `k` from below.
///
/// # Safety
/// As for [`entries`].
unsafe fn kth<T: SortKey>(row: Row, n: usize, k: usize) -> Result<usize> {
    // SAFETY: the caller's promise.
    unsafe {
        if is_packed::<T>(n) {
            let mut entries = entries::<T, u64>(row, n, 0)?;
            return Ok(entries.select_nth_unstable(k).1.position());
        }
        let mut entries = entries::<T, (u64, u64)>(row, n, 0)?;
        Ok(Entry::position(*entries.select_nth_unstable(k).1))
    }
}

macro_rules! over_lines {
    ($self_:expr, $name:literal, $dim:expr, $outs:expr, |$T:ident, $input:ident, $values:ident, $indices:ident, $n:ident| $body:expr) => {
        dispatch!($self_.dtype(), $name, ALL_AND_HALF + Bool + BAREBONES_UNSIGNED, |$T| {
            // SAFETY: `T` is the dtype; rows of the tensors along `dim`, each taken by one thread.
            unsafe { for_each_line::<$T>($self_, $dim, $outs, &|$input, $values, $indices, $n| $body) }
        })
    };
}

fn kthvalue_kernel(self_: &Tensor, k: i64, dim: i64, _keepdim: bool, outs: &[Tensor]) -> Result<()> {
    over_lines!(self_, "kthvalue_cpu", dim, outs, |T, input, values, indices, n| {
        check!(k >= 1 && k as usize <= n, "kthvalue(): selected number k out of range for dimension {dim}");
        let position = kth::<T>(input, n, k as usize - 1)?;
        write::<T>(input, values, indices, 0, position);
        Ok(())
    })
}

/// The positions of the first NaN, and how many there are.
///
/// # Safety
/// As for [`entries`].
#[allow(clippy::eq_op)]
unsafe fn nans<T: SortKey + PartialEq>(row: Row, n: usize) -> (Option<usize>, usize) {
    let mut first = None;
    let mut count = 0;
    for i in 0..n {
        // SAFETY: the caller's promise.
        let element = T::load(unsafe { row.at(i).read::<T::Raw>() });
        if element != element {
            first = first.or(Some(i));
            count += 1;
        }
    }
    (first, count)
}

fn median_dim_kernel(self_: &Tensor, dim: i64, _keepdim: bool, outs: &[Tensor]) -> Result<()> {
    over_lines!(self_, "median_out", dim, outs, |T, input, values, indices, n| {
        let position = match nans::<T>(input, n).0 {
            Some(position) => position,
            None => kth::<T>(input, n, (n - 1) / 2)?,
        };
        write::<T>(input, values, indices, 0, position);
        Ok(())
    })
}

fn nanmedian_dim_kernel(self_: &Tensor, dim: i64, _keepdim: bool, outs: &[Tensor]) -> Result<()> {
    over_lines!(self_, "median_out", dim, outs, |T, input, values, indices, n| {
        // NaN has the highest ranks.
        let numbers = n - nans::<T>(input, n).1;
        let position = if numbers == 0 { 0 } else { kth::<T>(input, n, (numbers - 1) / 2)? };
        write::<T>(input, values, indices, 0, position);
        Ok(())
    })
}

/// The last position of the least among the most frequent elements.
fn most_frequent<E: Entry>(mut entries: Vec<E>) -> usize {
    entries.sort_unstable();
    let (mut best, mut most, mut run) = (0, 0, 0);
    for (i, &entry) in entries.iter().enumerate() {
        run += 1;
        if entries.get(i + 1).is_none_or(|next| next.key() != entry.key()) {
            if run > most {
                (best, most) = (entry.position(), run);
            }
            run = 0;
        }
    }
    best
}

fn mode_kernel(self_: &Tensor, dim: i64, _keepdim: bool, outs: &[Tensor]) -> Result<()> {
    over_lines!(self_, "mode", dim, outs, |T, input, values, indices, n| {
        let position = if is_packed::<T>(n) {
            most_frequent(entries::<T, u64>(input, n, 0)?)
        } else {
            most_frequent(entries::<T, (u64, u64)>(input, n, 0)?)
        };
        write::<T>(input, values, indices, 0, position);
        Ok(())
    })
}

/// The first `k` entries, in order if `sorted`.
fn first_entries<E: Entry>(mut entries: Vec<E>, k: usize, sorted: bool) -> Vec<E> {
    if k < entries.len() {
        entries.select_nth_unstable(k);
        entries.truncate(k);
    }
    if sorted {
        entries.sort_unstable();
    }
    entries
}

fn topk_kernel(self_: &Tensor, k: i64, dim: i64, largest: bool, sorted: bool, outs: &[Tensor]) -> Result<()> {
    over_lines!(self_, "topk_cpu", dim, outs, |T, input, values, indices, n| {
        check!(k >= 0 && k as usize <= n, "selected index k out of range");
        let (k, flip) = (k as usize, if largest { u64::MAX >> (64 - key_bits::<T>()) } else { 0 });
        if is_packed::<T>(n) {
            for (place, entry) in
                first_entries(entries::<T, u64>(input, n, flip)?, k, sorted).iter().enumerate()
            {
                write::<T>(input, values, indices, place, Entry::position(*entry));
            }
        } else {
            let chosen = first_entries(entries::<T, (u64, u64)>(input, n, flip)?, k, sorted);
            for (place, entry) in chosen.iter().enumerate() {
                write::<T>(input, values, indices, place, Entry::position(*entry));
            }
        }
        Ok(())
    })
}
