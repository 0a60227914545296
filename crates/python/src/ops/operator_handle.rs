//! Operators by their full name: what `ptr.ops.aten.add.Tensor` is made of.

#![expect(clippy::disallowed_methods, reason = "what `#[pyclass(eq)]` writes: a bool, which exists already")]

use c10::{DispatchKey, DispatchKeySet};
use dispatch::schema::{Argument, FunctionSchema};
use dispatch::{Dispatcher, IValue, OperatorHandle, Stack};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::convert_argument::convert_alone;
use super::{call, signature};
use crate::convert::{ivalue, warnings};
use crate::raw::objects::{self, NewError, Objects, Text, Texts};
use crate::raw::{Res, TextArgument};
use crate::tensor;

/// A registered operator.
#[pyclass(name = "OperatorHandle", module = "ptr._C", frozen, eq, hash, skip_from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PyOperatorHandle {
    pub(crate) op: OperatorHandle,
}

#[pymethods]
impl PyOperatorHandle {
    /// The name with namespace and overload.
    fn name(&self) -> Text<String> {
        Text(self.op.name().to_string())
    }

    /// The schema.
    #[getter]
    fn schema(&self) -> Res<PyFunctionSchema> {
        Ok(PyFunctionSchema { schema: self.op.schema()?.resolved() })
    }

    /// The tags of the definition.
    #[getter]
    fn tags(&self) -> Texts<&'static str> {
        Texts(self.op.tags().to_vec())
    }

    /// Whether a kernel is registered for exactly this key.
    fn has_kernel_for_dispatch_key(&self, key: TextArgument<'_>) -> Res<bool> {
        Ok(self.op.has_kernel_for_dispatch_key(key.parse::<DispatchKey>()?))
    }

    /// Whether calls at this key find a kernel.
    fn has_computed_kernel_for_dispatch_key(&self, key: TextArgument<'_>) -> Res<bool> {
        Ok(self.op.has_computed_kernel_for_dispatch_key(key.parse::<DispatchKey>()?))
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Res<Bound<'py, PyAny>> {
        call_boxed(py, self.op, args, kwargs, |stack| call::run(py, self.op, stack))
    }

    /// Goes on with a call at the keys of a raw key set.
    #[pyo3(signature = (keyset, *args, **kwargs))]
    fn redispatch<'py>(
        &self,
        py: Python<'py>,
        keyset: u64,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Res<Bound<'py, PyAny>> {
        call_boxed(py, self.op, args, kwargs, |stack| {
            Ok(self.op.redispatch_boxed(DispatchKeySet::from_raw_repr(keyset), stack)?)
        })
    }

    fn __repr__(&self) -> Text<String> {
        Text(format!("<OperatorHandle {}>", self.op.name()))
    }
}

/// Calls an operator with Python arguments that follow its schema exactly.
pub(crate) fn call_boxed<'py>(
    py: Python<'py>,
    op: OperatorHandle,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    run: impl FnOnce(&mut Stack) -> Res<()>,
) -> Res<Bound<'py, PyAny>> {
    let schema = op.schema()?;
    let mut stack = Stack::new();
    let mut used = 0;
    for (i, argument) in schema.arguments.iter().enumerate() {
        let given = match args.get_item(i) {
            Ok(given) if !argument.kwarg_only => Some(given),
            _ => match kwargs {
                Some(kwargs) => kwargs.get_item(&argument.name)?.inspect(|_| used += 1),
                None => None,
            },
        };
        stack.push(match given {
            Some(given) => argument_value(schema, argument, i, &given)?,
            None => match &argument.default {
                Some(default) => signature::default_value(default, &argument.ty)?,
                None => {
                    let text = format!(
                        "{}() is missing value for argument '{}'. Declaration: {schema}",
                        schema.name, argument.name
                    );
                    return Err(PyRuntimeError::error(text).into());
                }
            },
        });
    }
    if args.len() > schema.num_positional() || used < kwargs.map_or(0, |k| k.len()) {
        let given = args.len() + kwargs.map_or(0, |k| k.len());
        let text = format!(
            "{}() got unknown or too many arguments ({given} given). Declaration: {schema}",
            schema.name
        );
        return Err(PyRuntimeError::error(text).into());
    }
    run(&mut stack)?;
    warnings::emit_pending()?;
    Ok(match stack.len() {
        0 => py.None().into_bound(py),
        1 => list_return(py, std::mem::take(&mut stack[0]))?,
        n => objects::tuple_of(py, n, |i| Ok(list_return(py, std::mem::take(&mut stack[i]))?.into_ptr()))?,
    })
}

/// Operators called by their full name return `Tensor[]` as a list.
fn list_return(py: Python<'_>, value: IValue) -> Res<Bound<'_, PyAny>> {
    match value {
        IValue::TensorList(list) => objects::list_of(py, list.len(), |i| tensor::wrap(list[i].clone())),
        other => ivalue::into_bound(py, other),
    }
}

/// One argument. The value must be of the schema's type; numbers stand for tensors, as in PyTorch.
fn argument_value(
    schema: &FunctionSchema,
    argument: &Argument,
    i: usize,
    object: &Bound<'_, PyAny>,
) -> Res<IValue> {
    match convert_alone(&argument.ty, i, object)? {
        Some(value) => Ok(value),
        None => {
            let found = object.get_type().name()?;
            let text = format!(
                "{}() Expected a value of type '{}' for argument '{}' but instead found type '{found}'.\nPosition: {i}\nDeclaration: {schema}",
                schema.name, argument.ty, argument.name
            );
            Err(PyRuntimeError::error(text).into())
        }
    }
}

/// A schema.
#[pyclass(name = "FunctionSchema", module = "ptr._C", frozen, eq, skip_from_py_object)]
#[derive(PartialEq)]
pub(crate) struct PyFunctionSchema {
    schema: FunctionSchema,
}

#[pymethods]
impl PyFunctionSchema {
    #[getter]
    fn name(&self) -> Text<String> {
        Text(self.schema.name.name.to_string())
    }
    #[getter]
    fn overload_name(&self) -> Text<String> {
        Text(self.schema.name.overload.to_string())
    }
    #[getter]
    fn is_mutable(&self) -> bool {
        self.schema.is_mutable()
    }
    #[getter]
    fn arguments(&self) -> Objects<PyArgument> {
        Objects(self.schema.arguments.iter().cloned().map(|argument| PyArgument { argument }).collect())
    }
    #[getter]
    fn returns(&self) -> Objects<PyArgument> {
        Objects(self.schema.returns.iter().cloned().map(|argument| PyArgument { argument }).collect())
    }
    fn __str__(&self) -> Text<String> {
        Text(self.schema.to_string())
    }
    fn __repr__(&self) -> Text<String> {
        Text(self.schema.to_string())
    }
    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.schema.to_string().hash(&mut hasher);
        hasher.finish()
    }
}

/// An argument or return of a schema.
#[pyclass(name = "Argument", module = "ptr._C", frozen, skip_from_py_object)]
pub(crate) struct PyArgument {
    argument: Argument,
}

#[pymethods]
impl PyArgument {
    #[getter]
    fn name(&self) -> Text<&str> {
        Text(&self.argument.name)
    }
    #[getter]
    fn r#type(&self) -> Text<String> {
        Text(self.argument.ty.to_string())
    }
    #[getter]
    fn kwarg_only(&self) -> bool {
        self.argument.kwarg_only
    }
    #[getter]
    fn is_out(&self) -> bool {
        self.argument.is_out
    }
    #[getter]
    fn is_write(&self) -> bool {
        self.argument.is_write()
    }
    /// The names of the alias sets that it belongs to.
    #[getter]
    fn alias_set(&self) -> std::collections::HashSet<String> {
        self.argument.alias.iter().flat_map(|alias| alias.named_sets().map(str::to_owned)).collect()
    }
    #[getter]
    fn has_default(&self) -> bool {
        self.argument.default.is_some()
    }
    #[getter]
    fn default_value<'py>(&self, py: Python<'py>) -> Res<Bound<'py, PyAny>> {
        match &self.argument.default {
            Some(default) => ivalue::into_bound(py, signature::default_value(default, &self.argument.ty)?),
            None => Ok(py.None().into_bound(py)),
        }
    }
    fn __repr__(&self) -> Text<String> {
        Text(self.argument.to_string())
    }
}

/// The operator of a qualified name and overload (`"default"` or `""` for the unnamed one), or `None`.
#[pyfunction]
fn _get_operation_overload(name: TextArgument<'_>, overload: TextArgument<'_>) -> Option<PyOperatorHandle> {
    let overload = if &*overload == "default" { "" } else { &*overload };
    Dispatcher::find_schema(&name, overload).map(|op| PyOperatorHandle { op })
}

/// The overload names of an operator.
#[pyfunction]
fn _jit_get_operation_overloads(name: TextArgument<'_>) -> Texts<String> {
    let mut overloads: Vec<String> = dispatch::list_operators()
        .into_iter()
        .filter(|op| *op.name().name == *name)
        .map(|op| op.name().overload.to_string())
        .collect();
    overloads.sort();
    Texts(overloads)
}

/// The full names of all operators.
#[pyfunction]
fn _dispatch_get_all_op_names() -> Texts<String> {
    Texts(dispatch::list_operators().into_iter().map(|op| op.name().to_string()).collect())
}

/// Calls an operator: `_call_boxed(handle, args, kwargs)`.
#[pyfunction]
#[pyo3(signature = (handle, args, kwargs = None))]
fn _call_boxed<'py>(
    handle: &Bound<'py, PyOperatorHandle>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> Res<Bound<'py, PyAny>> {
    handle.get().__call__(handle.py(), args, kwargs)
}

/// Reads a schema.
#[pyfunction]
fn _parse_schema(text: TextArgument<'_>) -> PyResult<PyFunctionSchema> {
    match FunctionSchema::parse(&text) {
        Ok(schema) => Ok(PyFunctionSchema { schema }),
        Err(error) => Err(PyRuntimeError::error(error.to_string())),
    }
}

/// Adds the classes and functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyOperatorHandle>()?;
    module.add_class::<PyFunctionSchema>()?;
    module.add_class::<PyArgument>()?;
    module.add_function(wrap_pyfunction!(_get_operation_overload, module)?)?;
    module.add_function(wrap_pyfunction!(_jit_get_operation_overloads, module)?)?;
    module.add_function(wrap_pyfunction!(_dispatch_get_all_op_names, module)?)?;
    module.add_function(wrap_pyfunction!(_call_boxed, module)?)?;
    module.add_function(wrap_pyfunction!(_parse_schema, module)?)
}
