//! The natural logarithm.
//!
//! `log(2^k · m) = k·ln 2 + log(m)` with `m` in `[√½, √2)`. With `f = m − 1` and `s = f / (2 + f)`,
//! `log(1 + f) = 2·atanh(s) = f − (f²/2 − s·(f²/2 + R(s²)))`, where `R` is the tail of the series; the second form
//! adds small terms to the exact `f` last, which keeps the error under one ULP.

use super::arith::Arith;

/// 2/11 … 2/3: with s² ≤ 0.0295 the remainder is below 0.01 ULP.
const C32: [f32; 5] = [2.0 / 11.0, 2.0 / 9.0, 2.0 / 7.0, 2.0 / 5.0, 2.0 / 3.0];

/// 2/23 … 2/3: with s² ≤ 0.0295 the remainder is below 0.01 ULP.
const C64: [f64; 11] = [
    2.0 / 23.0,
    2.0 / 21.0,
    2.0 / 19.0,
    2.0 / 17.0,
    2.0 / 15.0,
    2.0 / 13.0,
    2.0 / 11.0,
    2.0 / 9.0,
    2.0 / 7.0,
    2.0 / 5.0,
    2.0 / 3.0,
];

/// `log(x)` within 1 ULP where FMA exists, within 2 without. Negative arguments give NaN, zero gives −∞.
#[inline(always)]
pub fn log_f32<A: Arith>(x: f32) -> f32 {
    const LN2_HI: f32 = 0.693_138_1; // 16 trailing zero bits: k · LN2_HI is exact
    const LN2_LO: f32 = 9.058_001e-6;
    let subnormal = x < f32::MIN_POSITIVE;
    let scaled = if subnormal { x * 8_388_608.0 } else { x };
    let bias = if subnormal { 23.0 } else { 0.0 };
    let bits = scaled.to_bits();
    // Subtracting the bits of √½ makes the exponent field count from m = √½.
    let shifted = bits.wrapping_sub(0x3f35_04f3);
    let k = ((shifted as i32) >> 23) as f32 - bias;
    let m = f32::from_bits((shifted & 0x007f_ffff).wrapping_add(0x3f35_04f3));
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let mut r = C32[0];
    for c in &C32[1..] {
        r = A::fma32(r, z, *c);
    }
    let r = r * z;
    let h = 0.5 * f * f;
    let tail = A::fma32(s, h + r, k * LN2_LO);
    let y = A::fma32(k, LN2_HI, f - (h - tail));
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    let y = if x == f32::INFINITY { x } else { y };
    if x >= 0.0 {
        y
    } else {
        f32::NAN
    }
}

/// `log(x)` within 1 ULP where FMA exists, within 2 without. Negative arguments give NaN, zero gives −∞.
#[inline(always)]
pub fn log_f64<A: Arith>(x: f64) -> f64 {
    const LN2_HI: f64 = 0.693_147_180_369_123_8; // 21 trailing zero bits: k · LN2_HI is exact
    const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;
    const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    let subnormal = x < f64::MIN_POSITIVE;
    let scaled = if subnormal { x * 4_503_599_627_370_496.0 } else { x };
    let bias = if subnormal { 52.0 } else { 0.0 };
    let bits = scaled.to_bits();
    let shifted = bits.wrapping_sub(SQRT_HALF);
    // The exponent fits 32 bits, and that conversion is an AVX2 instruction where the 64-bit one is not.
    let k = f64::from(((shifted as i64) >> 52) as i32) - bias;
    let m = f64::from_bits((shifted & 0x000f_ffff_ffff_ffff).wrapping_add(SQRT_HALF));
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let mut r = C64[0];
    for c in &C64[1..] {
        r = A::fma64(r, z, *c);
    }
    let r = r * z;
    let h = 0.5 * f * f;
    let tail = A::fma64(s, h + r, k * LN2_LO);
    let y = A::fma64(k, LN2_HI, f - (h - tail));
    let y = if x == 0.0 { f64::NEG_INFINITY } else { y };
    let y = if x == f64::INFINITY { x } else { y };
    if x >= 0.0 {
        y
    } else {
        f64::NAN
    }
}

#[cfg(test)]
mod tests {
    use super::super::ulp::{check32, check64};
    use super::super::{Fused, Unfused};
    use super::*;

    #[test]
    fn f32_error_is_within_2_ulp() {
        check32("log", 1e-6..100.0, log_f32::<Fused>, f64::ln, 1.0);
        check32("log", 1e-6..100.0, log_f32::<Unfused>, f64::ln, 2.0);
        check32("log near 1", 0.9..1.1, log_f32::<Unfused>, f64::ln, 2.0);
        check32("log of large", 1e30..3e38, log_f32::<Unfused>, f64::ln, 2.0);
        check32("log of subnormal", 1e-45..1e-38, log_f32::<Unfused>, f64::ln, 2.0);
    }

    #[test]
    fn f64_error_is_within_2_ulp() {
        check64("log", 1e-6..100.0, log_f64::<Fused>, f64::ln, 2.0);
        check64("log near 1", 0.9..1.1, log_f64::<Unfused>, f64::ln, 2.0);
        check64("log of subnormal", 5e-324..1e-308, log_f64::<Unfused>, f64::ln, 2.0);
    }

    #[test]
    fn special_values() {
        assert_eq!(log_f32::<Fused>(1.0), 0.0);
        assert_eq!(log_f32::<Fused>(0.0), f32::NEG_INFINITY);
        assert_eq!(log_f32::<Fused>(-0.0), f32::NEG_INFINITY);
        assert_eq!(log_f32::<Fused>(f32::INFINITY), f32::INFINITY);
        assert!(log_f32::<Fused>(-1.0).is_nan());
        assert!(log_f32::<Fused>(f32::NAN).is_nan());
        assert_eq!(log_f64::<Fused>(0.0), f64::NEG_INFINITY);
        assert!(log_f64::<Fused>(-1.0).is_nan());
    }
}
