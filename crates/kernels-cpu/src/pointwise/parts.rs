//! What numbers are made of: parts of complex ones, signs, mantissas, fractions.

use c10::{Element, Half, Result, ScalarType, Tensor};
use iter::{TensorIterator, TensorIteratorConfig};
use num_complex::Complex;

use crate::dispatch::dispatch;
use crate::loops::compute_dtype;
use crate::map::{binary, unary, Stored};
use crate::registration::register;

pub(super) fn register() {
    register! {
        angle_kernel: fn(&TensorIterator);
        complex_kernel: fn(&TensorIterator);
        polar_kernel: fn(&TensorIterator);
        frac_kernel: fn(&TensorIterator);
        frexp_kernel: fn(&Tensor, &[Tensor]);
        nan_to_num_kernel: fn(&TensorIterator, Option<f64>, Option<f64>, Option<f64>);
        signbit_kernel: fn(&TensorIterator);
        isposinf_kernel: fn(&TensorIterator);
        isneginf_kernel: fn(&TensorIterator);
        heaviside_kernel: fn(&TensorIterator);
        nextafter_kernel: fn(&TensorIterator);
    }
}

/// Of a real number π if it is negative, else 0.
fn angle_kernel(iter: &TensorIterator) -> Result<()> {
    match iter.dtype(1) {
        ScalarType::ComplexFloat => return unary(iter, 16, |z: Complex<f32>| z.im.atan2(z.re)),
        ScalarType::ComplexDouble => return unary(iter, 16, |z: Complex<f64>| z.im.atan2(z.re)),
        _ => {}
    }
    dispatch!(compute_dtype(iter.common_dtype()), "angle", FLOATING, |T| {
        let pi = <T as Element>::from_f64(std::f64::consts::PI);
        unary::<T, T>(iter, 1, move |a: T| {
            let angle = if a < 0.0 { pi } else { 0.0 };
            if a.is_nan() {
                a
            } else {
                angle
            }
        })
    })
}

/// Makes complex numbers of two real ones.
fn from_parts<F, G>(iter: &TensorIterator, cost: usize, f: F, g: G) -> Result<()>
where
    F: Fn(f32, f32) -> Complex<f32> + Copy + Sync,
    G: Fn(f64, f64) -> Complex<f64> + Copy + Sync,
{
    match iter.dtype(1) {
        ScalarType::Double => binary(iter, cost, g),
        ScalarType::Half => binary(iter, cost, move |a: f32, b: f32| {
            let z = f(a, b);
            Complex::new(Half::from_f32(z.re), Half::from_f32(z.im))
        }),
        _ => binary(iter, cost, f),
    }
}

fn complex_kernel(iter: &TensorIterator) -> Result<()> {
    from_parts(iter, 1, Complex::new, Complex::new)
}

fn polar_kernel(iter: &TensorIterator) -> Result<()> {
    from_parts(
        iter,
        32,
        |length, angle| Complex::new(length * angle.cos(), length * angle.sin()),
        |length, angle| Complex::new(length * angle.cos(), length * angle.sin()),
    )
}

fn frac_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "frac", FLOATING, |T| {
        unary::<T, T>(iter, 1, |a: T| a - a.trunc())
    })
}

/// `x = mantissa·2^exponent`, the mantissa in `[½, 1)`; zeros, infinities and NaN are their own, with exponent 0.
fn frexp(x: f64) -> (f64, i32) {
    const EXPONENT: u64 = 0x7ff;
    let exponent = |x: f64| (x.to_bits() >> 52 & EXPONENT) as i32;
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    // A subnormal number is scaled first.
    let (normal, shift) = if exponent(x) == 0 { (x * 18_014_398_509_481_984.0, -54) } else { (x, 0) };
    let mantissa = f64::from_bits(normal.to_bits() & !(EXPONENT << 52) | 1022 << 52);
    (mantissa, exponent(normal) - 1022 + shift)
}

fn frexp_kernel(self_: &Tensor, outs: &[Tensor]) -> Result<()> {
    let [mantissa, exponent] = outs else { c10::bail!(Internal, "frexp: {} outputs", outs.len()) };
    let of = |out: &Tensor| {
        TensorIteratorConfig::new()
            .op_name("frexp")
            .check_all_same_dtype(false)
            .resize_outputs(false)
            .add_output(out)
            .add_input(self_)
            .build_standalone()
    };
    dispatch!(compute_dtype(self_.dtype()), "frexp", FLOATING, |T| {
        unary::<T, i32>(&of(exponent)?, 4, |a: T| frexp(a.to_f64()).1)?;
        unary::<T, T>(&of(mantissa)?, 4, |a: T| T::from_f64(frexp(a.to_f64()).0))
    })
}

/// What stands for NaN and the infinities; the infinities' defaults are the largest numbers of the tensor's dtype.
#[derive(Clone, Copy)]
struct Replacements {
    nan: f64,
    positive: f64,
    negative: f64,
}

impl Replacements {
    #[inline(always)]
    fn apply<T: Element + PartialOrd>(self, a: T) -> T {
        let wide = a.to_f64();
        if wide.is_nan() {
            T::from_f64(self.nan)
        } else if wide == f64::INFINITY {
            T::from_f64(self.positive)
        } else if wide == f64::NEG_INFINITY {
            T::from_f64(self.negative)
        } else {
            a
        }
    }
}

fn nan_to_num_kernel(
    iter: &TensorIterator,
    nan: Option<f64>,
    posinf: Option<f64>,
    neginf: Option<f64>,
) -> Result<()> {
    let dtype = iter.common_dtype();
    let largest = match dtype {
        ScalarType::Half => 65504.0,
        ScalarType::BFloat16 => f64::from(c10::BFloat16::MAX.to_f32()),
        ScalarType::Float | ScalarType::ComplexFloat => f64::from(f32::MAX),
        _ => f64::MAX,
    };
    let by = Replacements {
        nan: nan.unwrap_or(0.0),
        positive: posinf.unwrap_or(largest),
        negative: neginf.unwrap_or(-largest),
    };
    match dtype {
        ScalarType::ComplexFloat => {
            unary(iter, 2, move |z: Complex<f32>| Complex::new(by.apply(z.re), by.apply(z.im)))
        }
        ScalarType::ComplexDouble => {
            unary(iter, 2, move |z: Complex<f64>| Complex::new(by.apply(z.re), by.apply(z.im)))
        }
        dtype if dtype.is_floating_point() => {
            dispatch!(compute_dtype(dtype), "nan_to_num", FLOATING, |T| {
                unary::<T, T>(iter, 2, move |a: T| by.apply(a))
            })
        }
        dtype => dispatch!(dtype, "nan_to_num", EVERY, |T| { unary::<T, T>(iter, 1, |a: T| a) }),
    }
}

/// A predicate of real numbers; integers have a formula of their own.
macro_rules! predicate {
    ($($kernel:ident, |$a:ident| $float:expr, integers: |$T:ident, $i:ident| $integer:expr;)*) => {$(
        fn $kernel(iter: &TensorIterator) -> Result<()> {
            match iter.dtype(1) {
                dtype if dtype.is_floating_point() => {
                    dispatch!(compute_dtype(dtype), stringify!($kernel), FLOATING, |T| {
                        unary::<T, bool>(iter, 1, |$a: T| $float)
                    })
                }
                dtype => dispatch!(dtype, stringify!($kernel), ALL_AND_BOOL, |$T| {
                    unary::<$T, bool>(iter, 1, |$i: $T| $integer)
                }),
            }
        }
    )*};
}

predicate! {
    signbit_kernel, |a| a.is_sign_negative(), integers: |T, a| a < <T as Element>::ZERO;
    isposinf_kernel, |a| a == T::INFINITY, integers: |T, _a| false;
    isneginf_kernel, |a| a == T::NEG_INFINITY, integers: |T, _a| false;
}

/// 0 below zero, 1 above, the other operand at zero.
fn heaviside_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "heaviside_cpu", ALL_AND_BOOL, |T| {
        let (zero, one) = (<T as Element>::ZERO, <T as Element>::ONE);
        binary::<T, T, T>(iter, 1, move |a, value| {
            let side = if a > zero { one } else { zero };
            if a == zero {
                value
            } else {
                side
            }
        })
    })
}

/// A floating-point format whose values are ordered as their bits are, apart from the sign.
trait Neighbours: Stored<Raw = Self> + PartialOrd {
    /// The next value towards another.
    fn next_towards(self, other: Self) -> Self;
}

macro_rules! neighbours {
    ($($T:ty),*) => {$(
        impl Neighbours for $T {
            #[inline(always)]
            fn next_towards(self, other: $T) -> $T {
                if self.is_nan() || other.is_nan() {
                    return self + other;
                }
                if self == other {
                    return other;
                }
                let zero = <$T as Element>::ZERO;
                if self == zero {
                    let smallest = <$T>::from_bits(1);
                    return if other > zero { smallest } else { -smallest };
                }
                let away = (self < other) == (self > zero);
                <$T>::from_bits(if away { self.to_bits() + 1 } else { self.to_bits() - 1 })
            }
        }
    )*};
}

neighbours!(f32, f64, c10::BFloat16, Half);

fn nextafter_kernel(iter: &TensorIterator) -> Result<()> {
    match iter.common_dtype() {
        // The neighbours in the dtype itself: the operands come widened, without loss.
        ScalarType::BFloat16 => binary(iter, 2, |a: f32, b: f32| {
            c10::BFloat16::from_f32(a).next_towards(c10::BFloat16::from_f32(b)).to_f32()
        }),
        ScalarType::Half => {
            binary(iter, 2, |a: f32, b: f32| Half::from_f32(a).next_towards(Half::from_f32(b)).to_f32())
        }
        dtype => dispatch!(dtype, "nextafter_cpu", FLOATING, |T| {
            binary::<T, T, T>(iter, 2, |a: T, b: T| a.next_towards(b))
        }),
    }
}
