//! The regularized incomplete gamma functions `P(a, x)` and `Q(a, x) = 1 − P(a, x)`.
//!
//! The power series for `x ≤ a`, Lentz's continued fraction above (Gautschi, *A computational procedure for incomplete gamma
//! functions*, 1979), and Temme's uniform expansion where `a` is so large that both are slow (*The asymptotic expansion of
//! the incomplete gamma functions*, 1979).

use std::f64::consts::{PI, SQRT_2};

use super::gamma::{lgamma, stirling};
use crate::vec::math::{erfc, Unfused};

super::scalar_functions! {
    scalar_binary: igamma_kernel: fn(&TensorIterator) = lower, igammac_kernel: fn(&TensorIterator) = upper;
}

const EPSILON: f64 = 1e-17;
/// From here on Temme's expansion serves arguments near `a`.
const LARGE: f64 = 1e6;
/// More steps than the series and the fraction take below that.
const STEPS: u32 = 20_000;

/// The values at the ends of the range, `P` first.
fn at_the_ends(a: f64, x: f64) -> Option<(f64, f64)> {
    if a.is_nan() || x.is_nan() || a < 0.0 || x < 0.0 || (a.is_infinite() && x.is_infinite()) {
        return Some((f64::NAN, f64::NAN));
    }
    if a == 0.0 {
        return Some(if x > 0.0 { (1.0, 0.0) } else { (f64::NAN, f64::NAN) });
    }
    if x == 0.0 || a.is_infinite() {
        return Some((0.0, 1.0));
    }
    x.is_infinite().then_some((1.0, 0.0))
}

fn lower(a: f64, x: f64) -> f64 {
    at_the_ends(a, x).unwrap_or_else(|| both(a, x)).0
}

fn upper(a: f64, x: f64) -> f64 {
    at_the_ends(a, x).unwrap_or_else(|| both(a, x)).1
}

fn both(a: f64, x: f64) -> (f64, f64) {
    let mu = (x - a) / a;
    if a > LARGE && mu.abs() < 0.5 {
        return temme(a, mu);
    }
    let scale = scale(a, x, mu);
    if x <= 1.0 || x <= a {
        let p = scale / a * power_series(a, x);
        (p, 1.0 - p)
    } else {
        let q = scale * continued_fraction(a, x);
        (1.0 - q, q)
    }
}

/// `μ − ln(1 + μ)`, which is `μ²/2 − …`
fn deviation(mu: f64) -> f64 {
    if mu.abs() > 0.5 {
        return mu - mu.ln_1p();
    }
    // With s = μ / (2 + μ), ln(1 + μ) = 2·atanh(s) and μ − 2s = μ·s.
    let s = mu / (2.0 + mu);
    let z = s * s;
    let tail = (1..=20).rev().fold(0.0, |sum, k| sum * z + 1.0 / f64::from(2 * k + 1));
    mu * s - 2.0 * s * z * tail
}

/// `x^a·e^−x / Γ(a)`
fn scale(a: f64, x: f64, mu: f64) -> f64 {
    if a < 8.0 {
        return (a * x.ln() - x - lgamma(a)).exp();
    }
    (a / (2.0 * PI)).sqrt() * (-a * deviation(mu) - stirling(a)).exp()
}

/// `1 + x/(a + 1) + x²/((a + 1)(a + 2)) + …`
fn power_series(a: f64, x: f64) -> f64 {
    let (mut sum, mut term, mut n) = (1.0, 1.0, a);
    for _ in 0..STEPS {
        n += 1.0;
        term *= x / n;
        sum += term;
        if term <= EPSILON * sum {
            break;
        }
    }
    sum
}

/// `1 / (x + 1 − a − 1·(1 − a)/(x + 3 − a − 2·(2 − a)/(x + 5 − a − …)))`
fn continued_fraction(a: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - a;
    let mut d = 1.0 / if b == 0.0 { TINY } else { b };
    let (mut c, mut value) = (1.0 / TINY, d);
    for i in 1..=STEPS {
        let i = f64::from(i);
        let numerator = -i * (i - a);
        b += 2.0;
        let bottom = numerator * d + b;
        d = 1.0 / if bottom == 0.0 { TINY } else { bottom };
        c = b + numerator / c;
        if c == 0.0 {
            c = TINY;
        }
        let ratio = d * c;
        value *= ratio;
        if (ratio - 1.0).abs() <= 1e-16 {
            break;
        }
    }
    value
}

/// Both for a large `a` and `x = a·(1 + μ)`: the normal distribution, and two terms of what it leaves. The terms are cut as
/// series in `η`, since where they matter `η` is below a hundredth.
fn temme(a: f64, mu: f64) -> (f64, f64) {
    let eta = (2.0 * deviation(mu)).sqrt().copysign(mu);
    let c0 = -1.0 / 3.0 + eta * (1.0 / 12.0 + eta * (-2.0 / 135.0 + eta / 864.0));
    let c1 = -1.0 / 540.0 - eta / 288.0;
    let rest = (-0.5 * a * eta * eta).exp() / (2.0 * PI * a).sqrt() * (c0 + c1 / a);
    let normal = eta * a.sqrt() / SQRT_2;
    let p = 0.5 * erfc::<Unfused, f64>(-normal) - rest;
    let q = 0.5 * erfc::<Unfused, f64>(normal) + rest;
    (p, q)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // P(1, x) = 1 − e^−x, Q(½, x) = erfc(√x), and Q(n, x) is a sum of Poisson's.
        for x in [0.1, 0.9, 1.0, 3.0, 20.0] {
            let near = |found: f64, expected: f64| (found - expected).abs() <= 1e-14 * (1.0 + expected.abs());
            assert!(near(lower(1.0, x), -f64::exp_m1(-x)));
            assert!(near(upper(0.5, x), erfc::<Unfused, f64>(f64::sqrt(x))));
            let poisson: f64 = (0..30)
                .scan(1.0, |term, n| {
                    let t = *term;
                    *term *= x / f64::from(n + 1);
                    Some(t)
                })
                .sum();
            assert!(near(upper(30.0, x), poisson * (-x).exp()), "{x}");
        }
    }

    #[test]
    fn the_expansions_meet() {
        for mu in [-0.01, -0.001, 0.0, 0.0005, 0.003] {
            let a = 1e6;
            let x = a * (1.0 + mu);
            let (p, _) = temme(a, mu);
            assert!((p - both(a, x).0).abs() < 1e-11, "{mu}: {p} {}", both(a, x).0);
        }
    }
}
