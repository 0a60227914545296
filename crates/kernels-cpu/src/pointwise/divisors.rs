//! `gcd`, `lcm`.

use c10::Result;
use iter::TensorIterator;

use crate::dispatch::dispatch;
use crate::map::{binary, Stored};
use crate::registration::register;

pub(super) fn register() {
    register! {
        gcd_kernel: fn(&TensorIterator);
        lcm_kernel: fn(&TensorIterator);
    }
}

trait Divisible: Stored {
    /// The greatest common divisor, not negative unless it is the smallest number.
    fn gcd(self, other: Self) -> Self;
    /// The least common multiple, which wraps.
    fn lcm(self, other: Self) -> Self;
}

macro_rules! divisible {
    ($($T:ty: |$a:ident| $abs:expr),*) => {$(
        impl Divisible for $T {
            #[inline(always)]
            fn gcd(self, other: $T) -> $T {
                let abs = |$a: $T| $abs;
                let (mut a, mut b) = (abs(self), abs(other));
                while a != 0 {
                    (a, b) = (b.wrapping_rem(a), a);
                }
                b
            }
            #[inline(always)]
            fn lcm(self, other: $T) -> $T {
                let abs = |$a: $T| $abs;
                match Divisible::gcd(self, other) {
                    0 => 0,
                    divisor => abs(self.wrapping_div(divisor).wrapping_mul(other)),
                }
            }
        }
    )*};
}

divisible!(
    u8: |a| a, i8: |a| a.wrapping_abs(), i16: |a| a.wrapping_abs(), i32: |a| a.wrapping_abs(), i64: |a| a.wrapping_abs()
);

fn gcd_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(iter.common_dtype(), "gcd_cpu", INTEGRAL, |T| {
        binary::<T, T, T>(iter, 32, |a: T, b: T| Divisible::gcd(a, b))
    })
}

fn lcm_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(iter.common_dtype(), "lcm_cpu", INTEGRAL, |T| {
        binary::<T, T, T>(iter, 32, |a: T, b: T| Divisible::lcm(a, b))
    })
}
