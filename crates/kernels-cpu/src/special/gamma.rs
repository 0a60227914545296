//! The gamma function's logarithm and derivatives.
//!
//! Stirling's series for large arguments, a Chebyshev series on [1, 3], recurrence in between and reflection below
//! (Abramowitz and Stegun, 6.1 and 6.3).

use std::f64::consts::PI;

use c10::Result;
use iter::TensorIterator;

use super::tables::{series, LGAMMA};
use super::zeta::hurwitz;
use crate::dispatch::dispatch;
use crate::loops::compute_dtype;
use crate::map::unary;

mod kernels {
    crate::special::scalar_functions! {
        scalar_unary: lgamma_kernel: fn(&TensorIterator) = super::lgamma, digamma_kernel: fn(&TensorIterator) = super::digamma;
    }
}

pub(super) fn register() {
    kernels::register();
    crate::registration::register! {
        polygamma_kernel: fn(&TensorIterator, i64);
    }
}

/// `ln Γ(x) − ((x − ½)·ln x − x + ½·ln 2π)` for `x ≥ 8`.
pub(super) fn stirling(x: f64) -> f64 {
    let z = 1.0 / (x * x);
    let terms = [
        -3617.0 / 122_400.0,
        1.0 / 156.0,
        -691.0 / 360_360.0,
        1.0 / 1188.0,
        -1.0 / 1680.0,
        1.0 / 1260.0,
        -1.0 / 360.0,
        1.0 / 12.0,
    ];
    terms.iter().fold(0.0, |sum, term| sum * z + term) / x
}

/// `sin πx`, reduced before it is multiplied.
fn sin_pi(x: f64) -> f64 {
    let x = x.abs() % 2.0;
    if x > 1.0 {
        -sin_pi(x - 1.0)
    } else if x > 0.5 {
        (PI * (1.0 - x)).sin()
    } else {
        (PI * x).sin()
    }
}

/// `ln |Γ(x)|`
pub(super) fn lgamma(x: f64) -> f64 {
    const HALF_LN_TAU: f64 = 0.918_938_533_204_672_8;
    if x.is_infinite() {
        return f64::INFINITY;
    }
    if x <= 0.0 {
        if x == x.floor() {
            return f64::INFINITY;
        }
        // Where 1 − x would lose x.
        if x > -1e-17 {
            return -(-x).ln();
        }
        return (PI / sin_pi(x).abs()).ln() - lgamma(1.0 - x);
    }
    if x < 1.0 {
        return lgamma(x + 1.0) - x.ln();
    }
    if x >= 8.0 {
        return (x - 0.5) * x.ln() - x + HALF_LN_TAU + stirling(x);
    }
    let (mut y, mut product) = (x, 1.0);
    while y > 3.0 {
        y -= 1.0;
        product *= y;
    }
    (y - 1.0) * (y - 2.0) * series(y - 2.0, &LGAMMA) + f64::ln(product)
}

fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        if x == x.floor() {
            return f64::NAN;
        }
        let fraction = x - x.floor();
        return digamma(1.0 - x) - PI / (PI * fraction).tan();
    }
    if x == f64::INFINITY {
        return x;
    }
    let (mut y, mut sum) = (x, 0.0);
    while y < 10.0 {
        sum -= 1.0 / y;
        y += 1.0;
    }
    let z = 1.0 / (y * y);
    // The Bernoulli numbers over their indices.
    let terms =
        [1.0 / 12.0, -691.0 / 32_760.0, 1.0 / 132.0, -1.0 / 240.0, 1.0 / 252.0, -1.0 / 120.0, 1.0 / 12.0];
    sum + y.ln() - 0.5 / y - z * terms.iter().fold(0.0, |sum, term| sum * z + term)
}

/// The `n`th derivative of `digamma`: `(−1)^(n+1)·n!·ζ(n + 1, x)`.
fn polygamma(n: i64, x: f64) -> f64 {
    if n == 0 {
        return digamma(x);
    }
    if n == 1 && x.is_infinite() {
        return if x > 0.0 { 0.0 } else { f64::NAN };
    }
    let s = n as f64 + 1.0;
    let sum = hurwitz(s, x);
    let value = if n < 170 {
        // n! is a number, and nearly exact.
        (1..=n).fold(1.0, |product, k| product * k as f64) * sum
    } else {
        lgamma(s).exp() * sum
    };
    if n % 2 == 0 {
        -value
    } else {
        value
    }
}

fn polygamma_kernel(iter: &TensorIterator, n: i64) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "polygamma", FLOATING, |T| {
        unary::<T, T>(iter, super::COST, move |a: T| {
            <T as c10::Element>::from_f64(polygamma(n, c10::Element::to_f64(a)))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // From mpmath.
        for (found, expected) in [
            (lgamma(0.1), 2.252_712_651_734_205_9),
            (lgamma(1.0 + 1e-8), -5.772_156_531_688_512e-9),
            (lgamma(2.5), 0.284_682_870_472_919_16),
            (lgamma(7.5), 7.534_364_236_758_733),
            (lgamma(100.0), 359.134_205_369_575_4),
            (lgamma(-0.5), 1.265_512_123_484_645_4),
            (lgamma(-3.7), -1.379_739_904_965_824_5),
            (digamma(0.3), -3.502_524_222_200_133),
            (digamma(-1.7), -1.485_717_499_511_056_7),
            (digamma(25.0), 3.198_742_512_851_974),
            (polygamma(1, 0.5), 4.934_802_200_544_679),
            (polygamma(3, 2.5), 0.223_905_848_817_252_05),
            (polygamma(2, -1.5), -0.236_204_051_641_727_4),
        ] {
            let error: f64 = (found - expected) / expected;
            assert!(error.abs() < 1e-13, "{found} {expected}");
        }
        assert_eq!(lgamma(1.0), 0.0);
        assert_eq!(lgamma(-2.0), f64::INFINITY);
        assert_eq!(lgamma(-0.0), f64::INFINITY);
        assert_eq!(digamma(0.0), f64::NEG_INFINITY);
        assert!(digamma(-3.0).is_nan());
    }
}
