//! The error function's relatives and inverses.
//!
//! The inverses start from Winitzki's closed form (*A handy approximation for the error function and its inverse*, 2008),
//! good to a few thousandths, and end with Halley's iteration, which triples the number of digits each time.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2, PI, SQRT_2};

use crate::vec::math::{bell, erf, erfc, erfcx_positive, Unfused};

super::scalar_functions! {
    scalar_unary:
        erfinv_kernel: fn(&TensorIterator) = erfinv,
        special_erfcx_kernel: fn(&TensorIterator) = erfcx,
        special_ndtri_kernel: fn(&TensorIterator) = ndtri,
        special_log_ndtr_kernel: fn(&TensorIterator) = log_ndtr;
}

const SQRT_PI: f64 = 1.772_453_850_905_516;

/// `exp(x²)·erfc(x)`
pub(super) fn erfcx(x: f64) -> f64 {
    if x >= 0.0 {
        return erfcx_positive::<Unfused, f64>(x);
    }
    if x < -26.7 {
        return f64::INFINITY;
    }
    if x.is_nan() {
        return x;
    }
    2.0 / bell::<Unfused, f64>(x) - erfcx_positive::<Unfused, f64>(-x)
}

/// Winitzki's approximation of `erfinv`, by `ln(1 − x²)`.
fn approximate_inverse(log: f64) -> f64 {
    const A: f64 = 0.147;
    let b = 2.0 / (PI * A) + 0.5 * log;
    ((b * b - log / A).sqrt() - b).max(0.0).sqrt()
}

/// The `y ≥ 0` with `erfc(y) = q`, for `q` in (0, 1].
fn erfc_inverse(q: f64) -> f64 {
    let mut y = approximate_inverse(q.ln() + (2.0 - q).ln());
    for _ in 0..4 {
        // The residual over the derivative; scaled by exp(y²), so that nothing underflows.
        let square = if y > 26.0 { (q.ln() + y * y).exp() } else { q / bell::<Unfused, f64>(y) };
        let step = 0.5 * SQRT_PI * (square - erfcx_positive::<Unfused, f64>(y));
        y -= step / (1.0 + y * step);
    }
    y
}

fn erfinv(x: f64) -> f64 {
    let a = x.abs();
    if a >= 1.0 || x.is_nan() {
        return if a == 1.0 { f64::INFINITY.copysign(x) } else { f64::NAN };
    }
    if a > 0.5 {
        // 1 − a is exact.
        return erfc_inverse(1.0 - a).copysign(x);
    }
    let z = PI * x * x / 4.0;
    let mut y = 0.5 * SQRT_PI * x * (1.0 + z * (1.0 / 3.0 + z * (7.0 / 30.0)));
    for _ in 0..3 {
        let step = 0.5 * SQRT_PI * (erf::<Unfused, f64>(y) - x) / bell::<Unfused, f64>(y);
        y -= step / (1.0 + y * step);
    }
    y
}

/// The quantile of the normal distribution.
fn ndtri(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    match p {
        0.0 => f64::NEG_INFINITY,
        1.0 => f64::INFINITY,
        p if p < 0.25 => -SQRT_2 * erfc_inverse(2.0 * p),
        p => SQRT_2 * erfinv(2.0 * p - 1.0),
    }
}

/// The logarithm of the normal distribution function.
fn log_ndtr(x: f64) -> f64 {
    let t = x * FRAC_1_SQRT_2;
    if x < -1.0 {
        erfcx(-t).ln() - LN_2 - t * t
    } else {
        (-0.5 * erfc::<Unfused, f64>(t)).ln_1p()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverses_invert() {
        for i in 1..400 {
            let x = f64::from(i) / 400.0;
            for x in [x, -x] {
                let back = erf::<Unfused, f64>(erfinv(x));
                assert!((back - x).abs() <= 4e-16, "{x} {back}");
            }
        }
        for exponent in [-300, -100, -20, -5, -1] {
            let q = 10f64.powi(exponent);
            let y = erfc_inverse(q);
            assert!(((erfc::<Unfused, f64>(y) - q) / q).abs() < 1e-12 || exponent < -290, "{q} {y}");
        }
        assert!((erfc_inverse(1e-300) - 26.209_469_960_516_124).abs() < 1e-13);
        assert_eq!(erfinv(1.0), f64::INFINITY);
        assert!(erfinv(1.5).is_nan() && ndtri(-0.1).is_nan());
    }

    #[test]
    fn known_values() {
        // From mpmath.
        for (found, expected) in [
            (erfcx(-3.0), 16_205.988_853_999_586),
            (erfcx(1e5), 5.641_895_835_195_468e-6),
            (log_ndtr(-40.0), -804.608_442_013_753_8),
            (log_ndtr(1.0), -0.172_753_779_023_449_88),
            (ndtri(1e-10), -6.361_340_902_404_056),
            (ndtri(0.975), 1.959_963_984_540_054_5),
        ] {
            assert!(((found - expected) / expected).abs() < 1e-14, "{found} {expected}");
        }
    }
}
