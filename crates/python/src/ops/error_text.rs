//! What to say about a call that fits no signature. The texts are the ones that PyTorch's users know.

use std::fmt::Write;

use dispatch::Stack;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::convert_argument::{at, convert, sequence};
use super::parser::{Call, Misfit};
use super::signature::{Kind, Signature, Slot};
use crate::raw::objects::NewError;
use crate::raw::{Raised, Res};

/// The error for a call that none of the signatures takes.
#[cold]
pub(super) fn no_match(call: &mut Call<'_, '_>, signatures: &[Signature]) -> Raised {
    match explain(call, signatures) {
        Ok(text) => PyTypeError::error(text).into(),
        Err(raised) => raised,
    }
}

fn explain(call: &mut Call<'_, '_>, signatures: &[Signature]) -> Res<String> {
    if let [only] = signatures {
        return explain_one(call, only);
    }
    let given = call.args.values.len();
    let mut plausible = signatures.iter().filter(|s| given >= s.min_args && given <= s.params.len());
    if let (Some(one), None) = (plausible.next(), plausible.next()) {
        return explain_one(call, one);
    }
    let mut text = format!(
        "{}() received an invalid combination of arguments - got {}, but expected one of:\n",
        call.function_name(),
        given_types(call, None)?
    );
    for signature in signatures {
        let _ = writeln!(text, " * {}", signature_text(signature));
        if signature.params.len().max(1) == given {
            let unmatched = unmatched_keywords(call, signature)?;
            if unmatched.is_empty() {
                let types = given_types(call, Some(signature))?;
                let _ = writeln!(
                    text,
                    "      didn't match because some of the arguments have invalid types: {types}"
                );
            } else {
                let _ = writeln!(
                    text,
                    "      didn't match because some of the keywords were incorrect: {}",
                    unmatched.join(", ")
                );
            }
        }
    }
    Ok(text)
}

fn explain_one(call: &mut Call<'_, '_>, signature: &Signature) -> Res<String> {
    let name = call.function_name();
    let nargs = call.args.num_positional;
    if call.self_.is_some() && signature.params.is_empty() {
        return Ok(if nargs > 0 {
            format!("TensorBase.{name}() takes no arguments ({nargs} given)")
        } else {
            format!("TensorBase.{name}() takes no keyword arguments")
        });
    }
    let mut stack = Stack::new();
    Ok(match call.try_signature(signature, &mut stack, true)? {
        Err(Misfit::ExtraPositional) => {
            let max = signature.max_positional;
            let min = signature.min_args.min(max);
            let were = if nargs == 1 { "was" } else { "were" };
            let plural = if max == 1 { "" } else { "s" };
            if min == max {
                format!("{name}() takes {max} positional argument{plural} but {nargs} {were} given")
            } else {
                format!("{name}() takes from {min} to {max} positional arguments but {nargs} were given")
            }
        }
        Err(Misfit::Missing(first)) => {
            let missing: Vec<String> = signature.params[first..]
                .iter()
                .filter(|p| p.default.is_none())
                .map(|p| format!("\"{}\"", p.text))
                .collect();
            // The plural is the wrong way round in PyTorch, and programs match on it.
            let plural = if missing.len() == 1 { "s" } else { "" };
            format!(
                "{name}() missing {} required positional argument{plural}: {}",
                missing.len(),
                missing.join(", ")
            )
        }
        Err(Misfit::WrongType { param, object, keyword, position }) => {
            wrong_type(call, signature, param, object, keyword, position)?
        }
        Err(Misfit::ExtraKeywords) | Ok(_) => extra_keyword(call, signature)?,
    })
}

fn wrong_type(
    call: &mut Call<'_, '_>,
    signature: &Signature,
    param: usize,
    object: *mut ffi::PyObject,
    keyword: bool,
    position: usize,
) -> Res<String> {
    let name = call.function_name();
    let param = &signature.params[param];
    // SAFETY: the arguments live as long as the call.
    let object = unsafe { at(call.py, object) };
    let place = if keyword { String::new() } else { format!(" (position {})", position + 1) };
    let expected = param.kind.type_name();
    if let (Some(items), Some(index)) = (sequence(&object).ok().flatten(), call.context.failed_item) {
        if let Some(item) = items.get(index) {
            let found = type_name(item)?;
            return Ok(format!(
                "{name}(): argument '{}'{place} must be {expected}, but found element of type {found} at pos {index}",
                param.text
            ));
        }
    }
    let found = type_name(&object)?;
    Ok(format!("{name}(): argument '{}'{place} must be {expected}, not {found}", param.text))
}

fn extra_keyword(call: &Call<'_, '_>, signature: &Signature) -> Res<String> {
    let name = call.function_name();
    for i in 0..call.args.num_keywords() {
        let keyword = keyword_text(call, i)?;
        match signature.params.iter().position(|p| p.text == keyword) {
            None => return Ok(format!("{name}() got an unexpected keyword argument '{keyword}'")),
            Some(index) if index < call.args.num_positional => {
                return Ok(format!("{name}() got multiple values for argument '{keyword}'"));
            }
            Some(_) => {}
        }
    }
    Ok(format!("{name}(): invalid keyword arguments"))
}

fn unmatched_keywords(call: &Call<'_, '_>, signature: &Signature) -> Res<Vec<String>> {
    let mut unmatched = Vec::new();
    for i in 0..call.args.num_keywords() {
        let keyword = keyword_text(call, i)?;
        if !signature.params.iter().any(|p| p.text == keyword) {
            unmatched.push(keyword);
        }
    }
    Ok(unmatched)
}

fn keyword_text(call: &Call<'_, '_>, i: usize) -> Res<String> {
    // SAFETY: the names live as long as the call.
    let name = unsafe { at(call.py, call.args.keyword(i)) };
    let name = name.cast::<PyString>()?;
    Ok(crate::raw::text_of(&name)?.to_owned())
}

/// The types of the arguments given; those that a signature does not take are marked.
fn given_types(call: &mut Call<'_, '_>, signature: Option<&Signature>) -> Res<String> {
    let mut text = String::from("(");
    let args = call.args;
    for (i, &object) in args.values.iter().enumerate() {
        // SAFETY: the arguments live as long as the call.
        let object = unsafe { at(call.py, object) };
        let keyword = match i.checked_sub(args.num_positional) {
            Some(k) => Some(keyword_text(call, k)?),
            None => None,
        };
        let mut type_name = type_name(&object)?;
        if let Some(signature) = signature {
            let param = match &keyword {
                Some(keyword) => signature.params.iter().find(|p| p.text == keyword.as_str()),
                None => signature.params.get(i),
            };
            let mut value = dispatch::IValue::None;
            let fits = match param {
                Some(param) => {
                    (param.allow_none && object.is_none())
                        || convert(param, i, &object, &mut call.context, &mut value)?
                }
                None => false,
            };
            if !fits {
                type_name = format!("!{type_name}!");
            }
        }
        match keyword {
            Some(keyword) => {
                let _ = write!(text, "{keyword}={type_name}, ");
            }
            None => {
                text.push_str(&type_name);
                if i + 1 < args.values.len() {
                    text.push_str(", ");
                }
            }
        }
    }
    text.push(')');
    Ok(text)
}

/// The name of an object's class, as PyTorch shows it: with the types of the items, for sequences.
fn type_name(object: &Bound<'_, PyAny>) -> Res<String> {
    let class: Bound<'_, PyType> = object.get_type();
    let name = class.name()?.to_string();
    let module = class.module()?.to_string();
    Ok(match (module.as_str(), name.as_str()) {
        ("ptr", "Tensor") => name,
        ("ptr", _) => format!("torch.{name}"),
        _ => name,
    })
}

/// A signature as Python would write it.
fn signature_text(signature: &Signature) -> String {
    let mut text = String::from("(");
    let mut keyword_only = false;
    for (i, param) in signature.params.iter().enumerate() {
        if i > 0 {
            text.push_str(", ");
        }
        if param.keyword_only && !keyword_only {
            keyword_only = true;
            text.push_str("*, ");
        }
        let outs = param.slot == Slot::Out && param.kind == Kind::TensorList;
        let type_name = if outs { "tuple of Tensors" } else { param.kind.type_name() };
        let _ = write!(text, "{type_name} {}", param.text);
        if let Some(default) = &param.default_text {
            let _ = write!(text, " = {default}");
        }
    }
    text.push(')');
    text
}
