//! Reads the value after `=`. The type decides what is allowed and what a number means, as `1` for a `float` is `1.`.

use super::default::DefaultValue;
use super::error::Result;
use super::lexer::{Kind, Token};
use super::parser::Parser;
use super::type_::Type;

/// Largest list that one value may stand for; the value is repeated when the operator is called.
const MAX_BROADCAST: u32 = 1024;

const UNKNOWN_ESCAPE: &str =
    "expected an escape that exists after '\\' in the string: n, t, r, a, b, v, f, a quote, \
    a backslash, or three octal digits";

impl Parser<'_> {
    /// A default for an argument of type `ty`, in the one form that its meaning has.
    pub(super) fn default_value(&mut self, ty: &Type) -> Result<DefaultValue> {
        if self.at_ident("None") {
            return self.none_default(ty);
        }
        match ty {
            Type::Optional(inner) => self.default_value(inner),
            Type::List(element, size) => self.list_default(element, *size),
            Type::Bool | Type::SymBool => self.bool_default(),
            Type::Int | Type::SymInt | Type::DeviceIndex => self.int_default(ty),
            Type::ScalarType | Type::Layout | Type::MemoryFormat | Type::QScheme => self.int_default(ty),
            Type::Float | Type::SymFloat => self.float_default(),
            Type::Complex => self.complex_default(),
            Type::Scalar => self.scalar_default(ty),
            Type::Str => self.str_default(),
            Type::Device => self.device_default(),
            _ => Err(self.expected(&format!("`None`, the only default of type {ty}"))),
        }
    }

    fn at_ident(&self, text: &str) -> bool {
        self.kind() == Kind::Ident && self.text_of(self.current()) == text
    }

    /// `None`, which PyTorch also takes where the type is not optional, except for containers.
    fn none_default(&mut self, ty: &Type) -> Result<DefaultValue> {
        if matches!(
            ty,
            Type::List(..)
                | Type::Dict(..)
                | Type::Tuple(_)
                | Type::Future(_)
                | Type::Await(_)
                | Type::RRef(_)
        ) {
            let message = format!("`None` is no value of type {ty}; write {ty}? to allow it");
            return Err(self.error_at(self.current(), message));
        }
        self.advance();
        Ok(DefaultValue::None)
    }

    fn bool_default(&mut self) -> Result<DefaultValue> {
        let value = match self.text_of(self.current()) {
            "True" | "1" => true,
            "False" | "0" => false,
            _ => return Err(self.expected("True or False")),
        };
        self.advance();
        Ok(DefaultValue::Bool(value))
    }

    /// A whole number or the name of one.
    fn int_default(&mut self, ty: &Type) -> Result<DefaultValue> {
        if self.kind() == Kind::Ident {
            return self.symbol_default(ty);
        }
        let token = self.current();
        match self.number("a whole number")? {
            value @ DefaultValue::Int(_) => Ok(value),
            _ => Err(self.error_at(token, format!("expected a whole number for type {ty}"))),
        }
    }

    fn symbol_default(&mut self, ty: &Type) -> Result<DefaultValue> {
        let name = self.text_of(self.current());
        if DefaultValue::symbol_value(ty, name).is_none() {
            return Err(self.expected(&format!("a number or a name known for type {ty}")));
        }
        self.advance();
        Ok(DefaultValue::Symbol(name.to_owned()))
    }

    fn float_default(&mut self) -> Result<DefaultValue> {
        let token = self.current();
        match self.number("a number")? {
            DefaultValue::Int(value) => Ok(DefaultValue::Float(value as f64)),
            value @ DefaultValue::Float(_) => Ok(value),
            _ => Err(self.error_at(token, "expected a real number for type float")),
        }
    }

    fn complex_default(&mut self) -> Result<DefaultValue> {
        Ok(match self.number_with_imaginary()? {
            DefaultValue::Int(re) => DefaultValue::Complex { re: re as f64, im: 0.0 },
            DefaultValue::Float(re) => DefaultValue::Complex { re, im: 0.0 },
            value => value,
        })
    }

    /// A number of any kind, a bool, or a name; the kind written is the kind kept.
    fn scalar_default(&mut self, ty: &Type) -> Result<DefaultValue> {
        match self.text_of(self.current()) {
            "True" | "False" => self.bool_default(),
            "inf" | "nan" => self.number_with_imaginary(),
            _ if self.kind() == Kind::Ident => self.symbol_default(ty),
            _ => self.number_with_imaginary(),
        }
    }

    /// `1`, `1.`, `1j` or `1.+1j`.
    fn number_with_imaginary(&mut self) -> Result<DefaultValue> {
        let first = self.number("a number")?;
        let re = match first {
            DefaultValue::Int(re) => re as f64,
            DefaultValue::Float(re) => re,
            _ => return Ok(first),
        };
        let negative = match self.kind() {
            Kind::Plus => false,
            Kind::Minus => true,
            _ => return Ok(first),
        };
        self.advance();
        let token = self.current();
        match self.number("an imaginary number")? {
            DefaultValue::Complex { im, .. } => {
                Ok(DefaultValue::Complex { re, im: if negative { -im } else { im } })
            }
            _ => Err(self.error_at(token, "expected an imaginary number such as 2j")),
        }
    }

    /// A number with its sign: an `Int`, a `Float`, or a `Complex` without real part.
    fn number(&mut self, what: &str) -> Result<DefaultValue> {
        let negative = self.eat(Kind::Minus);
        let token = self.current();
        let text = self.text_of(token);
        let (digits, imaginary) = match text.strip_suffix('j') {
            Some(digits) => (digits, true),
            None => (text, false),
        };
        let is_number = token.kind == Kind::Number;
        if !is_number && !matches!(digits, "inf" | "nan") {
            return Err(self.expected(what));
        }
        if is_number && !imaginary && digits.bytes().all(|b| b.is_ascii_digit()) {
            return self.whole_number(token, negative);
        }
        // The lexer's numbers and these two names are all spelled as Rust's `parse` wants them.
        let magnitude: f64 = digits.parse().map_err(|_| self.expected(what))?;
        if is_number && magnitude.is_infinite() {
            return Err(self.error_at(token, "the number is too large for a float"));
        }
        self.advance();
        let value = if negative { -magnitude } else { magnitude };
        Ok(if imaginary { DefaultValue::Complex { re: 0.0, im: value } } else { DefaultValue::Float(value) })
    }

    fn whole_number(&mut self, token: Token, negative: bool) -> Result<DefaultValue> {
        let too_large = || self.error_at(token, "the number is too large for an int, which has 64 bits");
        let magnitude: u64 = self.text_of(token).parse().map_err(|_| too_large())?;
        let value =
            if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() };
        let value = value.ok_or_else(too_large)?;
        self.advance();
        Ok(DefaultValue::Int(value))
    }

    /// `[1, 2]`, or one value for a list of fixed size. A list of that size whose elements are all the same becomes the
    /// one value, so that `int[2] x=[1, 1]` and `int[2] x=1` are equal.
    fn list_default(&mut self, element: &Type, size: Option<u32>) -> Result<DefaultValue> {
        let token = self.current();
        if !self.eat(Kind::LBracket) {
            return match size {
                None => Err(self.expected("'[' of a list")),
                Some(_) if element.as_list().is_some() => Err(self.expected("'[' of a list")),
                Some(0) => Err(self.error_at(token, "one value cannot stand for a list of size 0")),
                Some(size) if size > MAX_BROADCAST => Err(self.error_at(
                    token,
                    format!("one value stands for at most {MAX_BROADCAST} elements, not {size}"),
                )),
                Some(_) => self.default_value(element),
            };
        }
        let mut items = Vec::new();
        if !self.eat(Kind::RBracket) {
            loop {
                items.push(self.default_value(element)?);
                if !self.eat(Kind::Comma) {
                    break;
                }
            }
            if !self.eat(Kind::RBracket) {
                return Err(self.expected("',' or ']' after a list element"));
            }
        }
        let collapses = size.is_some_and(|n| n <= MAX_BROADCAST && n as usize == items.len())
            // `None` alone would be the whole list's absence, and a nested list's element looks like the list.
            && items.first().is_some_and(|first| !matches!(first, DefaultValue::None | DefaultValue::List(_)))
            && element.as_list().is_none()
            && items.iter().all(|item| *item == items[0]);
        Ok(if collapses { items.swap_remove(0) } else { DefaultValue::List(items) })
    }

    /// `cpu`, `cuda:0`, or the same as a string; PyTorch reads the string and prints the name.
    fn device_default(&mut self) -> Result<DefaultValue> {
        let token = self.current();
        let name = match token.kind {
            Kind::Str => {
                let DefaultValue::Str(name) = self.str_default()? else {
                    return Err(self.error_at(token, "expected a device"));
                };
                name
            }
            Kind::Ident => {
                self.advance();
                let mut name = self.text_of(token).to_owned();
                if self.eat(Kind::Colon) {
                    name.push(':');
                    let index = self.expect(Kind::Number, "after the ':' of a device")?;
                    name.push_str(self.text_of(index));
                }
                name
            }
            _ => return Err(self.expected("a device such as cpu or \"cuda:0\"")),
        };
        if !is_device(&name) {
            return Err(self.error_at(token, "expected a device such as cpu or \"cuda:0\""));
        }
        Ok(DefaultValue::Symbol(name))
    }

    fn str_default(&mut self) -> Result<DefaultValue> {
        if self.kind() != Kind::Str {
            return Err(self.expected("a string"));
        }
        let token = self.advance();
        let literal = self.text_of(token);
        match unquote(&literal[1..literal.len() - 1]) {
            Ok(value) => Ok(DefaultValue::Str(value)),
            Err(message) => Err(self.error_at(token, message)),
        }
    }
}

/// A lower-case name, and an index after a colon where there is one.
pub(super) fn is_device(name: &str) -> bool {
    let (kind, index) = name.split_once(':').map_or((name, None), |(kind, index)| (kind, Some(index)));
    let mut letters = kind.bytes();
    letters.next().is_some_and(|b| b.is_ascii_lowercase())
        && letters.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && index.is_none_or(|i| !i.is_empty() && i.len() <= 5 && i.bytes().all(|b| b.is_ascii_digit()))
}

/// Resolves escapes: the usual letters, quotes, and three octal digits for a byte.
fn unquote(body: &str) -> std::result::Result<String, String> {
    if !body.contains('\\') {
        return Ok(body.to_owned());
    }
    let mut out = Vec::with_capacity(body.len());
    let mut bytes = body.bytes();
    while let Some(b) = bytes.next() {
        if b != b'\\' {
            out.push(b);
            continue;
        }
        out.push(match bytes.next() {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'a') => 0x07,
            Some(b'b') => 0x08,
            Some(b'v') => 0x0b,
            Some(b'f') => 0x0c,
            Some(quote @ (b'\\' | b'\'' | b'"')) => quote,
            Some(first @ b'0'..=b'3') => {
                let mut value = first - b'0';
                for _ in 0..2 {
                    match bytes.next() {
                        Some(digit @ b'0'..=b'7') => value = value * 8 + (digit - b'0'),
                        _ => return Err("expected three octal digits after '\\' in the string".to_owned()),
                    }
                }
                value
            }
            _ => return Err(UNKNOWN_ESCAPE.to_owned()),
        });
    }
    String::from_utf8(out).map_err(|_| "the octal escapes of the string are no UTF-8".to_owned())
}
