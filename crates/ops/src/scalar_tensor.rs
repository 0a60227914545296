//! Python numbers as tensors.

use c10::{bail, Complex, Result, Scalar, ScalarType, Tensor};

/// A 0-d CPU tensor of the scalar's own dtype (bool, int64, float64, complex128).
///
/// It is made without a call through the dispatcher: it stands for a constant, so no mode or transform is to see it.
pub fn scalar_to_tensor(value: &Scalar) -> Result<Tensor> {
    let dtype = value.scalar_type();
    let tensor = c10::empty_cpu(&[], dtype)?;
    match dtype {
        ScalarType::Bool => write(&tensor, value.to_bool()?),
        ScalarType::Long => write(&tensor, value.to_i64()?),
        ScalarType::UInt64 => write(&tensor, value.to::<u64>()?),
        ScalarType::Double => write(&tensor, value.to_f64()?),
        ScalarType::ComplexDouble => write::<Complex<f64>>(&tensor, value.to_complex()?),
        _ => bail!(Internal, "a Scalar has the dtype {dtype}"),
    }
    Ok(tensor)
}

/// A CPU tensor of these integers, made as [`scalar_to_tensor`] makes its own.
pub fn tensor_of_ints(values: &[i64]) -> Result<Tensor> {
    let tensor = c10::empty_cpu(&[values.len() as i64], ScalarType::Long)?;
    // SAFETY: the tensor was just made, on the CPU, with as many elements of this dtype, and nobody else has seen it.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), tensor.data_ptr().cast(), values.len()) };
    Ok(tensor)
}

/// The integers in a vector.
pub fn ints_of(tensor: &Tensor) -> Result<Vec<i64>> {
    let elements = crate::at::unbind_int(tensor, 0)?;
    let mut values = c10::try_with_capacity(elements.len())?;
    for element in &elements {
        values.push(crate::at::item(element)?.to_i64()?);
    }
    Ok(values)
}

fn write<T: c10::Element>(tensor: &Tensor, value: T) {
    debug_assert_eq!(tensor.dtype(), T::SCALAR_TYPE);
    // SAFETY: the tensor was just made, on the CPU, with one element of this dtype, and nobody else has seen it.
    unsafe { tensor.data_ptr().cast::<T>().write(value) };
}

/// A 0-d CPU tensor that takes part in type promotion as a Python number does.
pub fn wrapped_scalar_tensor(value: &Scalar) -> Result<Tensor> {
    let tensor = scalar_to_tensor(value)?;
    tensor.set_wrapped_number(true);
    Ok(tensor)
}
