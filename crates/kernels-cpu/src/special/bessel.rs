//! Bessel functions of orders 0 and 1.
//!
//! Chebyshev series in `x²` up to 8, for the functions of the second kind of what the logarithmic part leaves; beyond,
//! Hankel's form `√(2/πx)·(P cos θ − Q sin θ)` with series for `P` and `Q` (Abramowitz and Stegun, 9.2 and 9.4).

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI};

use super::tables::{series, J0_SMALL, J1_SMALL, P0, P1, Q0, Q1, Y0_SMALL, Y1_SMALL};

super::scalar_functions! {
    scalar_unary:
        special_bessel_j0_kernel: fn(&TensorIterator) = j0,
        special_bessel_j1_kernel: fn(&TensorIterator) = j1,
        special_bessel_y0_kernel: fn(&TensorIterator) = y0,
        special_bessel_y1_kernel: fn(&TensorIterator) = y1,
        special_spherical_bessel_j0_kernel: fn(&TensorIterator) = spherical_j0;
}

const NEAR: f64 = 8.0;

/// Where a series in `x²` up to 8 is evaluated.
fn small(x: f64) -> f64 {
    x * x / 32.0 - 1.0
}

/// Hankel's form at `x > 8`: of the first kind, and of the second. The phase is `x − π/4`, less π/2 for order 1.
fn hankel(x: f64, p: &[f64], q: &[f64], order: u32) -> (f64, f64) {
    let inverse = NEAR / x;
    let t = 2.0 * inverse * inverse - 1.0;
    let (p, q) = (series(t, p), series(t, q) * inverse);
    let (sine, cosine) = x.sin_cos();
    let (sum, difference) = (FRAC_1_SQRT_2 * (sine + cosine), FRAC_1_SQRT_2 * (sine - cosine));
    let (cosine, sine) = if order == 0 { (sum, difference) } else { (difference, -sum) };
    let scale = (FRAC_2_PI / x).sqrt();
    (scale * (p * cosine - q * sine), scale * (p * sine + q * cosine))
}

fn j0(x: f64) -> f64 {
    let x = x.abs();
    if x <= NEAR {
        series(small(x), &J0_SMALL)
    } else {
        hankel(x, &P0, &Q0, 0).0
    }
}

fn j1(x: f64) -> f64 {
    let a = x.abs();
    if a <= NEAR {
        return x * series(small(x), &J1_SMALL);
    }
    let value = hankel(a, &P1, &Q1, 1).0;
    if x < 0.0 {
        -value
    } else {
        value
    }
}

fn y0(x: f64) -> f64 {
    if x <= 0.0 {
        return if x == 0.0 { f64::NEG_INFINITY } else { f64::NAN };
    }
    if x <= NEAR {
        series(small(x), &Y0_SMALL) + FRAC_2_PI * x.ln() * j0(x)
    } else {
        hankel(x, &P0, &Q0, 0).1
    }
}

fn y1(x: f64) -> f64 {
    if x <= 0.0 {
        return if x == 0.0 { f64::NEG_INFINITY } else { f64::NAN };
    }
    if x <= NEAR {
        x * series(small(x), &Y1_SMALL) + FRAC_2_PI * (x.ln() * j1(x) - 1.0 / x)
    } else {
        hankel(x, &P1, &Q1, 1).1
    }
}

/// `sin x / x`
fn spherical_j0(x: f64) -> f64 {
    if x.is_infinite() {
        return 0.0;
    }
    if x.abs() < 1e-4 {
        return 1.0 - x * x / 6.0;
    }
    x.sin() / x
}
