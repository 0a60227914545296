//! Elements as unsigned integers in the order of `sort`.

use c10::{BFloat16, Half};

use crate::map::Stored;

/// A type that is sorted, by an unsigned key. Equal elements have equal keys: all NaN are one, the largest, and the
/// two zeros are one.
pub(super) trait SortKey: Stored {
    /// Whether the key fits 32 bits.
    const NARROW: bool;
    /// The key in ascending order.
    fn key(raw: Self::Raw) -> u64;
}

macro_rules! keys {
    ($($T:ty: $narrow:literal, $key:expr);* $(;)?) => {$(
        impl SortKey for $T {
            const NARROW: bool = $narrow;
            #[inline(always)]
            fn key(raw: Self::Raw) -> u64 {
                ($key)(raw)
            }
        }
    )*};
}

/// The order of IEEE bits, made that of unsigned integers: negative ones are flipped, positive ones moved above them.
macro_rules! float_key {
    ($U:ty, $value:expr, $bits:expr) => {{
        // NaN is not equal to itself; adding zero makes -0 into 0.
        let bits: $U = $bits;
        let sign = <$U>::MAX / 2 + 1;
        let magnitude = bits & !sign;
        #[allow(clippy::eq_op)]
        if $value != $value {
            <$U>::MAX as u64
        } else if magnitude == 0 {
            sign as u64
        } else if bits & sign != 0 {
            !bits as u64
        } else {
            (bits | sign) as u64
        }
    }};
}

keys! {
    bool: true, |raw: u8| (raw != 0) as u64;
    u8: true, |raw: u8| raw as u64;
    u16: true, |raw: u16| raw as u64;
    u32: true, |raw: u32| raw as u64;
    u64: false, |raw: u64| raw;
    i8: true, |raw: i8| (raw as u8 ^ 0x80) as u64;
    i16: true, |raw: i16| (raw as u16 ^ 0x8000) as u64;
    i32: true, |raw: i32| (raw as u32 ^ 0x8000_0000) as u64;
    i64: false, |raw: i64| raw as u64 ^ (1 << 63);
    f32: true, |raw: f32| float_key!(u32, raw, raw.to_bits());
    f64: false, |raw: f64| float_key!(u64, raw, raw.to_bits());
    Half: true, |raw: Half| float_key!(u16, raw, raw.to_bits());
    BFloat16: true, |raw: BFloat16| float_key!(u16, raw, raw.to_bits());
}
