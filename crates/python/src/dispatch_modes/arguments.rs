//! A boxed call's stack as Python arguments, and what Python returned as the stack, by the operator's schema.

use c10::{Error, Result, Tensor};
use dispatch::schema::{Argument, FunctionSchema, Type};
use dispatch::{IValue, OperatorHandle, Stack};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::convert::ivalue;
use crate::ops::{convert_alone, default_value};
use crate::raw::objects::{self, NewError};
use crate::raw::Res;

/// The arguments of an operator, taken off the end of a stack.
pub(super) fn pop(op: OperatorHandle, stack: &mut Stack) -> Result<Vec<IValue>> {
    let count = op.schema()?.arguments.len();
    let first = stack.len().checked_sub(count).ok_or_else(|| {
        Error::runtime(format!("{}: expected {count} arguments on the stack, got {}", op.name(), stack.len()))
    })?;
    Ok(stack.drain(first..).collect())
}

/// Arguments as a call in Python writes them: defaults at the end and defaults of keyword-only arguments are left out.
pub(super) fn to_python<'py>(
    py: Python<'py>,
    op: OperatorHandle,
    values: &[IValue],
) -> Res<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
    let schema = op.schema()?;
    let positional = schema.num_positional();
    let mut given = positional;
    while given > 0 && is_default(&schema.arguments[given - 1], &values[given - 1])? {
        given -= 1;
    }
    let args = values[..given].iter().map(|value| value_to_python(py, value)).collect::<Res<Vec<_>>>()?;
    let kwargs = objects::dict(py)?;
    for (argument, value) in schema.arguments.iter().zip(values).skip(positional) {
        if !is_default(argument, value)? {
            kwargs.set_item(&argument.name, value_to_python(py, value)?)?;
        }
    }
    Ok((objects::tuple(py, args)?, kwargs))
}

/// One argument. Lists of tensors are lists, also of optional ones.
fn value_to_python<'py>(py: Python<'py>, value: &IValue) -> Res<Bound<'py, PyAny>> {
    match value {
        IValue::TensorList(list) => {
            objects::list_of(py, list.len(), |i| ivalue::into_python(py, IValue::Tensor(list[i].clone())))
        }
        IValue::OptionalTensorList(list) => {
            objects::list_of(py, list.len(), |i| ivalue::into_python(py, list[i].clone().into()))
        }
        other => ivalue::into_bound(py, other.clone()),
    }
}

fn is_default(argument: &Argument, value: &IValue) -> Res<bool> {
    let Some(default) = &argument.default else { return Ok(false) };
    Ok(same(value, &default_value(default, &argument.ty)?))
}

/// Whether two values that can be defaults are the same.
fn same(a: &IValue, b: &IValue) -> bool {
    match (a, b) {
        (IValue::None, IValue::None) => true,
        (IValue::Bool(a), IValue::Bool(b)) => a == b,
        (IValue::Double(a), IValue::Double(b)) => a == b,
        (IValue::String(a), IValue::String(b)) => a == b,
        (IValue::ScalarType(a), IValue::ScalarType(b)) => a == b,
        (IValue::Layout(a), IValue::Layout(b)) => a == b,
        (IValue::MemoryFormat(a), IValue::MemoryFormat(b)) => a == b,
        (IValue::Device(a), IValue::Device(b)) => a == b,
        (IValue::BoolList(a), IValue::BoolList(b)) => a == b,
        (IValue::DoubleList(a), IValue::DoubleList(b)) => a == b,
        (IValue::Int(_) | IValue::SymInt(_), IValue::Int(_) | IValue::SymInt(_)) => {
            match (plain_int(a), plain_int(b)) {
                (Some(a), Some(b)) => a == b,
                _ => false,
            }
        }
        (IValue::IntList(_) | IValue::SymIntList(_), IValue::IntList(_) | IValue::SymIntList(_)) => {
            match (plain_ints(a), plain_ints(b)) {
                (Some(a), Some(b)) => a == b,
                _ => false,
            }
        }
        _ => false,
    }
}

/// An integer that is known without asking a symbol for its value.
fn plain_int(value: &IValue) -> Option<i64> {
    match value {
        IValue::Int(v) => Some(*v),
        IValue::SymInt(v) => v.maybe_as_int(),
        _ => None,
    }
}

fn plain_ints(value: &IValue) -> Option<Vec<i64>> {
    match value {
        IValue::IntList(list) => Some(list.to_vec()),
        IValue::SymIntList(list) => list.iter().map(c10::SymInt::maybe_as_int).collect(),
        _ => None,
    }
}

/// Pushes what a Python function returned, checked against the schema's returns.
pub(super) fn push_result(op: OperatorHandle, result: &Bound<'_, PyAny>, stack: &mut Stack) -> Res<()> {
    let schema = op.schema()?;
    match schema.returns.len() {
        0 => {
            if !result.is_none() {
                let found = result.get_type().name()?;
                let text = format!(
                    "Expected {} to return nothing (None) but it returned an object of type {found}",
                    op.name()
                );
                return Err(PyRuntimeError::error(text).into());
            }
        }
        1 => stack.push(return_value(schema, 0, result)?),
        n => {
            let items: Vec<_> = match (result.cast::<PyTuple>(), result.cast::<PyList>()) {
                (Ok(tuple), _) => tuple.iter().collect(),
                (_, Ok(list)) => list.iter().collect(),
                _ => {
                    let found = result.get_type().name()?;
                    let text = format!("Expected {} to return a tuple of {n} values, got {found}", op.name());
                    return Err(PyTypeError::error(text).into());
                }
            };
            if items.len() != n {
                let text =
                    format!("Expected {} to return a tuple of {n} values, got {}", op.name(), items.len());
                return Err(PyRuntimeError::error(text).into());
            }
            for (i, item) in items.iter().enumerate() {
                stack.push(return_value(schema, i, item)?);
            }
        }
    }
    Ok(())
}

fn return_value(schema: &FunctionSchema, i: usize, object: &Bound<'_, PyAny>) -> Res<IValue> {
    let ty = &schema.returns[i].ty;
    // As an argument a number can stand for a tensor, as a result it cannot.
    let is_number_for_tensor =
        *ty.unwrap_optional() == Type::Tensor && !object.is_none() && crate::tensor::get(object).is_none();
    if !is_number_for_tensor {
        if let Some(value) = convert_alone(ty, i, object)? {
            return Ok(value);
        }
    }
    let found = object.get_type().name()?;
    let text = format!(
        "Unable to cast the result {i} of {} (of type {found}) to the declared type {ty}",
        schema.name
    );
    Err(PyTypeError::error(text).into())
}

/// Calls `f` with every tensor among the arguments.
pub(super) fn for_each_tensor(values: &[IValue], f: &mut dyn FnMut(&Tensor)) {
    values.iter().for_each(|value| value.for_each_tensor(f));
}
