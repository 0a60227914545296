//! The string encodings of pickles.

use super::value::Value;
use crate::error::{error, Result};

/// A `str` from UTF-8 in which lone surrogates are allowed (Python's `surrogatepass`).
pub(crate) fn str_from_utf8(bytes: &[u8]) -> Result<Value> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(Value::Str(text.to_owned()));
    }
    let mut rest = bytes;
    while let Err(e) = std::str::from_utf8(rest) {
        let at = e.valid_up_to();
        match rest[at..] {
            [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..] => rest = &rest[at + 3..],
            _ => {
                return Err(error!(
                    Unpickling,
                    "a str is not UTF-8: invalid byte at position {}",
                    bytes.len() - rest.len() + at
                ))
            }
        }
    }
    Ok(Value::SurrogateStr(bytes.to_vec()))
}

/// A Python 2 `str`: text where it is UTF-8, bytes otherwise.
pub(crate) fn python2_string(bytes: Vec<u8>) -> Value {
    match String::from_utf8(bytes) {
        Ok(text) => Value::Str(text),
        Err(e) => Value::Bytes(e.into_bytes()),
    }
}

/// The text whose `raw-unicode-escape` form is `line` (protocol 0).
pub(crate) fn str_from_raw_unicode_escape(line: &[u8]) -> Result<Value> {
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    while let [byte, tail @ ..] = rest {
        let digits = match (byte, tail.first()) {
            (b'\\', Some(b'u')) => 4,
            (b'\\', Some(b'U')) => 8,
            (b'\\', Some(&next)) => {
                // A backslash also protects a following one from starting an escape.
                push_code_point(&mut out, u32::from(b'\\'));
                push_code_point(&mut out, u32::from(next));
                rest = &tail[1..];
                continue;
            }
            _ => {
                push_code_point(&mut out, u32::from(*byte));
                rest = tail;
                continue;
            }
        };
        let code_point = tail
            .get(1..1 + digits)
            .and_then(hex)
            .filter(|&c| c <= 0x10_ffff)
            .ok_or_else(|| error!(Unpickling, "bad \\u escape in a UNICODE string"))?;
        push_code_point(&mut out, code_point);
        rest = &tail[1 + digits..];
    }
    str_from_utf8(&out)
}

/// The bytes whose `repr` is `line` (protocol 0).
pub(crate) fn bytes_from_repr(line: &[u8]) -> Result<Vec<u8>> {
    let inner = match line.trim_ascii() {
        [first @ (b'\'' | b'"'), inner @ .., last] if first == last => inner,
        _ => return Err(error!(Unpickling, "the argument of STRING must be a quoted string")),
    };
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let [byte, tail @ ..] = rest {
        if *byte != b'\\' {
            out.push(*byte);
            rest = tail;
            continue;
        }
        let Some((&escape, after)) = tail.split_first() else {
            return Err(error!(Unpickling, "a STRING ends in a backslash"));
        };
        rest = after;
        match escape {
            b'\\' | b'\'' | b'"' => out.push(escape),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'v' => out.push(11),
            b'0'..=b'7' => {
                let n = tail.iter().take(3).take_while(|b| (b'0'..=b'7').contains(b)).count();
                let value = tail[..n].iter().fold(0u32, |v, &d| v * 8 + u32::from(d - b'0'));
                out.push(value as u8);
                rest = &tail[n..];
            }
            b'x' => {
                let value = after
                    .get(..2)
                    .and_then(hex)
                    .ok_or_else(|| error!(Unpickling, "bad \\x escape in a STRING"))?;
                out.push(value as u8);
                rest = &after[2..];
            }
            other => out.extend_from_slice(&[b'\\', other]),
        }
    }
    Ok(out)
}

/// The bytes whose Latin-1 reading is `text`; `None` where a character is beyond it.
pub(crate) fn latin1_encode(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect()
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0u32, |value, &d| Some((value << 4) | char::from(d).to_digit(16)?))
}

/// UTF-8, extended to surrogates.
fn push_code_point(out: &mut Vec<u8>, code_point: u32) {
    match char::from_u32(code_point) {
        Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        None => out.extend_from_slice(&[
            0xe0 | (code_point >> 12) as u8,
            0x80 | (code_point >> 6 & 0x3f) as u8,
            0x80 | (code_point & 0x3f) as u8,
        ]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surrogates_pass_and_garbage_does_not() {
        assert_eq!(str_from_utf8("é".as_bytes()).unwrap(), Value::Str("é".into()));
        let lone = b"a\xed\xa0\x80b".to_vec();
        assert_eq!(str_from_utf8(&lone).unwrap(), Value::SurrogateStr(lone));
        assert!(str_from_utf8(b"a\xff").is_err());
        assert!(str_from_utf8(b"\xed\xa0").is_err());
    }

    #[test]
    fn raw_unicode_escape() {
        let read = |line: &[u8]| str_from_raw_unicode_escape(line);
        assert_eq!(read(b"a\\u00e9\xe9").unwrap(), Value::Str("aéé".into()));
        assert_eq!(read(b"\\U0001f600").unwrap(), Value::Str("😀".into()));
        assert_eq!(read(b"a\\\\u0041").unwrap(), Value::Str("a\\\\u0041".into()));
        assert_eq!(read(b"\\ud800").unwrap(), Value::SurrogateStr(vec![0xed, 0xa0, 0x80]));
        assert_eq!(read(b"\\").unwrap(), Value::Str("\\".into()));
        assert!(read(b"\\u12").is_err());
        assert!(read(b"\\U00110000").is_err());
    }

    #[test]
    fn repr_escapes() {
        assert_eq!(bytes_from_repr(b"'a\\x00\\'\\n\\101\\q'").unwrap(), b"a\0'\nA\\q");
        assert_eq!(bytes_from_repr(b"\"\"").unwrap(), b"");
        for bad in [&b"'"[..], b"'a", b"a", b"'\\'", b"'\\x1'", b""] {
            assert!(bytes_from_repr(bad).is_err(), "{bad:?}");
        }
    }
}
