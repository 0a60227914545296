//! Hyperbolic functions and their inverses.
//!
//! For `|x| < 0.625`, Lambert's continued fraction `tanh x = x / (1 + x²/D)`, `D = 3 + x²/(5 + x²/(7 + …))`, written as
//! `x − x·x² / (D + x²)` so that the rounding errors fall on the small second term. Above, `1 − 2 / (exp(2x) + 1)`. `sinh` and `cosh` come from
//! `E = exp(x) / 2` as `E ∓ 1 / 4E`, `sinh` near zero from its series. The inverses are logarithms of `1 + w`, where `w` is
//! formed without cancellation (Kahan, *Branch cuts for complex elementary functions*, 1987).

use super::arith::Arith;
use super::exp::half_exp;
use super::log::log1p;
use super::real::polynomial;
use super::tables::Tables;

/// `tanh(x)` within 2 ULP.
#[inline(always)]
pub fn tanh<A: Arith, T: Tables>(x: T) -> T {
    let a = x.abs();
    // From here on the result is 1.
    let a = if a > T::of(20.0) { T::of(20.0) } else { a };
    let small = a < T::of(0.625);
    let (top, bottom) = T::tanh_fraction::<A>(a * a);
    let e = super::exp::exp::<A, T>(a + a);
    // One division serves both forms.
    let (base, top, bottom) =
        if small { (a, a * (a * a) * top, bottom) } else { (T::of(1.0), T::of(2.0), e + T::of(1.0)) };
    (base - top / bottom).copysign(x)
}

/// `1 / (1 + exp(−x))` within 2 ULP.
#[inline(always)]
pub fn sigmoid<A: Arith, T: Tables>(x: T) -> T {
    T::of(1.0) / (T::of(1.0) + super::exp::exp::<A, T>(-x))
}

/// `sinh(x)` within 2 ULP.
#[inline(always)]
pub fn sinh<A: Arith, T: Tables>(x: T) -> T {
    let z = x * x;
    let small = polynomial::<A, T>(z, T::SINH).fma::<A>(x * z, x);
    let a = x.abs();
    let e = half_exp::<A, T>(a);
    let large = e - T::of(0.25) / e;
    (if a < T::of(1.0) { small } else { large }).copysign(x)
}

/// `cosh(x)` within 2 ULP.
#[inline(always)]
pub fn cosh<A: Arith, T: Tables>(x: T) -> T {
    let e = half_exp::<A, T>(x.abs());
    e + T::of(0.25) / e
}

/// Where a number's square is nothing to its logarithm's argument: twice the number is that argument.
const LARGE: f64 = 1e10;

/// `asinh(x)` within 3 ULP.
#[inline(always)]
pub fn asinh<A: Arith, T: Tables>(x: T) -> T {
    let a = x.abs();
    let large = a > T::of(LARGE);
    let b = if large { T::of(1.0) } else { a };
    let square = b * b;
    let w = b + square / (T::of(1.0) + (square + T::of(1.0)).sqrt());
    let (w, more) = if large { (a, T::of(std::f64::consts::LN_2)) } else { (w, T::of(0.0)) };
    (log1p::<A, T>(w) + more).copysign(x)
}

/// `acosh(x)` within 3 ULP.
#[inline(always)]
pub fn acosh<A: Arith, T: Tables>(x: T) -> T {
    let large = x > T::of(LARGE);
    let t = if large { T::of(1.0) } else { x - T::of(1.0) };
    let w = t + (t * (t + T::of(2.0))).sqrt();
    let (w, more) = if large { (x, T::of(std::f64::consts::LN_2)) } else { (w, T::of(0.0)) };
    let y = log1p::<A, T>(w) + more;
    if x < T::of(1.0) {
        T::NAN
    } else {
        y
    }
}

/// `atanh(x)` within 3 ULP.
#[inline(always)]
pub fn atanh<A: Arith, T: Tables>(x: T) -> T {
    let a = x.abs();
    let w = (a + a) / (T::of(1.0) - a);
    (T::of(0.5) * log1p::<A, T>(w)).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::super::ulp::{check32, check64};
    use super::super::{Fused, Unfused};
    use super::*;

    #[test]
    fn f32_error_is_within_2_ulp() {
        check32("tanh", -10.0..10.0, tanh::<Fused, f32>, f64::tanh, 2.0);
        check32("tanh", -0.7..0.7, tanh::<Unfused, f32>, f64::tanh, 2.0);
    }

    #[test]
    fn f64_error_is_within_2_ulp() {
        check64("tanh", -20.0..20.0, tanh::<Fused, f64>, f64::tanh, 2.0);
        check64("tanh", -0.7..0.7, tanh::<Unfused, f64>, f64::tanh, 2.0);
    }

    #[test]
    fn special_values() {
        assert_eq!(tanh::<Fused, f32>(0.0).to_bits(), 0.0f32.to_bits());
        assert_eq!(tanh::<Fused, f32>(-0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(tanh::<Fused, f32>(f32::INFINITY), 1.0);
        assert_eq!(tanh::<Fused, f32>(f32::NEG_INFINITY), -1.0);
        assert!(tanh::<Fused, f32>(f32::NAN).is_nan());
        assert!(tanh::<Fused, f64>(f64::NAN).is_nan());
    }

    #[test]
    fn the_others_are_within_2_or_3_ulp() {
        check32("sinh", -88.0..88.0, sinh::<Fused, f32>, f64::sinh, 2.0);
        check32("sinh", -1.1..1.1, sinh::<Unfused, f32>, f64::sinh, 2.0);
        check64("sinh", -709.0..709.0, sinh::<Fused, f64>, f64::sinh, 3.0);
        check64("sinh", -1.1..1.1, sinh::<Fused, f64>, f64::sinh, 2.0);
        check32("cosh", -88.0..88.0, cosh::<Fused, f32>, f64::cosh, 2.0);
        check64("cosh", -709.0..709.0, cosh::<Fused, f64>, f64::cosh, 3.0);
        check32("asinh", -3.0..100.0, asinh::<Fused, f32>, f64::asinh, 3.0);
        check32("acosh", 1.0..100.0, acosh::<Fused, f32>, f64::acosh, 3.0);
        check32("atanh", -0.999..0.999, atanh::<Fused, f32>, f64::atanh, 3.0);
        check32("asinh of large", 1e9..3.4e38, asinh::<Fused, f32>, f64::asinh, 2.0);
        check32("acosh of large", 1e9..3.4e38, acosh::<Fused, f32>, f64::acosh, 2.0);
    }

    #[test]
    fn special_values_of_the_others() {
        assert_eq!(sinh::<Fused, f32>(-0.0).to_bits(), (-0f32).to_bits());
        assert_eq!(sinh::<Fused, f32>(89.0), 89f32.sinh());
        assert_eq!(sinh::<Fused, f64>(f64::NEG_INFINITY), f64::NEG_INFINITY);
        assert_eq!(cosh::<Fused, f64>(f64::NEG_INFINITY), f64::INFINITY);
        assert_eq!(cosh::<Fused, f64>(0.0), 1.0);
        assert!(sinh::<Fused, f64>(f64::NAN).is_nan() && cosh::<Fused, f64>(f64::NAN).is_nan());
        assert_eq!(asinh::<Fused, f32>(-0.0).to_bits(), (-0f32).to_bits());
        assert_eq!(asinh::<Fused, f64>(f64::NEG_INFINITY), f64::NEG_INFINITY);
        assert_eq!(acosh::<Fused, f64>(1.0), 0.0);
        assert!(acosh::<Fused, f64>(0.9).is_nan() && acosh::<Fused, f64>(-9.0).is_nan());
        assert_eq!(atanh::<Fused, f32>(1.0), f32::INFINITY);
        assert_eq!(atanh::<Fused, f32>(-1.0), f32::NEG_INFINITY);
        assert!(atanh::<Fused, f64>(1.1).is_nan());
    }
}
