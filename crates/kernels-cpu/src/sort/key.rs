//! Elements as unsigned integers in the order of `sort`.

use c10::{BFloat16, Half};

use crate::map::Stored;

/// A type that is sorted, by an unsigned key. Equal elements have equal keys: all NaN are one, the largest, and the
/// two zeros are one.
pub(super) trait SortKey: Stored {
    /// The key in ascending order.
    fn key(raw: Self::Raw) -> u64;
    /// The element, unless several have the key.
    fn from_key(key: u64) -> Option<Self::Raw>;
}

macro_rules! integer_keys {
    ($($T:ty: $U:ty),*) => {$(
        impl SortKey for $T {
            #[inline(always)]
            fn key(raw: $T) -> u64 {
                // For signed types the least value becomes 0.
                (raw as $U ^ <$T>::MIN as $U) as u64
            }
            #[inline(always)]
            fn from_key(key: u64) -> Option<$T> {
                Some((key as $U ^ <$T>::MIN as $U) as $T)
            }
        }
    )*};
}

integer_keys!(u8: u8, u16: u16, u32: u32, u64: u64, i8: u8, i16: u16, i32: u32, i64: u64);

impl SortKey for bool {
    #[inline(always)]
    fn key(raw: u8) -> u64 {
        (raw != 0) as u64
    }
    #[inline(always)]
    fn from_key(key: u64) -> Option<u8> {
        Some(key as u8)
    }
}

/// The order of IEEE bits, made that of unsigned integers: negative ones are flipped, positive ones moved above them.
macro_rules! float_keys {
    ($($T:ty: $U:ty, $infinity:expr);* $(;)?) => {$(
        impl SortKey for $T {
            #[inline(always)]
            fn key(raw: $T) -> u64 {
                const SIGN: $U = <$U>::MAX / 2 + 1;
                let bits = raw.to_bits();
                let magnitude = bits & !SIGN;
                let key = if bits & SIGN != 0 { !bits } else { bits | SIGN };
                let key = if magnitude == 0 { SIGN } else { key };
                (if magnitude > $infinity.to_bits() { <$U>::MAX } else { key }) as u64
            }
            #[inline(always)]
            fn from_key(key: u64) -> Option<$T> {
                const SIGN: $U = <$U>::MAX / 2 + 1;
                let key = key as $U;
                if key == SIGN || key == <$U>::MAX {
                    return None;
                }
                Some(<$T>::from_bits(if key & SIGN != 0 { key & !SIGN } else { !key }))
            }
        }
    )*};
}

float_keys! {
    f32: u32, f32::INFINITY;
    f64: u64, f64::INFINITY;
    Half: u16, Half::INFINITY;
    BFloat16: u16, BFloat16::INFINITY;
}
