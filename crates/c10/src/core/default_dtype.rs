//! The dtype of floating-point tensors that nobody gave a dtype.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::{Error, Result, ScalarType};

static DEFAULT_DTYPE: AtomicU8 = AtomicU8::new(ScalarType::Float as u8);

/// The default dtype: float32 unless set.
#[inline]
pub fn get_default_dtype() -> ScalarType {
    // Only valid numbers are ever stored.
    ScalarType::ALL[usize::from(DEFAULT_DTYPE.load(Ordering::Relaxed))]
}

/// The complex dtype whose parts have the default dtype.
pub fn get_default_complex_dtype() -> ScalarType {
    match get_default_dtype() {
        ScalarType::Half => ScalarType::ComplexHalf,
        ScalarType::Double => ScalarType::ComplexDouble,
        _ => ScalarType::ComplexFloat,
    }
}

/// Sets the default dtype for the whole process.
pub fn set_default_dtype(scalar_type: ScalarType) -> Result<()> {
    match scalar_type {
        ScalarType::Half | ScalarType::BFloat16 | ScalarType::Float | ScalarType::Double => {
            DEFAULT_DTYPE.store(scalar_type as u8, Ordering::Relaxed);
            Ok(())
        }
        other => Err(Error::type_(format!(
            "only floating-point types are supported as the default type; expected float16, bfloat16, float32 or float64, got {}",
            other.name()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_floating_point_is_accepted() {
        assert_eq!(get_default_dtype(), ScalarType::Float);
        for t in [ScalarType::Int, ScalarType::ComplexFloat, ScalarType::Float8_e5m2] {
            let error = set_default_dtype(t).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Type);
            assert!(error
                .to_string()
                .contains("only floating-point types are supported as the default type"));
        }
        assert_eq!(get_default_dtype(), ScalarType::Float);
        assert_eq!(get_default_complex_dtype(), ScalarType::ComplexFloat);
    }
}
