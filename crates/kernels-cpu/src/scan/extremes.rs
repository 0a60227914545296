//! `cummax` and `cummin`. NaN wins and stays; among equals the latest is named.

use c10::{Result, Tensor};

use super::lines::scan;
use crate::address::{check_same_dtype, mutable_data_ptr};
use crate::dispatch::dispatch;
use crate::reduce::Ordered;
use crate::registration::register;

pub(super) fn register() {
    register! {
        cummax_kernel: fn(&Tensor, i64, &[Tensor]);
        cummin_kernel: fn(&Tensor, i64, &[Tensor]);
    }
}

/// The winner so far, where it is, and how many elements were seen.
#[derive(Clone, Copy)]
struct Best<K> {
    key: K,
    index: i64,
    seen: i64,
}

#[allow(clippy::eq_op)]
fn extremes<T: Ordered, const LARGEST: bool>(self_: &Tensor, dim: i64, outs: &[Tensor]) -> Result<()> {
    let [values, indices] = outs else { c10::bail!(Internal, "cummax: {} outputs", outs.len()) };
    check_same_dtype("cummax", self_, values)?;
    mutable_data_ptr::<i64>(indices)?;
    let start = Best { key: if LARGEST { T::LEAST } else { T::GREATEST }, index: 0, seen: 0 };
    let step = |best: Best<T::Key>, element: T::Raw| {
        let key = T::key(element);
        let at_least = if LARGEST { key >= best.key } else { key <= best.key };
        // NaN differs from itself.
        let wins = best.seen == 0 || key != key || (best.key == best.key && at_least);
        let seen = best.seen + 1;
        if wins {
            Best { key, index: best.seen, seen }
        } else {
            Best { seen, ..best }
        }
    };
    // SAFETY: the input and the values have `T`'s dtype, the indices are int64.
    unsafe {
        scan::<T::Raw, Best<T::Key>, 2>(self_, dim, [values, indices], start, step, |best, at| {
            at[0].write(T::from_key(best.key));
            at[1].write(best.index);
        })
    }
}

fn cummax_kernel(self_: &Tensor, dim: i64, outs: &[Tensor]) -> Result<()> {
    dispatch!(self_.dtype(), "cummax_cpu", ALL_AND_HALF + Bool + BAREBONES_UNSIGNED, |T| {
        extremes::<T, true>(self_, dim, outs)
    })
}

fn cummin_kernel(self_: &Tensor, dim: i64, outs: &[Tensor]) -> Result<()> {
    dispatch!(self_.dtype(), "cummin_cpu", ALL_AND_HALF + Bool + BAREBONES_UNSIGNED, |T| {
        extremes::<T, false>(self_, dim, outs)
    })
}
