//! `Tensor.tolist()`.

use ::ops::at;
use c10::{Complex, DimVector, Element, ElementKind, MemoryFormat, ScalarType, Tensor};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::convert::scalar;
use crate::raw::{owned, Raised, Res};
use crate::tensor::{self, to, Target};

/// The tensor on the host, with nothing pending on its elements, which Python has a number for.
pub(super) fn plain(py: Python<'_>, tensor: &Tensor) -> Res<Tensor> {
    let mut result = tensor.clone();
    if !result.is_cpu() {
        let device = Some(c10::Device::new(c10::DeviceType::CPU, -1));
        result = to(
            py,
            &result,
            Target { device, memory_format: Some(MemoryFormat::Preserve), ..Target::default() },
        )?;
    }
    if result.is_conj() {
        result = at::resolve_conj(&result)?;
    }
    if result.is_neg() {
        result = at::resolve_neg(&result)?;
    }
    if result.dtype().is_float8() {
        result = at::to_dtype(&result, ScalarType::Float, false, false, None)?;
    }
    Ok(result)
}

/// The elements as nested lists; a number for a tensor without dimensions.
pub(crate) fn tolist(py: Python<'_>, tensor: &Tensor) -> Res<*mut ffi::PyObject> {
    if tensor.is_meta() {
        return Err(c10::Error::not_implemented("Cannot copy out of meta tensor; no data!").into());
    }
    if tensor.dim() == 0 {
        return Ok(scalar::scalar_to_python(py, &tensor::item(tensor)?)?.into_ptr());
    }
    if !tensor.has_storage() || tensor.key_set().has(c10::DispatchKey::Python) {
        let text = ".tolist() is not supported for tensor subclasses without storage of their own";
        return Err(c10::Error::runtime(text).into());
    }
    let tensor = plain(py, tensor)?;
    let lists = match tensor.dtype() {
        ScalarType::Bool => lists::<u8>,
        ScalarType::Byte => lists::<u8>,
        ScalarType::Char => lists::<i8>,
        ScalarType::Short => lists::<i16>,
        ScalarType::Int => lists::<i32>,
        ScalarType::Long => lists::<i64>,
        ScalarType::UInt16 => lists::<u16>,
        ScalarType::UInt32 => lists::<u32>,
        ScalarType::UInt64 => lists::<u64>,
        ScalarType::Half => lists::<c10::Half>,
        ScalarType::BFloat16 => lists::<c10::BFloat16>,
        ScalarType::Float => lists::<f32>,
        ScalarType::Double => lists::<f64>,
        ScalarType::ComplexHalf => lists::<Complex<c10::Half>>,
        ScalarType::ComplexFloat => lists::<Complex<f32>>,
        ScalarType::ComplexDouble => lists::<Complex<f64>>,
        other => {
            return Err(c10::Error::not_implemented(format!(
                "tolist(): not implemented for torch.{}",
                other.name()
            ))
            .into())
        }
    };
    tensor.check_in_storage()?;
    let as_bool = tensor.dtype() == ScalarType::Bool;
    // A new list may start a garbage collection, and with it finalizers that give the tensor another shape or storage.
    let _pin = tensor.storage()?.pin();
    let (sizes, strides) = (DimVector::from_slice(tensor.sizes()?), DimVector::from_slice(tensor.strides()?));
    lists(py, tensor.const_data_ptr(), &sizes, &strides, as_bool)
}

/// A level of nesting, counted against the interpreter's limit.
struct Recursion;

impl Recursion {
    fn enter(_: Python<'_>) -> Res<Recursion> {
        // SAFETY: the interpreter's lock is held.
        match unsafe { ffi::Py_EnterRecursiveCall(c" in tolist()".as_ptr()) } {
            0 => Ok(Recursion),
            // SAFETY: the call raised RecursionError.
            _ => Err(unsafe { Raised::already_set() }),
        }
    }
}

impl Drop for Recursion {
    fn drop(&mut self) {
        // SAFETY: pairs with the call of `enter`; lists are built with the interpreter's lock held.
        unsafe { ffi::Py_LeaveRecursiveCall() };
    }
}

/// The lists for the given dimensions of a strided tensor whose first element is at `data`.
fn lists<T: Element>(
    py: Python<'_>,
    data: *const u8,
    sizes: &[i64],
    strides: &[i64],
    as_bool: bool,
) -> Res<*mut ffi::PyObject> {
    let (Some((&size, sizes)), Some((&stride, strides))) = (sizes.split_first(), strides.split_first())
    else {
        // SAFETY: the strides lead to elements of the tensor only.
        return number::<T>(unsafe { data.cast::<T>().read_unaligned() }, as_bool);
    };
    // A stride that is never stepped along may be anything.
    let step = (stride as isize).wrapping_mul(std::mem::size_of::<T>() as isize);
    // SAFETY: a fresh list; items not set yet are null, which lists allow.
    unsafe {
        let list = owned(py, ffi::PyList_New(size as ffi::Py_ssize_t))?;
        let _depth = Recursion::enter(py)?;
        for i in 0..size as isize {
            let item = lists::<T>(py, data.wrapping_offset(i.wrapping_mul(step)), sizes, strides, as_bool)?;
            ffi::PyList_SET_ITEM(list.as_ptr(), i, item);
        }
        Ok(list.into_ptr())
    }
}

/// An element as a Python number.
#[inline]
fn number<T: Element>(value: T, as_bool: bool) -> Res<*mut ffi::PyObject> {
    // SAFETY: constructors of numbers.
    let object = unsafe {
        match T::KIND {
            ElementKind::Floating => ffi::PyFloat_FromDouble(value.to_f64()),
            ElementKind::Unsigned if as_bool => ffi::PyBool_FromLong((value.to_u64() != 0).into()),
            ElementKind::Unsigned => ffi::PyLong_FromUnsignedLongLong(value.to_u64()),
            ElementKind::Signed => ffi::PyLong_FromLongLong(value.to_i64()),
            ElementKind::Bool => ffi::PyBool_FromLong(value.to_bool().into()),
            ElementKind::Complex => {
                let value = value.to_complex();
                ffi::PyComplex_FromDoubles(value.re, value.im)
            }
        }
    };
    if object.is_null() {
        // SAFETY: CPython has set the exception.
        return Err(unsafe { Raised::already_set() });
    }
    Ok(object)
}
