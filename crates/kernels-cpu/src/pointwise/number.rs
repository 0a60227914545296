//! Arithmetic that is total on every dtype: integers wrap, as they do in PyTorch.

use c10::Element;
use num_complex::Complex;

use crate::map::Stored;

/// A type with ring arithmetic.
pub(super) trait Number: Stored {
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn neg(self) -> Self;
    /// `self * factor + addend`, of reals rounded once.
    #[inline(always)]
    fn multiply_add(self, factor: Self, addend: Self) -> Self {
        self.mul(factor).add(addend)
    }
}

/// A type with division.
pub(super) trait Field: Number {
    fn div(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($T:ty),*) => {$(
        impl Number for $T {
            #[inline(always)]
            fn add(self, other: $T) -> $T { self.wrapping_add(other) }
            #[inline(always)]
            fn sub(self, other: $T) -> $T { self.wrapping_sub(other) }
            #[inline(always)]
            fn mul(self, other: $T) -> $T { self.wrapping_mul(other) }
            #[inline(always)]
            fn neg(self) -> $T { self.wrapping_neg() }
        }
    )*};
}

macro_rules! floats {
    ($($T:ty),*: $more:tt) => {$(
        floats!(@one $T, $more);
    )*};
    (@one $T:ty, {$($more:tt)*}) => {
        impl Number for $T {
            #[inline(always)]
            fn add(self, other: $T) -> $T { self + other }
            #[inline(always)]
            fn sub(self, other: $T) -> $T { self - other }
            #[inline(always)]
            fn mul(self, other: $T) -> $T { self * other }
            #[inline(always)]
            fn neg(self) -> $T { -self }
            $($more)*
        }
    };
}

integers!(u8, i8, i16, i32, i64, u16, u32, u64);
floats!(f32, f64: {
    // In tiers without the instruction this is a library call: slow, but the same bits everywhere.
    #[inline(always)]
    fn multiply_add(self, factor: Self, addend: Self) -> Self { self.mul_add(factor, addend) }
});
floats!(Complex<f32>, Complex<f64>: {});

/// Booleans are the ring of `or` and `and`: what PyTorch's `bool` tensors do for `add` and `mul`.
impl Number for bool {
    #[inline(always)]
    fn add(self, other: bool) -> bool {
        self | other
    }
    #[inline(always)]
    fn sub(self, other: bool) -> bool {
        self ^ other
    }
    #[inline(always)]
    fn mul(self, other: bool) -> bool {
        self & other
    }
    #[inline(always)]
    fn neg(self) -> bool {
        self
    }
}

impl Field for f32 {
    #[inline(always)]
    fn div(self, other: f32) -> f32 {
        self / other
    }
}

impl Field for f64 {
    #[inline(always)]
    fn div(self, other: f64) -> f64 {
        self / other
    }
}

/// Smith's algorithm (R. L. Smith, *Algorithm 116: Complex division*, CACM 5(8), 1962): no overflow where the result
/// is representable.
macro_rules! complex_field {
    ($($T:ty),*) => {$(
        impl Field for Complex<$T> {
            #[inline(always)]
            fn div(self, other: Complex<$T>) -> Complex<$T> {
                let Complex { re: a, im: b } = self;
                let Complex { re: c, im: d } = other;
                if c.abs() >= d.abs() {
                    if c == <$T>::ZERO && d == <$T>::ZERO {
                        return Complex::new(a / c.abs(), b / d.abs());
                    }
                    let ratio = d / c;
                    let scale = <$T>::ONE / (c + d * ratio);
                    Complex::new((a + b * ratio) * scale, (b - a * ratio) * scale)
                } else {
                    let ratio = c / d;
                    let scale = <$T>::ONE / (c * ratio + d);
                    Complex::new((a * ratio + b) * scale, (b * ratio - a) * scale)
                }
            }
        }
    )*};
}

complex_field!(f32, f64);
