//! One Python object as one operator argument.

use std::sync::Arc;

use c10::{ScalarType, SymInt, Tensor, TensorImpl};
use dispatch::schema::Type;
use dispatch::IValue;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use smallvec::SmallVec;

use super::parser::Context;
use super::signature::{Kind, Param};
use super::torch_function;
use crate::convert::scalar::{self, NumberKind};
use crate::convert::{device, dtype, generator, ivalue, layout};
use crate::raw::objects::{self, NewError};
use crate::raw::{borrow, Res};
use crate::tensor;

/// Converts `object` into `value`; false if the parameter takes no such object.
///
/// Nothing here has side effects, so a call can be tried against one signature after another.
#[inline]
pub(super) fn convert(
    param: &Param,
    number: usize,
    object: &Bound<'_, PyAny>,
    context: &mut Context,
    value: &mut IValue,
) -> Res<bool> {
    // The most frequent case first: a plain tensor.
    if let Kind::Tensor { numbers } = param.kind {
        if tensor::is_exact(object) {
            if let Some(tensor) = tensor::get(object) {
                *value = IValue::Tensor(tensor.clone());
                return Ok(true);
            }
        }
        return convert_other_to_tensor(numbers, object, context, value);
    }
    convert_rest(param, number, object, context, value)
}

fn convert_other_to_tensor(
    numbers: bool,
    object: &Bound<'_, PyAny>,
    context: &mut Context,
    value: &mut IValue,
) -> Res<bool> {
    if numbers {
        if let Some(kind) = scalar::number_kind(object) {
            *value = IValue::Tensor(wrapped_number(object, kind)?);
            return Ok(true);
        }
    }
    if torch_function::overrides(object) {
        context.add_overloaded(object);
    } else if tensor::get(object).is_none() {
        return Ok(false);
    }
    *value = tensor::get(object).cloned().into();
    Ok(true)
}

/// A Python number as a tensor without dimensions, which yields to real tensors in type promotion.
fn wrapped_number(object: &Bound<'_, PyAny>, kind: NumberKind) -> Res<Tensor> {
    /// # Safety
    ///
    /// `tensor` is a fresh tensor with one element of type `T`.
    unsafe fn fill<T>(tensor: &Tensor, value: T) {
        // SAFETY: passed on to the caller.
        unsafe { tensor.data_ptr().cast::<T>().write(value) };
    }
    let dtype = match kind {
        NumberKind::Float => ScalarType::Double,
        NumberKind::Int => ScalarType::Long,
        NumberKind::Bool => ScalarType::Bool,
        NumberKind::Complex => ScalarType::ComplexDouble,
    };
    let tensor = c10::empty_cpu(&[], dtype)?;
    // SAFETY: the tensor was just made with this dtype.
    unsafe {
        match kind {
            NumberKind::Float => fill(&tensor, scalar::to_f64(object)?),
            NumberKind::Int => match scalar::to_scalar(object)? {
                // Above an int64: what dtypes it meets may still hold it.
                big @ c10::Scalar::UInt(_) => return Ok(::ops::wrapped_scalar_tensor(&big)?),
                number => fill(&tensor, number.to_i64()?),
            },
            NumberKind::Bool => fill(&tensor, object.is_truthy()?),
            NumberKind::Complex => fill(&tensor, scalar::to_complex(object)?),
        }
    }
    tensor.set_wrapped_number(true);
    Ok(tensor)
}

fn convert_rest(
    param: &Param,
    number: usize,
    object: &Bound<'_, PyAny>,
    context: &mut Context,
    value: &mut IValue,
) -> Res<bool> {
    let converted: Option<IValue> = match &param.kind {
        Kind::Tensor { .. } => None,
        Kind::Int => int(object)?.map(IValue::Int),
        Kind::SymInt => int(object)?.map(|v| IValue::SymInt(SymInt::from(v))),
        Kind::Float => float(object)?.map(IValue::Double),
        Kind::Bool => boolean(object)?.map(IValue::Bool),
        Kind::Complex | Kind::Scalar => match is_scalar_like(object, |_| true) {
            true => Some(scalar::to_scalar(object)?.into()),
            false => None,
        },
        Kind::IntList { broadcast, symbolic } => int_list(param, *broadcast, *symbolic, object, context)?,
        Kind::FloatList { broadcast } => match float(object)? {
            Some(v) if *broadcast > 0 => Some(IValue::DoubleList(vec![v; *broadcast].into())),
            _ => list(object, float)?.map(|v| IValue::DoubleList(v.into())),
        },
        Kind::BoolList => list(object, boolean)?.map(|v| IValue::BoolList(v.into())),
        Kind::ScalarList => {
            let item = |o: &Bound<'_, PyAny>| match is_scalar_like(o, |_| true) {
                true => Ok(Some(IValue::from(scalar::to_scalar(o)?))),
                false => Ok(None),
            };
            list(object, item)?.map(|v| IValue::List(Arc::new(v)))
        }
        Kind::TensorList => tensor_list(number, object, context)?,
        Kind::OptionalTensorList => optional_tensor_list(number, object, context)?,
        Kind::Str => match object.cast::<PyString>() {
            Ok(text) => Some(crate::raw::text_of(text)?.into()),
            Err(_) => None,
        },
        Kind::ScalarType => dtype::extract(object).map(IValue::ScalarType),
        Kind::Layout => layout::extract_layout(object).map(IValue::Layout),
        Kind::MemoryFormat => layout::extract_memory_format(object).map(IValue::MemoryFormat),
        Kind::Device => match device::is_device_like(object) {
            true => Some(device::extract(object)?.into()),
            false => None,
        },
        Kind::Generator => generator::extract(object).map(IValue::Generator),
        Kind::Storage => crate::storage::extract(object).map(IValue::Storage),
        Kind::Any => Some(ivalue::from_any(object)?),
    };
    match converted {
        Some(converted) => {
            *value = converted;
            Ok(true)
        }
        None => Ok(false),
    }
}

/// Whether a tensor can stand for a Python number: no dimensions, and no gradient that would be lost.
fn is_number_tensor(tensor: &TensorImpl) -> bool {
    tensor.dim() == 0 && !tensor.requires_grad()
}

fn is_scalar_like(object: &Bound<'_, PyAny>, accept: impl Fn(ScalarType) -> bool) -> bool {
    if scalar::number_kind(object).is_some() {
        return true;
    }
    tensor::get(object).is_some_and(|t| is_number_tensor(t) && accept(t.dtype()))
}

fn int(object: &Bound<'_, PyAny>) -> Res<Option<i64>> {
    if scalar::is_int_like(object) {
        return scalar::to_i64(object).map(Some);
    }
    match tensor::get(object) {
        Some(t) if is_number_tensor(t) && t.dtype().is_integral(false) => {
            Ok(Some(tensor::item(t)?.to_i64()?))
        }
        _ => Ok(None),
    }
}

fn float(object: &Bound<'_, PyAny>) -> Res<Option<f64>> {
    match scalar::number_kind(object) {
        Some(NumberKind::Complex) => Ok(None),
        Some(_) => scalar::to_f64(object).map(Some),
        None => match tensor::get(object) {
            Some(t) if is_number_tensor(t) && !t.is_complex() => Ok(Some(tensor::item(t)?.to_f64()?)),
            _ => Ok(None),
        },
    }
}

fn boolean(object: &Bound<'_, PyAny>) -> Res<Option<bool>> {
    // SAFETY: a live object.
    if unsafe { ffi::PyBool_Check(object.as_ptr()) } != 0 {
        return Ok(Some(object.is(objects::boolean(object.py(), true))));
    }
    if scalar::number_kind(object) == Some(NumberKind::Bool) {
        return Ok(Some(object.is_truthy()?));
    }
    Ok(None)
}

/// The items of a tuple or list.
pub(super) fn sequence<'py>(object: &Bound<'py, PyAny>) -> Res<Option<SmallVec<[Bound<'py, PyAny>; 8]>>> {
    if let Ok(tuple) = object.cast::<PyTuple>() {
        crate::raw::check_memory_for(tuple.len())?;
        return Ok(Some(tuple.iter().collect()));
    }
    let Ok(list) = object.cast::<PyList>() else { return Ok(None) };
    crate::raw::check_memory_for(list.len())?;
    Ok(Some(list.iter().collect()))
}

fn list<T>(
    object: &Bound<'_, PyAny>,
    item: impl Fn(&Bound<'_, PyAny>) -> Res<Option<T>>,
) -> Res<Option<Vec<T>>> {
    let Some(items) = sequence(object)? else { return Ok(None) };
    items.iter().map(item).collect()
}

fn int_list(
    param: &Param,
    broadcast: usize,
    symbolic: bool,
    object: &Bound<'_, PyAny>,
    context: &mut Context,
) -> Res<Option<IValue>> {
    if let Some(items) = sequence(object)? {
        let Some(first) = items.first() else { return Ok(Some(ints_to_value(std::iter::empty(), symbolic))) };
        if !is_int_item(first) {
            context.failed_item = Some(0);
            return Ok(None);
        }
        return Ok(Some(unpack_ints(context.function, param.text, &items, symbolic)?));
    }
    if broadcast > 0 {
        if let Some(value) = int(object)? {
            return Ok(Some(ints_to_value((0..broadcast).map(|_| value), symbolic)));
        }
    }
    Ok(None)
}

/// Whether an object can be an item of a list of integers.
pub(super) fn is_int_item(object: &Bound<'_, PyAny>) -> bool {
    scalar::is_int_like(object)
        || tensor::get(object).is_some_and(|t| is_number_tensor(t) && t.dtype().is_integral(false))
}

/// The values of a list of integers, whose first item is known to be one.
pub(super) fn unpack_ints(
    function: &str,
    param: &str,
    items: &[Bound<'_, PyAny>],
    symbolic: bool,
) -> Res<IValue> {
    let mut values = SmallVec::<[i64; 8]>::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        match int(item)? {
            Some(value) => values.push(value),
            None => {
                let text = format!(
                    "{function}(): argument '{param}' failed to unpack the object at pos {} with error \
                     \"type must be tuple of ints,but got {}\"",
                    i + 1,
                    item.get_type().name()?
                );
                return Err(PyTypeError::error(text).into());
            }
        }
    }
    Ok(ints_to_value(values.into_iter(), symbolic))
}

fn ints_to_value(values: impl Iterator<Item = i64>, symbolic: bool) -> IValue {
    if symbolic {
        IValue::SymIntList(values.map(SymInt::from).collect())
    } else {
        IValue::IntList(values.collect())
    }
}

#[cold]
fn not_a_tensor(item: &Bound<'_, PyAny>, index: usize, number: usize) -> crate::raw::Raised {
    match item.get_type().name() {
        Ok(name) => PyTypeError::error(format!(
            "expected Tensor as element {index} in argument {number}, but got {name}"
        ))
        .into(),
        Err(error) => error.into(),
    }
}

fn tensor_list(number: usize, object: &Bound<'_, PyAny>, context: &mut Context) -> Res<Option<IValue>> {
    let Some(items) = sequence(object)? else { return Ok(None) };
    let mut any_foreign = false;
    for (i, item) in items.iter().enumerate() {
        if tensor::is_exact(item) {
            continue;
        }
        if torch_function::overrides(item) {
            context.add_overloaded(item);
            any_foreign |= tensor::get(item).is_none();
        } else if tensor::get(item).is_none() {
            return Err(not_a_tensor(item, i, number));
        }
    }
    if any_foreign {
        // The call goes to `__torch_function__`; the operator never sees this list.
        return Ok(Some(IValue::None));
    }
    Ok(Some(IValue::TensorList(items.iter().filter_map(|item| tensor::get(item).cloned()).collect())))
}

fn optional_tensor_list(
    number: usize,
    object: &Bound<'_, PyAny>,
    context: &mut Context,
) -> Res<Option<IValue>> {
    let Some(items) = sequence(object)? else { return Ok(None) };
    for (i, item) in items.iter().enumerate() {
        if tensor::is_exact(item) || item.is_none() {
            continue;
        }
        if torch_function::overrides(item) {
            context.add_overloaded(item);
        } else if tensor::get(item).is_none() {
            return Err(not_a_tensor(item, i, number));
        }
    }
    Ok(Some(IValue::OptionalTensorList(items.iter().map(|item| tensor::get(item).cloned()).collect())))
}

/// Converts an object to a schema type, outside of any call; `None` if it does not fit.
pub(crate) fn convert_alone(ty: &Type, number: usize, object: &Bound<'_, PyAny>) -> Res<Option<IValue>> {
    if object.is_none() && ty.is_optional() {
        return Ok(Some(IValue::None));
    }
    let mut value = IValue::None;
    let param = Param::unnamed(ty);
    Ok(convert(&param, number, object, &mut Context::new(""), &mut value)?.then_some(value))
}

/// Borrows the object at an address for the length of a call.
///
/// # Safety
///
/// `object` is alive for as long as the result is used.
#[inline(always)]
pub(super) unsafe fn at<'a, 'py>(py: Python<'py>, object: *mut ffi::PyObject) -> Borrowed<'a, 'py, PyAny> {
    // SAFETY: passed on to the caller.
    unsafe { borrow(py, object) }
}
