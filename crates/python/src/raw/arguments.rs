//! Arguments of hand-written methods with the fast calling convention.

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::{borrow, Res};
use crate::raw::objects::NewError;

/// Sorts the arguments of a call by parameter.
///
/// `names` are all parameters; the first `positional` of them may be given by position.
///
/// # Safety
///
/// `args`, `nargs` and `keywords` are what CPython passed to a `METH_FASTCALL | METH_KEYWORDS` function.
pub(crate) unsafe fn unpack<'a, 'py, const N: usize>(
    py: Python<'py>,
    function: &str,
    names: [&str; N],
    positional: usize,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> Res<[Option<Borrowed<'a, 'py, PyAny>>; N]> {
    let mut values = [const { None }; N];
    let nargs = nargs as usize;
    if nargs > positional {
        let plural = if positional == 1 { "" } else { "s" };
        let were = if nargs == 1 { "was" } else { "were" };
        let text = format!(
            "{function}() takes from 0 to {positional} positional argument{plural} but {nargs} {were} given"
        );
        return Err(PyTypeError::error(text).into());
    }
    for (i, value) in values.iter_mut().enumerate().take(nargs) {
        // SAFETY: the caller keeps the arguments alive during the call.
        *value = Some(unsafe { borrow(py, *args.add(i)) });
    }
    let num_keywords = match keywords.is_null() {
        true => 0,
        // SAFETY: a tuple of strings, with as many values behind the positional ones.
        false => unsafe { ffi::PyTuple_GET_SIZE(keywords) as usize },
    };
    for k in 0..num_keywords {
        // SAFETY: as above.
        let (name, value) = unsafe {
            (
                borrow(py, ffi::PyTuple_GET_ITEM(keywords, k as ffi::Py_ssize_t)),
                borrow(py, *args.add(nargs + k)),
            )
        };
        let name = name.cast::<PyString>()?;
        let name = super::text_of(&name)?.to_owned();
        match names.iter().position(|n| *n == name) {
            Some(i) if values[i].is_none() => values[i] = Some(value),
            Some(_) => {
                return Err(PyTypeError::error(format!(
                    "{function}() got multiple values for argument '{name}'"
                ))
                .into())
            }
            None => {
                return Err(PyTypeError::error(format!(
                    "{function}() got an unexpected keyword argument '{name}'"
                ))
                .into())
            }
        }
    }
    Ok(values)
}

/// The error for an argument of the wrong type.
#[cold]
pub(crate) fn wrong_type(
    function: &str,
    argument: &str,
    position: Option<usize>,
    expected: &str,
    object: &Bound<'_, PyAny>,
) -> super::Raised {
    let place = position.map(|p| format!(" (position {p})")).unwrap_or_default();
    match object.get_type().name() {
        Ok(found) => PyTypeError::error(format!(
            "{function}(): argument '{argument}'{place} must be {expected}, not {found}"
        ))
        .into(),
        Err(error) => error.into(),
    }
}

/// A flag that is true or false and nothing else.
pub(crate) fn flag(
    function: &str,
    argument: &str,
    position: Option<usize>,
    object: Option<&Bound<'_, PyAny>>,
    default: bool,
) -> Res<bool> {
    match object {
        None => Ok(default),
        Some(object) => match object.cast::<pyo3::types::PyBool>() {
            Ok(value) => Ok(value.is_true()),
            Err(_) => Err(wrong_type(function, argument, position, "bool", object)),
        },
    }
}
