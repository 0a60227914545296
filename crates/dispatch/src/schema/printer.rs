//! Writes schemas in PyTorch's spelling. What it writes, the parser reads back as the same value.

use std::fmt::{Display, Formatter, Result, Write};

use super::alias::{AliasInfo, AliasSet};
use super::argument::Argument;
use super::default::DefaultValue;
use super::function_schema::FunctionSchema;
use super::parse_default::is_device;
use super::type_::Type;

pub(super) fn write_schema(f: &mut Formatter<'_>, schema: &FunctionSchema) -> Result {
    write!(f, "{}(", schema.name)?;
    let mut seen_kwarg_only = false;
    for (i, argument) in schema.arguments.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        if argument.kwarg_only && !seen_kwarg_only {
            f.write_str("*, ")?;
            seen_kwarg_only = true;
        }
        write_argument(f, argument)?;
    }
    if schema.is_vararg {
        f.write_str(if schema.arguments.is_empty() { "..." } else { ", ..." })?;
    }
    f.write_str(") -> ")?;
    write_returns(f, schema)
}

/// One return stands alone; but a tuple is put in parentheses, as its own would be read as those of a list of returns.
fn write_returns(f: &mut Formatter<'_>, schema: &FunctionSchema) -> Result {
    match (schema.returns.as_slice(), schema.is_varret) {
        ([], true) => return f.write_str("..."),
        ([only], false) if !starts_with_paren(&only.ty) => return write_argument(f, only),
        _ => {}
    }
    f.write_char('(')?;
    write_separated(f, &schema.returns, ", ")?;
    if schema.is_varret {
        f.write_str(", ...")?;
    }
    f.write_char(')')
}

fn starts_with_paren(ty: &Type) -> bool {
    match ty {
        Type::Tuple(_) => true,
        Type::Optional(inner) | Type::List(inner, _) => starts_with_paren(inner),
        _ => false,
    }
}

pub(super) fn write_argument(f: &mut Formatter<'_>, argument: &Argument) -> Result {
    write_type(f, &argument.ty, argument.alias.as_ref())?;
    if !argument.name.is_empty() {
        write!(f, " {}", argument.name)?;
    }
    if let Some(default) = &argument.default {
        f.write_char('=')?;
        write_default(f, &argument.ty, default)?;
    }
    Ok(())
}

/// A type with its annotation, which for a list is split between elements and brackets.
pub(super) fn write_type(f: &mut Formatter<'_>, ty: &Type, alias: Option<&AliasInfo>) -> Result {
    match ty {
        Type::Optional(inner) => {
            write_type(f, inner, alias)?;
            return f.write_char('?');
        }
        Type::List(element, size) => {
            write_type(f, element, alias.and_then(|a| a.contained.first()))?;
            match size {
                Some(size) => write!(f, "[{size}]")?,
                None => f.write_str("[]")?,
            }
        }
        Type::Tuple(types) => write_parenthesized(f, "", types)?,
        Type::Union(types) => write_parenthesized(f, "Union", types)?,
        Type::Dict(key, value) => write!(f, "Dict({key}, {value})")?,
        Type::Future(inner) => write!(f, "Future({inner})")?,
        Type::Await(inner) => write!(f, "Await({inner})")?,
        Type::RRef(inner) => write!(f, "RRef({inner})")?,
        plain => f.write_str(plain.name().unwrap_or_default())?,
    }
    alias.map_or(Ok(()), |alias| write_alias(f, alias))
}

fn write_parenthesized(f: &mut Formatter<'_>, prefix: &str, types: &[Type]) -> Result {
    write!(f, "{prefix}(")?;
    write_separated(f, types, ", ")?;
    f.write_char(')')
}

fn write_separated<T: Display>(f: &mut Formatter<'_>, items: &[T], separator: &str) -> Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(separator)?;
        }
        item.fmt(f)?;
    }
    Ok(())
}

/// The annotation itself, without that of elements.
pub(super) fn write_alias(f: &mut Formatter<'_>, alias: &AliasInfo) -> Result {
    if alias.before.is_empty() && alias.after.is_empty() {
        return Ok(());
    }
    // Anonymous sets are numbered by the parser and have no spelling of their own.
    if alias.is_write && alias.before == alias.after && alias.before.iter().all(|set| set.starts_with('$')) {
        return f.write_char('!');
    }
    f.write_char('(')?;
    write_sets(f, &alias.before)?;
    if alias.is_write {
        f.write_char('!')?;
    }
    if alias.before != alias.after {
        f.write_str(" -> ")?;
        write_sets(f, &alias.after)?;
    }
    f.write_char(')')
}

fn write_sets(f: &mut Formatter<'_>, sets: &AliasSet) -> Result {
    write_separated(f, sets, "|")
}

/// A default as PyTorch shows it for that type: one value for a list is spelled out unless it is of `int`s, as
/// `int[2] x=1` and `SymInt[2] x=[1, 1]`, `int[1] x=[1]`.
fn write_default(f: &mut Formatter<'_>, ty: &Type, value: &DefaultValue) -> Result {
    match (ty, value) {
        (_, DefaultValue::None) => f.write_str("None"),
        (Type::List(element, _), DefaultValue::List(items)) => write_list(f, element, items),
        (Type::List(element, Some(size)), one) if **element != Type::Int || *size == 1 => {
            f.write_char('[')?;
            for i in 0..*size {
                if i > 0 {
                    f.write_str(", ")?;
                }
                write_default(f, element, one)?;
            }
            f.write_char(']')
        }
        (Type::List(element, _), one) => write_default(f, element, one),
        (Type::Optional(inner), DefaultValue::List(items)) => match &**inner {
            Type::List(element, _) => write_list(f, element, items),
            _ => write_value(f, value),
        },
        (Type::Optional(inner), one) => match &**inner {
            Type::List(element, _) => write_default(f, element, one),
            inner => write_default(f, inner, one),
        },
        (Type::Device, DefaultValue::Symbol(name)) if !is_device(name) => write_quoted(f, name),
        _ => write_value(f, value),
    }
}

fn write_list(f: &mut Formatter<'_>, element: &Type, items: &[DefaultValue]) -> Result {
    f.write_char('[')?;
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        write_default(f, element, item)?;
    }
    f.write_char(']')
}

/// A value without regard to a type.
pub(super) fn write_value(f: &mut Formatter<'_>, value: &DefaultValue) -> Result {
    match value {
        DefaultValue::None => f.write_str("None"),
        DefaultValue::Bool(value) => f.write_str(if *value { "True" } else { "False" }),
        DefaultValue::Int(value) => write!(f, "{value}"),
        DefaultValue::Float(value) => write_float(f, *value),
        DefaultValue::Complex { re, im } => {
            write_float(f, *re)?;
            if !im.is_sign_negative() || im.is_nan() {
                f.write_char('+')?;
            }
            write_float(f, *im)?;
            f.write_char('j')
        }
        DefaultValue::Str(text) => write_quoted(f, text),
        DefaultValue::List(items) => {
            f.write_char('[')?;
            write_separated(f, items, ", ")?;
            f.write_char(']')
        }
        DefaultValue::Symbol(name) => f.write_str(name),
    }
}

/// Significant digits that tell any two doubles apart.
const MAX_DIGITS10: i32 = 17;

/// `2.` for whole numbers of 64 bits, otherwise as C's `%.17g`. A negative zero keeps its sign, which PyTorch drops.
fn write_float(f: &mut Formatter<'_>, value: f64) -> Result {
    // 2^63, the first float above i64.
    const INT_LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if value.is_nan() {
        return f.write_str("nan");
    }
    if value.is_sign_negative() {
        f.write_char('-')?;
    }
    let magnitude = value.abs();
    if magnitude.is_infinite() {
        return f.write_str("inf");
    }
    if magnitude < INT_LIMIT && magnitude.fract() == 0.0 {
        return write!(f, "{}.", magnitude as u64);
    }
    let scientific = format!("{magnitude:.*e}", MAX_DIGITS10 as usize - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..MAX_DIGITS10).contains(&exponent) {
        let fixed = format!("{magnitude:.*}", (MAX_DIGITS10 - 1 - exponent) as usize);
        return f.write_str(trim_zeros(&fixed));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    write!(f, "{}e{sign}{:02}", trim_zeros(mantissa), exponent.abs())
}

fn trim_zeros(digits: &str) -> &str {
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    }
}

/// A string in double quotes; quotes and what is not printable ASCII are escaped.
fn write_quoted(f: &mut Formatter<'_>, text: &str) -> Result {
    f.write_char('"')?;
    for byte in text.bytes() {
        match byte {
            b'\\' | b'\'' | b'"' => write!(f, "\\{}", byte as char)?,
            0x07 => f.write_str("\\a")?,
            0x08 => f.write_str("\\b")?,
            0x0b => f.write_str("\\v")?,
            0x0c => f.write_str("\\f")?,
            b'\n' => f.write_str("\\n")?,
            b'\r' => f.write_str("\\r")?,
            b'\t' => f.write_str("\\t")?,
            b' '..=b'~' => f.write_char(byte as char)?,
            _ => write!(f, "\\{byte:03o}")?,
        }
    }
    f.write_char('"')
}
