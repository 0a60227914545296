//! `Element`: the Rust types that tensors hold, and their conversions.

use std::fmt::Debug;

use half::{bf16, f16};
use num_complex::Complex;

use crate::ScalarType;

/// What kind of number a type is; constant per type, so that branches on it cost nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ElementKind {
    /// `bool`.
    Bool,
    /// Signed integers.
    Signed,
    /// Unsigned integers.
    Unsigned,
    /// Real floating point.
    Floating,
    /// Complex floating point.
    Complex,
}

/// A type that tensors hold.
///
/// Note `[Conversions]`: `cast_from` converts as PyTorch's kernels do. Where C++ leaves float → integer undefined
/// (NaN, out of range) the result is what x86's conversion instructions give: integers of up to 32 bits go through
/// a 32-bit truncation that yields `i32::MIN` out of range, 64-bit ones through a 64-bit truncation; unsigned ones
/// of 32 and 64 bits subtract 2^31 or 2^63 first where the value is that large. Complex → real takes the real part,
/// anything → bool asks for non-zero (NaN is true), and f16 and bf16 round through f32.
/// `checked_from_*` are the conversions of scalar arguments, which refuse to overflow.
pub trait Element: Copy + Send + Sync + PartialEq + Debug + Default + 'static {
    /// The dtype.
    const SCALAR_TYPE: ScalarType;
    /// The kind of number.
    const KIND: ElementKind;
    /// The C++ name, which messages use.
    const CPP_NAME: &'static str;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// The type sums are kept in: f32 for the halves, i64 for bool and integers (u64 for itself), itself otherwise.
    type Acc: Element;
    /// The type of the parts of a complex number; itself otherwise.
    type Real: Element;

    /// Zero.
    #[inline(always)]
    fn zero() -> Self {
        Self::ZERO
    }
    /// One.
    #[inline(always)]
    fn one() -> Self {
        Self::ONE
    }

    /// Non-zero; NaN is true.
    fn to_bool(self) -> bool;
    /// As f32, rounded once; the real part of a complex number.
    fn to_f32(self) -> f32;
    /// As f64; the real part of a complex number.
    fn to_f64(self) -> f64;
    /// The imaginary part; 0 for real numbers.
    #[inline(always)]
    fn imag_f64(self) -> f64 {
        0.0
    }
    /// Both parts.
    #[inline(always)]
    fn to_complex(self) -> Complex<f64> {
        Complex::new(self.to_f64(), self.imag_f64())
    }
    /// Integers modulo 2^64 (u64 keeps its bits); floats truncated, `i64::MIN` if out of range.
    fn to_i64(self) -> i64;
    /// Integers modulo 2^32; floats truncated, `i32::MIN` if out of range.
    fn to_i32(self) -> i32;
    /// Integers modulo 2^64; floats truncated, see Note `[Conversions]`.
    fn to_u64(self) -> u64;
    /// Integers modulo 2^32; floats truncated, see Note `[Conversions]`.
    fn to_u32(self) -> u32;

    /// Converts another element as PyTorch's kernels do: see Note `[Conversions]`.
    fn cast_from<F: Element>(value: F) -> Self;

    /// Converts, wrapping or rounding.
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        Self::cast_from(value)
    }
    /// Converts, rounding.
    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        Self::cast_from(value)
    }
    /// Converts, wrapping or rounding.
    #[inline(always)]
    fn from_i64(value: i64) -> Self {
        Self::cast_from(value)
    }
    /// Converts; real types take the real part.
    #[inline(always)]
    fn from_complex(value: Complex<f64>) -> Self {
        Self::cast_from(value)
    }
    /// To the accumulation type.
    #[inline(always)]
    fn to_acc(self) -> Self::Acc {
        Self::Acc::cast_from(self)
    }
    /// From the accumulation type.
    #[inline(always)]
    fn from_acc(value: Self::Acc) -> Self {
        Self::cast_from(value)
    }

    /// The value, if it fits: signed numbers may wrap into unsigned types as long as their size fits.
    fn checked_from_i64(value: i64) -> Option<Self>;
    /// The value, if it fits.
    fn checked_from_u64(value: u64) -> Option<Self>;
    /// The value without its fraction, if it fits; infinities and NaN fit floats only.
    fn checked_from_f64(value: f64) -> Option<Self>;
    /// The value, if both parts fit; for real types the imaginary part must be zero.
    #[inline]
    fn checked_from_complex(value: Complex<f64>) -> Option<Self> {
        if value.im != 0.0 {
            return None;
        }
        Self::checked_from_f64(value.re)
    }
}

/// Converts between element types: see Note `[Conversions]`.
#[inline(always)]
pub fn cast<From: Element, To: Element>(value: From) -> To {
    To::cast_from(value)
}

macro_rules! truncate {
    ($name:ident, $float:ty, $int:ty, $limit:expr) => {
        /// x86's truncating conversion: the least integer stands for everything out of range and for NaN.
        #[inline(always)]
        fn $name(value: $float) -> $int {
            const LIMIT: $float = $limit;
            if (-LIMIT..LIMIT).contains(&value) {
                // SAFETY: the truncated value is in [-LIMIT, LIMIT), the range of the integer type.
                unsafe { value.to_int_unchecked() }
            } else {
                <$int>::MIN
            }
        }
    };
}

truncate!(f32_to_i32, f32, i32, 2147483648.0);
truncate!(f32_to_i64, f32, i64, 9223372036854775808.0);
truncate!(f64_to_i32, f64, i32, 2147483648.0);
truncate!(f64_to_i64, f64, i64, 9223372036854775808.0);

macro_rules! truncate_unsigned {
    ($name:ident, $signed:ident, $float:ty, $uint:ty, $half:expr) => {
        /// Truncation to an unsigned integer by way of the signed one.
        #[inline(always)]
        fn $name(value: $float) -> $uint {
            const HALF: $float = $half;
            if value >= HALF {
                $signed(value - HALF) as $uint ^ (1 << (<$uint>::BITS - 1))
            } else {
                $signed(value) as $uint
            }
        }
    };
}

truncate_unsigned!(f32_to_u32, f32_to_i32, f32, u32, 2147483648.0);
truncate_unsigned!(f32_to_u64, f32_to_i64, f32, u64, 9223372036854775808.0);
truncate_unsigned!(f64_to_u32, f64_to_i32, f64, u32, 2147483648.0);
truncate_unsigned!(f64_to_u64, f64_to_i64, f64, u64, 9223372036854775808.0);

#[inline(always)]
const fn is_float_kind(kind: ElementKind) -> bool {
    matches!(kind, ElementKind::Floating | ElementKind::Complex)
}

macro_rules! integer_element {
    ($type:ty, $variant:ident, $kind:ident, $cpp:literal, $acc:ty, $from_float:ident) => {
        impl Element for $type {
            const SCALAR_TYPE: ScalarType = ScalarType::$variant;
            const KIND: ElementKind = ElementKind::$kind;
            const CPP_NAME: &'static str = $cpp;
            const ZERO: Self = 0;
            const ONE: Self = 1;
            type Acc = $acc;
            type Real = $type;

            #[inline(always)]
            fn to_bool(self) -> bool {
                self != 0
            }
            #[inline(always)]
            fn to_f32(self) -> f32 {
                self as f32
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn to_i32(self) -> i32 {
                self as i32
            }
            #[inline(always)]
            fn to_u64(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn to_u32(self) -> u32 {
                self as u32
            }
            #[inline(always)]
            fn cast_from<F: Element>(value: F) -> Self {
                if is_float_kind(F::KIND) {
                    value.$from_float() as $type
                } else {
                    value.to_i64() as $type
                }
            }
            #[inline]
            fn checked_from_i64(value: i64) -> Option<Self> {
                match <$type>::try_from(value) {
                    Ok(converted) => Some(converted),
                    Err(_) => {
                        // A negative number may wrap into an unsigned type if its size fits.
                        let wraps =
                            <$type>::MIN == 0 && value < 0 && value.unsigned_abs() <= <$type>::MAX as u64;
                        wraps.then_some(value as $type)
                    }
                }
            }
            #[inline]
            fn checked_from_u64(value: u64) -> Option<Self> {
                <$type>::try_from(value).ok()
            }
            #[inline]
            fn checked_from_f64(value: f64) -> Option<Self> {
                // The bounds as doubles: for 64 bits MAX rounds up to a power of two, and that value itself passes.
                if value >= <$type>::MIN as f64 && value <= <$type>::MAX as f64 {
                    Some(Self::cast_from(value))
                } else {
                    None
                }
            }
        }
    };
}

integer_element!(u8, Byte, Unsigned, "uint8_t", i64, to_i32);
integer_element!(i8, Char, Signed, "int8_t", i64, to_i32);
integer_element!(i16, Short, Signed, "int16_t", i64, to_i32);
integer_element!(i32, Int, Signed, "int", i64, to_i32);
integer_element!(i64, Long, Signed, "int64_t", i64, to_i64);
integer_element!(u16, UInt16, Unsigned, "uint16_t", i64, to_i32);
integer_element!(u32, UInt32, Unsigned, "uint32_t", i64, to_u32);
integer_element!(u64, UInt64, Unsigned, "uint64_t", u64, to_u64);

impl Element for bool {
    const SCALAR_TYPE: ScalarType = ScalarType::Bool;
    const KIND: ElementKind = ElementKind::Bool;
    const CPP_NAME: &'static str = "bool";
    const ZERO: Self = false;
    const ONE: Self = true;
    type Acc = i64;
    type Real = bool;

    #[inline(always)]
    fn to_bool(self) -> bool {
        self
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        f32::from(u8::from(self))
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(u8::from(self))
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        i64::from(self)
    }
    #[inline(always)]
    fn to_i32(self) -> i32 {
        i32::from(self)
    }
    #[inline(always)]
    fn to_u64(self) -> u64 {
        u64::from(self)
    }
    #[inline(always)]
    fn to_u32(self) -> u32 {
        u32::from(self)
    }
    #[inline(always)]
    fn cast_from<F: Element>(value: F) -> Self {
        value.to_bool()
    }
    #[inline]
    fn checked_from_i64(value: i64) -> Option<Self> {
        Some(value != 0)
    }
    #[inline]
    fn checked_from_u64(value: u64) -> Option<Self> {
        Some(value != 0)
    }
    #[inline]
    fn checked_from_f64(value: f64) -> Option<Self> {
        Some(value != 0.0)
    }
    #[inline]
    fn checked_from_complex(value: Complex<f64>) -> Option<Self> {
        Some(value.re != 0.0 || value.im != 0.0)
    }
}

macro_rules! float_element {
    ($type:ty, $variant:ident, $cpp:literal, $acc:ty, $one:expr, $zero:expr,
     via $via:ident: $to_i32:ident, $to_i64:ident, $to_u32:ident, $to_u64:ident,
     |$value:ident| $cast:expr) => {
        impl Element for $type {
            const SCALAR_TYPE: ScalarType = ScalarType::$variant;
            const KIND: ElementKind = ElementKind::Floating;
            const CPP_NAME: &'static str = $cpp;
            const ZERO: Self = $zero;
            const ONE: Self = $one;
            type Acc = $acc;
            type Real = $type;

            #[inline(always)]
            fn to_bool(self) -> bool {
                self != Self::ZERO
            }
            #[inline(always)]
            fn to_f32(self) -> f32 {
                f64_or_smaller_to_f32(self)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                $to_i64($via::from(self))
            }
            #[inline(always)]
            fn to_i32(self) -> i32 {
                $to_i32($via::from(self))
            }
            #[inline(always)]
            fn to_u64(self) -> u64 {
                $to_u64($via::from(self))
            }
            #[inline(always)]
            fn to_u32(self) -> u32 {
                $to_u32($via::from(self))
            }
            #[inline(always)]
            fn cast_from<F: Element>($value: F) -> Self {
                $cast
            }
            #[inline]
            fn checked_from_i64(value: i64) -> Option<Self> {
                (value.unsigned_abs() as f64 <= f64::from(<$type>::MAX)).then(|| Self::cast_from(value))
            }
            #[inline]
            fn checked_from_u64(value: u64) -> Option<Self> {
                (value as f64 <= f64::from(<$type>::MAX)).then(|| Self::cast_from(value))
            }
            #[inline]
            fn checked_from_f64(value: f64) -> Option<Self> {
                let fits = !value.is_finite() || value.abs() <= f64::from(<$type>::MAX);
                fits.then(|| Self::cast_from(value))
            }
        }
    };
}

/// The one conversion to f32 that is not `From`.
trait ToF32 {
    fn narrow(self) -> f32;
}
impl ToF32 for f64 {
    #[inline(always)]
    fn narrow(self) -> f32 {
        self as f32
    }
}
impl ToF32 for f32 {
    #[inline(always)]
    fn narrow(self) -> f32 {
        self
    }
}
impl ToF32 for f16 {
    #[inline(always)]
    fn narrow(self) -> f32 {
        f16::to_f32(self)
    }
}
impl ToF32 for bf16 {
    #[inline(always)]
    fn narrow(self) -> f32 {
        bf16::to_f32(self)
    }
}

#[inline(always)]
fn f64_or_smaller_to_f32(value: impl ToF32) -> f32 {
    value.narrow()
}

float_element!(f64, Double, "double", f64, 1.0, 0.0,
    via f64: f64_to_i32, f64_to_i64, f64_to_u32, f64_to_u64, |value| value.to_f64());
float_element!(f32, Float, "float", f32, 1.0, 0.0,
    via f32: f32_to_i32, f32_to_i64, f32_to_u32, f32_to_u64, |value| value.to_f32());
float_element!(f16, Half, "c10::Half", f32, f16::ONE, f16::ZERO,
    via f32: f32_to_i32, f32_to_i64, f32_to_u32, f32_to_u64, |value| f16::from_f32(value.to_f32()));
float_element!(bf16, BFloat16, "c10::BFloat16", f32, bf16::ONE, bf16::ZERO,
    via f32: f32_to_i32, f32_to_i64, f32_to_u32, f32_to_u64, |value| bf16::from_f32(value.to_f32()));

macro_rules! complex_element {
    ($real:ty, $variant:ident, $cpp:literal, $acc:ty) => {
        impl Element for Complex<$real> {
            const SCALAR_TYPE: ScalarType = ScalarType::$variant;
            const KIND: ElementKind = ElementKind::Complex;
            const CPP_NAME: &'static str = $cpp;
            const ZERO: Self = Complex { re: <$real as Element>::ZERO, im: <$real as Element>::ZERO };
            const ONE: Self = Complex { re: <$real as Element>::ONE, im: <$real as Element>::ZERO };
            type Acc = Complex<$acc>;
            type Real = $real;

            #[inline(always)]
            fn to_bool(self) -> bool {
                self.re.to_bool() || self.im.to_bool()
            }
            #[inline(always)]
            fn to_f32(self) -> f32 {
                Element::to_f32(self.re)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                Element::to_f64(self.re)
            }
            #[inline(always)]
            fn imag_f64(self) -> f64 {
                Element::to_f64(self.im)
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                self.re.to_i64()
            }
            #[inline(always)]
            fn to_i32(self) -> i32 {
                self.re.to_i32()
            }
            #[inline(always)]
            fn to_u64(self) -> u64 {
                self.re.to_u64()
            }
            #[inline(always)]
            fn to_u32(self) -> u32 {
                self.re.to_u32()
            }
            #[inline(always)]
            fn cast_from<F: Element>(value: F) -> Self {
                Complex {
                    re: <$real as Element>::cast_from(value),
                    im: <$real as Element>::cast_from(value.imag_f64()),
                }
            }
            #[inline]
            fn checked_from_i64(value: i64) -> Option<Self> {
                Some(Complex {
                    re: <$real as Element>::checked_from_i64(value)?,
                    im: <$real as Element>::ZERO,
                })
            }
            #[inline]
            fn checked_from_u64(value: u64) -> Option<Self> {
                Some(Complex {
                    re: <$real as Element>::checked_from_u64(value)?,
                    im: <$real as Element>::ZERO,
                })
            }
            #[inline]
            fn checked_from_f64(value: f64) -> Option<Self> {
                Some(Complex {
                    re: <$real as Element>::checked_from_f64(value)?,
                    im: <$real as Element>::ZERO,
                })
            }
            #[inline]
            fn checked_from_complex(value: Complex<f64>) -> Option<Self> {
                Some(Complex {
                    re: <$real as Element>::checked_from_f64(value.re)?,
                    im: <$real as Element>::checked_from_f64(value.im)?,
                })
            }
        }
    };
}

complex_element!(f16, ComplexHalf, "c10::complex<c10::Half>", f32);
complex_element!(f32, ComplexFloat, "c10::complex<float>", f32);
complex_element!(f64, ComplexDouble, "c10::complex<double>", f64);

#[cfg(test)]
mod tests {
    use super::*;
    const SAMPLES: [f32; 8] = [1.0, 300.0, -300.0, 1e10, 1e19, -1e19, f32::NAN, f32::INFINITY];

    fn check<T: Element>(expected: [T; 8]) {
        assert_eq!(SAMPLES.map(cast::<f32, T>), expected);
        assert_eq!(SAMPLES.map(|x| cast::<f64, T>(f64::from(x))), expected);
        assert_eq!(SAMPLES.map(|x| cast::<Complex<f32>, T>(Complex::new(x, 7.0))), expected);
    }

    /// Recorded from PyTorch 2.13 on x86: `torch.tensor(SAMPLES).to(dtype)`.
    #[test]
    fn float_to_integer_equals_x86_pytorch() {
        check::<u8>([1, 44, 212, 0, 0, 0, 0, 0]);
        check::<i8>([1, 44, -44, 0, 0, 0, 0, 0]);
        check::<i16>([1, 300, -300, 0, 0, 0, 0, 0]);
        check::<u16>([1, 300, 65236, 0, 0, 0, 0, 0]);
        check::<i32>([1, 300, -300, i32::MIN, i32::MIN, i32::MIN, i32::MIN, i32::MIN]);
        check::<u32>([1, 300, 4294966996, 0, 0, 1 << 31, 1 << 31, 0]);
        check::<i64>([1, 300, -300, 10000000000, i64::MIN, i64::MIN, i64::MIN, i64::MIN]);
        check::<u64>([1, 300, 18446744073709551316, 10000000000, 9999999980506447872, 1 << 63, 1 << 63, 0]);
    }

    #[test]
    fn integers_wrap_and_keep_their_sign() {
        assert_eq!(cast::<i32, u8>(-1), 255);
        assert_eq!(cast::<u64, i64>(u64::MAX), -1);
        assert_eq!(cast::<u64, f64>(u64::MAX), 18446744073709551615.0);
        assert_eq!(cast::<i64, u64>(-1), u64::MAX);
        assert_eq!(cast::<i8, i64>(-1), -1);
        // Rounded once, not by way of f64.
        assert_eq!(cast::<i64, f32>(9007199791611905), 9007199791611905i64 as f32);
    }

    #[test]
    fn bool_and_complex() {
        assert!(cast::<f32, bool>(f32::NAN));
        assert!(!cast::<f64, bool>(-0.0));
        assert!(cast::<f64, bool>(1e-300));
        assert!(cast::<Complex<f32>, bool>(Complex::new(0.0, 2.0)));
        assert_eq!(cast::<Complex<f64>, f32>(Complex::new(1.5, 2.0)), 1.5);
        assert_eq!(cast::<Complex<f64>, Complex<f32>>(Complex::new(1.5, 2.0)), Complex::new(1.5, 2.0));
        assert_eq!(cast::<bool, Complex<f16>>(true), Complex::new(f16::ONE, f16::ZERO));
        assert_eq!(cast::<f64, f16>(65520.0), f16::INFINITY);
        assert_eq!(cast::<i32, bf16>(257), bf16::from_f32(257.0));
    }

    #[test]
    fn checked_conversions_refuse_to_overflow() {
        assert_eq!(i8::checked_from_i64(300), None);
        assert_eq!(i8::checked_from_i64(-128), Some(-128));
        assert_eq!(u8::checked_from_i64(-255), Some(1));
        assert_eq!(u8::checked_from_i64(-256), None);
        assert_eq!(u64::checked_from_i64(-1), Some(u64::MAX));
        assert_eq!(u64::checked_from_i64(i64::MIN), Some(1 << 63));
        assert_eq!(i64::checked_from_u64(1 << 63), None);
        assert_eq!(u8::checked_from_f64(255.9), None);
        assert_eq!(i32::checked_from_f64(1.9), Some(1));
        assert_eq!(i32::checked_from_f64(f64::NAN), None);
        assert_eq!(i64::checked_from_f64(9223372036854775808.0), Some(i64::MIN));
        assert_eq!(i64::checked_from_f64(9223372036854777856.0), None);
        assert_eq!(f32::checked_from_f64(1e300), None);
        assert_eq!(f32::checked_from_f64(f64::INFINITY), Some(f32::INFINITY));
        assert_eq!(f16::checked_from_i64(65505), None);
        assert_eq!(f16::checked_from_f64(1e6), None);
        assert_eq!(Complex::<f16>::checked_from_f64(1e6), None);
        assert_eq!(f32::checked_from_complex(Complex::new(1.0, 2.0)), None);
        assert_eq!(bool::checked_from_complex(Complex::new(0.0, 2.0)), Some(true));
    }
}
