//! `dispatch_dtypes!`: the switch from a dtype to the Rust type that holds it.

use crate::{Error, ScalarType};

/// The error of a kernel that lacks a dtype.
#[cold]
pub fn dtype_not_implemented(kernel: &str, scalar_type: ScalarType) -> Error {
    Error::not_implemented(format!("\"{kernel}\" not implemented for '{scalar_type}'"))
}

/// The Rust type of a `ScalarType` variant: `element_type!(Float)` is `f32`.
#[macro_export]
macro_rules! element_type {
    (Byte) => { u8 };
    (Char) => { i8 };
    (Short) => { i16 };
    (Int) => { i32 };
    (Long) => { i64 };
    (UInt16) => { u16 };
    (UInt32) => { u32 };
    (UInt64) => { u64 };
    (Bool) => { bool };
    (Half) => { $crate::Half };
    (BFloat16) => { $crate::BFloat16 };
    (Float) => { f32 };
    (Double) => { f64 };
    (ComplexHalf) => { $crate::Complex<$crate::Half> };
    (ComplexFloat) => { $crate::Complex<f32> };
    (ComplexDouble) => { $crate::Complex<f64> };
}

/// Runs code with the Rust type of a dtype, or makes the error that the kernel lacks it.
///
/// `dispatch_dtypes!(scalar_type, "add_kernel", ALL_AND_COMPLEX + Bool + HALF, |T| add::<T>(iter))?` evaluates to
/// `Result` of the body's value. The sets, which may be added up with each other and with single `ScalarType`
/// variants, are
///
/// | set | dtypes |
/// |---|---|
/// | `FLOATING` | float32, float64 |
/// | `HALF` | float16, bfloat16 |
/// | `INTEGRAL` | uint8, int8, int16, int32, int64 |
/// | `BAREBONES_UNSIGNED` | uint16, uint32, uint64 |
/// | `COMPLEX` | complex64, complex128 |
/// | `FLOATING_AND_HALF`, `FLOATING_AND_COMPLEX` | as named |
/// | `INTEGRAL_AND_BOOL` | as named |
/// | `ALL` | INTEGRAL and FLOATING |
/// | `ALL_AND_HALF`, `ALL_AND_BOOL`, `ALL_AND_COMPLEX` | ALL and the named |
/// | `ALL_AND_COMPLEX_AND_HALF_AND_BOOL` | the fourteen that most kernels have |
/// | `EVERY` | every `Element` |
#[macro_export]
macro_rules! dispatch_dtypes {
    ($scalar_type:expr, $kernel:expr, $first:ident $(+ $more:ident)*, |$T:ident| $body:expr) => {
        $crate::__dispatch_dtypes_collect!([$scalar_type, $kernel, $T, $body] [] $first $($more)*)
    };
}

/// Turns the sets of `dispatch_dtypes!` into one list of variants.
#[doc(hidden)]
#[macro_export]
macro_rules! __dispatch_dtypes_collect {
    ($ctx:tt [$($v:ident)*] FLOATING $($rest:ident)*) => {
        $crate::__dispatch_dtypes_collect!($ctx [$($v)* Float Double] $($rest)*)
    };
    ($ctx:tt [$($v:ident)*] HALF $($rest:ident)*) => {
        $crate::__dispatch_dtypes_collect!($ctx [$($v)* Half BFloat16] $($rest)*)
    };
    ($ctx:tt [$($v:ident)*] INTEGRAL $($rest:ident)*) => {
        $crate::__dispatch_dtypes_collect!($ctx [$($v)* Byte Char Short Int Long] $($rest)*)
    };
    ($ctx:tt [$($v:ident)*] BAREBONES_UNSIGNED $($rest:ident)*) => {
        $crate::__dispatch_dtypes_collect!($ctx [$($v)* UInt16 UInt32 UInt64] $($rest)*)
    };
    ($ctx:tt [$($v:ident)*] COMPLEX $($rest:ident)*) => {
        $crate::__dispatch_dtypes_collect!($ctx [$($v)* ComplexFloat ComplexDouble] $($rest)*)
    };
    ($ctx:tt $list:tt FLOATING_AND_HALF $($rest:ident)*) => {
        $crate::__dispatch_dtypes_collect!($ctx $list FLOATING HALF $($rest)*)
    };
    ($ctx:tt $list:tt FLOATING_AND_COMPLEX $($rest:ident)*) => {
        $crate::__dispatch_dtypes_collect!($ctx $list FLOATING COMPLEX $($rest)*)
    };
    ($ctx:tt $list:tt INTEGRAL_AND_BOOL $($rest:ident)*) => {
        $crate::__dispatch_dtypes_collect!($ctx $list INTEGRAL Bool $($rest)*)
    };
    ($ctx:tt $list:tt ALL $($rest:ident)*) => {
        $crate::__dispatch_dtypes_collect!($ctx $list INTEGRAL FLOATING $($rest)*)
    };
    ($ctx:tt $list:tt ALL_AND_HALF $($rest:ident)*) => {
        $crate::__dispatch_dtypes_collect!($ctx $list ALL HALF $($rest)*)
    };
    ($ctx:tt $list:tt ALL_AND_BOOL $($rest:ident)*) => {
        $crate::__dispatch_dtypes_collect!($ctx $list ALL Bool $($rest)*)
    };
    ($ctx:tt $list:tt ALL_AND_COMPLEX $($rest:ident)*) => {
        $crate::__dispatch_dtypes_collect!($ctx $list ALL COMPLEX $($rest)*)
    };
    ($ctx:tt $list:tt ALL_AND_COMPLEX_AND_HALF_AND_BOOL $($rest:ident)*) => {
        $crate::__dispatch_dtypes_collect!($ctx $list ALL COMPLEX HALF Bool $($rest)*)
    };
    ($ctx:tt $list:tt EVERY $($rest:ident)*) => {
        $crate::__dispatch_dtypes_collect!(
            $ctx $list ALL COMPLEX ComplexHalf HALF Bool BAREBONES_UNSIGNED $($rest)*
        )
    };
    ($ctx:tt [$($v:ident)*] $variant:ident $($rest:ident)*) => {
        $crate::__dispatch_dtypes_collect!($ctx [$($v)* $variant] $($rest)*)
    };
    ([$scalar_type:expr, $kernel:expr, $T:ident, $body:expr] [$($v:ident)*]) => {{
        // A dtype may be named twice, by a set and alone.
        #[allow(unreachable_patterns, clippy::let_and_return)]
        let result = match $scalar_type {
            $($crate::ScalarType::$v => {
                #[allow(non_camel_case_types, dead_code)]
                type $T = $crate::element_type!($v);
                ::core::result::Result::Ok::<_, $crate::Error>($body)
            })*
            other => ::core::result::Result::Err($crate::dtype_not_implemented($kernel, other)),
        };
        result
    }};
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Element, Result};

    fn item_size_of(scalar_type: ScalarType) -> Result<usize> {
        dispatch_dtypes!(scalar_type, "item_size_of", EVERY, |T| size_of::<T>())
    }

    #[test]
    fn dispatch_finds_the_type_or_names_kernel_and_dtype() {
        let mut found = 0;
        for t in ScalarType::ALL {
            match item_size_of(t) {
                Ok(size) => {
                    assert_eq!(size, t.item_size());
                    found += 1;
                }
                Err(e) => {
                    assert_eq!(e.kind(), crate::ErrorKind::NotImplemented);
                    assert_eq!(e.message(), format!("\"item_size_of\" not implemented for '{t}'"));
                }
            }
        }
        assert_eq!(found, 16);
        let t = dispatch_dtypes!(ScalarType::Bool, "k", ALL_AND_BOOL + Bool + Half, |scalar_t| {
            scalar_t::SCALAR_TYPE
        });
        assert_eq!(t.unwrap(), ScalarType::Bool);
        let e = dispatch_dtypes!(ScalarType::Bool, "add_kernel", ALL_AND_COMPLEX, |T| T::SCALAR_TYPE)
            .unwrap_err();
        assert_eq!(e.message(), "\"add_kernel\" not implemented for 'Bool'");
    }
}
