//! Trigonometric functions and their inverses.
//!
//! Arguments are reduced to `|r| ≤ π/4` (Cody and Waite), where `sin` and `cos` are polynomials; the quadrant chooses.
//! That holds below 2^20: beyond, callers use the platform's functions, which reduce with as many digits of π as it takes
//! (Payne and Hanek). Inverse functions reduce by `atan x = π/4 + atan((x − 1)/(x + 1))` and
//! `asin x = π/2 − 2·asin(√((1 − x)/2))`.

use super::arith::Arith;
use super::real::{polynomial, Real};
use super::tables::Tables;

/// Whether the reduction holds.
#[inline(always)]
pub fn is_reducible<T: Real>(x: T) -> bool {
    x.abs() < T::of(1_048_576.0)
}

/// `sin r`, `cos r`
#[inline(always)]
fn reduced<A: Arith, T: Tables>(r: T) -> (T, T) {
    let z = r * r;
    let sine = polynomial::<A, T>(z, T::SIN).fma::<A>(r * z, r);
    let cosine = polynomial::<A, T>(z, T::COS).fma::<A>(z * z, z.fma::<A>(T::of(-0.5), T::of(1.0)));
    (sine, cosine)
}

/// `sin x` within 2 ULP, for reducible arguments.
#[inline(always)]
pub fn sin<A: Arith, T: Tables>(x: T) -> T {
    let (r, quadrant) = x.reduce::<A>();
    let (sine, cosine) = reduced::<A, T>(r);
    let y = if quadrant & 1 == 0 { sine } else { cosine };
    let y = if quadrant & 2 == 0 { y } else { -y };
    // For the sake of −0.
    if x == T::of(0.0) {
        x
    } else {
        y
    }
}

/// `cos x` within 2 ULP, for reducible arguments.
#[inline(always)]
pub fn cos<A: Arith, T: Tables>(x: T) -> T {
    let (r, quadrant) = x.reduce::<A>();
    let (sine, cosine) = reduced::<A, T>(r);
    let y = if quadrant & 1 == 0 { cosine } else { sine };
    if quadrant.wrapping_add(1) & 2 == 0 {
        y
    } else {
        -y
    }
}

/// `tan x` within 4 ULP, for reducible arguments: a quotient of two rounded values.
#[inline(always)]
pub fn tan<A: Arith, T: Tables>(x: T) -> T {
    let (r, quadrant) = x.reduce::<A>();
    let (sine, cosine) = reduced::<A, T>(r);
    let (top, bottom) = if quadrant & 1 == 0 { (sine, cosine) } else { (-cosine, sine) };
    let y = top / bottom;
    if x == T::of(0.0) {
        x
    } else {
        y
    }
}

/// `atan(a / b)` for `0 ≤ a`, `0 ≤ b`, not both infinite; `b` may be smaller than `a`.
#[inline(always)]
fn first_quadrant<A: Arith, T: Tables>(a: T, b: T) -> T {
    const TAN_EIGHTH: f64 = 0.414_213_562_373_095_03;
    let zero = T::of(0.0);
    let swap = a > b;
    let (low, high) = if swap { (b, a) } else { (a, b) };
    let middle = low > high * T::of(TAN_EIGHTH);
    let (top, bottom) = if middle { (low - high, low + high) } else { (low, high) };
    let t = top / if bottom == zero { T::of(1.0) } else { bottom };
    let z = t * t;
    let tail = polynomial::<A, T>(z, T::ATAN) * (t * z);
    let [pi, rest] = T::HALF_PI;
    let half = T::of(0.5);
    let (base, base_rest) = if middle { (pi * half, rest * half) } else { (zero, zero) };
    let y = base + (t + (tail + base_rest));
    if swap {
        pi - (y - rest)
    } else {
        y
    }
}

/// `atan x` within 2 ULP.
#[inline(always)]
pub fn atan<A: Arith, T: Tables>(x: T) -> T {
    first_quadrant::<A, T>(x.abs(), T::of(1.0)).copysign(x)
}

/// The angle of the point `(x, y)`, within 2 ULP.
#[inline(always)]
pub fn atan2<A: Arith, T: Tables>(y: T, x: T) -> T {
    let (a, b) = (y.abs(), x.abs());
    let infinite = a == T::INFINITY && b == T::INFINITY;
    // Sums of large numbers must not overflow.
    let large = a > T::HUGE || b > T::HUGE;
    let scale = if large { T::of(0.125) } else { T::of(1.0) };
    let (a, b) = if infinite { (scale, scale) } else { (a * scale, b * scale) };
    let angle = first_quadrant::<A, T>(a, b);
    let [half_pi, rest] = T::HALF_PI;
    let left = x.copysign(T::of(1.0)) != x || (x == T::of(0.0) && T::of(1.0).copysign(x) < T::of(0.0));
    let angle = if left { (half_pi + half_pi) - (angle - (rest + rest)) } else { angle };
    let angle = if x.is_nan() || y.is_nan() { T::NAN } else { angle };
    angle.copysign(y)
}

/// `asin x` where `|x| ≤ ½`
#[inline(always)]
fn arc<A: Arith, T: Tables>(x: T, z: T) -> T {
    polynomial::<A, T>(z, T::ASIN).fma::<A>(x * z, x)
}

/// `asin x` within 2 ULP.
#[inline(always)]
pub fn asin<A: Arith, T: Tables>(x: T) -> T {
    let (a, half) = (x.abs(), T::of(0.5));
    let small = a < half;
    let z = if small { a * a } else { (T::of(1.0) - a) * half };
    let s = if small { a } else { z.sqrt() };
    let tail = polynomial::<A, T>(z, T::ASIN) * (s * z);
    let [pi, rest] = T::HALF_PI;
    // π/2 − 2s is exact here, so that the rounding errors fall on the small tail.
    let large = (pi - (s + s)) - (tail + tail - rest);
    (if small { s + tail } else { large }).copysign(x)
}

/// `acos x` within 2 ULP.
#[inline(always)]
pub fn acos<A: Arith, T: Tables>(x: T) -> T {
    let (a, half) = (x.abs(), T::of(0.5));
    let small = a < half;
    let z = if small { a * a } else { (T::of(1.0) - a) * half };
    let s = if small { x } else { z.sqrt() };
    let y = arc::<A, T>(s, z);
    let [pi, rest] = T::HALF_PI;
    let far = if x < T::of(0.0) { (pi + pi) - (y + y - (rest + rest)) } else { y + y };
    if small {
        pi - (y - rest)
    } else {
        far
    }
}

#[cfg(test)]
mod tests {
    use super::super::ulp::{check32, check64};
    use super::super::{Fused, Unfused};
    use super::*;

    #[test]
    fn errors_are_within_2_or_4_ulp() {
        check32("sin", -10.0..10.0, sin::<Fused, f32>, f64::sin, 2.0);
        check32("sin", -1e6..1e6, sin::<Unfused, f32>, f64::sin, 2.0);
        check32("cos", -10.0..10.0, cos::<Fused, f32>, f64::cos, 2.0);
        check32("cos", -1e6..1e6, cos::<Unfused, f32>, f64::cos, 2.0);
        check32("tan", -10.0..10.0, tan::<Fused, f32>, f64::tan, 4.0);
        check64("sin", -10.0..10.0, sin::<Fused, f64>, f64::sin, 2.0);
        check64("sin", -1e6..1e6, sin::<Unfused, f64>, f64::sin, 2.0);
        check64("cos", -10.0..10.0, cos::<Fused, f64>, f64::cos, 2.0);
        check64("cos", -1e6..1e6, cos::<Unfused, f64>, f64::cos, 2.0);
        check64("tan", -10.0..10.0, tan::<Fused, f64>, f64::tan, 4.0);
    }

    #[test]
    fn errors_of_the_inverses_are_within_2_ulp() {
        check32("atan", -20.0..20.0, atan::<Fused, f32>, f64::atan, 2.0);
        check32("atan", -1.0..1.0, atan::<Unfused, f32>, f64::atan, 2.0);
        check64("atan", -20.0..20.0, atan::<Fused, f64>, f64::atan, 2.0);
        check32("asin", -1.0..1.0, asin::<Fused, f32>, f64::asin, 2.0);
        check64("asin", -1.0..1.0, asin::<Fused, f64>, f64::asin, 2.0);
        check32("acos", -1.0..1.0, acos::<Fused, f32>, f64::acos, 2.0);
        check64("acos", -1.0..1.0, acos::<Fused, f64>, f64::acos, 2.0);
        check32("atan2", -20.0..20.0, |y| atan2::<Fused, f32>(y, -3.0), |y| y.atan2(-3.0), 2.0);
    }

    #[test]
    fn special_values() {
        for (y, x) in [0.0, -0.0, 1.0, -1.0, 1e-310, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]
            .iter()
            .flat_map(|&y| {
                [0.0, -0.0, 2.0, -2.0, 1e-310, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]
                    .map(|x| (y, x))
            })
        {
            let (found, expected) = (atan2::<Fused, f64>(y, x), y.atan2(x));
            let close = (found - expected).abs() <= expected.abs() * 4e-16;
            let same_sign = found.is_sign_negative() == expected.is_sign_negative();
            assert!(
                (close && same_sign) || (found.is_nan() && expected.is_nan()),
                "{y} {x}: {found} {expected}"
            );
        }
        assert_eq!(sin::<Fused, f32>(-0.0).to_bits(), (-0f32).to_bits());
        assert_eq!(cos::<Fused, f32>(0.0), 1.0);
        assert!(asin::<Fused, f64>(1.1).is_nan() && acos::<Fused, f64>(-1.1).is_nan());
        assert_eq!(asin::<Fused, f64>(-0.0).to_bits(), (-0f64).to_bits());
        assert_eq!(acos::<Fused, f64>(1.0), 0.0);
        assert_eq!(acos::<Fused, f64>(-1.0), std::f64::consts::PI);
        assert_eq!(atan::<Fused, f64>(f64::NEG_INFINITY), -std::f64::consts::FRAC_PI_2);
        assert!(atan::<Fused, f32>(f32::NAN).is_nan() && !is_reducible(f32::NAN) && !is_reducible(1e9f32));
    }
}
