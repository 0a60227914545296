//! Derivatives of losses.

use c10::{Result, Scalar, Tensor};
use ops::at;

/// PyTorch's number of the reduction `mean`.
const MEAN: i64 = 1;

/// `mse_loss_backward` with respect to the input (or, negated, the target)
pub fn mse_loss_double_backward(
    grad: &Tensor,
    grad_output: &Tensor,
    input: &Tensor,
    reduction: i64,
) -> Result<Tensor> {
    let product = at::mul_scalar(&at::mul_tensor(grad, grad_output)?, &Scalar::Int(2))?;
    if reduction == MEAN {
        return at::div_scalar(&product, &Scalar::SymInt(input.sym_numel()));
    }
    Ok(product)
}
