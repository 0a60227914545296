//! `sum`.

use c10::Result;
use iter::TensorIterator;

use super::accumulate::{Accumulated, Ring};
use super::driver::reduce;
use super::monoid::Monoid;
use crate::dispatch::dispatch;
use crate::registration::register;

pub(super) fn register() {
    register! {
        sum_kernel: fn(&TensorIterator);
    }
}

fn sum_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(iter.dtype(0), "sum_kernel", EVERY, |T| reduce::<Sum<T>>(iter))
}

/// The sum of elements of a type.
pub(super) struct Sum<T>(std::marker::PhantomData<T>);

impl<T: Accumulated> Monoid for Sum<T> {
    type In = T::Raw;
    type Lane = T::Lane;
    type Total = T::Total;
    type Out = T::Raw;

    #[inline(always)]
    fn identity() -> T::Lane {
        T::Lane::ZERO
    }
    #[inline(always)]
    fn lift(element: T::Raw) -> T::Lane {
        T::lift(element)
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
