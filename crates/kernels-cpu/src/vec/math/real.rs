//! What elementary functions need of a floating-point type, so that each is written once for both.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::arith::Arith;

/// `f32` or `f64`.
pub trait Real:
    Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + Send
    + Sync
    + 'static
{
    /// 1.5·2^(bits of the mantissa): adding it rounds to an integer, which is left in the low bits of the sum.
    const ROUND: Self;
    /// ln 2 in two parts: products of the first with whole numbers below 2^10 are exact.
    const LN2: [Self; 2];
    /// Below this argument `exp` is subnormal or 0, below the second it is 0; above the third it is infinite, and above
    /// the fourth half of it is. Close to where that happens: powers of two beyond the range are not formed.
    const EXP_RANGE: [Self; 4];
    /// Above this argument products with small numbers overflow.
    const HUGE: Self;
    /// The smallest normal number.
    const MIN_NORMAL: Self;
    /// What makes subnormal numbers normal, and its logarithm to base 2.
    const SUBNORMAL_SCALE: [Self; 2];
    /// What `erfcx` is expanded around.
    const ERFCX_CENTRE: Self;
    /// 2^(half the bits of the mantissa) + 1, which splits a number in two halves.
    const SPLITTER: Self;
    /// Infinity.
    const INFINITY: Self;
    /// Not a number.
    const NAN: Self;
    /// π/2 in two parts.
    const HALF_PI: [Self; 2];

    /// A constant.
    fn of(value: f64) -> Self;
    /// `self * b + c`
    fn fma<A: Arith>(self, b: Self, c: Self) -> Self;
    /// The magnitude.
    fn abs(self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// With the sign of another.
    fn copysign(self, sign: Self) -> Self;
    /// `2^n` for a sum with [`ROUND`](Self::ROUND) that holds `n` in its low bits, times `2^shift`; only normal results.
    fn power_of_two(sum: Self, shift: i32) -> Self;
    /// The distance to the nearest multiple of π/2, and the low bits of that multiple's number; for |x| < 2^20.
    fn reduce<A: Arith>(self) -> (Self, u32);
    /// `self = 2^k·m` with `m` in `[√½, √2)`; for normal numbers.
    fn split(self) -> (Self, Self);
    /// `self·2^−k` for a whole number `k` that [`split`](Self::split) gave.
    fn scale_down(self, k: Self) -> Self;
    /// `n/d` with `x·z·n/d = x − tanh x`, `z = x²`: Lambert's fraction from a depth that suffices for |x| < 0.625.
    fn tanh_fraction<A: Arith>(z: Self) -> (Self, Self);
    /// In double precision.
    fn to_f64(self) -> f64;

    /// The larger; the second if one is NaN.
    #[inline(always)]
    fn max_of(self, other: Self) -> Self {
        if self > other {
            self
        } else {
            other
        }
    }
    /// The smaller; the second if one is NaN.
    #[inline(always)]
    fn min_of(self, other: Self) -> Self {
        if self < other {
            self
        } else {
            other
        }
    }
    /// Whether it is NaN.
    #[inline(always)]
    #[allow(clippy::eq_op)]
    fn is_nan(self) -> bool {
        self != self
    }
}

macro_rules! real {
    ($T:ident, $bits:ident, $int:ident, $fma:ident, mantissa $mantissa:literal, bias $bias:literal, sqrt_half $sqrt_half:literal,
     tanh $tanh:ident, $($constants:tt)*) => {
        impl Real for $T {
            $($constants)*
            const HUGE: $T = $T::MAX / 8.0;
            const MIN_NORMAL: $T = $T::MIN_POSITIVE;
            const INFINITY: $T = $T::INFINITY;
            const NAN: $T = $T::NAN;

            #[inline(always)]
            fn of(value: f64) -> $T {
                value as $T
            }
            #[inline(always)]
            fn fma<A: Arith>(self, b: $T, c: $T) -> $T {
                A::$fma(self, b, c)
            }
            #[inline(always)]
            fn abs(self) -> $T {
                $T::abs(self)
            }
            #[inline(always)]
            fn sqrt(self) -> $T {
                $T::sqrt(self)
            }
            #[inline(always)]
            fn copysign(self, sign: $T) -> $T {
                $T::copysign(self, sign)
            }
            #[inline(always)]
            fn power_of_two(sum: $T, shift: i32) -> $T {
                // The bits of ROUND itself are shifted out.
                let bits = (sum.to_bits() << $mantissa).wrapping_add((($bias + shift) as $bits) << $mantissa);
                $T::from_bits(bits)
            }
            #[inline(always)]
            fn reduce<A: Arith>(self) -> ($T, u32) {
                let (r, quadrant) = reduce::<A>(self as f64);
                (r as $T, quadrant)
            }
            #[inline(always)]
            fn split(self) -> ($T, $T) {
                // Subtracting the bits of √½ makes the exponent field count from m = √½.
                let shifted = self.to_bits().wrapping_sub($sqrt_half);
                // The exponent fits 32 bits, and that conversion is an AVX2 instruction where the 64-bit one is not.
                let k = ((shifted as $int) >> $mantissa) as i32 as $T;
                let mask: $bits = (1 << $mantissa) - 1;
                (k, $T::from_bits((shifted & mask).wrapping_add($sqrt_half)))
            }
            #[inline(always)]
            fn scale_down(self, k: $T) -> $T {
                self * Self::power_of_two(Self::ROUND - k, 0)
            }
            #[inline(always)]
            fn tanh_fraction<A: Arith>(z: $T) -> ($T, $T) {
                $tanh::<A>(z)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    };
}

real! {
    f32, u32, i32, fma32, mantissa 23, bias 127, sqrt_half 0x3f35_04f3, tanh tanh_fraction_f32,
    const ROUND: f32 = 12_582_912.0;
    const LN2: [f32; 2] = [0.693_359_375, -2.121_944_4e-4];
    const EXP_RANGE: [f32; 4] = [-86.0, -104.0, 89.0, 89.5];
    const SUBNORMAL_SCALE: [f32; 2] = [8_388_608.0, 23.0];
    const ERFCX_CENTRE: f32 = 2.5;
    const SPLITTER: f32 = 4097.0;
    const HALF_PI: [f32; 2] = [std::f32::consts::FRAC_PI_2, -4.371_139e-8];
}

real! {
    f64, u64, i64, fma64, mantissa 52, bias 1023, sqrt_half 0x3fe6_a09e_667f_3bcd, tanh tanh_fraction_f64,
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LN2: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];
    const EXP_RANGE: [f64; 4] = [-707.0, -746.0, 710.0, 710.6];
    const SUBNORMAL_SCALE: [f64; 2] = [4_503_599_627_370_496.0, 52.0];
    const ERFCX_CENTRE: f64 = 3.75;
    const SPLITTER: f64 = 134_217_729.0;
    const HALF_PI: [f64; 2] = [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17];
}

/// A polynomial, coefficients from the highest power.
#[inline(always)]
pub fn polynomial<A: Arith, T: Real>(x: T, coefficients: &[T]) -> T {
    let mut sum = coefficients[0];
    for &c in &coefficients[1..] {
        sum = sum.fma::<A>(x, c);
    }
    sum
}

/// Four levels of the fraction, in closed form: the remainder is below 0.1 ULP.
#[inline(always)]
fn tanh_fraction_f32<A: Arith>(z: f32) -> (f32, f32) {
    (A::fma32(z, 14.0, 315.0), A::fma32(z, A::fma32(z, 15.0, 420.0), 945.0))
}

/// `D = n / d` by the backward recurrence, from a depth whose remainder is below 0.01 ULP.
#[inline(always)]
fn tanh_fraction_f64<A: Arith>(z: f64) -> (f64, f64) {
    let (mut n, mut d) = (19.0, 1.0);
    for odd in [17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        (n, d) = (A::fma64(z, d, odd * n), n);
    }
    (d, A::fma64(z, d, n))
}

/// Cody and Waite's reduction by π/2, in double precision for both types: π/2 is taken apart so that the products with
/// the first two parts are exact.
#[inline(always)]
fn reduce<A: Arith>(x: f64) -> (f64, u32) {
    const PARTS: [f64; 3] = [1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_795_950_7e-21];
    let sum = A::fma64(x, std::f64::consts::FRAC_2_PI, f64::ROUND);
    let n = sum - f64::ROUND;
    let r = A::fma64(n, -PARTS[0], x);
    let r = A::fma64(n, -PARTS[1], r);
    (A::fma64(n, -PARTS[2], r), sum.to_bits() as u32)
}
