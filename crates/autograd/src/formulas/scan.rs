//! Derivatives of scans.

use c10::{maybe_wrap_dim, Result, Scalar, ScalarType, SizeInt, SymInt, Tensor};
use ops::at;

use super::pointwise::conj;

const ZERO: Scalar = Scalar::Int(0);
const ONE: Scalar = Scalar::Int(1);

/// Sums from the end.
fn reversed_cumsum(tensor: &Tensor, dim: i64) -> Result<Tensor> {
    at::flip(&at::cumsum(&at::flip(tensor, &[dim])?, dim, None)?, &[dim])
}

/// `cumsum`
pub fn cumsum_backward(grad: &Tensor, dim: i64) -> Result<Tensor> {
    if grad.dim() == 0 || grad.sym_numel().is_zero()? {
        return Ok(grad.clone());
    }
    reversed_cumsum(grad, dim)
}

/// `cumprod`
pub fn cumprod_backward(grad: &Tensor, self_: &Tensor, dim: i64, result: &Tensor) -> Result<Tensor> {
    if self_.sym_numel().is_zero()? || self_.dim() == 0 {
        return Ok(grad.clone());
    }
    let dim = maybe_wrap_dim(dim, self_.dim())?;
    let has_zero = at::is_nonzero(&at::any(&at::eq_scalar(self_, &ZERO)?)?)?;
    if !has_zero {
        let weighted = at::mul_tensor(grad, &conj(result)?)?;
        return at::div_tensor(&reversed_cumsum(&weighted, dim)?, &conj(self_)?);
    }
    // Where division doesn't help: of place i the product of those before it, times the sum over j >= i of the gradient
    // at j times the product of those after i up to j. Both are running results, so the whole is exact in every order.
    let inputs = at::unbind_int(&conj(self_)?, dim)?;
    let grads = at::unbind_int(grad, dim)?;
    let Some(last) = grads.last() else { return Ok(grad.clone()) };
    let mut after = vec![last.clone()];
    for i in (0..grads.len() - 1).rev() {
        let following = at::mul_tensor(&inputs[i + 1], &after[after.len() - 1])?;
        after.push(at::add_tensor(&grads[i], &following, &ONE)?);
    }
    after.reverse();
    let mut before = at::ones_like(&inputs[0], None, None, None, None, None)?;
    let mut parts = Vec::with_capacity(grads.len());
    for (input, after) in inputs.iter().zip(&after) {
        parts.push(at::mul_tensor(&before, after)?);
        before = at::mul_tensor(&before, input)?;
    }
    at::stack(&parts, dim)
}

/// `cummax`, `cummin`
pub fn cummaxmin_backward(grad: &Tensor, sizes: &[SymInt], indices: &Tensor, dim: i64) -> Result<Tensor> {
    if sizes.is_empty() || grad.sym_numel().is_zero()? {
        return Ok(grad.clone());
    }
    at::scatter_add(&at::new_zeros(grad, sizes, None, None, None, None)?, dim, indices, grad)
}

/// `logcumsumexp`
pub fn logcumsumexp_backward(grad: &Tensor, self_: &Tensor, result: &Tensor, dim: i64) -> Result<Tensor> {
    if grad.dim() == 0 || grad.sym_numel().is_zero()? {
        return Ok(grad.clone());
    }
    let reversed =
        |t: &Tensor| -> Result<Tensor> { at::flip(&at::logcumsumexp(&at::flip(t, &[dim])?, dim)?, &[dim]) };
    let spread = |log_grad: &Tensor| -> Result<Tensor> {
        let sums = reversed(&at::sub_tensor(log_grad, result, &ONE)?)?;
        at::exp(&at::add_tensor(&sums, self_, &ONE)?)
    };
    if grad.is_complex() {
        return conj(&spread(&at::log(&conj(grad)?)?)?);
    }
    // Logarithms of the positive and of the negative part.
    let logs = at::log(&at::abs(grad)?)?;
    // Not minus infinity, whose differences would make NaN of the second derivative.
    let nothing = Scalar::Float(match grad.scalar_type() {
        ScalarType::Double => f64::MIN,
        ScalarType::Half => -65504.0,
        ScalarType::BFloat16 => -3.3e38,
        _ => f32::MIN.into(),
    });
    let positive = at::masked_fill_scalar(&logs, &at::le_scalar(grad, &ZERO)?, &nothing)?;
    let negative = at::masked_fill_scalar(&logs, &at::ge_scalar(grad, &ZERO)?, &nothing)?;
    at::sub_tensor(&spread(&positive)?, &spread(&negative)?, &ONE)
}
