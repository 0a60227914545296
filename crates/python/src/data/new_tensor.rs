//! A new tensor with a copy of Python data.

use ::ops::at;
use c10::{Complex, Device, DeviceType, Element, ElementKind, Scalar, ScalarType, Tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

use super::infer::{self, is_sequence, Items};
use super::numpy;
use crate::convert::scalar::{self, NumberKind};
use crate::raw::objects::NewError;
use crate::raw::Res;
use crate::tensor::{self, to, Target};

/// A new tensor with the values of `data`: a number, nested sequences, an array or a tensor.
pub(crate) fn new_tensor(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<ScalarType>,
    device: Option<Device>,
) -> Res<Tensor> {
    let device = device.or_else(c10::get_default_device);
    if let Some(tensor) = tensor::get(data) {
        let detached = at::detach(tensor)?;
        return to(py, &detached, Target { dtype, device, copy: true, ..Target::default() });
    }
    if numpy::is_array(data) {
        let array = tensor::lift_fresh(numpy::from_array(data)?)?;
        return to(py, &array, Target { dtype, device, copy: true, ..Target::default() });
    }
    let dtype = match dtype {
        Some(dtype) => dtype,
        None => infer::dtype(data, 0)?,
    };
    let sizes = infer::sizes(data)?;
    let tensor = c10::empty_cpu(&sizes, dtype)?;
    if tensor.numel()? > 0 || !sizes.is_empty() {
        fill(data, &tensor, &sizes)?;
    }
    match device {
        Some(device) if device.type_ != DeviceType::CPU => {
            to(py, &tensor, Target { device: Some(device), ..Target::default() })
        }
        _ => Ok(tensor::lift_fresh(tensor)?),
    }
}

fn fill(data: &Bound<'_, PyAny>, tensor: &Tensor, sizes: &[i64]) -> Res<()> {
    let store = match tensor.dtype() {
        ScalarType::Bool => store_rows::<bool>,
        ScalarType::Byte => store_rows::<u8>,
        ScalarType::Char => store_rows::<i8>,
        ScalarType::Short => store_rows::<i16>,
        ScalarType::Int => store_rows::<i32>,
        ScalarType::Long => store_rows::<i64>,
        ScalarType::UInt16 => store_rows::<u16>,
        ScalarType::UInt32 => store_rows::<u32>,
        ScalarType::UInt64 => store_rows::<u64>,
        ScalarType::Half => store_rows::<c10::Half>,
        ScalarType::BFloat16 => store_rows::<c10::BFloat16>,
        ScalarType::Float => store_rows::<f32>,
        ScalarType::Double => store_rows::<f64>,
        ScalarType::ComplexHalf => store_rows::<Complex<c10::Half>>,
        ScalarType::ComplexFloat => store_rows::<Complex<f32>>,
        ScalarType::ComplexDouble => store_rows::<Complex<f64>>,
        dtype if dtype.is_float8() => {
            let wide = c10::empty_cpu(sizes, ScalarType::Float)?;
            fill(data, &wide, sizes)?;
            at::copy_(tensor, &wide, false)?;
            return Ok(());
        }
        other => {
            let text = format!(
                "tensor(): making a tensor of dtype torch.{} from Python numbers is not implemented",
                other.name()
            );
            return Err(c10::Error::not_implemented(text).into());
        }
    };
    let mut next = tensor.data_ptr();
    store(data, sizes, 0, &mut next)
}

/// Stores the data from dimension `dim` on at `*next`, and moves it on.
///
/// The tensor behind `*next` has at least as many elements left as `sizes` from `dim` on say.
fn store_rows<T: Element>(data: &Bound<'_, PyAny>, sizes: &[i64], dim: usize, next: &mut *mut u8) -> Res<()> {
    if dim == sizes.len() {
        let value = element::<T>(data)?;
        // SAFETY: see above; a fresh tensor is aligned.
        unsafe {
            next.cast::<T>().write(value);
            *next = next.add(std::mem::size_of::<T>());
        }
        return Ok(());
    }
    if !is_sequence(data) {
        return Err(PyTypeError::error("not a sequence").into());
    }
    let items = Items::new(data)?;
    if items.len() as i64 != sizes[dim] {
        let (expected, found) = (sizes[dim], items.len());
        let text = format!("expected sequence of length {expected} at dim {dim} (got {found})");
        return Err(PyValueError::error(text).into());
    }
    for i in 0..sizes[dim] as usize {
        store_rows::<T>(&items.get(i), sizes, dim + 1, next)?;
    }
    Ok(())
}

/// One number as an element.
#[inline]
fn element<T: Element>(item: &Bound<'_, PyAny>) -> Res<T> {
    // SAFETY: a live object; the exact types are checked first.
    unsafe {
        if ffi::PyFloat_CheckExact(item.as_ptr()) != 0
            && matches!(T::KIND, ElementKind::Floating | ElementKind::Complex)
        {
            return Ok(T::from_f64(ffi::PyFloat_AS_DOUBLE(item.as_ptr())));
        }
    }
    element_slow(item)
}

fn element_slow<T: Element>(item: &Bound<'_, PyAny>) -> Res<T> {
    let kind = scalar::number_kind(item);
    match (T::KIND, kind) {
        (ElementKind::Bool, Some(_)) => return Ok(T::from_i64(item.is_truthy()?.into())),
        (ElementKind::Unsigned, _) if T::SCALAR_TYPE == ScalarType::UInt64 && tensor::get(item).is_none() => {
            return match kind {
                Some(NumberKind::Int | NumberKind::Bool) => Ok(T::cast_from(scalar::to_u64(item)?)),
                _ => Err(PyTypeError::error("an integer is required").into()),
            };
        }
        (ElementKind::Signed | ElementKind::Unsigned, Some(NumberKind::Int)) => {
            return Ok(Scalar::Int(scalar::to_i64(item)?).to::<T>()?);
        }
        // Of any size: what is beyond the dtype becomes infinite, as a float does.
        (ElementKind::Floating | ElementKind::Complex, Some(NumberKind::Int | NumberKind::Float)) => {
            return Ok(T::from_f64(scalar::to_f64(item)?));
        }
        _ => {}
    }
    let value = match kind {
        Some(_) => scalar::to_scalar(item)?,
        None => match tensor::get(item) {
            Some(tensor) if tensor.numel()? == 1 => tensor::item_below_modes(tensor)?,
            Some(_) => {
                let text = "only one element tensors can be converted to Python scalars";
                return Err(PyValueError::error(text).into());
            }
            None => return not_a_number::<T>(item),
        },
    };
    if matches!(value, Scalar::Complex(_)) && T::KIND != ElementKind::Complex {
        return Err(PyTypeError::error("must be real number, not complex").into());
    }
    match T::KIND {
        ElementKind::Floating => Ok(T::from_f64(value.to_f64()?)),
        ElementKind::Complex => Ok(T::from_complex(value.to_complex()?)),
        _ => Ok(value.to::<T>()?),
    }
}

#[cold]
fn not_a_number<T: Element>(item: &Bound<'_, PyAny>) -> Res<T> {
    let name = item.get_type().name()?.to_string();
    if matches!(name.as_str(), "str" | "bytes") {
        return Err(PyTypeError::error(format!("new(): invalid data type '{name}'")).into());
    }
    // Other classes may know how to become a number.
    match T::KIND {
        ElementKind::Floating | ElementKind::Complex => Ok(T::from_f64(item.extract::<f64>()?)),
        _ => Ok(Scalar::Int(item.extract::<i64>()?).to::<T>()?),
    }
}
