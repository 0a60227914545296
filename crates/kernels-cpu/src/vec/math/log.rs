//! Logarithms.
//!
//! `log(2^k · m) = k·ln 2 + log(m)` with `m` in `[√½, √2)`. With `f = m − 1` and `s = f / (2 + f)`,
//! `log(1 + f) = 2·atanh(s) = f − (f²/2 − s·(f²/2 + R(s²)))`, where `R` is the tail of the series; the second form
//! adds small terms to the exact `f` last, which keeps the error under one ULP.

use super::arith::Arith;
use super::real::{polynomial, Real};
use super::tables::Tables;

/// What is subtracted from `f` to give `log(1 + f)`, plus `carry`.
#[inline(always)]
fn bend<A: Arith, T: Tables>(f: T, carry: T) -> T {
    let s = f / (T::of(2.0) + f);
    let z = s * s;
    let r = polynomial::<A, T>(z, T::LOG) * z;
    let h = T::of(0.5) * f * f;
    h - s.fma::<A>(h + r, carry)
}

/// `k·ln 2 + log(1 + f)`
#[inline(always)]
fn log_of_parts<A: Arith, T: Tables>(k: T, f: T) -> T {
    k.fma::<A>(T::LN2[0], f - bend::<A, T>(f, k * T::LN2[1]))
}

/// `x = 2^k·m`, subnormal numbers included.
#[inline(always)]
fn split<T: Real>(x: T) -> (T, T) {
    let subnormal = x < T::MIN_NORMAL;
    let [scale, exponent] = T::SUBNORMAL_SCALE;
    let (k, m) = (if subnormal { x * scale } else { x }).split();
    (k - if subnormal { exponent } else { T::of(0.0) }, m)
}

/// A logarithm's value where its argument is not a positive number.
#[inline(always)]
fn at_the_ends<T: Real>(x: T, y: T) -> T {
    let y = if x == T::of(0.0) { -T::INFINITY } else { y };
    let y = if x == T::INFINITY { x } else { y };
    if x >= T::of(0.0) {
        y
    } else {
        T::NAN
    }
}

/// `log(x)` within 1 ULP where FMA exists, within 2 without. Negative arguments give NaN, zero gives −∞.
#[inline(always)]
pub fn log<A: Arith, T: Tables>(x: T) -> T {
    let (k, m) = split(x);
    at_the_ends(x, log_of_parts::<A, T>(k, m - T::of(1.0)))
}

/// The logarithm to another base, by 1 / ln b and log_b 2 in two parts each.
#[inline(always)]
fn log_to_base<A: Arith, T: Tables>(x: T, factor: [f64; 2], of_two: [f64; 2]) -> T {
    let (k, m) = split(x);
    let f = m - T::of(1.0);
    let l = f - bend::<A, T>(f, T::of(0.0));
    let parts = |[high, low]: [f64; 2]| {
        let head = T::of(high);
        (head, T::of((high - head.to_f64()) + low))
    };
    let ((factor, factor_rest), (two, two_rest)) = (parts(factor), parts(of_two));
    let small = l.fma::<A>(factor, l.fma::<A>(factor_rest, k * two_rest));
    at_the_ends(x, k.fma::<A>(two, small))
}

/// `log₂(x)` within 2 ULP, exact for powers of two.
#[inline(always)]
pub fn log2<A: Arith, T: Tables>(x: T) -> T {
    log_to_base::<A, T>(x, [std::f64::consts::LOG2_E, 2.035_527_374_093_103_3e-17], [1.0, 0.0])
}

/// `log₁₀(x)` within 2 ULP.
#[inline(always)]
pub fn log10<A: Arith, T: Tables>(x: T) -> T {
    let factor = [std::f64::consts::LOG10_E, 1.098_319_650_216_765e-17];
    log_to_base::<A, T>(x, factor, [std::f64::consts::LOG10_2, -2.803_728_127_785_170_4e-18])
}

/// `log(1 + x)` within 2 ULP: what the rounding of `1 + x` loses is added to `f`.
#[inline(always)]
pub fn log1p<A: Arith, T: Tables>(x: T) -> T {
    let one = T::of(1.0);
    let u = one + x;
    let part = u - one;
    let lost = (one - (u - part)) + (x - part);
    let (k, m) = u.split();
    // Far from 1 nothing is lost that matters.
    let shift = if k > T::of(60.0) { T::of(60.0) } else { k };
    let f = (m - one) + lost.scale_down(shift);
    let y = at_the_ends(u, log_of_parts::<A, T>(k, f));
    if x == T::of(0.0) {
        x
    } else {
        y
    }
}

#[cfg(test)]
mod tests {
    use super::super::ulp::{check32, check64};
    use super::super::{Fused, Unfused};
    use super::*;

    #[test]
    fn f32_error_is_within_2_ulp() {
        check32("log", 1e-6..100.0, log::<Fused, f32>, f64::ln, 1.0);
        check32("log", 1e-6..100.0, log::<Unfused, f32>, f64::ln, 2.0);
        check32("log near 1", 0.9..1.1, log::<Unfused, f32>, f64::ln, 2.0);
        check32("log of large", 1e30..3e38, log::<Unfused, f32>, f64::ln, 2.0);
        check32("log of subnormal", 1e-45..1e-38, log::<Unfused, f32>, f64::ln, 2.0);
    }

    #[test]
    fn f64_error_is_within_2_ulp() {
        check64("log", 1e-6..100.0, log::<Fused, f64>, f64::ln, 2.0);
        check64("log near 1", 0.9..1.1, log::<Unfused, f64>, f64::ln, 2.0);
        check64("log of subnormal", 5e-324..1e-308, log::<Unfused, f64>, f64::ln, 2.0);
    }

    #[test]
    fn special_values() {
        assert_eq!(log::<Fused, f32>(1.0), 0.0);
        assert_eq!(log::<Fused, f32>(0.0), f32::NEG_INFINITY);
        assert_eq!(log::<Fused, f32>(-0.0), f32::NEG_INFINITY);
        assert_eq!(log::<Fused, f32>(f32::INFINITY), f32::INFINITY);
        assert!(log::<Fused, f32>(-1.0).is_nan());
        assert!(log::<Fused, f32>(f32::NAN).is_nan());
        assert_eq!(log::<Fused, f64>(0.0), f64::NEG_INFINITY);
        assert!(log::<Fused, f64>(-1.0).is_nan());
    }

    #[test]
    fn other_bases_and_log1p_are_within_2_ulp() {
        check32("log2", 1e-6..100.0, log2::<Fused, f32>, f64::log2, 2.0);
        check32("log2 near 1", 0.7..1.5, log2::<Unfused, f32>, f64::log2, 2.0);
        check64("log2", 1e-6..100.0, log2::<Fused, f64>, f64::log2, 2.0);
        check32("log10", 1e-6..100.0, log10::<Fused, f32>, f64::log10, 2.0);
        check32("log10 near 1", 0.7..1.5, log10::<Unfused, f32>, f64::log10, 2.0);
        check64("log10", 1e-6..100.0, log10::<Fused, f64>, f64::log10, 2.0);
        check32("log1p", -0.999..100.0, log1p::<Fused, f32>, f64::ln_1p, 2.0);
        check32("log1p near 0", -0.3..0.5, log1p::<Unfused, f32>, f64::ln_1p, 2.0);
        check64("log1p", -0.999..100.0, log1p::<Fused, f64>, f64::ln_1p, 2.0);
        check64("log1p near 0", -0.3..0.5, log1p::<Unfused, f64>, f64::ln_1p, 2.0);
    }

    #[test]
    fn exact_powers_and_special_values() {
        for n in -149..=127 {
            assert_eq!(log2::<Fused, f32>(2f64.powi(n) as f32), n as f32);
        }
        for n in -300i32..=300 {
            let x: f64 = format!("1e{n}").parse().expect("a number");
            assert!((log10::<Fused, f64>(x) - f64::from(n)).abs() <= f64::from(n.abs()) * 1.2e-16, "{n}");
        }
        for n in 0..=22 {
            assert_eq!(log10::<Fused, f64>(10f64.powi(n)), f64::from(n));
        }
        assert_eq!(log1p::<Fused, f64>(-0.0).to_bits(), (-0f64).to_bits());
        assert_eq!(log1p::<Fused, f64>(-1.0), f64::NEG_INFINITY);
        assert_eq!(log1p::<Fused, f32>(f32::INFINITY), f32::INFINITY);
        assert_eq!(log1p::<Fused, f64>(1e-300), 1e-300);
        assert!(log1p::<Fused, f64>(-1.5).is_nan());
        assert!(log1p::<Fused, f64>(f64::NAN).is_nan());
        check32("log1p of large", 1e30..3e38, log1p::<Fused, f32>, f64::ln_1p, 1.0);
    }
}
