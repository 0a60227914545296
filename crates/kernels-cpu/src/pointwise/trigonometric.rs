//! `sin`, `cos`, `tanh`, `atan2`.

use c10::Result;
use iter::TensorIterator;
use num_complex::Complex;

use super::float_function::{float_function, FloatFunction};
use crate::dispatch::dispatch;
use crate::loops::compute_dtype;
use crate::map::binary;
use crate::registration::register;
use crate::vec::math::{tanh_f32, tanh_f64};

pub(super) fn register() {
    register! {
        sin_kernel: fn(&TensorIterator);
        cos_kernel: fn(&TensorIterator);
        tanh_kernel: fn(&TensorIterator);
        atan2_kernel: fn(&TensorIterator);
    }
}

float_function! {
    sin_kernel, cost 16, Sin {
        f32: |a, A| a.sin(),
        f64: |a, A| a.sin(),
        complex: |z| z.sin(),
    }
    cos_kernel, cost 16, Cos {
        f32: |a, A| a.cos(),
        f64: |a, A| a.cos(),
        complex: |z| z.cos(),
    }
    tanh_kernel, cost 12, Tanh {
        f32: |a, A| tanh_f32::<A>(a),
        f64: |a, A| tanh_f64::<A>(a),
        complex: |z| tanh_complex(z),
    }
}

/// `tanh z`, which for a large real part is ±1: there the quotient of `sinh` and `cosh` would be ∞/∞.
fn tanh_complex(z: Complex<f64>) -> Complex<f64> {
    const LARGE: f64 = 20.0;
    if z.re.abs() > LARGE && z.im.is_finite() {
        // The imaginary part is 4·sin(im)·cos(im)·exp(−2|re|).
        let im = 4.0 * z.im.sin() * z.im.cos() * (-2.0 * z.re.abs()).exp();
        return Complex::new(1f64.copysign(z.re), im);
    }
    z.tanh()
}

fn atan2_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "atan2_kernel", FLOATING, |T| {
        binary::<T, T, T>(iter, 16, |a: T, b: T| a.atan2(b))
    })
}
