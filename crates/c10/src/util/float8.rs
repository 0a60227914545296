//! The numbers of 8 bits: their values, and how others are rounded to them.
//!
//! They are stored and converted, not computed with, so that they are bytes everywhere else.

use crate::ScalarType;

/// What stands where the exponent is largest.
#[derive(Clone, Copy, PartialEq)]
enum Top {
    /// Infinities and NaN, as in IEEE 754.
    Ieee,
    /// Numbers, and NaN in the last place; what is too large becomes the largest.
    Saturating,
    /// Numbers; NaN is in the place of −0, and what is too large becomes it.
    Unsigned,
}

/// A sign, an exponent and a mantissa of `mantissa` bits.
#[derive(Clone, Copy)]
struct Format {
    mantissa: u32,
    bias: i32,
    top: Top,
}

/// What a dtype's bytes mean.
#[derive(Clone, Copy)]
enum Kind {
    Number(Format),
    /// An exponent and nothing else.
    Exponent,
}

fn kind(dtype: ScalarType) -> Option<Kind> {
    let number = |mantissa, bias, top| Some(Kind::Number(Format { mantissa, bias, top }));
    match dtype {
        ScalarType::Float8_e5m2 => number(2, 15, Top::Ieee),
        ScalarType::Float8_e4m3fn => number(3, 7, Top::Saturating),
        ScalarType::Float8_e5m2fnuz => number(2, 16, Top::Unsigned),
        ScalarType::Float8_e4m3fnuz => number(3, 8, Top::Unsigned),
        ScalarType::Float8_e8m0fnu => Some(Kind::Exponent),
        _ => None,
    }
}

/// The value of each byte of a dtype, if it is one of these.
pub fn values(dtype: ScalarType) -> Option<[f32; 256]> {
    let kind = kind(dtype)?;
    Some(std::array::from_fn(|byte| match kind {
        Kind::Number(format) => format.value(byte as u8),
        Kind::Exponent if byte == 255 => f32::NAN,
        Kind::Exponent => power_of_two(byte as i32 - 127),
    }))
}

/// The byte for a number, rounded to the nearest, ties to even. The dtype is one of these.
pub fn round(dtype: ScalarType) -> Option<impl Fn(f32) -> u8 + Copy> {
    let kind = kind(dtype)?;
    Some(move |value: f32| match kind {
        Kind::Number(format) => format.round(value),
        Kind::Exponent => round_exponent(value),
    })
}

/// 2 to a power that f32 has, subnormal numbers included.
fn power_of_two(exponent: i32) -> f32 {
    if exponent >= -126 {
        f32::from_bits(((exponent + 127) as u32) << 23)
    } else {
        f32::from_bits(1 << (exponent + 149).max(0))
    }
}

/// The sign is ignored; a number halfway between two powers goes to the larger.
fn round_exponent(value: f32) -> u8 {
    let bits = value.to_bits();
    let exponent = ((bits >> 23) & 0xff) as u8;
    let rest = bits & 0x7f_ffff;
    const HALF: u32 = 0x40_0000;
    let up = exponent != 255 && (rest > HALF || (rest == HALF && exponent > 0));
    exponent + u8::from(up)
}

impl Format {
    fn value(self, byte: u8) -> f32 {
        let (sign, code) = (if byte & 0x80 == 0 { 1.0 } else { -1.0 }, u32::from(byte & 0x7f));
        let (exponent, fraction) = (code >> self.mantissa, code & ((1 << self.mantissa) - 1));
        match self.top {
            Top::Ieee if exponent == 31 && fraction == 0 => return sign * f32::INFINITY,
            Top::Ieee if exponent == 31 => return f32::NAN.copysign(sign),
            Top::Saturating if code == 0x7f => return f32::NAN.copysign(sign),
            Top::Unsigned if byte == 0x80 => return f32::NAN,
            _ => {}
        }
        let unit = |exponent: u32| power_of_two(exponent as i32 - self.bias - self.mantissa as i32);
        let magnitude = match exponent {
            0 => fraction as f32 * unit(1),
            _ => (fraction + (1 << self.mantissa)) as f32 * unit(exponent),
        };
        sign * magnitude
    }

    /// The largest number's code.
    fn largest(self) -> u32 {
        match self.top {
            Top::Ieee => 0x7b,
            Top::Saturating => 0x7e,
            Top::Unsigned => 0x7f,
        }
    }

    fn round(self, value: f32) -> u8 {
        let sign = if value.is_sign_negative() { 0x80u8 } else { 0 };
        let magnitude = value.abs();
        if value.is_nan() {
            return if self.top == Top::Unsigned { 0x80 } else { sign | 0x7f };
        }
        // The exponent of the binade, of which the smallest holds the subnormal numbers as well.
        let smallest = 1 - self.bias;
        let exponent = ((magnitude.to_bits() >> 23) as i32 - 127).max(smallest);
        let code = if magnitude.is_infinite() {
            u32::MAX
        } else {
            // Exact: a scaling by a power of two, in f64, which has room for it.
            let units = f64::from(magnitude) / f64::from(power_of_two(exponent - self.mantissa as i32));
            // Where it rounds up to the next binade the sum carries into the exponent.
            ((exponent - smallest) as u32 * (1 << self.mantissa)) + units.round_ties_even() as u32
        };
        match self.top {
            _ if code <= self.largest() && (code != 0 || self.top != Top::Unsigned) => sign | code as u8,
            // There is no −0.
            Top::Unsigned if code == 0 => 0,
            Top::Ieee => sign | 0x7c,
            Top::Saturating => sign | 0x7e,
            Top::Unsigned => 0x80,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ScalarType::*;

    const ALL: [ScalarType; 5] =
        [Float8_e5m2, Float8_e4m3fn, Float8_e5m2fnuz, Float8_e4m3fnuz, Float8_e8m0fnu];

    #[test]
    fn every_value_rounds_to_its_own_byte() {
        for dtype in ALL {
            let (values, round) = (values(dtype).unwrap(), round(dtype).unwrap());
            for (byte, &value) in values.iter().enumerate() {
                if value.is_nan() {
                    assert!(values[usize::from(round(value))].is_nan());
                } else {
                    assert_eq!(usize::from(round(value)), byte, "{dtype} {value}");
                }
            }
        }
    }

    #[test]
    fn a_number_halfway_goes_to_the_even_byte_and_others_to_the_nearest() {
        for dtype in [Float8_e5m2, Float8_e4m3fn, Float8_e5m2fnuz, Float8_e4m3fnuz] {
            let (values, round) = (values(dtype).unwrap(), round(dtype).unwrap());
            for byte in 0..0x7eu8 {
                let (low, high) = (values[usize::from(byte)], values[usize::from(byte) + 1]);
                if !(high.is_finite()) {
                    continue;
                }
                let half = (low + high) / 2.0;
                assert_eq!(round(half), byte + byte % 2, "{dtype} {half}");
                assert_eq!(round(half.next_down()), byte);
                assert_eq!(round(half.next_up()), byte + 1);
            }
        }
    }

    #[test]
    fn what_is_too_large_becomes_what_pytorch_makes_of_it() {
        let bytes = |dtype| [1e6, -f32::INFINITY, f32::NAN, -0.0].map(round(dtype).unwrap());
        assert_eq!(bytes(Float8_e5m2), [0x7c, 0xfc, 0x7f, 0x80]);
        assert_eq!(bytes(Float8_e4m3fn), [0x7e, 0xfe, 0x7f, 0x80]);
        assert_eq!(bytes(Float8_e5m2fnuz), [0x80, 0x80, 0x80, 0]);
        assert_eq!(bytes(Float8_e4m3fnuz), [0x80, 0x80, 0x80, 0]);
        assert_eq!([2.5, -3.0, 0.0, f32::INFINITY].map(round(Float8_e8m0fnu).unwrap()), [128, 129, 0, 255]);
    }
}
