//! Modified Bessel functions of orders 0 and 1.
//!
//! `I` as a Chebyshev series of `e⁻ˣ·I` up to 8, and of `√x·e⁻ˣ·I` in `8/x` beyond; `K` up to 2 as what its logarithmic part
//! leaves, and as `√x·eˣ·K` in `2/x` beyond (Abramowitz and Stegun, 9.6 and 9.7).

use super::tables::{
    series, I0E_LARGE, I0E_SMALL, I1E_LARGE, I1E_SMALL, K0_LARGE, K0_SMALL, K1_LARGE, K1_SMALL,
};

super::scalar_functions! {
    scalar_unary:
        i0_kernel: fn(&TensorIterator) = i0,
        special_i0e_kernel: fn(&TensorIterator) = i0e,
        special_i1_kernel: fn(&TensorIterator) = i1,
        special_i1e_kernel: fn(&TensorIterator) = i1e,
        special_modified_bessel_i0_kernel: fn(&TensorIterator) = i0,
        special_modified_bessel_i1_kernel: fn(&TensorIterator) = i1,
        special_modified_bessel_k0_kernel: fn(&TensorIterator) = k0,
        special_modified_bessel_k1_kernel: fn(&TensorIterator) = k1,
        special_scaled_modified_bessel_k0_kernel: fn(&TensorIterator) = k0e,
        special_scaled_modified_bessel_k1_kernel: fn(&TensorIterator) = k1e;
}

/// `exp(a)·scaled`, where `exp(a)` alone may overflow. At infinity it is ∞·0, NaN, as in PyTorch.
fn unscaled(a: f64, scaled: f64) -> f64 {
    let half = (0.5 * a).exp();
    half * scaled * half
}

fn i0e(x: f64) -> f64 {
    let a = x.abs();
    if a <= 8.0 {
        series(a / 4.0 - 1.0, &I0E_SMALL)
    } else {
        series(16.0 / a - 1.0, &I0E_LARGE) / a.sqrt()
    }
}

fn i1e(x: f64) -> f64 {
    let a = x.abs();
    if a <= 8.0 {
        return x * series(a / 4.0 - 1.0, &I1E_SMALL);
    }
    (series(16.0 / a - 1.0, &I1E_LARGE) / a.sqrt()).copysign(x)
}

fn i0(x: f64) -> f64 {
    unscaled(x.abs(), i0e(x))
}

fn i1(x: f64) -> f64 {
    unscaled(x.abs(), i1e(x))
}

/// What is left of the functions' values at the origin, or `None`.
fn k_at_the_ends(x: f64) -> Option<f64> {
    match x {
        0.0 => Some(f64::INFINITY),
        x if x < 0.0 => Some(f64::NAN),
        x if x == f64::INFINITY => Some(0.0),
        _ => None,
    }
}

fn k0_near(x: f64) -> f64 {
    series(x * x / 2.0 - 1.0, &K0_SMALL) - (0.5 * x).ln() * i0(x)
}

fn k1_near(x: f64) -> f64 {
    series(x * x / 2.0 - 1.0, &K1_SMALL) / x + (0.5 * x).ln() * i1(x)
}

fn far(x: f64, coefficients: &[f64]) -> f64 {
    series(4.0 / x - 1.0, coefficients) / x.sqrt()
}

fn k0(x: f64) -> f64 {
    k_at_the_ends(x).unwrap_or_else(|| if x <= 2.0 { k0_near(x) } else { (-x).exp() * far(x, &K0_LARGE) })
}

fn k1(x: f64) -> f64 {
    k_at_the_ends(x).unwrap_or_else(|| if x <= 2.0 { k1_near(x) } else { (-x).exp() * far(x, &K1_LARGE) })
}

/// `eˣ·K₀(x)`
fn k0e(x: f64) -> f64 {
    k_at_the_ends(x).unwrap_or_else(|| if x <= 2.0 { x.exp() * k0_near(x) } else { far(x, &K0_LARGE) })
}

/// `eˣ·K₁(x)`
fn k1e(x: f64) -> f64 {
    k_at_the_ends(x).unwrap_or_else(|| if x <= 2.0 { x.exp() * k1_near(x) } else { far(x, &K1_LARGE) })
}
