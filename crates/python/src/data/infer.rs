//! The dtype and shape of nested Python data.

use c10::{get_default_complex_dtype, get_default_dtype, promote_types, DimVector, ScalarType};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::numpy;
use crate::convert::scalar::{self, NumberKind};
use crate::raw::objects::NewError;
use crate::raw::Res;
use crate::tensor;

/// Deeper data is taken for a list that contains itself.
const MAX_DEPTH: usize = 128;

/// Whether an object is one dimension of data.
pub(super) fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: a live object.
    unsafe { ffi::PySequence_Check(object.as_ptr()) != 0 }
}

fn is_text(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>()
}

fn invalid_data(object: &Bound<'_, PyAny>) -> Res<crate::raw::Raised> {
    Ok(PyTypeError::error(format!("new(): invalid data type '{}'", object.get_type().name()?)).into())
}

/// The shape, read off the first items.
pub(super) fn sizes(data: &Bound<'_, PyAny>) -> Res<DimVector> {
    let mut sizes = DimVector::new();
    let mut current = data.clone();
    while is_sequence(&current) {
        if is_text(&current) {
            if !sizes.is_empty() && current.is_instance_of::<PyString>() {
                return Err(PyValueError::error("too many dimensions 'str'").into());
            }
            return Err(invalid_data(&current)?);
        }
        let len = current.len()?;
        sizes.push(len as i64);
        if sizes.len() > MAX_DEPTH {
            let text = format!("too many dimensions '{}'", current.get_type().name()?);
            return Err(PyValueError::error(text).into());
        }
        if len == 0 {
            break;
        }
        current = current.get_item(0)?;
    }
    Ok(sizes)
}

/// The dtype of a number, or the smallest that holds all numbers in nested data.
pub(super) fn dtype(data: &Bound<'_, PyAny>, depth: usize) -> Res<ScalarType> {
    if depth > MAX_DEPTH {
        return Err(PyTypeError::error("new(): self-referencing lists are incompatible").into());
    }
    if let Some(dtype) = leaf_dtype(data)? {
        return Ok(dtype);
    }
    if is_text(data) {
        return Err(invalid_data(data)?);
    }
    if !is_sequence(data) {
        let text = format!("Could not infer dtype of {}", data.get_type().name()?);
        return Err(PyRuntimeError::error(text).into());
    }
    let items = Items::new(data)?;
    let mut result = None;
    let mut last_type = std::ptr::null_mut();
    for i in 0..items.len() {
        let item = items.get(i);
        // Data is mostly uniform: another item of the same plain class changes nothing.
        // SAFETY: a live object.
        let (type_, plain) = unsafe {
            let p = item.as_ptr();
            (
                ffi::Py_TYPE(p),
                ffi::PyFloat_CheckExact(p) != 0
                    || ffi::PyLong_CheckExact(p) != 0
                    || ffi::PyBool_Check(p) != 0,
            )
        };
        if plain && std::ptr::eq(type_, last_type) {
            continue;
        }
        last_type = type_;
        let dtype = dtype(&item, depth + 1)?;
        let promoted = match result {
            None => dtype,
            Some(so_far) => promote_types(so_far, dtype)?,
        };
        if promoted == ScalarType::ComplexDouble {
            return Ok(promoted);
        }
        result = Some(promoted);
    }
    Ok(result.unwrap_or_else(get_default_dtype))
}

fn leaf_dtype(data: &Bound<'_, PyAny>) -> Res<Option<ScalarType>> {
    if let Some(tensor) = tensor::get(data) {
        return Ok(Some(tensor.dtype()));
    }
    // SAFETY: a live object.
    let exact =
        unsafe { ffi::PyFloat_CheckExact(data.as_ptr()) != 0 || ffi::PyLong_CheckExact(data.as_ptr()) != 0 };
    if !exact {
        // NumPy's numbers keep their dtype.
        if let Some(dtype) = numpy::dtype_of(data)? {
            return Ok(Some(dtype));
        }
    }
    Ok(scalar::number_kind(data).map(|kind| match kind {
        NumberKind::Bool => ScalarType::Bool,
        NumberKind::Int => ScalarType::Long,
        NumberKind::Float => get_default_dtype(),
        NumberKind::Complex => get_default_complex_dtype(),
    }))
}

/// The items of a sequence, for repeated access.
pub(super) struct Items<'py>(Bound<'py, PyAny>);

impl<'py> Items<'py> {
    /// Lists and tuples are used as they are; other sequences are copied to a list.
    pub(super) fn new(sequence: &Bound<'py, PyAny>) -> Res<Items<'py>> {
        // SAFETY: a live object and a C string; a new reference comes back.
        let fast = unsafe {
            crate::raw::owned(
                sequence.py(),
                ffi::PySequence_Fast(sequence.as_ptr(), c"not a sequence".as_ptr()),
            )?
        };
        Ok(Items(fast))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        // SAFETY: a list or tuple.
        unsafe { ffi::PySequence_Fast_GET_SIZE(self.0.as_ptr()) as usize }
    }

    /// Item `i`. The list may have been changed by Python code meanwhile, so it is looked up anew.
    pub(super) fn get(&self, i: usize) -> Bound<'py, PyAny> {
        let py = self.0.py();
        if i >= self.len() {
            return py.None().into_bound(py);
        }
        // SAFETY: a list or tuple with more than `i` items.
        unsafe {
            Bound::from_borrowed_ptr(py, ffi::PySequence_Fast_GET_ITEM(self.0.as_ptr(), i as ffi::Py_ssize_t))
        }
    }
}
