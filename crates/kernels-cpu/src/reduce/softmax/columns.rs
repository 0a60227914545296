//! The loops down dense columns, a row of them at a time.

use super::{Floating, Real};
use crate::reduce::extremum::Extremum;
use crate::reduce::monoid::Monoid;
use crate::vec::tiered;

tiered! {
    /// `row = exp(row − shift)`, `sum = sum + row`.
    pub(super) fn exp_into<C>(row: &mut [C], shift: &[C], sum: &mut [C]) where { C: Real } => A {
        for ((x, &shift), sum) in row.iter_mut().zip(shift).zip(sum) {
            *x = Real::exp::<A>(*x - shift);
            *sum = *sum + *x;
        }
    }

    /// `sum = sum + exp(row − shift)`.
    pub(super) fn exp_sum_into<C>(row: &[C], shift: &[C], sum: &mut [C]) where { C: Real } => A {
        for ((&x, &shift), sum) in row.iter().zip(shift).zip(sum) {
            *sum = *sum + Real::exp::<A>(x - shift);
        }
    }

    /// `out = grad − exp(output) · sum`.
    pub(super) fn log_softmax_gradient<T>(
        out: &mut [T],
        grad: &[T::Compute],
        output: &[T::Compute],
        sum: &[T::Compute],
    ) where { T: Floating } => A {
        for (((out, &grad), &output), &sum) in out.iter_mut().zip(grad).zip(output).zip(sum) {
            *out = T::lower(grad - Real::exp::<A>(output) * sum);
        }
    }
}

tiered! { memory_bound:
    /// `max = max(max, row)`; NaN wins.
    pub(super) fn max_into<C>(max: &mut [C], row: &[C]) where { C: Real } => A {
        let _ = std::marker::PhantomData::<A>;
        for (max, &x) in max.iter_mut().zip(row) {
            *max = Extremum::<C, true>::join(*max, x);
        }
    }

    /// `sum = sum + a · b`.
    pub(super) fn dot_into<C>(a: &[C], b: &[C], sum: &mut [C]) where { C: Real } => A {
        let _ = std::marker::PhantomData::<A>;
        for ((&a, &b), sum) in a.iter().zip(b).zip(sum) {
            *sum = *sum + a * b;
        }
    }

    /// `sum = sum + a`.
    pub(super) fn add_into<C>(a: &[C], sum: &mut [C]) where { C: Real } => A {
        let _ = std::marker::PhantomData::<A>;
        for (&a, sum) in a.iter().zip(sum) {
            *sum = *sum + a;
        }
    }

    /// `out = row · factor`.
    pub(super) fn scale<T>(out: &mut [T], row: &[T::Compute], factor: &[T::Compute]) where { T: Floating } => A {
        let _ = std::marker::PhantomData::<A>;
        for ((out, &x), &factor) in out.iter_mut().zip(row).zip(factor) {
            *out = T::lower(x * factor);
        }
    }

    /// `out = (row − a) − b`.
    pub(super) fn shift<T>(out: &mut [T], row: &[T::Compute], a: &[T::Compute], b: &[T::Compute])
    where { T: Floating } => A {
        let _ = std::marker::PhantomData::<A>;
        for (((out, &x), &a), &b) in out.iter_mut().zip(row).zip(a).zip(b) {
            *out = T::lower((x - a) - b);
        }
    }

    /// `out = (grad − sum) · output`.
    pub(super) fn softmax_gradient<T>(out: &mut [T], grad: &[T::Compute], output: &[T::Compute], sum: &[T::Compute])
    where { T: Floating } => A {
        let _ = std::marker::PhantomData::<A>;
        for (((out, &grad), &output), &sum) in out.iter_mut().zip(grad).zip(output).zip(sum) {
            *out = T::lower((grad - sum) * output);
        }
    }
}
