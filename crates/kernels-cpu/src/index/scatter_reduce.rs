//! `scatter_reduce`: elements of a source are combined with those that an index names, by one of five operations.

use c10::{Element, Result, ScalarType, Tensor};
use iter::{empty, TensorIteratorConfig};

use super::scatter_gather::{source, walk, Indexed, Summand};
use crate::address::{check_same_dtype, Address};
use crate::dispatch::dispatch;
use crate::loops::compute_dtype;
use crate::map::{binary, Stored};
use crate::reduce::Ordered;
use crate::registration::register;

pub(super) fn register() {
    register! {
        scatter_reduce_kernel: fn(i64, &Tensor, &Tensor, &str, bool, &[Tensor]);
    }
}

fn scatter_reduce_kernel(
    dim: i64,
    index: &Tensor,
    src: &Tensor,
    reduce: &str,
    include_self: bool,
    outs: &[Tensor],
) -> Result<()> {
    let [out] = outs else { c10::bail!(Internal, "scatter_reduce: {} outputs", outs.len()) };
    check_same_dtype("scatter_reduce", src, out)?;
    match reduce {
        "sum" => dispatch!(out.dtype(), "scatter_reduce_two_cpu", EVERY, |T| {
            combine::<T>(out, dim, index, src, fresh(include_self, <T as Element>::ZERO), |a, b| a.plus(b))
        }),
        "prod" => dispatch!(out.dtype(), "scatter_reduce_two_cpu", EVERY, |T| {
            combine::<T>(out, dim, index, src, fresh(include_self, <T as Element>::ONE), |a, b| a.times(b))
        }),
        "mean" => dispatch!(out.dtype(), "scatter_reduce_two_cpu", EVERY, |T| {
            combine::<T>(out, dim, index, src, fresh(include_self, <T as Element>::ZERO), |a, b| a.plus(b))?;
            divide_by_counts(out, dim, index, src, include_self)
        }),
        "amax" => {
            dispatch!(out.dtype(), "scatter_reduce_two_cpu", ALL_AND_HALF + Bool + BAREBONES_UNSIGNED, |T| {
                extreme::<T, true>(out, dim, index, src, include_self)
            })
        }
        "amin" => {
            dispatch!(out.dtype(), "scatter_reduce_two_cpu", ALL_AND_HALF + Bool + BAREBONES_UNSIGNED, |T| {
                extreme::<T, false>(out, dim, index, src, include_self)
            })
        }
        _ => {
            c10::bail!(Runtime, "reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
        }
    }
}

fn fresh<T>(include_self: bool, identity: T) -> Option<T> {
    (!include_self).then_some(identity)
}

/// Writes `identity` to the named places, if there is one, then combines what is there with the source.
fn combine<T: Summand>(
    out: &Tensor,
    dim: i64,
    index: &Tensor,
    src: &Tensor,
    identity: Option<T>,
    join: impl Fn(T, T) -> T + Sync,
) -> Result<()> {
    let identity = identity.map(Stored::store);
    places::<T::Raw>(out, dim, index, src, identity, |old, new| join(T::load(old), T::load(new)).store())
}

fn places<R: Copy + Send + Sync>(
    out: &Tensor,
    dim: i64,
    index: &Tensor,
    src: &Tensor,
    identity: Option<R>,
    join: impl Fn(R, R) -> R + Sync,
) -> Result<()> {
    let indexed = Indexed::new(out, dim, true)?;
    if let Some(identity) = identity {
        walk(out, indexed, index, source(src, index)?, |place, _| {
            // SAFETY: an element of the output: the index was checked.
            unsafe { place.write(identity) };
        })?;
    }
    walk(out, indexed, index, source(src, index)?, |place, src| {
        // SAFETY: elements of the output (the index was checked) and of `src`, of this dtype; what may be the same
        // place is combined with by one thread.
        unsafe { place.write(join(place.read::<R>(), src.read::<R>())) };
    })
}

/// The larger or smaller; NaN wins.
#[allow(clippy::eq_op)]
fn extreme<T: Ordered, const LARGEST: bool>(
    out: &Tensor,
    dim: i64,
    index: &Tensor,
    src: &Tensor,
    include_self: bool,
) -> Result<()> {
    let identity = T::from_key(if LARGEST { T::LEAST } else { T::GREATEST });
    places::<T::Raw>(out, dim, index, src, fresh(include_self, identity), |old, new| {
        let (a, b) = (T::key(old), T::key(new));
        let wins = if LARGEST { b > a } else { b < a };
        // NaN differs from itself.
        if a == a && (wins || b != b) {
            new
        } else {
            old
        }
    })
}

/// Divides each element by how many were added up there. Integers are rounded down.
fn divide_by_counts(out: &Tensor, dim: i64, index: &Tensor, src: &Tensor, include_self: bool) -> Result<()> {
    let counts = empty(out.sizes()?, &out.options().dtype(ScalarType::Long))?;
    let n = counts.numel()? as usize;
    if n == 0 {
        return Ok(());
    }
    // SAFETY: the tensor is new and dense.
    unsafe { Address(counts.data_ptr()).slice_mut::<i64>(n) }.fill(i64::from(include_self));
    let indexed = Indexed::new(&counts, dim, true)?;
    walk(&counts, indexed, index, source(src, index)?, |place, _| {
        // SAFETY: an element of the counts: the index was checked.
        unsafe { place.write(place.read::<i64>() + 1) };
    })?;
    let iter = TensorIteratorConfig::new()
        .op_name("scatter_reduce")
        .check_all_same_dtype(false)
        .check_mem_overlap(false)
        .resize_outputs(false)
        .add_output(out)
        .add_input(out)
        .add_input(&counts)
        .build_standalone()?;
    dispatch!(compute_dtype(out.dtype()), "scatter_reduce_two_cpu", EVERY, |T| binary::<T, i64, T>(
        &iter,
        4,
        |a: T, count: i64| { Mean::divided(a, count.max(1)) }
    ))
}

/// Division by a count.
trait Mean: Element {
    fn divided(self, count: i64) -> Self;
}

macro_rules! mean {
    ($($($T:ty),* => |$a:ident, $n:ident| $divided:expr);* $(;)?) => {$($(
        impl Mean for $T {
            #[inline(always)]
            fn divided(self, $n: i64) -> $T {
                let $a = self;
                $divided
            }
        }
    )*)*};
}

mean! {
    i8, i16, i32, i64 => |a, n| (i128::from(a).div_euclid(i128::from(n))) as _;
    u8, u16, u32, u64 => |a, n| (i128::from(a).div_euclid(i128::from(n))) as _;
    f32 => |a, n| a / n as f32;
    f64 => |a, n| a / n as f64;
    c10::Half => |a, n| c10::Half::from_f32(a.to_f32() / n as f32);
    c10::BFloat16 => |a, n| c10::BFloat16::from_f32(a.to_f32() / n as f32);
    bool => |a, n| a && n > 0;
    c10::Complex<f32> => |a, n| a / n as f32;
    c10::Complex<f64> => |a, n| a / n as f64;
    c10::Complex<c10::Half> => |a, n| c10::Complex::new(
        c10::Half::from_f32(a.re.to_f32() / n as f32),
        c10::Half::from_f32(a.im.to_f32() / n as f32),
    );
}
