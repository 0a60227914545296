//! `exp`, `exp2`, `expm1`.
//!
//! `exp(x) = 2^n · exp(r)` with `n = round(x / ln 2)` and `r = x − n·ln 2`, so `|r| ≤ ln 2 / 2`. `ln 2` is split in
//! two so that the subtraction is exact (Cody and Waite). `n` is found by adding 1.5·2^p, which leaves it in the
//! low bits of the sum: no conversion instruction, and NaN needs no special case.

use super::arith::Arith;
use super::real::{polynomial, Real};
use super::tables::Tables;

/// `2^−n` that [`scale`] takes off and puts back where the result is subnormal.
const RESERVE: f64 = 64.0;

/// `e·2^n`, halved if asked for, where `sum` holds `n`; `low` says that the result may be subnormal.
#[inline(always)]
fn scale<T: Real>(e: T, sum: T, low: bool, half: bool) -> T {
    // 2^128 is no float32: the largest results are made of half of it.
    let sum = sum + if low { T::of(RESERVE) } else { T::of(0.0) };
    let back = if low { T::of(1.0 / 18_446_744_073_709_551_616.0) } else { T::of(1.0) };
    (e + e) * T::power_of_two(sum, if half { -2 } else { -1 }) * back
}

/// `x` as `n·ln 2 + r`: a sum that holds `n`, and `r`.
#[inline(always)]
fn reduce<A: Arith, T: Real>(x: T) -> (T, T) {
    let sum = x.fma::<A>(T::of(std::f64::consts::LOG2_E), T::ROUND);
    let n = sum - T::ROUND;
    let r = n.fma::<A>(-T::LN2[0], x);
    (sum, n.fma::<A>(-T::LN2[1], r))
}

#[inline(always)]
fn exp_or_half<A: Arith, T: Tables>(x: T, half: bool) -> T {
    let [low, zero, full, halved] = T::EXP_RANGE;
    let infinite = if half { halved } else { full };
    // Beyond these the result is 0 or infinity whatever the argument; the comparisons let NaN pass.
    let x = if x > infinite { infinite } else { x };
    let x = if x < zero { zero } else { x };
    let (sum, r) = reduce::<A, T>(x);
    let one = T::of(1.0);
    let e = polynomial::<A, T>(r, T::EXP).fma::<A>(r, one).fma::<A>(r, one);
    scale(e, sum, x < low, half)
}

/// `exp(x)` within 1 ULP where FMA exists, within 2 without.
#[inline(always)]
pub fn exp<A: Arith, T: Tables>(x: T) -> T {
    exp_or_half::<A, T>(x, false)
}

/// `exp(x)` for `x ≤ 0`, and 0 where that may be subnormal: a CPU takes a hundred times as long for a subnormal number as for
/// any other, and most arguments may be far below.
#[inline(always)]
pub fn exp_of_negative<A: Arith, T: Tables>(x: T) -> T {
    let (zero, one) = (T::of(0.0), T::of(1.0));
    let vanishes = x < T::EXP_RANGE[0];
    let x = if vanishes { zero } else { x };
    let (sum, r) = reduce::<A, T>(x);
    let e = polynomial::<A, T>(r, T::EXP).fma::<A>(r, one).fma::<A>(r, one);
    let result = e * T::power_of_two(sum, 0);
    if vanishes {
        zero
    } else {
        result
    }
}

/// `exp(x) / 2`, which is finite where the hyperbolic functions are.
#[inline(always)]
pub(super) fn half_exp<A: Arith, T: Tables>(x: T) -> T {
    exp_or_half::<A, T>(x, true)
}

/// `2^x` within 1 ULP where FMA exists, within 2 without.
#[inline(always)]
pub fn exp2<A: Arith, T: Tables>(x: T) -> T {
    let per_bit = T::of(std::f64::consts::LOG2_E);
    let [low, zero, infinite, _] = T::EXP_RANGE.map(|limit| limit * per_bit);
    let x = if x > infinite { infinite } else { x };
    let x = if x < zero { zero } else { x };
    let sum = x + T::ROUND;
    let r = x - (sum - T::ROUND);
    let e = polynomial::<A, T>(r, T::EXP2).fma::<A>(r, T::of(1.0));
    scale(e, sum, x < low, false)
}

/// `exp(x) − 1` for `x` above −40; see [`expm1`].
#[inline(always)]
fn expm1_above<A: Arith, T: Tables>(x: T) -> T {
    let (sum, r) = reduce::<A, T>(x);
    let q = polynomial::<A, T>(r, T::EXP).fma::<A>(r * r, r);
    // 2^n·q + (2^n − 1), halved so that 2^n is a number.
    let s = T::power_of_two(sum, -1);
    let half = q.fma::<A>(s, s - T::of(0.5));
    half + half
}

/// `exp(x) − 1` within 2 ULP.
#[inline(always)]
pub fn expm1<A: Arith, T: Tables>(x: T) -> T {
    let infinite = T::EXP_RANGE[2];
    let a = if x > infinite { infinite } else { x };
    let a = if a < T::of(-40.0) { T::of(-40.0) } else { a };
    // The sign is copied for the sake of −0.
    expm1_above::<A, T>(a).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::super::ulp::{check32, check64};
    use super::super::{Fused, Unfused};
    use super::*;

    #[test]
    fn f32_error_is_within_2_ulp() {
        check32("exp", -103.9..88.7, exp::<Fused, f32>, f64::exp, 1.0);
        check32("exp", -103.9..88.7, exp::<Unfused, f32>, f64::exp, 2.0);
    }

    #[test]
    fn f64_error_is_within_2_ulp() {
        check64("exp", -745.0..709.7, exp::<Fused, f64>, f64::exp, 2.0);
        check64("exp", -745.0..709.7, exp::<Unfused, f64>, f64::exp, 2.0);
    }

    #[test]
    fn of_negative_arguments() {
        check32("exp_of_negative", -86.0..0.0, exp_of_negative::<Fused, f32>, f64::exp, 1.0);
        check32("exp_of_negative", -86.0..0.0, exp_of_negative::<Unfused, f32>, f64::exp, 2.0);
        check64("exp_of_negative", -707.0..0.0, exp_of_negative::<Fused, f64>, f64::exp, 2.0);
        for x in [f32::NEG_INFINITY, -1e30, -200.0, -104.0, -90.0, -86.1] {
            assert_eq!(exp_of_negative::<Fused, f32>(x), 0.0, "{x}");
            assert_eq!(exp_of_negative::<Fused, f64>(x as f64 * 10.0), 0.0, "{x}0");
        }
        assert_eq!(exp_of_negative::<Fused, f32>(0.0), 1.0);
        assert_eq!(exp_of_negative::<Fused, f32>(-0.0), 1.0);
        assert!(exp_of_negative::<Fused, f32>(f32::NAN).is_nan());
        assert!(exp_of_negative::<Fused, f64>(f64::NAN).is_nan());
    }

    #[test]
    fn special_values() {
        assert_eq!(exp::<Fused, f32>(0.0), 1.0);
        assert_eq!(exp::<Fused, f32>(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp::<Fused, f32>(f32::NEG_INFINITY), 0.0);
        assert!(exp::<Fused, f32>(f32::NAN).is_nan());
        assert_eq!(exp::<Fused, f64>(f64::INFINITY), f64::INFINITY);
        assert_eq!(exp::<Fused, f64>(f64::NEG_INFINITY), 0.0);
        assert!(exp::<Fused, f64>(f64::NAN).is_nan());
        assert_eq!(exp::<Unfused, f32>(88.8), f32::INFINITY);
    }

    #[test]
    fn exp2_and_expm1_are_within_2_ulp() {
        check32("exp2", -149.0..127.9, exp2::<Fused, f32>, f64::exp2, 1.0);
        check32("exp2", -149.0..127.9, exp2::<Unfused, f32>, f64::exp2, 2.0);
        check64("exp2", -1070.0..1023.9, exp2::<Fused, f64>, f64::exp2, 2.0);
        check32("expm1", -20.0..88.7, expm1::<Fused, f32>, f64::exp_m1, 2.0);
        check32("expm1", -1.1..1.1, expm1::<Unfused, f32>, f64::exp_m1, 2.0);
        check64("expm1", -40.0..709.7, expm1::<Fused, f64>, f64::exp_m1, 2.0);
        check64("expm1", -1.1..1.1, expm1::<Unfused, f64>, f64::exp_m1, 2.0);
    }

    #[test]
    fn what_is_too_large_is_infinite() {
        for x in [88.73f32, 88.9, 89.0, 89.4, 90.0, 128.0, 1e10, f32::MAX, f32::INFINITY] {
            assert_eq!(exp::<Fused, f32>(x), f32::INFINITY, "{x}");
            assert_eq!(expm1::<Fused, f32>(x), f32::INFINITY, "{x}");
            assert_eq!(exp2::<Unfused, f32>(x + 40.0), f32::INFINITY, "{x}");
            assert_eq!(half_exp::<Fused, f32>(x + 0.8), f32::INFINITY, "{x}");
        }
        for x in [709.8f64, 710.0, 710.6, 711.0, 1e300, f64::INFINITY] {
            assert_eq!(exp::<Fused, f64>(x), f64::INFINITY, "{x}");
            assert_eq!(expm1::<Fused, f64>(x), f64::INFINITY, "{x}");
            assert_eq!(exp2::<Unfused, f64>(x + 320.0), f64::INFINITY, "{x}");
            assert_eq!(half_exp::<Fused, f64>(x + 0.8), f64::INFINITY, "{x}");
        }
    }

    #[test]
    fn exp2_and_expm1_of_special_values() {
        for n in -149..=127 {
            assert_eq!(exp2::<Fused, f32>(n as f32), 2f64.powi(n) as f32);
        }
        assert_eq!(exp2::<Fused, f32>(128.0), f32::INFINITY);
        assert_eq!(exp2::<Fused, f64>(f64::NEG_INFINITY), 0.0);
        assert_eq!(expm1::<Fused, f32>(-0.0).to_bits(), (-0f32).to_bits());
        assert_eq!(expm1::<Fused, f64>(f64::NEG_INFINITY), -1.0);
        assert_eq!(expm1::<Fused, f64>(f64::INFINITY), f64::INFINITY);
        assert!(expm1::<Fused, f64>(f64::NAN).is_nan());
        assert_eq!(expm1::<Fused, f64>(1e-300), 1e-300);
    }
}
