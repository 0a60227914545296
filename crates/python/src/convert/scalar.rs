//! Numbers: Python's and NumPy's to the engine's, and back.

use std::ffi::CStr;

use c10::{Scalar, SymInt};
use num_complex::Complex64;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::raw::objects::{self, NewError};
use crate::raw::{owned, Raised, Res};
use crate::tensor;

/// A class of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NumberKind {
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `float`
    Float,
    /// `complex`
    Complex,
}

/// Whether `object` is a Python `int` and no `bool`.
#[inline]
pub(crate) fn is_int(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: a live object.
    unsafe { ffi::PyLong_Check(object.as_ptr()) != 0 && ffi::PyBool_Check(object.as_ptr()) == 0 }
}

/// What kind of number `object` is, NumPy's scalars included.
#[inline]
pub(crate) fn number_kind(object: &Bound<'_, PyAny>) -> Option<NumberKind> {
    let p = object.as_ptr();
    // SAFETY: a live object.
    unsafe {
        if ffi::PyFloat_Check(p) != 0 {
            Some(NumberKind::Float)
        } else if ffi::PyLong_Check(p) != 0 {
            Some(if ffi::PyBool_Check(p) != 0 { NumberKind::Bool } else { NumberKind::Int })
        } else if ffi::PyComplex_Check(p) != 0 {
            Some(NumberKind::Complex)
        } else {
            numpy_kind(object)
        }
    }
}

/// What kind of number a NumPy scalar is. NumPy itself is never imported for this: its types are known by name.
#[cold]
fn numpy_kind(object: &Bound<'_, PyAny>) -> Option<NumberKind> {
    // SAFETY: types have names.
    let name = unsafe { CStr::from_ptr((*ffi::Py_TYPE(object.as_ptr())).tp_name) }.to_str().ok()?;
    let name = name.strip_prefix("numpy.")?;
    match name {
        "bool" | "bool_" => Some(NumberKind::Bool),
        "longlong" | "ulonglong" | "intc" | "uintc" | "intp" | "uintp" | "long" | "ulong" => {
            Some(NumberKind::Int)
        }
        "longdouble" | "half" => Some(NumberKind::Float),
        _ if name.starts_with("int") || name.starts_with("uint") => Some(NumberKind::Int),
        _ if name.starts_with("float") => Some(NumberKind::Float),
        _ if name.starts_with("complex") => Some(NumberKind::Complex),
        _ => None,
    }
}

/// Whether `object` is an integer of Python or NumPy.
#[inline]
pub(crate) fn is_int_like(object: &Bound<'_, PyAny>) -> bool {
    is_int(object) || (!is_plain(object) && numpy_kind(object) == Some(NumberKind::Int))
}

/// Whether `object` is of one of the types that are most often seen, and so no NumPy scalar.
#[inline]
fn is_plain(object: &Bound<'_, PyAny>) -> bool {
    let p = object.as_ptr();
    // SAFETY: a live object.
    unsafe {
        ffi::PyFloat_CheckExact(p) != 0
            || ffi::PyBool_Check(p) != 0
            || ffi::PyTuple_CheckExact(p) != 0
            || ffi::PyList_CheckExact(p) != 0
            || ffi::PyUnicode_CheckExact(p) != 0
            || object.is_none()
            || tensor::is_exact(object)
    }
}

/// The value of an integer.
#[inline]
pub(crate) fn to_i64(object: &Bound<'_, PyAny>) -> Res<i64> {
    // SAFETY: a live object.
    unsafe {
        if ffi::PyLong_Check(object.as_ptr()) == 0 {
            return index_to_i64(object);
        }
        let mut overflow = 0;
        let value = ffi::PyLong_AsLongLongAndOverflow(object.as_ptr(), &mut overflow);
        if overflow != 0 {
            return Err(unpack_overflow());
        }
        Ok(value)
    }
}

#[cold]
fn unpack_overflow() -> Raised {
    PyValueError::error("Overflow when unpacking long long").into()
}

#[cold]
fn index_to_i64(object: &Bound<'_, PyAny>) -> Res<i64> {
    // SAFETY: a live object.
    let index = unsafe { owned(object.py(), ffi::PyNumber_Index(object.as_ptr()))? };
    to_i64(&index)
}

/// The value of an integer, symbolic or not.
pub(crate) fn to_sym_int(object: &Bound<'_, PyAny>) -> Res<SymInt> {
    Ok(SymInt::from(to_i64(object)?))
}

/// The value of a real number.
#[inline]
pub(crate) fn to_f64(object: &Bound<'_, PyAny>) -> Res<f64> {
    // SAFETY: a live object.
    unsafe {
        if ffi::PyFloat_Check(object.as_ptr()) != 0 {
            return Ok(ffi::PyFloat_AS_DOUBLE(object.as_ptr()));
        }
        let value = ffi::PyFloat_AsDouble(object.as_ptr());
        if value == -1.0 && !ffi::PyErr_Occurred().is_null() {
            return Err(Raised::already_set());
        }
        Ok(value)
    }
}

/// A number of Python or NumPy, or a tensor without dimensions, as a `Scalar`.
#[inline]
pub(crate) fn to_scalar(object: &Bound<'_, PyAny>) -> Res<Scalar> {
    match number_kind(object) {
        Some(NumberKind::Float) => Ok(Scalar::Float(to_f64(object)?)),
        Some(NumberKind::Int) => int_to_scalar(object),
        Some(NumberKind::Bool) => Ok(Scalar::Bool(object.is_truthy()?)),
        Some(NumberKind::Complex) => Ok(Scalar::Complex(to_complex(object)?)),
        None => match tensor::get(object) {
            Some(tensor) => tensor::item(tensor),
            None => {
                Err(PyTypeError::error(format!("expected a number, got {}", object.get_type().name()?))
                    .into())
            }
        },
    }
}

fn int_to_scalar(object: &Bound<'_, PyAny>) -> Res<Scalar> {
    // SAFETY: a live object.
    unsafe {
        let index;
        let mut number = object.as_ptr();
        if ffi::PyLong_Check(number) == 0 {
            index = owned(object.py(), ffi::PyNumber_Index(number))?;
            number = index.as_ptr();
        }
        let mut overflow = 0;
        let value = ffi::PyLong_AsLongLongAndOverflow(number, &mut overflow);
        match overflow {
            0 => Ok(Scalar::Int(value)),
            1.. => to_u64(object).map(Scalar::UInt),
            _ => Err(PyOverflowError::error("can't convert negative int to unsigned").into()),
        }
    }
}

/// The value of an integer that is not negative.
pub(crate) fn to_u64(object: &Bound<'_, PyAny>) -> Res<u64> {
    // SAFETY: a live object.
    unsafe {
        let number = owned(object.py(), ffi::PyNumber_Index(object.as_ptr()))?;
        let value = ffi::PyLong_AsUnsignedLongLong(number.as_ptr());
        if value == u64::MAX && !ffi::PyErr_Occurred().is_null() {
            return Err(Raised::already_set());
        }
        Ok(value)
    }
}

/// The value of any number as a complex one.
pub(crate) fn to_complex(object: &Bound<'_, PyAny>) -> Res<Complex64> {
    // SAFETY: a live object.
    unsafe {
        let value = ffi::PyComplex_AsCComplex(object.as_ptr());
        if value.real == -1.0 && !ffi::PyErr_Occurred().is_null() {
            return Err(Raised::already_set());
        }
        Ok(Complex64::new(value.real, value.imag))
    }
}

/// A `Scalar` as a Python number, a new reference.
pub(crate) fn scalar_to_python<'py>(py: Python<'py>, scalar: &Scalar) -> Res<Bound<'py, PyAny>> {
    Ok(match scalar {
        Scalar::Bool(v) => objects::boolean(py, *v),
        Scalar::Int(v) => objects::int(py, *v)?.into_any(),
        Scalar::UInt(v) => objects::unsigned(py, *v)?.into_any(),
        Scalar::Float(v) => objects::float(py, *v)?.into_any(),
        Scalar::Complex(v) => complex_to_python(py, *v)?,
        Scalar::SymInt(v) => sym_int_to_python(py, v)?,
        Scalar::SymFloat(_) => objects::float(py, scalar.to_f64()?)?.into_any(),
        Scalar::SymBool(_) => objects::boolean(py, scalar.to_bool()?),
    })
}

/// A complex number of Python.
pub(crate) fn complex_to_python(py: Python<'_>, value: Complex64) -> Res<Bound<'_, PyAny>> {
    Ok(objects::complex(py, value.re, value.im)?.into_any())
}

/// An integer of Python; a symbolic one is guarded on.
pub(crate) fn sym_int_to_python<'py>(py: Python<'py>, value: &SymInt) -> Res<Bound<'py, PyAny>> {
    Ok(objects::int(py, value.guard_int()?)?.into_any())
}
