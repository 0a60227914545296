//! `pow` with a tensor or a number as exponent.

use c10::{check, Element, Result, Scalar, ScalarType};
use iter::TensorIterator;
use num_complex::Complex;

use crate::dispatch::dispatch;
use crate::loops::compute_dtype;
use crate::map::{binary, unary, Stored};
use crate::registration::register;

pub(super) fn register() {
    register! {
        pow_tensor_scalar_kernel: fn(&TensorIterator, &Scalar);
        pow_tensor_tensor_kernel: fn(&TensorIterator);
    }
}

/// Integer powers, which wrap; a negative exponent gives the truncated reciprocal.
trait IntegerPower: Stored {
    fn power(self, exponent: Self) -> Self;
}

macro_rules! integers {
    ($($T:ty),*) => {$(
        impl IntegerPower for $T {
            #[inline(always)]
            fn power(self, exponent: $T) -> $T {
                #[allow(unused_comparisons)] // unsigned exponents are never negative
                if exponent < 0 {
                    return match self {
                        1 => 1,
                        // Minus one, for signed types: the parity of the exponent decides.
                        base if base == (0 as $T).wrapping_sub(1) => if exponent & 1 == 0 { 1 } else { base },
                        _ => 0,
                    };
                }
                let (mut result, mut base, mut rest) = (1 as $T, self, exponent);
                while rest > 0 {
                    if rest & 1 == 1 {
                        result = result.wrapping_mul(base);
                    }
                    rest >>= 1;
                    base = base.wrapping_mul(base);
                }
                result
            }
        }
    )*};
}

integers!(u8, i8, i16, i32, i64);

/// `z^w` with the conventions of C: anything to the power 0 is 1, and 0 to a power with positive real part is 0.
fn complex_power(z: Complex<f64>, w: Complex<f64>) -> Complex<f64> {
    let zero = Complex::new(0.0, 0.0);
    if w == zero {
        return Complex::new(1.0, 0.0);
    }
    if z == zero && w.re > 0.0 {
        return zero;
    }
    z.powc(w)
}

fn wide(z: Complex<f32>) -> Complex<f64> {
    Complex::new(f64::from(z.re), f64::from(z.im))
}

fn narrow(z: Complex<f64>) -> Complex<f32> {
    Complex::new(z.re as f32, z.im as f32)
}

/// Small whole and half exponents, which nearly all uses have, are products and roots; the rest is `powf`.
macro_rules! float_power {
    ($name:ident, $T:ty) => {
        fn $name(iter: &TensorIterator, exponent: f64) -> Result<()> {
            match exponent {
                0.5 => unary(iter, 4, |a: $T| a.sqrt()),
                2.0 => unary(iter, 1, |a: $T| a * a),
                3.0 => unary(iter, 1, |a: $T| a * a * a),
                1.0 => unary(iter, 1, |a: $T| a),
                -0.5 => unary(iter, 4, |a: $T| 1.0 / a.sqrt()),
                -1.0 => unary(iter, 2, |a: $T| 1.0 / a),
                -2.0 => unary(iter, 2, |a: $T| 1.0 / (a * a)),
                _ => {
                    let exponent = exponent as $T;
                    unary(iter, 32, move |a: $T| a.powf(exponent))
                }
            }
        }
    };
}

float_power!(float_power_f32, f32);
float_power!(float_power_f64, f64);

fn pow_tensor_scalar_kernel(iter: &TensorIterator, exponent: &Scalar) -> Result<()> {
    match compute_dtype(iter.common_dtype()) {
        // Of bool there are the powers that need no product.
        ScalarType::Bool if exponent.to_i64()? == 0 => unary(iter, 1, |_: bool| true),
        ScalarType::Bool if exponent.to_i64()? == 1 => unary(iter, 1, |a: bool| a),
        ScalarType::ComplexHalf => {
            c10::bail!(NotImplemented, "\"pow\" not implemented for 'ComplexHalf'")
        }
        ScalarType::Float => float_power_f32(iter, exponent.to_f64()?),
        ScalarType::Double => float_power_f64(iter, exponent.to_f64()?),
        ScalarType::ComplexFloat => {
            let exponent = exponent.to_complex()?;
            if exponent == Complex::new(2.0, 0.0) {
                return unary(iter, 2, |z: Complex<f32>| z * z);
            }
            unary(iter, 64, move |z: Complex<f32>| narrow(complex_power(wide(z), exponent)))
        }
        ScalarType::ComplexDouble => {
            let exponent = exponent.to_complex()?;
            if exponent == Complex::new(2.0, 0.0) {
                return unary(iter, 2, |z: Complex<f64>| z * z);
            }
            unary(iter, 64, move |z: Complex<f64>| complex_power(z, exponent))
        }
        dtype => {
            let exponent = exponent.to_i64()?;
            check!(exponent >= 0, "Integers to negative integer powers are not allowed.");
            dispatch!(dtype, "pow_tensor_scalar_kernel", INTEGRAL, |T| {
                match exponent {
                    2 => unary::<T, T>(iter, 1, |a: T| a.wrapping_mul(a)),
                    // The exponent may be beyond the dtype's range: square and multiply by its own bits.
                    _ => unary::<T, T>(iter, 16, move |a: T| {
                        let (mut result, mut base, mut rest) = (<T as Element>::ONE, a, exponent);
                        while rest > 0 {
                            if rest & 1 == 1 {
                                result = result.wrapping_mul(base);
                            }
                            rest >>= 1;
                            base = base.wrapping_mul(base);
                        }
                        result
                    }),
                }
            })
        }
    }
}

fn pow_tensor_tensor_kernel(iter: &TensorIterator) -> Result<()> {
    match compute_dtype(iter.common_dtype()) {
        ScalarType::Float => binary(iter, 32, |a: f32, b: f32| a.powf(b)),
        ScalarType::Double => binary(iter, 32, |a: f64, b: f64| a.powf(b)),
        ScalarType::ComplexFloat => {
            binary(iter, 64, |a: Complex<f32>, b: Complex<f32>| narrow(complex_power(wide(a), wide(b))))
        }
        ScalarType::ComplexDouble => binary(iter, 64, |a: Complex<f64>, b: Complex<f64>| complex_power(a, b)),
        dtype => dispatch!(dtype, "pow_tensor_tensor_kernel", INTEGRAL, |T| {
            binary::<T, T, T>(iter, 16, |a, b| a.power(b))
        }),
    }
}
