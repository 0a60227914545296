//! What elements of matrices are, and what their products are summed in.

use c10::{BFloat16, Element, Half};
use half::slice::HalfFloatSliceExt;
use num_complex::Complex;

use super::scratch::PlainNumber;
use super::tile::Panel;
use crate::map::Stored;
use crate::vec::math::Arith;
use crate::vec::tiered;

/// A type that products are summed in.
pub(crate) trait Accumulator: Stored<Raw = Self> + PlainNumber {
    /// `self * b + c`, with one rounding where the tier has the instruction.
    fn mul_add<A: Arith>(self, b: Self, c: Self) -> Self;
    /// Sum.
    fn plus(self, b: Self) -> Self;
    /// Product.
    fn times(self, b: Self) -> Self;
}

macro_rules! accumulators {
    ($($T:ty: $fma:expr, $plus:expr, $times:expr;)*) => {$(
        impl Accumulator for $T {
            #[inline(always)]
            fn mul_add<A: Arith>(self, b: $T, c: $T) -> $T {
                let fma: fn($T, $T, $T) -> $T = $fma;
                fma(self, b, c)
            }
            #[inline(always)]
            fn plus(self, b: $T) -> $T {
                let plus: fn($T, $T) -> $T = $plus;
                plus(self, b)
            }
            #[inline(always)]
            fn times(self, b: $T) -> $T {
                let times: fn($T, $T) -> $T = $times;
                times(self, b)
            }
        }
    )*};
}

accumulators! {
    f32: A::fma32, |a, b| a + b, |a, b| a * b;
    f64: A::fma64, |a, b| a + b, |a, b| a * b;
    i32: |a, b, c| a.wrapping_mul(b).wrapping_add(c), |a, b| a.wrapping_add(b), |a, b| a.wrapping_mul(b);
    i64: |a, b, c| a.wrapping_mul(b).wrapping_add(c), |a, b| a.wrapping_add(b), |a, b| a.wrapping_mul(b);
    Complex<f32>: |a, b, c| Complex::new(
        A::fma32(-a.im, b.im, A::fma32(a.re, b.re, c.re)),
        A::fma32(a.im, b.re, A::fma32(a.re, b.im, c.im)),
    ), |a, b| a + b, |a, b| a * b;
    Complex<f64>: |a, b, c| Complex::new(
        A::fma64(-a.im, b.im, A::fma64(a.re, b.re, c.re)),
        A::fma64(a.im, b.re, A::fma64(a.re, b.im, c.im)),
    ), |a, b| a + b, |a, b| a * b;
}

/// An element of a matrix.
pub(crate) trait LinalgElement: Stored<Raw = Self> {
    /// Halves sum in f32, narrow integers in i32, which is right modulo their size; the others in themselves.
    type Sum: Accumulator + Panel;
    /// Whether `Sum` is this type. Not to be overridden: pointers are cast where it holds.
    const SUMS_IN_ITSELF: bool = Self::SCALAR_TYPE as u8 == <Self::Sum as Element>::SCALAR_TYPE as u8;
    /// Whether a loop over [`LinalgElement::widen`] vectorizes; else `widen_slice` comes first.
    const WIDENS_IN_LOOPS: bool = true;

    /// One element.
    #[inline(always)]
    fn widen(self) -> Self::Sum {
        Self::Sum::cast_from(self)
    }
    /// One element, rounded or cut.
    #[inline(always)]
    fn narrow(sum: Self::Sum) -> Self {
        Self::cast_from(sum)
    }
    /// Several elements.
    #[inline(always)]
    fn widen_slice(from: &[Self], to: &mut [Self::Sum]) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = from.widen();
        }
    }
    /// Several elements.
    #[inline(always)]
    fn narrow_slice(from: &[Self::Sum], to: &mut [Self]) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = Self::narrow(from);
        }
    }
}

macro_rules! themselves {
    ($($T:ty),*) => {$(
        impl LinalgElement for $T {
            type Sum = $T;
        }
    )*};
}

macro_rules! narrow_integers {
    ($($T:ty),*) => {$(
        impl LinalgElement for $T {
            type Sum = i32;
        }
    )*};
}

impl LinalgElement for Half {
    type Sum = f32;
    const WIDENS_IN_LOOPS: bool = false;
    fn widen_slice(from: &[Half], to: &mut [f32]) {
        from.convert_to_f32_slice(to);
    }
    fn narrow_slice(from: &[f32], to: &mut [Half]) {
        to.convert_from_f32_slice(from);
    }
}

impl LinalgElement for BFloat16 {
    type Sum = f32;
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }
    fn widen_slice(from: &[BFloat16], to: &mut [f32]) {
        widen_bfloat16(from, to);
    }
    fn narrow_slice(from: &[f32], to: &mut [BFloat16]) {
        narrow_bfloat16(from, to);
    }
}

tiered! {
    fn widen_bfloat16(from: &[BFloat16], to: &mut [f32]) => A {
        let _ = std::marker::PhantomData::<A>;
        for (to, from) in to.iter_mut().zip(from) {
            *to = from.widen();
        }
    }
    /// To the nearest, ties to even; NaN stays NaN.
    fn narrow_bfloat16(from: &[f32], to: &mut [BFloat16]) => A {
        let _ = std::marker::PhantomData::<A>;
        for (to, &from) in to.iter_mut().zip(from) {
            let bits = from.to_bits();
            let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
            let quiet = bits >> 16 | 0x40;
            *to = BFloat16::from_bits(if from.is_nan() { quiet } else { rounded } as u16);
        }
    }
}

themselves!(f32, f64, i32, i64, Complex<f32>, Complex<f64>);
narrow_integers!(u8, i8, i16);
