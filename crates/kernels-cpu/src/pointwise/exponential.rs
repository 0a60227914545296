//! Exponentials, logarithms, roots, and `sigmoid`.

use c10::{Element, Result};
use iter::TensorIterator;
use num_complex::Complex;

use super::float_function::float_function;
use super::number::Field;
use crate::registration::register;
use crate::vec::math;

pub(super) fn register() {
    register! {
        exp_kernel: fn(&TensorIterator);
        exp2_kernel: fn(&TensorIterator);
        expm1_kernel: fn(&TensorIterator);
        log_kernel: fn(&TensorIterator);
        log2_kernel: fn(&TensorIterator);
        log10_kernel: fn(&TensorIterator);
        log1p_kernel: fn(&TensorIterator);
        sqrt_kernel: fn(&TensorIterator);
        rsqrt_kernel: fn(&TensorIterator);
        sigmoid_kernel: fn(&TensorIterator);
    }
}

/// The reciprocal, for the functions that end in one.
fn reciprocal<T: Field>(a: T) -> T {
    <T as Element>::ONE.div(a)
}

/// `log(1 + z)` without the cancellation in `1 + z` near zero.
pub(super) fn log1p_complex(z: Complex<f64>) -> Complex<f64> {
    // |1 + z|² − 1 = re·(re + 2) + im²
    Complex::new(0.5 * (z.re * (z.re + 2.0) + z.im * z.im).ln_1p(), z.im.atan2(1.0 + z.re))
}

/// `exp(z) − 1 = expm1(re)·cos(im) − 2·sin²(im/2) + i·exp(re)·sin(im)`.
fn expm1_complex(z: Complex<f64>) -> Complex<f64> {
    let half = (z.im / 2.0).sin();
    Complex::new(z.re.exp_m1() * z.im.cos() - 2.0 * half * half, z.re.exp() * z.im.sin())
}

float_function! {
    exp_kernel, cost 8, |a| math::exp::<A, T>(a), complex: |z| z.exp();
    exp2_kernel, cost 8, |a| math::exp2::<A, T>(a), complex: |z| (z * std::f64::consts::LN_2).exp();
    expm1_kernel, cost 10, |a| math::expm1::<A, T>(a), complex: |z| expm1_complex(z);
    log_kernel, cost 12, |a| math::log::<A, T>(a), complex: |z| z.ln();
    log2_kernel, cost 12, |a| math::log2::<A, T>(a), complex: |z| z.ln() / std::f64::consts::LN_2;
    log10_kernel, cost 12, |a| math::log10::<A, T>(a), complex: |z| z.ln() / std::f64::consts::LN_10;
    log1p_kernel, cost 14, |a| math::log1p::<A, T>(a), complex: |z| log1p_complex(z);
    sqrt_kernel, cost 4, |a| a.sqrt(), complex: |z| z.sqrt();
    rsqrt_kernel, cost 4, |a| T::of(1.0) / a.sqrt(), complex: |z| reciprocal(z.sqrt());
    sigmoid_kernel, cost 8, |a| math::sigmoid::<A, T>(a),
        complex: |z| reciprocal(Complex::new(1.0, 0.0) + (-z).exp());
}
