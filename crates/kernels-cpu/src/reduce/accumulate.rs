//! The types that sums and products are kept in.

use c10::{BFloat16, Complex, Half};

use crate::map::Stored;
use crate::narrow::{widen_bfloat16, widen_half};

/// Addition and multiplication, total on every type: integers wrap.
pub(crate) trait Ring: Copy + Send + Sync + 'static {
    const ZERO: Self;
    const ONE: Self;
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
}

/// An element type: what its lanes hold, and the wider type that takes over after a block.
pub(crate) trait Accumulated: Stored {
    type Lane: Ring;
    type Total: Ring;
    fn lift(raw: Self::Raw) -> Self::Lane;
    fn widen(lane: Self::Lane) -> Self::Total;
    fn finish(total: Self::Total) -> Self::Raw;
}

/// Booleans add up by "or" and multiply by "and".
#[derive(Clone, Copy)]
pub(crate) struct Truth(u8);

impl Ring for Truth {
    const ZERO: Truth = Truth(0);
    const ONE: Truth = Truth(1);
    #[inline(always)]
    fn add(self, other: Truth) -> Truth {
        Truth(self.0 | other.0)
    }
    #[inline(always)]
    fn mul(self, other: Truth) -> Truth {
        Truth(self.0 & other.0)
    }
}

impl Accumulated for bool {
    type Lane = Truth;
    type Total = Truth;
    #[inline(always)]
    fn lift(raw: u8) -> Truth {
        Truth((raw != 0) as u8)
    }
    #[inline(always)]
    fn widen(lane: Truth) -> Truth {
        lane
    }
    #[inline(always)]
    fn finish(total: Truth) -> u8 {
        total.0
    }
}

macro_rules! integers {
    ($($T:ty),*) => {$(
        impl Ring for $T {
            const ZERO: $T = 0;
            const ONE: $T = 1;
            #[inline(always)]
            fn add(self, other: $T) -> $T {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn mul(self, other: $T) -> $T {
                self.wrapping_mul(other)
            }
        }

        impl Accumulated for $T {
            type Lane = $T;
            type Total = $T;
            #[inline(always)]
            fn lift(raw: $T) -> $T {
                raw
            }
            #[inline(always)]
            fn widen(lane: $T) -> $T {
                lane
            }
            #[inline(always)]
            fn finish(total: $T) -> $T {
                total
            }
        }
    )*};
}

integers!(u8, i8, u16, i16, u32, i32, u64, i64);

macro_rules! floats {
    ($($T:ty),*) => {$(
        impl Ring for $T {
            const ZERO: $T = 0.0;
            const ONE: $T = 1.0;
            #[inline(always)]
            fn add(self, other: $T) -> $T {
                self + other
            }
            #[inline(always)]
            fn mul(self, other: $T) -> $T {
                self * other
            }
        }

        impl Ring for Complex<$T> {
            const ZERO: Complex<$T> = Complex { re: 0.0, im: 0.0 };
            const ONE: Complex<$T> = Complex { re: 1.0, im: 0.0 };
            #[inline(always)]
            fn add(self, other: Complex<$T>) -> Complex<$T> {
                self + other
            }
            #[inline(always)]
            fn mul(self, other: Complex<$T>) -> Complex<$T> {
                self * other
            }
        }

        impl Accumulated for $T {
            type Lane = $T;
            type Total = f64;
            #[inline(always)]
            fn lift(raw: $T) -> $T {
                raw
            }
            #[inline(always)]
            fn widen(lane: $T) -> f64 {
                f64::from(lane)
            }
            #[inline(always)]
            fn finish(total: f64) -> $T {
                total as $T
            }
        }

        impl Accumulated for Complex<$T> {
            type Lane = Complex<$T>;
            type Total = Complex<f64>;
            #[inline(always)]
            fn lift(raw: Complex<$T>) -> Complex<$T> {
                raw
            }
            #[inline(always)]
            fn widen(lane: Complex<$T>) -> Complex<f64> {
                Complex::new(f64::from(lane.re), f64::from(lane.im))
            }
            #[inline(always)]
            fn finish(total: Complex<f64>) -> Complex<$T> {
                Complex::new(total.re as $T, total.im as $T)
            }
        }
    )*};
}

floats!(f32, f64);

macro_rules! halves {
    ($($T:ty: $widen:ident),*) => {$(
        impl Accumulated for $T {
            type Lane = f32;
            type Total = f64;
            #[inline(always)]
            fn lift(raw: $T) -> f32 {
                $widen(raw)
            }
            #[inline(always)]
            fn widen(lane: f32) -> f64 {
                f64::from(lane)
            }
            #[inline(always)]
            fn finish(total: f64) -> $T {
                <$T>::from_f32(total as f32)
            }
        }
    )*};
}

halves!(Half: widen_half, BFloat16: widen_bfloat16);

impl Accumulated for Complex<Half> {
    type Lane = Complex<f32>;
    type Total = Complex<f64>;
    #[inline(always)]
    fn lift(raw: Complex<Half>) -> Complex<f32> {
        Complex::new(widen_half(raw.re), widen_half(raw.im))
    }
    #[inline(always)]
    fn widen(lane: Complex<f32>) -> Complex<f64> {
        <Complex<f32> as Accumulated>::widen(lane)
    }
    #[inline(always)]
    fn finish(total: Complex<f64>) -> Complex<Half> {
        Complex::new(Half::from_f32(total.re as f32), Half::from_f32(total.im as f32))
    }
}
