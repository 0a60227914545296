//! The argument parser: a Python call onto a stack, for the first signature that fits.

use dispatch::{IValue, Stack};
use pyo3::ffi;
use pyo3::prelude::*;
use smallvec::SmallVec;

use super::convert_argument::{at, convert, is_int_item, unpack_ints};
use super::signature::{Kind, Signature, Slot};
use super::{torch_function, OpTable};
use crate::raw::{borrow, Res};

/// The arguments of a vectorcall.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a> {
    /// Positional arguments, then the values of the keyword arguments.
    pub(crate) values: &'a [*mut ffi::PyObject],
    pub(crate) num_positional: usize,
    /// A tuple of names, or null.
    pub(crate) names: *mut ffi::PyObject,
}

impl<'a> Args<'a> {
    /// Positional arguments only.
    pub(crate) fn positional(values: &'a [*mut ffi::PyObject]) -> Args<'a> {
        Args { values, num_positional: values.len(), names: std::ptr::null_mut() }
    }

    /// How many keyword arguments there are.
    #[inline]
    pub(crate) fn num_keywords(&self) -> usize {
        self.values.len() - self.num_positional
    }

    /// The name of keyword argument `i`.
    pub(crate) fn keyword(&self, i: usize) -> *mut ffi::PyObject {
        // SAFETY: CPython gives as many names as there are values behind the positional ones.
        unsafe { ffi::PyTuple_GET_ITEM(self.names, i as ffi::Py_ssize_t) }
    }

    /// The value of the keyword argument with one of the given names.
    #[inline]
    fn find(
        &self,
        names: &mut dyn Iterator<Item = *mut ffi::PyObject>,
        by_text: bool,
    ) -> Option<*mut ffi::PyObject> {
        for name in names {
            for i in 0..self.num_keywords() {
                let keyword = self.keyword(i);
                // SAFETY: both are strings.
                let same_text = || unsafe { ffi::PyUnicode_Compare(keyword, name) } == 0;
                if std::ptr::eq(keyword, name) || (by_text && same_text()) {
                    return Some(self.values[self.num_positional + i]);
                }
            }
        }
        None
    }
}

/// What converting arguments finds out beside their values.
pub(super) struct Context {
    /// The name of the function, for messages.
    pub(super) function: &'static str,
    /// Arguments with a `__torch_function__` of their own, in order, one per class.
    pub(super) overloaded: SmallVec<[*mut ffi::PyObject; 2]>,
    /// The number of the item of a sequence that did not fit.
    pub(super) failed_item: Option<usize>,
}

impl Context {
    /// For arguments of the given function.
    pub(super) fn new(function: &'static str) -> Context {
        Context { function, overloaded: SmallVec::new(), failed_item: None }
    }

    /// Remembers an argument whose class overrides functions; subclasses go before their bases.
    pub(super) fn add_overloaded(&mut self, object: &Bound<'_, PyAny>) {
        torch_function::insert_overloaded(&mut self.overloaded, object.as_ptr());
    }
}

/// A call while it is parsed.
pub(crate) struct Call<'a, 'py> {
    pub(crate) py: Python<'py>,
    pub(super) table: &'a OpTable,
    /// The tensor that a method is called on.
    pub(crate) self_: Option<Borrowed<'a, 'py, PyAny>>,
    pub(crate) args: Args<'a>,
    pub(super) context: Context,
}

/// A call that fits a signature.
pub(super) struct Parsed<'s> {
    pub(super) signature: &'s Signature,
    /// The value of `out=`, or None.
    pub(super) out: IValue,
    pub(super) requires_grad: bool,
}

/// Why a call does not fit a signature.
pub(super) enum Misfit {
    /// Too many positional arguments.
    ExtraPositional,
    /// Parameter `i` has no value.
    Missing(usize),
    /// Parameter `i` got an object that it does not take.
    WrongType { param: usize, object: *mut ffi::PyObject, keyword: bool, position: usize },
    /// Keyword arguments are left over.
    ExtraKeywords,
}

impl<'a, 'py> Call<'a, 'py> {
    pub(crate) fn new(
        py: Python<'py>,
        table: &'a OpTable,
        self_: Option<Borrowed<'a, 'py, PyAny>>,
        args: Args<'a>,
    ) -> Self {
        Call { py, table, self_, args, context: Context::new(table.name()) }
    }

    /// The name of the function, for messages.
    pub(super) fn function_name(&self) -> &'static str {
        self.table.name()
    }

    /// Whether the caller gives a keyword argument of this name.
    #[cold]
    pub(super) fn names(&self, name: &str) -> bool {
        // SAFETY: keywords are strings that live as long as the call.
        (0..self.args.num_keywords())
            .any(|i| unsafe { borrow(self.py, self.args.keyword(i)) }.eq(name).unwrap_or(false))
    }

    /// Puts the arguments onto the stack as the first signature that fits wants them.
    #[inline]
    pub(super) fn parse<'s>(
        &mut self,
        signatures: &'s [Signature],
        stack: &mut Stack,
    ) -> Res<Option<Parsed<'s>>> {
        for signature in signatures {
            if let Ok(parsed) = self.try_signature(signature, stack, false)? {
                return Ok(Some(parsed));
            }
        }
        if self.args.num_keywords() > 0 {
            // Keyword names that are not interned are found by their text.
            for signature in signatures {
                if let Ok(parsed) = self.try_signature(signature, stack, true)? {
                    return Ok(Some(parsed));
                }
            }
        }
        Ok(None)
    }

    /// Tries one signature.
    pub(super) fn try_signature<'s>(
        &mut self,
        signature: &'s Signature,
        stack: &mut Stack,
        by_text: bool,
    ) -> Res<Result<Parsed<'s>, Misfit>> {
        let args = self.args;
        let nargs = args.num_positional;
        if nargs > signature.max_positional && !signature.varargs_ints {
            return Ok(Err(Misfit::ExtraPositional));
        }
        self.context.overloaded.clear();
        stack.clear();
        for _ in 0..signature.num_arguments {
            stack.push(IValue::None);
        }
        if let (Some(self_), Some(index)) = (self.self_, signature.self_argument) {
            if !crate::tensor::is_exact(&self_) && torch_function::overrides(&self_) {
                self.context.add_overloaded(&self_);
            }
            stack[index] = crate::tensor::get(&self_).cloned().into();
        }
        let mut parsed = Parsed { signature, out: IValue::None, requires_grad: false };
        let mut position = 0;
        let mut keywords_left = args.num_keywords();
        for (i, param) in signature.params.iter().enumerate() {
            let mut is_keyword = false;
            let object = if position < nargs {
                if param.keyword_only {
                    return Ok(Err(Misfit::ExtraPositional));
                }
                Some(args.values[position])
            } else if keywords_left > 0 {
                is_keyword = true;
                let mut names = std::iter::once(param.name).chain(param.aliases.iter().copied());
                args.find(&mut names, by_text)
            } else {
                None
            };
            let mut value = IValue::None;
            match object {
                None => match &param.default {
                    Some(default) => value = default.clone(),
                    None => return Ok(Err(Misfit::Missing(i))),
                },
                Some(object) => {
                    // SAFETY: the caller of a vectorcall keeps the arguments alive.
                    let borrowed = unsafe { at(self.py, object) };
                    if borrowed.is_none() && param.allow_none {
                        // Stays None.
                    } else if borrowed.is_none() && param.default_for_none {
                        value.clone_from(param.default.as_ref().unwrap_or(&IValue::None));
                    } else if convert(param, i, &borrowed, &mut self.context, &mut value)? {
                        // Converted.
                    } else if signature.varargs_ints && position == 0 && !is_keyword && is_int_item(&borrowed)
                    {
                        let Kind::IntList { symbolic, .. } = param.kind else {
                            return Ok(Err(Misfit::ExtraPositional));
                        };
                        crate::raw::check_memory_for(nargs)?;
                        let items: SmallVec<[Bound<'_, PyAny>; 8]> = args.values[..nargs]
                            .iter()
                            // SAFETY: as above.
                            .map(|&o| unsafe { at(self.py, o) }.to_owned())
                            .collect();
                        value = unpack_ints(self.function_name(), param.text, &items, symbolic)?;
                        position = nargs - 1;
                    } else {
                        return Ok(Err(Misfit::WrongType {
                            param: i,
                            object,
                            keyword: is_keyword,
                            position,
                        }));
                    }
                    if is_keyword {
                        keywords_left -= 1;
                    } else {
                        position += 1;
                    }
                }
            }
            match param.slot {
                Slot::Argument(index) => stack[index] = value,
                Slot::Out => parsed.out = value,
                Slot::RequiresGrad => parsed.requires_grad = matches!(value, IValue::Bool(true)),
            }
        }
        if position < nargs {
            return Ok(Err(Misfit::ExtraPositional));
        }
        if keywords_left > 0 {
            return Ok(Err(Misfit::ExtraKeywords));
        }
        if signature.op.is_none() && parsed.out.is_none() {
            return Ok(Err(Misfit::ExtraKeywords));
        }
        Ok(Ok(parsed))
    }
}
