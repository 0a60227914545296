//! Python integers as bytes and as text.

use super::value::Value;
use crate::error::{error, Result};
use crate::limits::{self, Limits};

/// The integer that little-endian two's complement `bytes` stand for.
pub(crate) fn int_from_le_bytes(bytes: &[u8]) -> Value {
    let bytes = minimal(bytes);
    if bytes.len() > 8 {
        return Value::BigInt(bytes.to_vec());
    }
    let negative = bytes.last().is_some_and(|&b| b & 0x80 != 0);
    let mut wide = [if negative { 0xff } else { 0 }; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    Value::Int(i64::from_le_bytes(wide))
}

/// Two's complement without the bytes that only repeat the sign.
pub(crate) fn minimal(mut bytes: &[u8]) -> &[u8] {
    while let [head @ .., last] = bytes {
        let redundant = match head.last() {
            Some(previous) if previous & 0x80 != 0 => *last == 0xff,
            Some(_) | None => *last == 0,
        };
        if !redundant {
            break;
        }
        bytes = head;
    }
    bytes
}

/// The integer that decimal `text` stands for; a trailing `L` is Python 2's.
pub(crate) fn int_from_text(text: &[u8], limits: &Limits) -> Result<Value> {
    let bad = || {
        error!(
            Unpickling,
            "expected a decimal integer, got `{}`",
            String::from_utf8_lossy(&text[..text.len().min(40)])
        )
    };
    let trimmed = text.trim_ascii();
    let trimmed = trimmed.strip_suffix(b"L").unwrap_or(trimmed);
    let (negative, digits) = match trimmed {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    limits::check("digits in an integer", digits.len(), limits.max_digits)?;
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(bad());
    }
    // Schoolbook: magnitude = magnitude * 10^9 + the next nine digits.
    let mut limbs: Vec<u32> = Vec::new();
    for chunk in digits.chunks(9) {
        let mut carry = chunk.iter().fold(0u64, |n, &d| n * 10 + u64::from(d - b'0'));
        let scale = 10u64.pow(chunk.len() as u32);
        for limb in &mut limbs {
            carry += u64::from(*limb) * scale;
            *limb = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            limbs.push(carry as u32);
        }
    }
    let mut bytes: Vec<u8> = limbs.iter().flat_map(|l| l.to_le_bytes()).collect();
    bytes.push(0);
    if negative {
        let mut carry = true;
        for byte in &mut bytes {
            let (sum, over) = (!*byte).overflowing_add(u8::from(carry));
            *byte = sum;
            carry = over;
        }
    }
    Ok(int_from_le_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(s: &str) -> Value {
        int_from_text(s.as_bytes(), &Limits::default()).unwrap()
    }

    #[test]
    fn small_integers() {
        for i in [0, 1, -1, 127, 128, -128, -129, 255, 256, i64::MAX, i64::MIN, 1 << 40] {
            assert_eq!(text(&i.to_string()), Value::Int(i));
            assert_eq!(int_from_le_bytes(&i.to_le_bytes()), Value::Int(i));
            assert_eq!(int_from_le_bytes(minimal(&i.to_le_bytes())), Value::Int(i));
        }
        assert_eq!(text("12L"), Value::Int(12));
        assert_eq!(minimal(&0i64.to_le_bytes()), &[] as &[u8]);
        assert_eq!(minimal(&128i64.to_le_bytes()), &[128, 0]);
        assert_eq!(minimal(&(-128i64).to_le_bytes()), &[128]);
        assert_eq!(minimal(&(-1i64).to_le_bytes()), &[255]);
    }

    #[test]
    fn large_integers() {
        let mut expected = vec![0; 8];
        expected.push(0x40);
        // 2**70
        assert_eq!(text("1180591620717411303424"), Value::BigInt(expected));
        assert_eq!(text("9223372036854775808"), Value::BigInt(vec![0, 0, 0, 0, 0, 0, 0, 0x80, 0]));
        assert_eq!(
            text("-9223372036854775809"),
            Value::BigInt(vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0xff])
        );
    }

    #[test]
    fn bad_text_is_an_error() {
        for bad in ["", "-", "1x", "0x10", "1 2"] {
            assert!(int_from_text(bad.as_bytes(), &Limits::default()).is_err(), "{bad}");
        }
        assert!(int_from_text(&[b'1'; 5000], &Limits::default()).is_err());
    }
}
