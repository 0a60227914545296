//! The error function and its complements.
//!
//! `erf` is `x + x·p(x²)` up to 1. `(1 + 2x)·exp(x²)·erfc(x)` is a polynomial in `(x − K)/(x + K)` for all
//! `x ≥ 0` (Shepherd and Laframboise, *Chebyshev approximation of (1 + 2x)exp(x²)erfc x in 0 ≤ x < ∞*, Math. Comp. 36, 1981).

use super::arith::Arith;
use super::exp::exp;
use super::real::polynomial;
use super::tables::Tables;

/// `exp(a²)·erfc(a)` for `a ≥ 0`, within 2 ULP.
#[inline(always)]
pub fn erfcx_positive<A: Arith, T: Tables>(a: T) -> T {
    let k = T::ERFCX_CENTRE;
    let t = T::of(1.0) - (k + k) / (a + k);
    polynomial::<A, T>(t, T::ERFCX) / (T::of(1.0) + (a + a))
}

/// `exp(−a²)`, with what the rounding of the square loses.
#[inline(always)]
pub fn bell<A: Arith, T: Tables>(a: T) -> T {
    let square = a * a;
    let lost = if A::FUSED {
        a.fma::<A>(a, -square)
    } else {
        // Dekker's product of halves.
        let wide = a * T::SPLITTER;
        let high = wide - (wide - a);
        let low = a - high;
        ((high * high - square) + (high + high) * low) + low * low
    };
    let e = exp::<A, T>(-square);
    e - e * lost
}

/// `erfc(a)` for `a ≥ 0`; beyond 30 it is 0, also in double precision.
#[inline(always)]
fn erfc_positive<A: Arith, T: Tables>(a: T) -> T {
    let a = if a > T::of(30.0) { T::of(30.0) } else { a };
    bell::<A, T>(a) * erfcx_positive::<A, T>(a)
}

/// `erf(x)` within 2 ULP.
#[inline(always)]
pub fn erf<A: Arith, T: Tables>(x: T) -> T {
    let small = polynomial::<A, T>(x * x, T::ERF).fma::<A>(x, x);
    let a = x.abs();
    let large = (T::of(1.0) - erfc_positive::<A, T>(a)).copysign(x);
    if a <= T::of(1.0) {
        small
    } else {
        large
    }
}

/// `1 − erf(x)` within 4 ULP.
#[inline(always)]
pub fn erfc<A: Arith, T: Tables>(x: T) -> T {
    let y = erfc_positive::<A, T>(x.abs());
    if x < T::of(0.0) {
        T::of(2.0) - y
    } else {
        y
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Fused, Unfused};
    use super::*;

    #[test]
    fn known_values() {
        // From mpmath.
        for (x, erf_x, erfc_x) in [
            (0.1, 0.112_462_916_018_284_89, 0.887_537_083_981_715_1),
            (0.5, 0.520_499_877_813_046_5, 0.479_500_122_186_953_46),
            (1.0, 0.842_700_792_949_714_9, 0.157_299_207_050_285_13),
            (1.5, 0.966_105_146_475_310_7, 0.033_894_853_524_689_27),
            (3.0, 0.999_977_909_503_001_4, 2.209_049_699_858_544e-5),
            (5.0, 0.999_999_999_998_462_5, 1.537_459_794_428_034_8e-12),
            (10.0, 1.0, 2.088_487_583_762_545e-45),
            (26.0, 1.0, 5.663_192_408_856_143e-296),
        ] {
            let near = |found: f64, expected: f64| (found - expected).abs() <= expected.abs() * 1e-15;
            assert!(near(erf::<Fused, f64>(x), erf_x) && near(erf::<Unfused, f64>(-x), -erf_x), "erf {x}");
            assert!(near(erfc::<Fused, f64>(x), erfc_x), "erfc {x}: {} {erfc_x}", erfc::<Fused, f64>(x));
            assert!(near(erfc::<Unfused, f64>(x), erfc_x), "erfc {x}: {} {erfc_x}", erfc::<Unfused, f64>(x));
            let near32 = |found: f32, expected: f64| {
                (f64::from(found) - expected).abs() <= expected.abs() * 3e-7 || expected < 1e-38
            };
            assert!(near32(erf::<Fused, f32>(x as f32), erf::<Fused, f64>(f64::from(x as f32))), "{x}");
            assert!(near32(erfc::<Unfused, f32>(x as f32), erfc::<Fused, f64>(f64::from(x as f32))), "{x}");
        }
    }

    #[test]
    fn single_precision_against_double() {
        use super::super::ulp::check32 as check;
        check("erf", -4.0..4.0, erf::<Fused, f32>, erf::<Fused, f64>, 2.0);
        check("erfc", -4.0..9.0, erfc::<Fused, f32>, erfc::<Fused, f64>, 4.0);
        check("erfc", -4.0..9.0, erfc::<Unfused, f32>, erfc::<Fused, f64>, 4.0);
    }

    #[test]
    fn special_values() {
        assert_eq!(erf::<Fused, f32>(f32::NEG_INFINITY), -1.0);
        assert_eq!(erfc::<Fused, f64>(f64::INFINITY), 0.0);
        assert_eq!(erfc::<Fused, f64>(f64::NEG_INFINITY), 2.0);
        assert_eq!(erf::<Fused, f64>(-0.0).to_bits(), (-0f64).to_bits());
        assert!(erf::<Fused, f64>(f64::NAN).is_nan() && erfc::<Fused, f64>(f64::NAN).is_nan());
    }
}
