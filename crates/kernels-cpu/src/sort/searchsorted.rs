//! `searchsorted`: a binary search for each value.

use c10::{check, Element, Result, ScalarType, Tensor};
use iter::parallel;

use crate::dispatch::dispatch;
use crate::registration::register;

pub(super) fn register() {
    register! {
        searchsorted_kernel: fn(&Tensor, &Tensor, bool, bool, Option<&str>, Option<&Tensor>, &[Tensor]);
    }
}

/// Values that one thread takes at least.
const GRAIN: usize = 200;

/// A row-major tensor of a dtype.
fn row_major(tensor: &Tensor, dtype: ScalarType) -> Result<Tensor> {
    let tensor = iter::to_dtype(tensor, dtype)?;
    if tensor.is_contiguous() {
        return Ok(tensor);
    }
    let copy = iter::empty(tensor.sizes()?, &tensor.options())?;
    iter::copy_into(&copy, &tensor, false)?;
    Ok(copy)
}

/// # Safety
/// The tensor must hold elements of type `T`, row-major, that nobody writes.
unsafe fn elements<T: Element>(tensor: &Tensor) -> Result<&[T]> {
    let count = tensor.numel()? as usize;
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: the caller's promise; the tensor's accesses were checked against its storage.
    Ok(unsafe { std::slice::from_raw_parts(tensor.const_data_ptr().cast::<T>(), count) })
}

/// How many numbers of the sequence come before `value`; NaN is the largest number, as when sorting.
fn search<T: Element + PartialOrd>(value: T, length: usize, right: bool, at: impl Fn(usize) -> T) -> usize {
    #[allow(clippy::eq_op)]
    let is_nan = |x: T| x != x;
    let before = |x: T| {
        if right {
            is_nan(value) || x <= value
        } else {
            x < value || (is_nan(value) && !is_nan(x))
        }
    };
    let (mut low, mut high) = (0, length);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(at(middle)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Where the results go.
#[derive(Clone, Copy)]
enum Places {
    Int(*mut i32),
    Long(*mut i64),
}

// SAFETY: each place is written by one thread, which the kernel sees to.
unsafe impl Sync for Places {}

impl Places {
    /// # Safety
    /// `i` must be an index of the output, and no other thread may write it.
    unsafe fn set(&self, i: usize, value: usize) {
        match *self {
            // SAFETY: the caller's promise.
            Places::Int(pointer) => unsafe { pointer.add(i).write(value as i32) },
            // SAFETY: the caller's promise.
            Places::Long(pointer) => unsafe { pointer.add(i).write(value as i64) },
        }
    }
}

fn searchsorted_kernel(
    sorted_sequence: &Tensor,
    self_: &Tensor,
    out_int32: bool,
    right: bool,
    side: Option<&str>,
    sorter: Option<&Tensor>,
    outs: &[Tensor],
) -> Result<()> {
    let [out] = outs else { c10::bail!(Internal, "searchsorted: {} outputs", outs.len()) };
    let right = right || side == Some("right");
    let sizes = sorted_sequence.sizes()?;
    let length = sizes.last().map_or(1, |&size| size as usize);
    let count = self_.numel()? as usize;
    if count == 0 {
        return Ok(());
    }
    check!(
        !out_int32 || length <= i32::MAX as usize,
        "torch.searchsorted(): the size of boundaries' last dimension should be less than {}, but we got {length}",
        i32::MAX
    );
    // A number beside integers may be a fraction.
    let dtype = iter::result_type(&[sorted_sequence, self_])?;
    let (sequence, values) = (row_major(sorted_sequence, dtype)?, row_major(self_, dtype)?);
    let sorter = sorter.map(|sorter| row_major(sorter, ScalarType::Long)).transpose()?;
    // SAFETY: just made row-major, of int64.
    let order = sorter.as_ref().map(|sorter| unsafe { elements::<i64>(sorter) }).transpose()?;
    if let Some(order) = order {
        check!(
            order.iter().all(|&i| 0 <= i && (i as usize) < length),
            "torch.searchsorted(): sorter index out of range"
        );
    }
    let per_row =
        if sizes.len() == 1 { count } else { self_.sizes()?.last().map_or(1, |&size| size as usize) };
    let places = if out_int32 {
        Places::Int(crate::address::mutable_data_ptr::<i32>(out)?)
    } else {
        Places::Long(crate::address::mutable_data_ptr::<i64>(out)?)
    };
    dispatch!(dtype, "searchsorted_out_cpu", ALL_AND_HALF + Bool, |T| {
        // SAFETY: just made row-major, of this dtype.
        let (sequence, values) = unsafe { (elements::<T>(&sequence)?, elements::<T>(&values)?) };
        parallel::parallel_for_result(0, count, GRAIN, &|begin, end| {
            for (i, &value) in values.iter().enumerate().take(end).skip(begin) {
                let start = i / per_row * length;
                let place = match order {
                    Some(order) => {
                        search(value, length, right, |k| sequence[start + order[start + k] as usize])
                    }
                    None => search(value, length, right, |k| sequence[start + k]),
                };
                // SAFETY: the output has as many elements as there are values, and chunks do not overlap.
                unsafe { places.set(i, place) };
            }
            Ok(())
        })
    })
}
