//! `prod`.

use c10::Result;
use iter::TensorIterator;

use super::accumulate::{Accumulated, Ring};
use super::driver::reduce;
use super::monoid::Monoid;
use crate::dispatch::dispatch;
use crate::registration::register;

pub(super) fn register() {
    register! {
        prod_kernel: fn(&TensorIterator);
    }
}

fn prod_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(iter.dtype(0), "prod_kernel", EVERY, |T| reduce::<Product<T>>(iter))
}

/// The product of elements of a type.
struct Product<T>(std::marker::PhantomData<T>);

impl<T: Accumulated> Monoid for Product<T> {
    type In = T::Raw;
    type Lane = T::Lane;
    type Total = T::Total;
    type Out = T::Raw;

    #[inline(always)]
    fn identity() -> T::Lane {
        T::Lane::ONE
    }
    #[inline(always)]
    fn lift(element: T::Raw) -> T::Lane {
        T::lift(element)
    }
    #[inline(always)]
    fn join(a: T::Lane, b: T::Lane) -> T::Lane {
        a.mul(b)
    }
    #[inline(always)]
    fn total(lane: T::Lane) -> T::Total {
        T::widen(lane)
    }
    #[inline(always)]
    fn merge(a: T::Total, b: T::Total) -> T::Total {
        a.mul(b)
    }
    #[inline(always)]
    fn finish(total: T::Total) -> T::Raw {
        T::finish(total)
    }
}
