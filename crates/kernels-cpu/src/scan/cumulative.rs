//! `cumsum` and `cumprod`.

use c10::{Result, Tensor};
use iter::to_dtype;

use super::lines::scan;
use crate::dispatch::dispatch;
use crate::reduce::{Accumulated, Ring};
use crate::registration::register;

pub(super) fn register() {
    register! {
        cumsum_kernel: fn(&Tensor, i64, &[Tensor]);
        cumprod_kernel: fn(&Tensor, i64, &[Tensor]);
    }
}

/// Floats are added up in double.
fn running<T: Accumulated>(
    input: &Tensor,
    dim: i64,
    out: &Tensor,
    start: T::Total,
    join: impl Fn(T::Total, T::Total) -> T::Total + Sync,
) -> Result<()> {
    let step = |state, element: T::Raw| join(state, T::widen(T::lift(element)));
    // SAFETY: both have `T`'s dtype: the input was cast to the output's.
    unsafe {
        scan::<T::Raw, T::Total, 1>(input, dim, [out], start, step, |state, at| at[0].write(T::finish(state)))
    }
}

fn cumsum_kernel(self_: &Tensor, dim: i64, outs: &[Tensor]) -> Result<()> {
    let [out] = outs else { c10::bail!(Internal, "cumsum: {} outputs", outs.len()) };
    let input = to_dtype(self_, out.dtype())?;
    dispatch!(out.dtype(), "cumsum_out_cpu", EVERY, |T| {
        let start = <<T as Accumulated>::Total as Ring>::ZERO;
        running::<T>(&input, dim, out, start, Ring::add)
    })
}

fn cumprod_kernel(self_: &Tensor, dim: i64, outs: &[Tensor]) -> Result<()> {
    let [out] = outs else { c10::bail!(Internal, "cumprod: {} outputs", outs.len()) };
    let input = to_dtype(self_, out.dtype())?;
    dispatch!(out.dtype(), "cumprod_out_cpu", EVERY, |T| {
        let start = <<T as Accumulated>::Total as Ring>::ONE;
        running::<T>(&input, dim, out, start, Ring::mul)
    })
}
