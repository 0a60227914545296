//! Functions of one or two floating-point elements, written once for all dtypes.

use c10::Result;
use iter::TensorIterator;
use num_complex::Complex;

use crate::dispatch::dispatch;
use crate::loops::compute_dtype;
use crate::map::{function, Map1, Stored};
use crate::vec::math::{Arith, Tables};

/// A real type that formulas are written over.
pub(crate) trait Float: Tables + Stored {}

impl Float for f32 {}
impl Float for f64 {}

/// A function given by its formulas for real and complex numbers. Complex numbers of single precision compute in double.
pub(crate) trait FloatFunction: Copy + Default + Sync + 'static {
    /// Relative to an addition.
    const COST: usize;
    /// Whether the formula is for some arguments only.
    const GUARDED: bool = false;
    fn call<A: Arith, T: Float>(a: T) -> T;
    fn is_near<T: Float>(_a: T) -> bool {
        true
    }
    fn call_far(a: f64) -> f64 {
        a
    }
    fn call_complex(z: Complex<f64>) -> Complex<f64> {
        z
    }
}

/// `F` as a function of an element; the dtype chooses the formula.
#[derive(Clone, Copy)]
struct Formula<F>(std::marker::PhantomData<F>);

impl<F: FloatFunction, T: Float> Map1<T, T> for Formula<F> {
    const GUARDED: bool = F::GUARDED;
    #[inline(always)]
    fn call<A: Arith>(self, a: T) -> T {
        F::call::<A, T>(a)
    }
    #[inline(always)]
    fn is_near(a: T) -> bool {
        F::is_near(a)
    }
    #[inline(always)]
    fn call_far(self, a: T) -> T {
        T::of(F::call_far(c10::Element::to_f64(a)))
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
pub(crate) fn run<F: FloatFunction>(iter: &TensorIterator, name: &'static str) -> Result<()> {
    let formula = Formula::<F>(std::marker::PhantomData);
    dispatch!(compute_dtype(iter.common_dtype()), name, FLOATING_AND_COMPLEX, |T| {
        function::<T, T>(iter, F::COST, formula)
    })
}

/// The kernel of a function that is not for complex numbers.
pub(crate) fn run_real<F: FloatFunction>(iter: &TensorIterator, name: &'static str) -> Result<()> {
    let formula = Formula::<F>(std::marker::PhantomData);
    dispatch!(compute_dtype(iter.common_dtype()), name, FLOATING, |T| {
        function::<T, T>(iter, F::COST, formula)
    })
}

/// Writes kernels from formulas. In the real one, `T` is the type and `A` the tier's arithmetic; `far` gives the values for
/// which the vectorized formula is not `near` enough.
macro_rules! float_function {
    ($($kernel:ident, cost $cost:literal, |$a:ident| $real:expr $(, near: $near:path, far: $far:expr)? $(, complex: |$z:ident| $complex:expr)?;)*) => {$(
        fn $kernel(iter: &TensorIterator) -> Result<()> {
            #[derive(Clone, Copy, Default)]
            struct Formulas;

            impl $crate::pointwise::float_function::FloatFunction for Formulas {
                const COST: usize = $cost;
                #[inline(always)]
                fn call<A: $crate::vec::math::Arith, T: $crate::pointwise::float_function::Float>($a: T) -> T {
                    $real
                }
                $(
                    const GUARDED: bool = true;
                    #[inline(always)]
                    fn is_near<T: $crate::pointwise::float_function::Float>(a: T) -> bool {
                        $near(a)
                    }
                    #[inline(always)]
                    fn call_far(a: f64) -> f64 {
                        $far(a)
                    }
                )?
                $(
                    #[inline(always)]
                    fn call_complex($z: num_complex::Complex<f64>) -> num_complex::Complex<f64> {
                        $complex
                    }
                )?
            }

            $crate::pointwise::float_function::float_function!(@run iter, $kernel, $($complex)?)
        }
    )*};
    (@run $iter:ident, $kernel:ident,) => {
        $crate::pointwise::float_function::run_real::<Formulas>($iter, stringify!($kernel))
    };
    (@run $iter:ident, $kernel:ident, $complex:expr) => {
        $crate::pointwise::float_function::run::<Formulas>($iter, stringify!($kernel))
    };
}

/// Writes kernels of one or two floating-point tensors and numbers: `name(numbers; flags), cost 8, |a| formula`. The numbers
/// are of the type `T` in the formula.
macro_rules! float_map {
    ($($kernel:ident($($number:ident),* $(; $($flag:ident: $F:ty),*)?), cost $cost:literal, |$a:ident $(, $b:ident)?| $formula:expr;)*) => {$(
        fn $kernel(iter: &TensorIterator, $($number: &c10::Scalar,)* $($($flag: $F),*)?) -> Result<()> {
            #[derive(Clone, Copy)]
            #[allow(dead_code)]
            struct Formula<T> {
                $($number: T,)*
                $($($flag: $F,)*)?
                type_: std::marker::PhantomData<T>,
            }

            $crate::pointwise::float_function::float_map!(
                @impl Formula, [$($number),* $($(, $flag)*)?], $a, [$($b)?], $formula
            );

            $crate::dispatch::dispatch!(
                $crate::loops::compute_dtype(iter.common_dtype()), stringify!($kernel), FLOATING, |T| {
                    let formula = Formula::<T> {
                        $($number: $number.to::<T>()?,)*
                        $($($flag,)*)?
                        type_: std::marker::PhantomData,
                    };
                    $crate::pointwise::float_function::float_map!(@run iter, $cost, formula, T, [$($b)?])
                }
            )
        }
    )*};
    (@impl $Formula:ident, [$($field:ident),*], $a:ident, [], $formula:expr) => {
        impl<T: $crate::pointwise::float_function::Float> $crate::map::Map1<T, T> for $Formula<T> {
            #[inline(always)]
            fn call<A: $crate::vec::math::Arith>(self, $a: T) -> T {
                let $Formula { $($field,)* .. } = self;
                $formula
            }
        }
    };
    (@impl $Formula:ident, [$($field:ident),*], $a:ident, [$b:ident], $formula:expr) => {
        impl<T: $crate::pointwise::float_function::Float> $crate::map::Map2<T, T> for $Formula<T> {
            #[inline(always)]
            fn call<A: $crate::vec::math::Arith>(self, $a: T, $b: T) -> T {
                let $Formula { $($field,)* .. } = self;
                $formula
            }
        }
    };
    (@run $iter:ident, $cost:literal, $formula:ident, $T:ident, []) => {
        $crate::map::function::<$T, $T>($iter, $cost, $formula)
    };
    (@run $iter:ident, $cost:literal, $formula:ident, $T:ident, [$b:ident]) => {
        $crate::map::function2::<$T, $T>($iter, $cost, $formula)
    };
}

pub(crate) use {float_function, float_map};
