//! The Airy function.
//!
//! Its Maclaurin series near zero; beyond, the asymptotic forms with their slowly varying factors as Chebyshev series
//! (Abramowitz and Stegun, 10.4).

use std::f64::consts::{FRAC_PI_4, PI};

use super::tables::{series, DECAY, WAVE_P, WAVE_Q};

super::scalar_functions! {
    scalar_unary: special_airy_ai_kernel: fn(&TensorIterator) = airy_ai;
}

/// Where the series and the asymptotic forms meet.
const NEAR: f64 = 2.0;

fn airy_ai(x: f64) -> f64 {
    if !x.is_finite() {
        return f64::NAN;
    }
    let a = x.abs();
    let zeta_of = |a: f64| 2.0 / 3.0 * a * a.sqrt();
    if a < NEAR {
        return maclaurin(x);
    }
    let (zeta, least, root) = (zeta_of(a), zeta_of(NEAR), a.sqrt().sqrt() * PI.sqrt());
    if x > 0.0 {
        return 0.5 * (-zeta).exp() / root * series(2.0 * least / zeta - 1.0, DECAY.as_slice());
    }
    let ratio = least / zeta;
    let t = 2.0 * ratio * ratio - 1.0;
    let (p, q) = (series(t, &WAVE_P), series(t, &WAVE_Q) / zeta);
    let angle = zeta + FRAC_PI_4;
    (p * angle.sin() - q * angle.cos()) / root
}

/// `Ai(0)·f(x) + Ai′(0)·g(x)`, whose terms follow from `y″ = x·y`.
fn maclaurin(x: f64) -> f64 {
    let cube = x * x * x;
    let (mut f, mut g, mut f_term, mut g_term) = (1.0, x, 1.0, x);
    for k in 1..20 {
        let n = f64::from(3 * k);
        f_term *= cube / (n * (n - 1.0));
        g_term *= cube / (n * (n + 1.0));
        f += f_term;
        g += g_term;
    }
    0.355_028_053_887_817_2 * f - 0.258_819_403_792_806_8 * g
}
