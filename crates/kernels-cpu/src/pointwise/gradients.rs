//! Derivatives that have kernels of their own: `sigmoid_backward`, `tanh_backward`.

use c10::{Result, ScalarType};
use iter::TensorIterator;
use num_complex::Complex;

use crate::dispatch::dispatch;
use crate::loops::compute_dtype;
use crate::map::binary;
use crate::registration::register;

pub(super) fn register() {
    register! {
        sigmoid_backward_kernel: fn(&TensorIterator);
        tanh_backward_kernel: fn(&TensorIterator);
    }
}

macro_rules! gradient {
    ($($name:ident, |$grad:ident, $y:ident| $real:expr, |$cgrad:ident, $cy:ident, $one:ident| $complex:expr);* $(;)?) => {$(
        fn $name(iter: &TensorIterator) -> Result<()> {
            match compute_dtype(iter.common_dtype()) {
                ScalarType::Float => binary(iter, 2, |$grad: f32, $y: f32| $real),
                ScalarType::ComplexFloat => binary(iter, 4, |$cgrad: Complex<f32>, y: Complex<f32>| {
                    let ($cy, $one) = (y.conj(), Complex::<f32>::new(1.0, 0.0));
                    $complex
                }),
                ScalarType::ComplexDouble => binary(iter, 4, |$cgrad: Complex<f64>, y: Complex<f64>| {
                    let ($cy, $one) = (y.conj(), Complex::<f64>::new(1.0, 0.0));
                    $complex
                }),
                dtype => dispatch!(dtype, stringify!($name), Double, |T| {
                    binary::<T, T, T>(iter, 2, |$grad, $y| $real)
                }),
            }
        }
    )*};
}

gradient! {
    sigmoid_backward_kernel, |grad, y| grad * (1.0 - y) * y, |grad, y, one| grad * ((one - y) * y);
    tanh_backward_kernel, |grad, y| grad * (1.0 - y * y), |grad, y, one| grad * (one - y * y);
}
