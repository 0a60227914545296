//! `ptr.library.Library`: operators defined and implemented in Python.

use c10::{DispatchKey, DispatchKeySet, Error};
use dispatch::{Dispatcher, KernelFunction, Library, LibraryKind, OperatorHandle, Stack};
use parking_lot::Mutex;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;

use super::{arguments, keys, torch_dispatch};
use crate::convert::errors;
use crate::raw::objects::{self, NewError, Text};
use crate::raw::{call_python, Res, TextArgument};

/// A library, which takes its registrations back when it is reset or dies.
#[pyclass(name = "_DispatchLibrary", module = "ptr._C", frozen, weakref, skip_from_py_object)]
struct PyLibrary {
    library: Mutex<Option<Library>>,
}

impl PyLibrary {
    fn with<R>(&self, body: impl FnOnce(&mut Library) -> c10::Result<R>) -> Res<R> {
        match &mut *self.library.lock() {
            Some(library) => Ok(body(library)?),
            None => Err(PyRuntimeError::error("this library has been destroyed").into()),
        }
    }
}

/// A tag, kept for ever: definitions refer to tags without owning them, and there are few.
fn static_tag(tag: String) -> &'static str {
    static TAGS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut tags = TAGS.lock();
    match tags.iter().find(|known| **known == tag) {
        Some(known) => known,
        None => {
            let tag: &'static str = tag.leak();
            tags.push(tag);
            tag
        }
    }
}

#[pymethods]
impl PyLibrary {
    #[new]
    fn new(kind: TextArgument<'_>, namespace: TextArgument<'_>) -> Res<Self> {
        let kind = match &*kind {
            "DEF" => LibraryKind::Def,
            "IMPL" => LibraryKind::Impl,
            "FRAGMENT" => LibraryKind::Fragment,
            _ => return Err(Error::value(format!("Unsupported library kind: {kind}")).into()),
        };
        Ok(PyLibrary { library: Mutex::new(Some(Library::new(kind, (*namespace).to_owned()))) })
    }

    /// Defines an operator and returns its name with overload, without namespace.
    #[pyo3(signature = (schema, tags = Vec::new()))]
    fn define(&self, schema: TextArgument<'_>, tags: Vec<String>) -> Res<Text<String>> {
        let tags: Vec<&'static str> = tags.into_iter().map(static_tag).collect();
        let op = self.with(|library| library.def(&schema, &tags))?;
        c10::check_memory()?;
        let name = op.name();
        Ok(Text(match name.overload.as_str() {
            "" => name.base_name().to_owned(),
            overload => format!("{}.{overload}", name.base_name()),
        }))
    }

    /// Registers a kernel: a Python function, or `None` for "go on with the next key".
    #[pyo3(signature = (name, dispatch_key, function, with_keyset = false))]
    fn r#impl(
        &self,
        name: TextArgument<'_>,
        dispatch_key: &Bound<'_, PyAny>,
        function: &Bound<'_, PyAny>,
        with_keyset: bool,
    ) -> Res<()> {
        let key = keys::extract(dispatch_key)?;
        let kernel = kernel(function, with_keyset)?;
        self.with(|library| library.impl_(&name, key, kernel))
    }

    /// Registers the kernel of all operators that have none for a key.
    #[pyo3(signature = (dispatch_key, function, with_keyset = false))]
    fn fallback(
        &self,
        dispatch_key: &Bound<'_, PyAny>,
        function: &Bound<'_, PyAny>,
        with_keyset: bool,
    ) -> Res<()> {
        let key = keys::extract(dispatch_key)?;
        let kernel = match function.is_none() {
            true => KernelFunction::fallthrough(),
            false => fallback_kernel(function, with_keyset)?,
        };
        self.with(|library| library.fallback(key, kernel))
    }

    /// Takes all registrations back.
    fn reset(&self) {
        let library = self.library.lock().take();
        drop(library);
    }
}

fn check_callable(function: &Bound<'_, PyAny>) -> Res<()> {
    if function.is_callable() {
        return Ok(());
    }
    let found = function.get_type().name()?;
    Err(PyTypeError::error(format!("Input function is required to be a callable but found type {found}"))
        .into())
}

fn kernel(function: &Bound<'_, PyAny>, with_keyset: bool) -> Res<KernelFunction> {
    if function.is_none() {
        return Ok(KernelFunction::fallthrough());
    }
    check_callable(function)?;
    let function = function.clone().unbind();
    Ok(KernelFunction::from_boxed_closure(move |op, keyset, stack| {
        call_python(|py| {
            call(function.bind(py), op, with_keyset.then_some(keyset), false, stack)
                .map_err(|raised| errors::to_core(raised.into()))
        })
    }))
}

/// As [`kernel`]; the function gets the operator as its first argument.
fn fallback_kernel(function: &Bound<'_, PyAny>, with_keyset: bool) -> Res<KernelFunction> {
    check_callable(function)?;
    let function = function.clone().unbind();
    Ok(KernelFunction::from_boxed_closure(move |op, keyset, stack| {
        call_python(|py| {
            call(function.bind(py), op, with_keyset.then_some(keyset), true, stack)
                .map_err(|raised| errors::to_core(raised.into()))
        })
    }))
}

fn call(
    function: &Bound<'_, PyAny>,
    op: OperatorHandle,
    keyset: Option<DispatchKeySet>,
    with_op: bool,
    stack: &mut Stack,
) -> Res<()> {
    let py = function.py();
    let values = arguments::pop(op, stack)?;
    let (args, kwargs) = arguments::to_python(py, op, &values)?;
    drop(values);
    let mut all: Vec<Bound<'_, PyAny>> = Vec::with_capacity(args.len() + 2);
    if let Some(keys) = keyset {
        all.push(Bound::new(py, keys::PyDispatchKeySet { keys })?.into_any());
    }
    if with_op {
        all.push(torch_dispatch::overload(py, op)?);
    }
    all.extend(args.iter());
    let result = function.call(objects::tuple(py, all)?, Some(&kwargs))?;
    arguments::push_result(op, &result, stack)
}

fn find(name: &str) -> Option<OperatorHandle> {
    let (base, overload) = name.split_once('.').unwrap_or((name, ""));
    Dispatcher::find_schema(base, overload)
}

/// Whether an operator of that name is defined.
#[pyfunction]
fn _dispatch_has_schema(name: TextArgument<'_>) -> bool {
    find(&name).is_some_and(|op| op.schema().is_ok())
}

/// Whether an operator has a kernel registered for exactly this key.
#[pyfunction]
fn _dispatch_has_kernel_for_dispatch_key(name: TextArgument<'_>, key: &Bound<'_, PyAny>) -> Res<bool> {
    let key: DispatchKey = keys::extract(key)?;
    match find(&name) {
        Some(op) => Ok(op.has_kernel_for_dispatch_key(key)),
        None => Err(Error::runtime(format!("operator {name} does not exist")).into()),
    }
}

/// Whether calls of an operator at this key find a kernel.
#[pyfunction]
fn _dispatch_has_computed_kernel_for_dispatch_key(
    name: TextArgument<'_>,
    key: &Bound<'_, PyAny>,
) -> Res<bool> {
    let key: DispatchKey = keys::extract(key)?;
    match find(&name) {
        Some(op) => Ok(op.has_computed_kernel_for_dispatch_key(key)),
        None => Err(Error::runtime(format!("operator {name} does not exist")).into()),
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyLibrary>()?;
    module.add_function(wrap_pyfunction!(_dispatch_has_schema, module)?)?;
    module.add_function(wrap_pyfunction!(_dispatch_has_kernel_for_dispatch_key, module)?)?;
    module.add_function(wrap_pyfunction!(_dispatch_has_computed_kernel_for_dispatch_key, module)?)
}
