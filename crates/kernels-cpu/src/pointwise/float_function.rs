//! Functions of one floating-point or complex element.

use c10::Result;
use iter::TensorIterator;
use num_complex::Complex;

use crate::dispatch::dispatch;
use crate::loops::compute_dtype;
use crate::map::{function, Map1};
use crate::vec::math::Arith;

/// A function given by its formulas per dtype. Complex numbers of single precision compute in double.
pub(super) trait FloatFunction: Copy + Default + Sync + 'static {
    /// Relative to an addition.
    const COST: usize;
    fn call32<A: Arith>(a: f32) -> f32;
    fn call64<A: Arith>(a: f64) -> f64;
    fn call_complex(z: Complex<f64>) -> Complex<f64>;
}

/// `F` as a function of an element; the dtype chooses the formula.
#[derive(Clone, Copy)]
struct Formula<F>(std::marker::PhantomData<F>);

impl<F: FloatFunction> Map1<f32, f32> for Formula<F> {
    #[inline(always)]
    fn call<A: Arith>(self, a: f32) -> f32 {
        F::call32::<A>(a)
    }
}

impl<F: FloatFunction> Map1<f64, f64> for Formula<F> {
    #[inline(always)]
    fn call<A: Arith>(self, a: f64) -> f64 {
        F::call64::<A>(a)
    }
}

impl<F: FloatFunction> Map1<Complex<f64>, Complex<f64>> for Formula<F> {
    #[inline(always)]
    fn call<A: Arith>(self, z: Complex<f64>) -> Complex<f64> {
        F::call_complex(z)
    }
}

impl<F: FloatFunction> Map1<Complex<f32>, Complex<f32>> for Formula<F> {
    #[inline(always)]
    fn call<A: Arith>(self, z: Complex<f32>) -> Complex<f32> {
        let value = F::call_complex(Complex::new(f64::from(z.re), f64::from(z.im)));
        Complex::new(value.re as f32, value.im as f32)
    }
}

/// The kernel of a function.
pub(super) fn run<F: FloatFunction>(iter: &TensorIterator, name: &'static str) -> Result<()> {
    let formula = Formula::<F>(std::marker::PhantomData);
    dispatch!(compute_dtype(iter.common_dtype()), name, FLOATING_AND_COMPLEX, |T| {
        function::<T, T>(iter, F::COST, formula)
    })
}

/// Writes a function's type and its kernel from the formulas.
macro_rules! float_function {
    ($($kernel:ident, cost $cost:literal, $F:ident {
        f32: |$a32:ident, $A32:ident| $f32:expr,
        f64: |$a64:ident, $A64:ident| $f64:expr,
        complex: |$z:ident| $complex:expr $(,)?
    })*) => {$(
        #[derive(Clone, Copy, Default)]
        struct $F;

        impl FloatFunction for $F {
            const COST: usize = $cost;
            #[inline(always)]
            fn call32<$A32: $crate::vec::math::Arith>($a32: f32) -> f32 {
                $f32
            }
            #[inline(always)]
            fn call64<$A64: $crate::vec::math::Arith>($a64: f64) -> f64 {
                $f64
            }
            #[inline(always)]
            fn call_complex($z: Complex<f64>) -> Complex<f64> {
                $complex
            }
        }

        fn $kernel(iter: &TensorIterator) -> Result<()> {
            super::float_function::run::<$F>(iter, stringify!($kernel))
        }
    )*};
}

pub(super) use float_function;
