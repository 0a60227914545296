//! Trigonometric and hyperbolic functions, and their inverses.

use c10::Result;
use iter::TensorIterator;
use num_complex::Complex;

use super::float_function::{float_function, float_map};
use crate::registration::register;
use crate::vec::math;

pub(super) fn register() {
    register! {
        sin_kernel: fn(&TensorIterator);
        cos_kernel: fn(&TensorIterator);
        tan_kernel: fn(&TensorIterator);
        asin_kernel: fn(&TensorIterator);
        acos_kernel: fn(&TensorIterator);
        atan_kernel: fn(&TensorIterator);
        sinh_kernel: fn(&TensorIterator);
        cosh_kernel: fn(&TensorIterator);
        tanh_kernel: fn(&TensorIterator);
        asinh_kernel: fn(&TensorIterator);
        acosh_kernel: fn(&TensorIterator);
        atanh_kernel: fn(&TensorIterator);
        sinc_kernel: fn(&TensorIterator);
        atan2_kernel: fn(&TensorIterator);
    }
}

float_function! {
    sin_kernel, cost 12, |a| math::sin::<A, T>(a), near: math::is_reducible, far: f64::sin, complex: |z| z.sin();
    cos_kernel, cost 12, |a| math::cos::<A, T>(a), near: math::is_reducible, far: f64::cos, complex: |z| z.cos();
    tan_kernel, cost 14, |a| math::tan::<A, T>(a), near: math::is_reducible, far: f64::tan,
        complex: |z| over_i(tanh(times_i(z)));
    asin_kernel, cost 14, |a| math::asin::<A, T>(a), complex: |z| asin(z);
    acos_kernel, cost 14, |a| math::acos::<A, T>(a), complex: |z| acos(z);
    atan_kernel, cost 14, |a| math::atan::<A, T>(a), complex: |z| over_i(atanh(times_i(z)));
    sinh_kernel, cost 12, |a| math::sinh::<A, T>(a),
        complex: |z| Complex::new(z.re.sinh() * z.im.cos(), z.re.cosh() * z.im.sin());
    cosh_kernel, cost 12, |a| math::cosh::<A, T>(a),
        complex: |z| Complex::new(z.re.cosh() * z.im.cos(), z.re.sinh() * z.im.sin());
    tanh_kernel, cost 10, |a| math::tanh::<A, T>(a), complex: |z| tanh(z);
    asinh_kernel, cost 20, |a| math::asinh::<A, T>(a), complex: |z| over_i(asin(times_i(z)));
    acosh_kernel, cost 20, |a| math::acosh::<A, T>(a), complex: |z| acosh(z);
    atanh_kernel, cost 18, |a| math::atanh::<A, T>(a), complex: |z| atanh(z);
    sinc_kernel, cost 16, |a| sinc::<A, T>(a), near: has_reducible_angle, far: far_sinc, complex: |z| complex_sinc(z);
}

float_map! {
    atan2_kernel(), cost 16, |a, b| math::atan2::<A, T>(a, b);
}

/// `sin(πx) / πx`, 1 at 0.
#[inline(always)]
fn sinc<A: math::Arith, T: math::Tables>(a: T) -> T {
    let angle = a * T::of(std::f64::consts::PI);
    let y = math::sin::<A, T>(angle) / angle;
    if a == T::of(0.0) {
        T::of(1.0)
    } else {
        y
    }
}

/// Whether `πa` is small enough for the vectorized sine.
#[inline(always)]
fn has_reducible_angle<T: math::Real>(a: T) -> bool {
    math::is_reducible(a * T::of(4.0))
}

fn far_sinc(a: f64) -> f64 {
    let angle = a * std::f64::consts::PI;
    angle.sin() / angle
}

fn complex_sinc(z: Complex<f64>) -> Complex<f64> {
    if z == Complex::new(0.0, 0.0) {
        return Complex::new(1.0, 0.0);
    }
    let angle = z * std::f64::consts::PI;
    angle.sin() / angle
}

/// `i·z`
fn times_i(z: Complex<f64>) -> Complex<f64> {
    Complex::new(-z.im, z.re)
}

/// `z / i`
fn over_i(z: Complex<f64>) -> Complex<f64> {
    Complex::new(z.im, -z.re)
}

/// `tanh z`, which for a large real part is ±1: there the quotient of `sinh` and `cosh` would be ∞/∞.
fn tanh(z: Complex<f64>) -> Complex<f64> {
    const LARGE: f64 = 20.0;
    if z.re.abs() > LARGE && z.im.is_finite() {
        // The imaginary part is 4·sin(im)·cos(im)·exp(−2|re|).
        let im = 4.0 * z.im.sin() * z.im.cos() * (-2.0 * z.re.abs()).exp();
        return Complex::new(1f64.copysign(z.re), im);
    }
    z.tanh()
}

// The inverse functions are W. Kahan's, *Branch cuts for complex elementary functions*, 1987: no cancellation, and the
// signs of zeros choose the side of a branch cut.

/// The principal square root.
fn sqrt(z: Complex<f64>) -> Complex<f64> {
    let length = z.re.hypot(z.im);
    if length == 0.0 || !length.is_finite() {
        return z.sqrt();
    }
    let root = (0.5 * (z.re.abs() + length)).sqrt();
    let other = 0.5 * z.im.abs() / root;
    if z.re >= 0.0 {
        Complex::new(root, other.copysign(z.im))
    } else {
        Complex::new(other, root.copysign(z.im))
    }
}

fn plus(z: Complex<f64>, real: f64) -> Complex<f64> {
    Complex::new(z.re + real, z.im)
}

fn minus_from(real: f64, z: Complex<f64>) -> Complex<f64> {
    Complex::new(real - z.re, -z.im)
}

/// `asin z`
fn asin(z: Complex<f64>) -> Complex<f64> {
    let (low, high) = (sqrt(minus_from(1.0, z)), sqrt(plus(z, 1.0)));
    Complex::new(z.re.atan2((low * high).re), (low.conj() * high).im.asinh())
}

/// `acos z`
fn acos(z: Complex<f64>) -> Complex<f64> {
    let (low, high) = (sqrt(minus_from(1.0, z)), sqrt(plus(z, 1.0)));
    Complex::new(2.0 * low.re.atan2(high.re), (high.conj() * low).im.asinh())
}

/// `acosh z`
fn acosh(z: Complex<f64>) -> Complex<f64> {
    let (low, high) = (sqrt(plus(z, -1.0)), sqrt(plus(z, 1.0)));
    Complex::new((low.conj() * high).re.asinh(), 2.0 * low.im.atan2(high.re))
}

/// `atanh z`
fn atanh(z: Complex<f64>) -> Complex<f64> {
    let (x, y) = (z.re.abs(), z.im);
    let below = (1.0 - x) * (1.0 - x) + y * y;
    let re = (0.25 * (4.0 * x / below).ln_1p()).copysign(z.re);
    Complex::new(re, 0.5 * (2.0 * y).atan2((1.0 - x) * (1.0 + x) - y * y))
}
