//! `exp`.
//!
//! `exp(x) = 2^n · exp(r)` with `n = round(x / ln 2)` and `r = x − n·ln 2`, so `|r| ≤ ln 2 / 2`. `ln 2` is split in
//! two so that the subtraction is exact (Cody and Waite). `n` is found by adding 1.5·2^p, which leaves it in the
//! low bits of the sum: no conversion instruction, and NaN needs no special case. The power of two is applied in
//! two halves, so that results near the ends of the range, subnormal ones included, are right.

use super::arith::Arith;

/// 1/7! … 1/2!: the remainder is below 0.1 ULP for |r| ≤ 0.3466.
const C32: [f32; 6] = [
    0.0001984126984126984,
    0.001388888888888889,
    0.008333333333333333,
    0.041666666666666664,
    0.16666666666666666,
    0.5,
];

/// 1/13! … 1/2!: the remainder is below 0.04 ULP for |r| ≤ 0.3466.
const C64: [f64; 12] = [
    1.6059043836821613e-10,
    2.08767569878681e-09,
    2.505210838544172e-08,
    2.755731922398589e-07,
    2.7557319223985893e-06,
    2.48015873015873e-05,
    0.0001984126984126984,
    0.001388888888888889,
    0.008333333333333333,
    0.041666666666666664,
    0.16666666666666666,
    0.5,
];

/// `exp(r) − 1 − r` over `r²`, as a polynomial in `r`.
#[inline(always)]
fn tail32<A: Arith>(r: f32) -> f32 {
    let mut p = C32[0];
    for c in &C32[1..] {
        p = A::fma32(p, r, *c);
    }
    p
}

#[inline(always)]
fn tail64<A: Arith>(r: f64) -> f64 {
    let mut p = C64[0];
    for c in &C64[1..] {
        p = A::fma64(p, r, *c);
    }
    p
}

/// `exp(x)` within 1 ULP where FMA exists, within 2 without.
#[inline(always)]
pub fn exp_f32<A: Arith>(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5 · 2^23
    const LN2_HI: f32 = 0.693_359_375; // 355/512: products with |n| < 2^15 are exact
    const LN2_LO: f32 = -2.121_944_4e-4;
    // Beyond these the result is 0 or infinity whatever the argument; the comparisons let NaN pass.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let t = A::fma32(x, std::f32::consts::LOG2_E, ROUND);
    let n = t - ROUND;
    let r = A::fma32(n, -LN2_HI, x);
    let r = A::fma32(n, -LN2_LO, r);
    let p = A::fma32(tail32::<A>(r), r * r, r) + 1.0;
    let n = (t.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    let half = n >> 1;
    let pow2 = |k: i32| f32::from_bits(((k.wrapping_add(127)) as u32) << 23);
    p * pow2(half) * pow2(n.wrapping_sub(half))
}

/// `exp(x)` within 1 ULP where FMA exists, within 2 without.
#[inline(always)]
pub fn exp_f64<A: Arith>(x: f64) -> f64 {
    const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 · 2^52
    const LN2_HI: f64 = 0.693_147_180_369_123_8; // 32 significant bits: products with |n| < 2^20 are exact
    const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;
    let x = if x > 710.0 { 710.0 } else { x };
    let x = if x < -746.0 { -746.0 } else { x };
    let t = A::fma64(x, std::f64::consts::LOG2_E, ROUND);
    let n = t - ROUND;
    let r = A::fma64(n, -LN2_HI, x);
    let r = A::fma64(n, -LN2_LO, r);
    let p = A::fma64(tail64::<A>(r), r * r, r) + 1.0;
    let n = (t.to_bits() as i64).wrapping_sub(ROUND.to_bits() as i64);
    let half = n >> 1;
    let pow2 = |k: i64| f64::from_bits(((k.wrapping_add(1023)) as u64) << 52);
    p * pow2(half) * pow2(n.wrapping_sub(half))
}

#[cfg(test)]
mod tests {
    use super::super::ulp::{check32, check64};
    use super::super::{Fused, Unfused};
    use super::*;

    #[test]
    fn f32_error_is_within_2_ulp() {
        check32("exp", -103.9..88.7, exp_f32::<Fused>, f64::exp, 1.0);
        check32("exp", -103.9..88.7, exp_f32::<Unfused>, f64::exp, 2.0);
    }

    #[test]
    fn f64_error_is_within_2_ulp() {
        check64("exp", -745.0..709.7, exp_f64::<Fused>, f64::exp, 2.0);
        check64("exp", -745.0..709.7, exp_f64::<Unfused>, f64::exp, 2.0);
    }

    #[test]
    fn special_values() {
        assert_eq!(exp_f32::<Fused>(0.0), 1.0);
        assert_eq!(exp_f32::<Fused>(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp_f32::<Fused>(f32::NEG_INFINITY), 0.0);
        assert!(exp_f32::<Fused>(f32::NAN).is_nan());
        assert_eq!(exp_f64::<Fused>(f64::INFINITY), f64::INFINITY);
        assert_eq!(exp_f64::<Fused>(f64::NEG_INFINITY), 0.0);
        assert!(exp_f64::<Fused>(f64::NAN).is_nan());
        assert_eq!(exp_f32::<Unfused>(88.8), f32::INFINITY);
    }
}
