//! The hyperbolic tangent.
//!
//! For `|x| < 0.625`, Lambert's continued fraction `tanh x = x / (1 + x²/D)`, `D = 3 + x²/(5 + x²/(7 + …))`, written as
//! `x − x·x² / (D + x²)` so that the rounding errors fall on the small second term. Above, `1 − 2 / (exp(2x) + 1)`.

use super::arith::Arith;
use super::exp::{exp_f32, exp_f64};

/// `tanh(x)` within 2 ULP.
#[inline(always)]
pub fn tanh_f32<A: Arith>(x: f32) -> f32 {
    let z = x * x;
    // Four levels of the fraction, in closed form: the remainder is below 0.1 ULP for |x| < 0.625.
    let numerator = A::fma32(z, 14.0, 315.0);
    let denominator = A::fma32(z, A::fma32(z, 15.0, 420.0), 945.0);
    // The sign is copied for the sake of −0.
    let small = A::fma32(-x, z * numerator / denominator, x).copysign(x);
    let a = x.abs();
    let large = (1.0 - 2.0 / (exp_f32::<A>(a + a) + 1.0)).copysign(x);
    if a < 0.625 {
        small
    } else {
        large
    }
}

/// `tanh(x)` within 2 ULP.
#[inline(always)]
pub fn tanh_f64<A: Arith>(x: f64) -> f64 {
    let z = x * x;
    // D = n / d by the backward recurrence, from a depth whose remainder is below 0.01 ULP for |x| < 0.625.
    let (mut n, mut d) = (19.0, 1.0);
    for odd in [17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        (n, d) = (A::fma64(z, d, odd * n), n);
    }
    let small = A::fma64(-x, z * d / A::fma64(z, d, n), x).copysign(x);
    let a = x.abs();
    let large = (1.0 - 2.0 / (exp_f64::<A>(a + a) + 1.0)).copysign(x);
    if a < 0.625 {
        small
    } else {
        large
    }
}

#[cfg(test)]
mod tests {
    use super::super::ulp::{check32, check64};
    use super::super::{Fused, Unfused};
    use super::*;

    #[test]
    fn f32_error_is_within_2_ulp() {
        check32("tanh", -10.0..10.0, tanh_f32::<Fused>, f64::tanh, 2.0);
        check32("tanh", -0.7..0.7, tanh_f32::<Unfused>, f64::tanh, 2.0);
    }

    #[test]
    fn f64_error_is_within_2_ulp() {
        check64("tanh", -20.0..20.0, tanh_f64::<Fused>, f64::tanh, 2.0);
        check64("tanh", -0.7..0.7, tanh_f64::<Unfused>, f64::tanh, 2.0);
    }

    #[test]
    fn special_values() {
        assert_eq!(tanh_f32::<Fused>(0.0).to_bits(), 0.0f32.to_bits());
        assert_eq!(tanh_f32::<Fused>(-0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(tanh_f32::<Fused>(f32::INFINITY), 1.0);
        assert_eq!(tanh_f32::<Fused>(f32::NEG_INFINITY), -1.0);
        assert!(tanh_f32::<Fused>(f32::NAN).is_nan());
        assert!(tanh_f64::<Fused>(f64::NAN).is_nan());
    }
}
