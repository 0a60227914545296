//! float16 and bfloat16 to and from float32, without branches or conversion instructions, so that loops over them
//! vectorize in every tier. NaN keeps what fits of its bits, and becomes quiet.

use c10::{BFloat16, Half};

use crate::vec::tiered;

/// The exponent of infinity in float32.
const INFINITE: u32 = 0xff << 23;

/// float16 as float32: the exponent and mantissa moved to their places make a float32 that is 2^112 times too small,
/// subnormals included.
#[inline(always)]
pub(crate) fn widen_half(half: Half) -> f32 {
    let bits = u32::from(half.to_bits());
    let magnitude = (bits & 0x7fff) << 13;
    let scaled = (f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23)).to_bits();
    // Infinity and NaN have the largest exponent, which stays the largest.
    let scaled = if magnitude >= 0x1f << 23 { magnitude | INFINITE } else { scaled };
    f32::from_bits(scaled | (bits & 0x8000) << 16)
}

/// bfloat16 as float32.
#[inline(always)]
pub(crate) fn widen_bfloat16(value: BFloat16) -> f32 {
    f32::from_bits(u32::from(value.to_bits()) << 16)
}

/// float32 rounded to float16, ties to even.
#[inline(always)]
pub(crate) fn round_half(value: f32) -> Half {
    /// 0.5: adding it to a number below 2^-14 leaves the bits of a subnormal float16 at the end of the sum.
    const SUBNORMAL: u32 = 126 << 23;
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let subnormal = (f32::from_bits(magnitude) + f32::from_bits(SUBNORMAL)).to_bits().wrapping_sub(SUBNORMAL);
    // Half of the last place that is kept, less one if that place is even: a carry rounds up.
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + ((magnitude >> 13) & 1)) >> 13;
    let small = if magnitude < 113 << 23 { subnormal } else { normal };
    let finite = if magnitude >= 143 << 23 { 0x7c00 } else { small };
    let result = if magnitude > INFINITE { 0x7e00 | (magnitude >> 13 & 0x1ff) } else { finite };
    Half::from_bits((result | bits >> 16 & 0x8000) as u16)
}

/// float32 rounded to bfloat16, ties to even.
#[inline(always)]
pub(crate) fn round_bfloat16(value: f32) -> BFloat16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let nan = bits >> 16 | 0x40;
    BFloat16::from_bits(if bits & 0x7fff_ffff > INFINITE { nan } else { rounded } as u16)
}

tiered! { memory_bound:
    /// Rounds as [`round_bfloat16`].
    pub(crate) fn round_bfloat16_slice(out: &mut [BFloat16], values: &[f32]) => A {
        let _ = std::marker::PhantomData::<A>;
        for (out, &value) in out.iter_mut().zip(values) {
            *out = round_bfloat16(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widening_is_exact_for_every_value() {
        for bits in 0..=u16::MAX {
            let half = Half::from_bits(bits);
            let (found, expected) = (widen_half(half), half.to_f32());
            assert!(
                found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(),
                "{bits:#x}"
            );
            let value = BFloat16::from_bits(bits);
            let (found, expected) = (widen_bfloat16(value), value.to_f32());
            assert!(
                found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(),
                "{bits:#x}"
            );
        }
    }

    #[test]
    fn rounding_is_to_the_nearest_and_ties_to_even() {
        // Every 16-bit value, the values around it, and the ties between it and its neighbours.
        for high in 0..=u16::MAX {
            for low in [0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff, 0x2000, 0x3000] {
                let value = f32::from_bits(u32::from(high) << 16 | low);
                let (found, expected) = (round_half(value), Half::from_f32(value));
                assert!(
                    found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(),
                    "{value:e}"
                );
                let (found, expected) = (round_bfloat16(value), BFloat16::from_f32(value));
                assert!(
                    found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(),
                    "{value:e}"
                );
            }
            let half = Half::from_bits(high).to_f32();
            if half.is_finite() {
                assert_eq!(round_half(half).to_bits(), high);
            }
        }
    }
}
