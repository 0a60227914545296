//! Activation functions and their derivatives.

use c10::{Result, Scalar, ScalarType};
use iter::TensorIterator;
use num_complex::Complex;

use super::float_function::{float_function, float_map, Float};
use crate::map::binary;
use crate::registration::register;
use crate::vec::math::{self, Arith};

pub(super) fn register() {
    register! {
        elu_kernel: fn(&TensorIterator, &Scalar, &Scalar, &Scalar);
        elu_backward_kernel: fn(&TensorIterator, &Scalar, &Scalar, &Scalar, bool);
        hardtanh_kernel: fn(&TensorIterator, &Scalar, &Scalar);
        hardtanh_backward_kernel: fn(&TensorIterator, &Scalar, &Scalar);
        hardsigmoid_kernel: fn(&TensorIterator);
        hardsigmoid_backward_kernel: fn(&TensorIterator);
        hardswish_kernel: fn(&TensorIterator);
        hardswish_backward_kernel: fn(&TensorIterator);
        hardshrink_kernel: fn(&TensorIterator, &Scalar);
        hardshrink_backward_kernel: fn(&TensorIterator, &Scalar);
        softshrink_kernel: fn(&TensorIterator, &Scalar);
        softshrink_backward_kernel: fn(&TensorIterator, &Scalar);
        softplus_kernel: fn(&TensorIterator, &Scalar, &Scalar);
        softplus_backward_kernel: fn(&TensorIterator, &Scalar, &Scalar);
        gelu_kernel: fn(&TensorIterator, &str);
        gelu_backward_kernel: fn(&TensorIterator, &str);
        silu_kernel: fn(&TensorIterator);
        silu_backward_kernel: fn(&TensorIterator);
        mish_kernel: fn(&TensorIterator);
        mish_backward_kernel: fn(&TensorIterator);
        leaky_relu_kernel: fn(&TensorIterator, &Scalar);
        leaky_relu_backward_kernel: fn(&TensorIterator, &Scalar, bool);
        log_sigmoid_kernel: fn(&TensorIterator);
        log_sigmoid_backward_kernel: fn(&TensorIterator);
        _prelu_kernel_kernel: fn(&TensorIterator);
    }
}

float_map! {
    elu_kernel(alpha, scale, input_scale), cost 10, |a| {
        let below = math::expm1::<A, T>(a * input_scale) * (alpha * scale);
        if a < T::of(0.0) { below } else { a * scale }
    };
    elu_backward_kernel(alpha, scale, input_scale; is_result: bool), cost 10, |grad, a| {
        let height = alpha * scale;
        let slope = if is_result { a + height } else { height * math::exp::<A, T>(a * input_scale) };
        if a <= T::of(0.0) { grad * input_scale * slope } else { grad * scale }
    };
    hardtanh_backward_kernel(min, max), cost 1, |grad, a| {
        if (a <= min) | (a >= max) { T::of(0.0) } else { grad }
    };
    hardsigmoid_kernel(), cost 2, |a| relu6(a + T::of(3.0)) / T::of(6.0);
    hardsigmoid_backward_kernel(), cost 1, |grad, a| {
        if (a > T::of(-3.0)) & (a < T::of(3.0)) { grad / T::of(6.0) } else { T::of(0.0) }
    };
    hardswish_kernel(), cost 2, |a| a * relu6(a + T::of(3.0)) / T::of(6.0);
    hardswish_backward_kernel(), cost 2, |grad, a| {
        let inside = if a < T::of(3.0) { grad * (a / T::of(3.0) + T::of(0.5)) } else { grad };
        if a <= T::of(-3.0) { T::of(0.0) } else { inside }
    };
    hardshrink_kernel(lambda), cost 1, |a| if (a >= -lambda) & (a <= lambda) { T::of(0.0) } else { a };
    hardshrink_backward_kernel(lambda), cost 1, |grad, a| {
        if (a >= -lambda) & (a <= lambda) { T::of(0.0) } else { grad }
    };
    softshrink_kernel(lambda), cost 1, |a| {
        // What is neither above nor below is 0, or NaN.
        let inside = if a < -lambda { a + lambda } else { a * T::of(0.0) };
        if a > lambda { a - lambda } else { inside }
    };
    softshrink_backward_kernel(lambda), cost 1, |grad, a| {
        if (a >= -lambda) & (a <= lambda) { T::of(0.0) } else { grad }
    };
    softplus_kernel(beta, threshold), cost 20, |a| {
        let x = a * beta;
        let y = math::log1p::<A, T>(math::exp::<A, T>(x)) / beta;
        if x > threshold { a } else { y }
    };
    softplus_backward_kernel(beta, threshold), cost 10, |grad, a| {
        let x = a * beta;
        let e = math::exp::<A, T>(x);
        if x > threshold { grad } else { grad * e / (e + T::of(1.0)) }
    };
    silu_backward_real(), cost 10, |grad, a| {
        let s = math::sigmoid::<A, T>(a);
        grad * s * (T::of(1.0) + a * (T::of(1.0) - s))
    };
    mish_kernel(), cost 10, |a| a * tanh_of_softplus::<A, T>(a);
    mish_backward_kernel(), cost 16, |grad, a| {
        let w = tanh_of_softplus::<A, T>(a);
        let s = math::sigmoid::<A, T>(a);
        grad * (w + a * s * (T::of(1.0) - w * w))
    };
    leaky_relu_kernel(slope), cost 1, |a| if a > T::of(0.0) { a } else { a * slope };
    leaky_relu_backward_kernel(slope; _is_result: bool), cost 1, |grad, a| {
        if a > T::of(0.0) { grad } else { grad * slope }
    };
    log_sigmoid_kernel(), cost 20, |a| {
        let low = if a > T::of(0.0) { T::of(0.0) } else { a };
        low - math::log1p::<A, T>(math::exp::<A, T>(-a.abs()))
    };
    log_sigmoid_backward_kernel(), cost 10, |grad, a| grad * math::sigmoid::<A, T>(-a);
    _prelu_kernel_kernel(), cost 1, |a, weight| if a > T::of(0.0) { a } else { a * weight };
    gelu_exact(), cost 16, |a| T::of(0.5) * a * math::erfc::<A, T>(a * T::of(-std::f64::consts::FRAC_1_SQRT_2));
    gelu_tanh(), cost 12, |a| {
        T::of(0.5) * a * (T::of(1.0) + math::tanh::<A, T>(gelu_inner(a).0))
    };
    gelu_exact_backward(), cost 24, |grad, a| {
        let x = a * T::of(std::f64::consts::FRAC_1_SQRT_2);
        let below = T::of(0.5) * math::erfc::<A, T>(-x);
        let density = math::bell::<A, T>(x) * T::of(0.5 * std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2);
        grad * (below + a * density)
    };
    gelu_tanh_backward(), cost 16, |grad, a| {
        let (inner, slope) = gelu_inner(a);
        let t = math::tanh::<A, T>(inner);
        let one = T::of(1.0);
        grad * T::of(0.5) * ((one + t) + a * (one - t * t) * slope)
    };
}

float_function! {
    silu_kernel, cost 10, |a| a / (T::of(1.0) + math::exp::<A, T>(-a)),
        complex: |z| z / (Complex::new(1.0, 0.0) + (-z).exp());
}

/// `min(max(a, 0), 6)`; NaN stays.
#[inline(always)]
fn relu6<T: Float>(a: T) -> T {
    let a = if a < T::of(0.0) { T::of(0.0) } else { a };
    if a > T::of(6.0) {
        T::of(6.0)
    } else {
        a
    }
}

/// `tanh(log(1 + e)) = (e² + 2e) / (e² + 2e + 2)` with `e = exp(a)`; 1 for large `a`.
#[inline(always)]
fn tanh_of_softplus<A: Arith, T: Float>(a: T) -> T {
    let limit = T::of(20.0);
    let e = math::exp::<A, T>(if a > limit { limit } else { a });
    let n = e * (e + T::of(2.0));
    n / (n + T::of(2.0))
}

/// `√(2/π)·(a + 0.044715·a³)` and its derivative.
#[inline(always)]
fn gelu_inner<T: Float>(a: T) -> (T, T) {
    const BETA: f64 = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;
    let (one, kappa) = (T::of(1.0), T::of(0.044_715));
    let square = a * a;
    (T::of(BETA) * (a * (one + kappa * square)), T::of(BETA) * (one + T::of(3.0) * kappa * square))
}

/// `clamp`, whose gradient differs at the limits.
fn hardtanh_kernel(iter: &TensorIterator, min: &Scalar, max: &Scalar) -> Result<()> {
    super::clamp::clamp_kernel(iter, Some(min), Some(max))
}

fn gelu_kernel(iter: &TensorIterator, approximate: &str) -> Result<()> {
    match approximate {
        "none" => gelu_exact(iter),
        "tanh" => gelu_tanh(iter),
        _ => c10::bail!(Runtime, "approximate argument must be either none or tanh."),
    }
}

fn gelu_backward_kernel(iter: &TensorIterator, approximate: &str) -> Result<()> {
    match approximate {
        "none" => gelu_exact_backward(iter),
        "tanh" => gelu_tanh_backward(iter),
        _ => c10::bail!(Runtime, "approximate argument must be either none or tanh."),
    }
}

fn silu_slope(z: Complex<f64>) -> Complex<f64> {
    let one = Complex::new(1.0, 0.0);
    let s = one / (one + (-z).exp());
    (s * (one + z * (one - s))).conj()
}

fn silu_backward_kernel(iter: &TensorIterator) -> Result<()> {
    match iter.common_dtype() {
        ScalarType::ComplexDouble => {
            binary(iter, 64, |grad: Complex<f64>, z: Complex<f64>| grad * silu_slope(z))
        }
        ScalarType::ComplexFloat => binary(iter, 64, |grad: Complex<f32>, z: Complex<f32>| {
            let wide = |z: Complex<f32>| Complex::new(f64::from(z.re), f64::from(z.im));
            let value = wide(grad) * silu_slope(wide(z));
            Complex::new(value.re as f32, value.im as f32)
        }),
        _ => silu_backward_real(iter),
    }
}
