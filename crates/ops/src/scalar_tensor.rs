//! Python numbers as tensors.

use c10::{Result, Scalar, Tensor};

use crate::at;

/// A 0-d CPU tensor of the scalar's own dtype (bool, int64, float64, complex128).
pub fn scalar_to_tensor(value: &Scalar) -> Result<Tensor> {
    let tensor = iter::empty(&[], &value.scalar_type().into())?;
    at::fill__scalar(&tensor, value)?;
    Ok(tensor)
}

/// A 0-d CPU tensor that takes part in type promotion as a Python number does.
pub fn wrapped_scalar_tensor(value: &Scalar) -> Result<Tensor> {
    let tensor = scalar_to_tensor(value)?;
    tensor.set_wrapped_number(true);
    Ok(tensor)
}
