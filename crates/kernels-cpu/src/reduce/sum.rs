//! `sum`, `nansum`.

use std::marker::PhantomData;

use c10::{Result, ScalarType};
use iter::TensorIterator;

use super::accumulate::{Accumulated, Ring};
use super::driver::reduce;
use super::monoid::Monoid;
use crate::dispatch::dispatch;
use crate::registration::register;

pub(super) fn register() {
    register! {
        sum_kernel: fn(&TensorIterator);
        nansum_kernel: fn(&TensorIterator);
    }
}

fn sum_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(iter.dtype(0), "sum_kernel", EVERY, |T| reduce::<Sum<T>>(iter))
}

fn nansum_kernel(iter: &TensorIterator) -> Result<()> {
    match (iter.dtype(1), iter.dtype(0)) {
        (ScalarType::Double, to) if to != ScalarType::Double => {
            dispatch!(to, "nansum_cpu", INTEGRAL_AND_BOOL + BAREBONES_UNSIGNED, |T| {
                reduce::<Sum<T, Truncated>>(iter)
            })
        }
        (dtype, _) if dtype.is_floating_point() => {
            dispatch!(dtype, "nansum_cpu", FLOATING_AND_HALF, |T| reduce::<Sum<T, Numbers>>(iter))
        }
        _ => sum_kernel(iter),
    }
}

/// Which elements a sum over `T` reads, and what it takes them for.
pub(super) trait Terms<T: Accumulated>: 'static {
    /// An element in memory.
    type In: Copy + Send + Sync;
    fn lift(element: Self::In) -> T::Lane;
}

/// Every element, as it is.
pub(super) struct Every;

impl<T: Accumulated> Terms<T> for Every {
    type In = T::Raw;
    #[inline(always)]
    fn lift(element: T::Raw) -> T::Lane {
        T::lift(element)
    }
}

/// Every element but NaN.
struct Numbers;

impl<T: Accumulated<Lane: PartialOrd>> Terms<T> for Numbers {
    type In = T::Raw;
    #[inline(always)]
    fn lift(element: T::Raw) -> T::Lane {
        let lane = T::lift(element);
        if lane.partial_cmp(&lane).is_none() {
            T::Lane::ZERO
        } else {
            lane
        }
    }
}

/// Every element but NaN, converted one by one.
struct Truncated;

impl<T: Accumulated> Terms<T> for Truncated {
    type In = f64;
    #[inline(always)]
    fn lift(element: f64) -> T::Lane {
        if element.is_nan() {
            T::Lane::ZERO
        } else {
            T::lift(T::cast_from(element).store())
        }
    }
}

/// The sum of elements of a type.
pub(super) struct Sum<T, From = Every>(PhantomData<(T, From)>);

impl<T: Accumulated, From: Terms<T>> Monoid for Sum<T, From> {
    type In = From::In;
    type Lane = T::Lane;
    type Total = T::Total;
    type Out = T::Raw;

    #[inline(always)]
    fn identity() -> T::Lane {
        T::Lane::ZERO
    }
    #[inline(always)]
    fn lift(element: From::In) -> T::Lane {
        From::lift(element)
    }
    #[inline(always)]
    fn join(a: T::Lane, b: T::Lane) -> T::Lane {
        a.add(b)
    }
    #[inline(always)]
    fn total(lane: T::Lane) -> T::Total {
        T::widen(lane)
    }
    #[inline(always)]
    fn merge(a: T::Total, b: T::Total) -> T::Total {
        a.add(b)
    }
    #[inline(always)]
    fn finish(total: T::Total) -> T::Raw {
        T::finish(total)
    }
}
