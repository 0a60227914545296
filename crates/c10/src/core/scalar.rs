//! `Scalar`: a number given as an argument, before it meets a tensor's dtype.

use std::fmt;

use half::{bf16, f16};
use num_complex::Complex;

use crate::core::element::{Element, ElementKind};
use crate::core::sym_bool::SymBool;
use crate::core::sym_float::SymFloat;
use crate::core::sym_int::SymInt;
use crate::{Error, Result, ScalarType};

/// A number given as an argument.
#[derive(Clone, PartialEq)]
pub enum Scalar {
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer above `i64::MAX`.
    UInt(u64),
    /// A real number.
    Float(f64),
    /// A complex number.
    Complex(Complex<f64>),
    /// A symbolic integer.
    SymInt(SymInt),
    /// A symbolic real number.
    SymFloat(SymFloat),
    /// A symbolic boolean.
    SymBool(SymBool),
}

/// What a scalar is once symbols are resolved.
enum Plain {
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Complex(Complex<f64>),
}

impl Scalar {
    /// The scalar that holds an element of a tensor.
    pub fn from_element<T: Element>(value: T) -> Scalar {
        match T::KIND {
            ElementKind::Bool => Scalar::Bool(value.to_bool()),
            ElementKind::Signed => Scalar::Int(value.to_i64()),
            ElementKind::Unsigned => Scalar::from(value.to_u64()),
            ElementKind::Floating => Scalar::Float(value.to_f64()),
            ElementKind::Complex => Scalar::Complex(value.to_complex()),
        }
    }

    #[track_caller]
    fn plain(&self) -> Result<Plain> {
        Ok(match self {
            Scalar::Bool(value) => Plain::Bool(*value),
            Scalar::Int(value) => Plain::Int(*value),
            Scalar::UInt(value) => Plain::UInt(*value),
            Scalar::Float(value) => Plain::Float(*value),
            Scalar::Complex(value) => Plain::Complex(*value),
            Scalar::SymInt(value) => Plain::Int(value.guard_int()?),
            Scalar::SymFloat(value) => Plain::Float(value.guard_float()?),
            Scalar::SymBool(value) => Plain::Bool(value.guard_bool()?),
        })
    }

    /// The value as a tensor's element. Fractions are cut off; what does not fit is an error, except that negative
    /// integers wrap into unsigned types and complex numbers without imaginary part count as real.
    /// Symbolic values are guarded on.
    #[track_caller]
    pub fn to<T: Element>(&self) -> Result<T> {
        let converted = match self.plain()? {
            Plain::Bool(value) => Some(T::cast_from(value)),
            Plain::Int(value) => T::checked_from_i64(value),
            Plain::UInt(value) => T::checked_from_u64(value),
            Plain::Float(value) => T::checked_from_f64(value),
            Plain::Complex(value) => T::checked_from_complex(value),
        };
        converted.ok_or_else(|| overflow_error(T::CPP_NAME))
    }

    /// As an integer; see `to`.
    #[track_caller]
    pub fn to_i64(&self) -> Result<i64> {
        self.to()
    }

    /// As a real number; see `to`.
    #[track_caller]
    pub fn to_f64(&self) -> Result<f64> {
        self.to()
    }

    /// As a boolean: not zero.
    #[track_caller]
    pub fn to_bool(&self) -> Result<bool> {
        self.to()
    }

    /// As a complex number.
    #[track_caller]
    pub fn to_complex(&self) -> Result<Complex<f64>> {
        self.to()
    }

    /// As a possibly symbolic integer.
    #[track_caller]
    pub fn to_sym_int(&self) -> Result<SymInt> {
        match self {
            Scalar::SymInt(value) => Ok(value.clone()),
            other => other.to_i64().map(SymInt::from),
        }
    }

    /// As a possibly symbolic real number.
    #[track_caller]
    pub fn to_sym_float(&self) -> Result<SymFloat> {
        match self {
            Scalar::SymFloat(value) => Ok(value.clone()),
            other => other.to_f64().map(SymFloat::from),
        }
    }

    /// As a possibly symbolic boolean.
    #[track_caller]
    pub fn to_sym_bool(&self) -> Result<SymBool> {
        match self {
            Scalar::SymBool(value) => Ok(value.clone()),
            other => other.to_bool().map(SymBool::from),
        }
    }

    /// The dtype a tensor of this number would have: the widest of its kind.
    pub fn scalar_type(&self) -> ScalarType {
        match self {
            Scalar::Bool(_) | Scalar::SymBool(_) => ScalarType::Bool,
            Scalar::Int(_) | Scalar::SymInt(_) => ScalarType::Long,
            Scalar::UInt(_) => ScalarType::UInt64,
            Scalar::Float(_) | Scalar::SymFloat(_) => ScalarType::Double,
            Scalar::Complex(_) => ScalarType::ComplexDouble,
        }
    }

    /// True for integers, and for booleans if asked for.
    pub fn is_integral(&self, include_bool: bool) -> bool {
        self.scalar_type().is_integral(include_bool)
    }

    /// True for real numbers.
    pub fn is_floating_point(&self) -> bool {
        matches!(self, Scalar::Float(_) | Scalar::SymFloat(_))
    }

    /// True for complex numbers.
    pub fn is_complex(&self) -> bool {
        matches!(self, Scalar::Complex(_))
    }

    /// True for booleans.
    pub fn is_boolean(&self) -> bool {
        matches!(self, Scalar::Bool(_) | Scalar::SymBool(_))
    }

    /// True for symbolic numbers.
    pub fn is_symbolic(&self) -> bool {
        matches!(self, Scalar::SymInt(_) | Scalar::SymFloat(_) | Scalar::SymBool(_))
    }

    /// `-self`. Booleans have no negative; integers wrap.
    pub fn neg(&self) -> Result<Scalar> {
        Ok(match self {
            Scalar::Bool(_) | Scalar::SymBool(_) => {
                return Err(Error::runtime("torch boolean negative, the `-` operator, is not supported."))
            }
            Scalar::Int(value) => Scalar::Int(value.wrapping_neg()),
            Scalar::UInt(value) => Scalar::from(value.wrapping_neg()),
            Scalar::Float(value) => Scalar::Float(-value),
            Scalar::Complex(value) => Scalar::Complex(-value),
            Scalar::SymInt(value) => Scalar::from(value.sym_neg()?),
            Scalar::SymFloat(value) => Scalar::from(value.sym_neg()?),
        })
    }

    /// The complex conjugate.
    pub fn conj(&self) -> Scalar {
        match self {
            Scalar::Complex(value) => Scalar::Complex(value.conj()),
            other => other.clone(),
        }
    }

    /// The natural logarithm, a float (or a complex number).
    #[track_caller]
    pub fn log(&self) -> Result<Scalar> {
        match self {
            Scalar::Complex(value) => Ok(Scalar::Complex(value.ln())),
            other => other.to_f64().map(|value| Scalar::Float(value.ln())),
        }
    }

    /// True if both are the same number. Booleans equal booleans only. Symbolic values are guarded on.
    #[track_caller]
    pub fn equal(&self, other: impl Into<Scalar>) -> Result<bool> {
        let other = other.into().plain()?;
        Ok(match (self.plain()?, other) {
            (Plain::Bool(a), Plain::Bool(b)) => a == b,
            (Plain::Bool(_), _) | (_, Plain::Bool(_)) => false,
            (Plain::Int(a), Plain::Int(b)) => a == b,
            (Plain::UInt(a), Plain::UInt(b)) => a == b,
            // By construction UInt is above every Int.
            (Plain::Int(_), Plain::UInt(_)) | (Plain::UInt(_), Plain::Int(_)) => false,
            (a, b) => a.complex() == b.complex(),
        })
    }

    /// The number, if it is a plain real one, without an error for the rest.
    pub fn as_f64_lossy(&self) -> Option<f64> {
        match self {
            Scalar::Bool(value) => Some(value.to_f64()),
            Scalar::Int(value) => Some(*value as f64),
            Scalar::UInt(value) => Some(*value as f64),
            Scalar::Float(value) => Some(*value),
            _ => None,
        }
    }
}

impl Plain {
    fn complex(&self) -> Complex<f64> {
        match *self {
            Plain::Bool(value) => value.to_complex(),
            Plain::Int(value) => value.to_complex(),
            Plain::UInt(value) => value.to_complex(),
            Plain::Float(value) => value.to_complex(),
            Plain::Complex(value) => value,
        }
    }
}

/// The error of a scalar that does not fit a dtype.
#[cold]
fn overflow_error(type_name: &str) -> Error {
    Error::runtime(format!("value cannot be converted to type {type_name} without overflow"))
}

macro_rules! from_number {
    ($($type:ty => |$value:ident| $scalar:expr;)*) => {
        $(impl From<$type> for Scalar {
            #[inline]
            fn from($value: $type) -> Scalar {
                $scalar
            }
        })*
    };
}

from_number! {
    bool => |value| Scalar::Bool(value);
    i8 => |value| Scalar::Int(i64::from(value));
    i16 => |value| Scalar::Int(i64::from(value));
    i32 => |value| Scalar::Int(i64::from(value));
    i64 => |value| Scalar::Int(value);
    u8 => |value| Scalar::Int(i64::from(value));
    u16 => |value| Scalar::Int(i64::from(value));
    u32 => |value| Scalar::Int(i64::from(value));
    u64 => |value| i64::try_from(value).map_or(Scalar::UInt(value), Scalar::Int);
    f16 => |value| Scalar::Float(f64::from(value));
    bf16 => |value| Scalar::Float(f64::from(value));
    f32 => |value| Scalar::Float(f64::from(value));
    f64 => |value| Scalar::Float(value);
    Complex<f32> => |value| Scalar::Complex(value.to_complex());
    Complex<f64> => |value| Scalar::Complex(value);
    SymInt => |value| match value.maybe_as_int() {
        Some(known) => Scalar::Int(known),
        None => Scalar::SymInt(value),
    };
    SymFloat => |value| match value.maybe_as_float() {
        Some(known) => Scalar::Float(known),
        None => Scalar::SymFloat(value),
    };
    SymBool => |value| match value.maybe_as_bool() {
        Some(known) => Scalar::Bool(known),
        None => Scalar::SymBool(value),
    };
}

impl Default for Scalar {
    fn default() -> Scalar {
        Scalar::Int(0)
    }
}

impl fmt::Display for Scalar {
    /// As Python prints numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(true) => f.write_str("True"),
            Scalar::Bool(false) => f.write_str("False"),
            Scalar::Int(value) => write!(f, "{value}"),
            Scalar::UInt(value) => write!(f, "{value}"),
            Scalar::Float(value) => write_float(f, *value),
            Scalar::Complex(value) => {
                let sign = if value.im.is_sign_negative() { "-" } else { "+" };
                write!(f, "({}{sign}{}j)", value.re, value.im.abs())
            }
            Scalar::SymInt(value) => write!(f, "{value}"),
            Scalar::SymFloat(value) => write!(f, "{value}"),
            Scalar::SymBool(value) => write!(f, "{value}"),
        }
    }
}

fn write_float(f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
    if value.is_nan() {
        f.write_str("nan")
    } else if value.is_infinite() {
        f.write_str(if value > 0.0 { "inf" } else { "-inf" })
    } else {
        write!(f, "{value:?}")
    }
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scalar({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overflow<T: Element>(scalar: impl Into<Scalar>, name: &str) {
        let message = scalar.into().to::<T>().unwrap_err().to_string();
        assert!(
            message.contains(&format!("value cannot be converted to type {name} without overflow")),
            "{message}"
        );
    }

    /// The texts are recorded from PyTorch 2.13 (`torch.empty(1, dtype=...).fill_(value)`).
    #[test]
    fn overflow_texts_are_pytorchs() {
        overflow::<i8>(300, "int8_t");
        overflow::<u8>(-256, "uint8_t");
        overflow::<u8>(-1.5, "uint8_t");
        overflow::<i32>(f64::NAN, "int");
        overflow::<f32>(1e300, "float");
        overflow::<f32>(Complex::new(1.0, 2.0), "float");
        overflow::<i64>(Complex::new(1.0, 2.0), "int64_t");
        overflow::<i64>(1u64 << 63, "int64_t");
        overflow::<Complex<f32>>(1e300, "c10::complex<float>");
        overflow::<Complex<f16>>(1e6, "c10::complex<c10::Half>");
    }

    #[test]
    fn conversions() {
        assert_eq!(Scalar::from(-1).to::<u8>().unwrap(), 255);
        assert_eq!(Scalar::from(true).to::<i16>().unwrap(), 1);
        assert_eq!(Scalar::from(1.9).to_i64().unwrap(), 1);
        assert_eq!(Scalar::from(Complex::new(1.0, 0.0)).to_f64().unwrap(), 1.0);
        assert!(Scalar::from(f64::NAN).to_bool().unwrap());
        assert_eq!(Scalar::from(u64::MAX).to::<u64>().unwrap(), u64::MAX);
        assert_eq!(Scalar::from(u64::MAX).scalar_type(), ScalarType::UInt64);
        assert_eq!(Scalar::from(5u64), Scalar::Int(5));
        assert_eq!(Scalar::from(SymInt::from(5)), Scalar::Int(5));
        assert_eq!(Scalar::from_element(f16::from_f32(0.5)), Scalar::Float(0.5));
        assert_eq!(Scalar::from_element(u64::MAX), Scalar::UInt(u64::MAX));
    }

    #[test]
    fn symbols_guard() {
        let node = crate::core::sym_int::tests::Expr::int("s0", 7);
        let s = Scalar::from(SymInt::from_node(node).unwrap());
        assert!(s.is_symbolic());
        assert!(s.is_integral(false));
        assert_eq!(s.to::<i8>().unwrap(), 7);
        assert_eq!(s.to_string(), "s0");
        assert!(s.to_sym_int().unwrap().is_symbolic());
        assert!(s.equal(7).unwrap());
    }

    #[test]
    fn arithmetic_and_equality() {
        assert_eq!(Scalar::from(i64::MIN).neg().unwrap(), Scalar::Int(i64::MIN));
        assert!(Scalar::from(true).neg().is_err());
        let z = Complex::new(1.0, 2.0);
        assert_eq!(Scalar::from(z).conj(), Scalar::Complex(z.conj()));
        assert!(Scalar::from(2).equal(2.0).unwrap());
        assert!(!Scalar::from(true).equal(1).unwrap());
        assert!(!Scalar::from(u64::MAX).equal(-1).unwrap());
        assert!(!Scalar::from(z).equal(1.0).unwrap());
        assert_eq!(Scalar::from(1.0).to_string(), "1.0");
        assert_eq!(Scalar::from(1.0).log().unwrap(), Scalar::Float(0.0));
    }
}
