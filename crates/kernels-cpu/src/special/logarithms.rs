//! Products with logarithms, the logistic function's inverse, and the error functions.

use c10::{Result, Scalar};
use iter::TensorIterator;

use crate::pointwise::float_function::{float_function, float_map};
use crate::registration::register;
use crate::vec::math;

pub(super) fn register() {
    register! {
        erf_kernel: fn(&TensorIterator);
        erfc_kernel: fn(&TensorIterator);
        special_ndtr_kernel: fn(&TensorIterator);
        special_entr_kernel: fn(&TensorIterator);
        xlogy_kernel: fn(&TensorIterator);
        special_xlog1py_kernel: fn(&TensorIterator);
        logit_kernel: fn(&TensorIterator, Option<f64>);
        logit_backward_kernel: fn(&TensorIterator, Option<f64>);
    }
}

float_function! {
    erf_kernel, cost 20, |a| math::erf::<A, T>(a);
    erfc_kernel, cost 20, |a| math::erfc::<A, T>(a);
    special_ndtr_kernel, cost 20, |a| T::of(0.5) * math::erfc::<A, T>(a * T::of(-std::f64::consts::FRAC_1_SQRT_2));
    special_entr_kernel, cost 14, |a| {
        let y = -a * math::log::<A, T>(a);
        let y = if a == T::of(0.0) { a } else { y };
        if a < T::of(0.0) { -T::INFINITY } else { y }
    };
}

float_map! {
    xlogy_kernel(), cost 14, |a, b| {
        let y = a * math::log::<A, T>(b);
        let y = if a == T::of(0.0) { T::of(0.0) } else { y };
        if b.is_nan() { b } else { y }
    };
    special_xlog1py_kernel(), cost 16, |a, b| {
        let y = a * math::log1p::<A, T>(b);
        let y = if a == T::of(0.0) { T::of(0.0) } else { y };
        if b.is_nan() { b } else { y }
    };
    clamped_logit(low, high), cost 16, |a| {
        let a = if a < low { low } else { a };
        let a = if a > high { high } else { a };
        math::log::<A, T>(a / (T::of(1.0) - a))
    };
    // Outside of the limits the slope is `outside`.
    logit_slope(low, high, outside), cost 4, |grad, a| {
        let slope = grad / (a * (T::of(1.0) - a));
        if (a < low) | (a > high) { outside } else { slope }
    };
}

fn logit_kernel(iter: &TensorIterator, eps: Option<f64>) -> Result<()> {
    let (low, high) = match eps {
        Some(eps) if eps >= 0.0 => (eps, 1.0 - eps),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    };
    clamped_logit(iter, &Scalar::Float(low), &Scalar::Float(high))
}

fn logit_backward_kernel(iter: &TensorIterator, eps: Option<f64>) -> Result<()> {
    let (low, high, outside) = match eps {
        Some(eps) if eps >= 0.0 => (eps, 1.0 - eps, 0.0),
        _ => (0.0, 1.0, f64::NAN),
    };
    logit_slope(iter, &Scalar::Float(low), &Scalar::Float(high), &Scalar::Float(outside))
}
