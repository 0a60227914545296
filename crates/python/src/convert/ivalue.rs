//! What operators return, as Python objects, and arbitrary Python objects as operator arguments.

use std::any::Any;
use std::sync::Arc;

use c10::{Scalar, Tensor};
use dispatch::IValue;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::convert::{device, dtype, generator, layout, scalar};
use crate::raw::objects::{self, NewError};
use crate::raw::{owned, Res};
use crate::tensor;

/// A value as a Python object, a new reference.
#[inline]
pub(crate) fn into_python(py: Python<'_>, value: IValue) -> Res<*mut ffi::PyObject> {
    match value {
        IValue::Tensor(t) => tensor::wrap(t),
        other => Ok(into_bound(py, other)?.into_ptr()),
    }
}

/// A value as a Python object. `Tensor[]` becomes a tuple as PyTorch returns it; other lists become lists.
pub(crate) fn into_bound(py: Python<'_>, value: IValue) -> Res<Bound<'_, PyAny>> {
    // SAFETY: the functions called return new references.
    let reference = |p: *mut ffi::PyObject| unsafe { owned(py, p) };
    Ok(match value {
        IValue::None => py.None().into_bound(py),
        IValue::Tensor(t) => tensor::wrap_bound(py, t)?,
        IValue::Storage(s) => crate::storage::wrap(py, s)?,
        IValue::Bool(_)
        | IValue::Int(_)
        | IValue::Double(_)
        | IValue::ComplexDouble(_)
        | IValue::SymInt(_)
        | IValue::SymFloat(_)
        | IValue::SymBool(_) => scalar::scalar_to_python(py, &value.to_scalar()?)?,
        IValue::String(s) => objects::string(py, &s)?.into_any(),
        IValue::ScalarType(v) => dtype::object(py, v),
        IValue::Layout(v) => reference(layout::layout_new_ref(v))?,
        IValue::MemoryFormat(v) => reference(layout::memory_format_new_ref(v))?,
        IValue::Device(v) => device::object(py, v)?,
        IValue::Generator(generator) => Bound::new(py, generator::PyGenerator { generator })?.into_any(),
        IValue::Stream(s) => {
            let parts = [s.id(), i64::from(s.device().index), s.device_type() as i64];
            objects::tuple_of(py, 3, |i| Ok(objects::int(py, parts[i])?.into_ptr()))?
        }
        IValue::IntList(v) => objects::list_of(py, v.len(), |i| Ok(objects::int(py, v[i])?.into_ptr()))?,
        IValue::SymIntList(v) => {
            objects::list_of(py, v.len(), |i| Ok(scalar::sym_int_to_python(py, &v[i])?.into_ptr()))?
        }
        IValue::DoubleList(v) => objects::list_of(py, v.len(), |i| Ok(objects::float(py, v[i])?.into_ptr()))?,
        IValue::BoolList(v) => objects::list_of(py, v.len(), |i| Ok(objects::boolean(py, v[i]).into_ptr()))?,
        IValue::TensorList(v) => objects::tuple_of(py, v.len(), |i| tensor::wrap(v[i].clone()))?,
        IValue::OptionalTensorList(v) => {
            objects::tuple_of(py, v.len(), |i| into_python(py, v[i].clone().into()))?
        }
        IValue::List(v) => objects::list_of(py, v.len(), |i| into_python(py, v[i].clone()))?,
        IValue::Tuple(v) => objects::tuple_of(py, v.len(), |i| into_python(py, v[i].clone()))?,
        IValue::Dict(v) => {
            let dict = objects::dict(py)?;
            for (key, value) in v.iter() {
                dict.set_item(into_bound(py, key.clone())?, into_bound(py, value.clone())?)?;
            }
            dict.into_any()
        }
        IValue::Object(v) => object_to_python(py, &v)?,
    })
}

/// A Python object inside an `IValue::Object`, to be carried through the engine.
pub(crate) struct PyObjectValue(pub(crate) Py<PyAny>);

fn object_to_python<'py>(py: Python<'py>, value: &Arc<dyn Any + Send + Sync>) -> Res<Bound<'py, PyAny>> {
    if let Some(big) = value.downcast_ref::<u64>() {
        return scalar::scalar_to_python(py, &Scalar::UInt(*big));
    }
    match value.downcast_ref::<PyObjectValue>() {
        Some(object) => Ok(object.0.bind(py).clone()),
        None => Err(PyTypeError::error("a value of a type unknown to Python cannot be returned").into()),
    }
}

/// An object whose expected type is not known (`Any`, elements of generic lists) as a value.
pub(crate) fn from_any(object: &Bound<'_, PyAny>) -> Res<IValue> {
    if object.is_none() {
        return Ok(IValue::None);
    }
    if let Some(tensor) = tensor::get(object) {
        return Ok(IValue::Tensor(tensor.clone()));
    }
    if scalar::number_kind(object).is_some() {
        return Ok(scalar::to_scalar(object)?.into());
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(text.to_str()?.into());
    }
    if dtype::is_dtype(object) {
        return Ok(dtype::extract(object).into());
    }
    if device::DEVICE.is_exact(object) {
        return Ok(device::extract(object)?.into());
    }
    if let Some(value) = layout::extract_layout(object) {
        return Ok(value.into());
    }
    if let Some(value) = layout::extract_memory_format(object) {
        return Ok(value.into());
    }
    if let Some(value) = generator::extract(object) {
        return Ok(value.into());
    }
    if let Ok(list) = object.cast::<PyList>() {
        let items = list.iter().map(|item| from_any(&item)).collect::<Res<Vec<_>>>()?;
        let tensors: Option<Vec<Tensor>> = items.iter().map(|v| v.as_tensor().cloned()).collect();
        return Ok(match tensors {
            Some(tensors) if !tensors.is_empty() => tensors.into(),
            _ => IValue::List(Arc::new(items)),
        });
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        let items = tuple.iter().map(|item| from_any(&item)).collect::<Res<Vec<_>>>()?;
        return Ok(IValue::Tuple(Arc::new(items)));
    }
    Ok(IValue::Object(Arc::new(PyObjectValue(object.clone().unbind()))))
}
