//! Derivatives of copies and conversions.

use c10::{Result, SymInt, Tensor, TensorOptions};
use ops::at;

use super::pointwise::handle_r_to_c;
use super::shape::sum_to;

/// `_to_copy`: the gradient goes back to the dtype and device of the source.
pub fn to_copy_backward(grad: &Tensor, options: TensorOptions) -> Result<Tensor> {
    let (dtype, device) = (options.dtype_or_default(), options.device_or_default());
    let grad = handle_r_to_c(dtype, grad)?;
    if grad.scalar_type() == dtype && grad.device() == device {
        return Ok(grad);
    }
    at::_to_copy(&grad, Some(dtype), None, Some(device), None, false, None)
}

/// `copy_` with respect to the source, which was broadcast and converted.
pub fn copy_src_backward(grad: &Tensor, sizes: &[SymInt], options: TensorOptions) -> Result<Tensor> {
    to_copy_backward(&sum_to(grad, sizes)?, options)
}
