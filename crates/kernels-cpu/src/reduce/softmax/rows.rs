//! The loops over dense rows.

use super::{Floating, Real};
use crate::vec::tiered;

/// Lanes of a sum: see Note [Lanes].
const LANES: usize = 64;
/// Elements whose sum is kept in the compute type.
const BLOCK: usize = 32 * LANES;
/// Lanes of a sum of exponentials, which take longer than an addition: more would only cost short rows.
const EXP_LANES: usize = 16;
/// Exponentials whose sum is kept in the compute type.
const EXP_BLOCK: usize = 32 * EXP_LANES;

macro_rules! tree {
    ($lanes:ident; $($width:literal)*) => {{
        $(for lane in 0..$width {
            $lanes[lane] = $lanes[lane] + $lanes[lane + $width];
        })*
        $lanes[0]
    }};
}

tiered! {
    /// `row = exp(row − shift)`, and its sum.
    fn exp_block<C>(row: &mut [C], shift: C) -> C where { C: Real } => A {
        let mut lanes = [C::zero(); EXP_LANES];
        let (rows, rest) = row.as_chunks_mut::<EXP_LANES>();
        for row in rows {
            for lane in 0..EXP_LANES {
                let value = Real::exp::<A>(row[lane] - shift);
                row[lane] = value;
                lanes[lane] = lanes[lane] + value;
            }
        }
        for x in rest.iter_mut() {
            *x = Real::exp::<A>(*x - shift);
        }
        for (lane, &x) in lanes.iter_mut().zip(rest.iter()) {
            *lane = *lane + x;
        }
        tree!(lanes; 8 4 2 1)
    }

    /// The sum of `exp(row − shift)`.
    fn exp_sum_block<C>(row: &[C], shift: C) -> C where { C: Real } => A {
        let mut lanes = [C::zero(); EXP_LANES];
        let (rows, rest) = row.as_chunks::<EXP_LANES>();
        for row in rows {
            for lane in 0..EXP_LANES {
                lanes[lane] = lanes[lane] + Real::exp::<A>(row[lane] - shift);
            }
        }
        for (lane, &x) in lanes.iter_mut().zip(rest) {
            *lane = *lane + Real::exp::<A>(x - shift);
        }
        tree!(lanes; 8 4 2 1)
    }

    /// `out = grad − exp(output) · sum`.
    pub(super) fn log_softmax_gradient<T>(
        out: &mut [T],
        grad: &[T::Compute],
        output: &[T::Compute],
        sum: T::Compute,
    ) where { T: Floating } => A {
        for ((out, &grad), &output) in out.iter_mut().zip(grad).zip(output) {
            *out = T::lower(grad - Real::exp::<A>(output) * sum);
        }
    }
}

tiered! { memory_bound:
    /// To the compute type.
    pub(super) fn lift_row<T>(out: &mut [T::Compute], row: &[T]) where { T: Floating } => A {
        let _ = std::marker::PhantomData::<A>;
        for (out, &x) in out.iter_mut().zip(row) {
            *out = x.lift();
        }
    }

    /// The sum of `a · b`.
    fn dot_block<C>(a: &[C], b: &[C]) -> C where { C: Real } => A {
        let _ = std::marker::PhantomData::<A>;
        let mut lanes = [C::zero(); LANES];
        let (a_rows, a_rest) = a.as_chunks::<LANES>();
        let (b_rows, b_rest) = b.as_chunks::<LANES>();
        for (a, b) in a_rows.iter().zip(b_rows) {
            for lane in 0..LANES {
                lanes[lane] = lanes[lane] + a[lane] * b[lane];
            }
        }
        for ((lane, &a), &b) in lanes.iter_mut().zip(a_rest).zip(b_rest) {
            *lane = *lane + a * b;
        }
        tree!(lanes; 32 16 8 4 2 1)
    }

    /// `out = row · factor`.
    pub(super) fn scale_row<T>(out: &mut [T], row: &[T::Compute], factor: T::Compute) where { T: Floating } => A {
        let _ = std::marker::PhantomData::<A>;
        for (out, &x) in out.iter_mut().zip(row) {
            *out = T::lower(x * factor);
        }
    }

    /// `out = (row − a) − b`.
    pub(super) fn shift_row<T>(out: &mut [T], row: &[T::Compute], a: T::Compute, b: T::Compute)
    where { T: Floating } => A {
        let _ = std::marker::PhantomData::<A>;
        for (out, &x) in out.iter_mut().zip(row) {
            *out = T::lower((x - a) - b);
        }
    }

    /// `out = (grad − sum) · output`.
    pub(super) fn softmax_gradient<T>(out: &mut [T], grad: &[T::Compute], output: &[T::Compute], sum: T::Compute)
    where { T: Floating } => A {
        let _ = std::marker::PhantomData::<A>;
        for ((out, &grad), &output) in out.iter_mut().zip(grad).zip(output) {
            *out = T::lower((grad - sum) * output);
        }
    }
}

/// `row = exp(row − shift)`, and its sum.
pub(super) fn exp_row<C: Real>(row: &mut [C], shift: C) -> C {
    C::from_double(row.chunks_mut(EXP_BLOCK).map(|block| exp_block(block, shift).to_double()).sum())
}

/// The sum of `exp(row − shift)`.
pub(super) fn exp_sum<C: Real>(row: &[C], shift: C) -> C {
    C::from_double(row.chunks(EXP_BLOCK).map(|block| exp_sum_block(block, shift).to_double()).sum())
}

/// The sum of `a · b`.
pub(super) fn dot<C: Real>(a: &[C], b: &[C]) -> C {
    C::from_double(a.chunks(BLOCK).zip(b.chunks(BLOCK)).map(|(a, b)| dot_block(a, b).to_double()).sum())
}
