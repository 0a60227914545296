//! `amax` and `amin`. NaN is larger and smaller than everything.

use c10::{BFloat16, Half, Result};
use iter::TensorIterator;

use super::driver::reduce;
use super::monoid::Monoid;
use crate::dispatch::dispatch;
use crate::map::Stored;
use crate::narrow::{widen_bfloat16, widen_half};
use crate::registration::register;

pub(super) fn register() {
    register! {
        amax_kernel: fn(&TensorIterator);
        amin_kernel: fn(&TensorIterator);
    }
}

fn amax_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(iter.dtype(0), "amax_kernel", ALL_AND_HALF + Bool + BAREBONES_UNSIGNED, |T| {
        reduce::<Extremum<T, true>>(iter)
    })
}

fn amin_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(iter.dtype(0), "amin_kernel", ALL_AND_HALF + Bool + BAREBONES_UNSIGNED, |T| {
        reduce::<Extremum<T, false>>(iter)
    })
}

/// A type that has a largest and a smallest element.
pub(crate) trait Ordered: Stored {
    /// What is compared: float32 for the halves.
    type Key: Copy + Send + Sync + PartialOrd + 'static;
    const LEAST: Self::Key;
    const GREATEST: Self::Key;
    fn key(raw: Self::Raw) -> Self::Key;
    fn from_key(key: Self::Key) -> Self::Raw;
}

macro_rules! ordered {
    ($($T:ty: $Key:ty, $least:expr, $greatest:expr, $key:expr, $from_key:expr);* $(;)?) => {$(
        impl Ordered for $T {
            type Key = $Key;
            const LEAST: $Key = $least;
            const GREATEST: $Key = $greatest;
            #[inline(always)]
            fn key(raw: Self::Raw) -> $Key {
                ($key)(raw)
            }
            #[inline(always)]
            fn from_key(key: $Key) -> Self::Raw {
                ($from_key)(key)
            }
        }
    )*};
}

macro_rules! ordered_by_itself {
    ($($T:ident),*) => {$(
        ordered!($T: $T, $T::MIN, $T::MAX, |raw: $T| raw, |key: $T| key);
    )*};
}

ordered_by_itself!(u8, i8, u16, i16, u32, i32, u64, i64);
ordered! {
    bool: u8, 0, 1, |raw: u8| (raw != 0) as u8, |key: u8| key;
    f32: f32, f32::NEG_INFINITY, f32::INFINITY, |raw: f32| raw, |key: f32| key;
    f64: f64, f64::NEG_INFINITY, f64::INFINITY, |raw: f64| raw, |key: f64| key;
    Half: f32, f32::NEG_INFINITY, f32::INFINITY, widen_half, Half::from_f32;
    BFloat16: f32, f32::NEG_INFINITY, f32::INFINITY, widen_bfloat16, BFloat16::from_f32;
}

/// The largest element, or the smallest.
pub(super) struct Extremum<T, const LARGEST: bool>(std::marker::PhantomData<T>);

impl<T: Ordered, const LARGEST: bool> Extremum<T, LARGEST> {
    /// Whether `a` wins against an earlier `b`.
    #[inline(always)]
    #[allow(clippy::eq_op)]
    pub(super) fn beats(a: T::Key, b: T::Key) -> bool {
        let wins = if LARGEST { a > b } else { a < b };
        // NaN differs from itself; an earlier one stays.
        wins | ((a != a) & (b == b))
    }
}

impl<T: Ordered, const LARGEST: bool> Monoid for Extremum<T, LARGEST> {
    type In = T::Raw;
    type Lane = T::Key;
    type Total = T::Key;
    type Out = T::Raw;

    #[inline(always)]
    fn identity() -> T::Key {
        if LARGEST {
            T::LEAST
        } else {
            T::GREATEST
        }
    }
    #[inline(always)]
    fn lift(element: T::Raw) -> T::Key {
        T::key(element)
    }
    #[inline(always)]
    #[allow(clippy::eq_op)]
    fn join(a: T::Key, b: T::Key) -> T::Key {
        let wins = if LARGEST { b > a } else { b < a };
        let winner = if wins { b } else { a };
        if b != b {
            b
        } else {
            winner
        }
    }
    #[inline(always)]
    fn total(lane: T::Key) -> T::Key {
        lane
    }
    #[inline(always)]
    fn merge(a: T::Key, b: T::Key) -> T::Key {
        Self::join(a, b)
    }
    #[inline(always)]
    fn finish(total: T::Key) -> T::Raw {
        T::from_key(total)
    }
    #[inline(always)]
    #[allow(clippy::eq_op)]
    fn is_settled(total: T::Key) -> bool {
        total != total
    }
}
