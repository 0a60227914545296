//! Derivatives of variances and their like, and of other reductions that weigh elements.

use c10::{Result, Scalar, Tensor};
use ops::at;
use ops::composite::reduce::reduced_count;

use super::plus;
use super::pointwise::conj;
use super::reduce::{amaxamin_backward, mean_backward, restore_reduced_dims, sum_backward};

const ZERO: Scalar = Scalar::Int(0);
const ONE: Scalar = Scalar::Int(1);

/// `var.correction`
pub fn var_backward(
    grad: &Tensor,
    self_: &Tensor,
    dim: Option<&[i64]>,
    correction: Option<&Scalar>,
    keepdim: bool,
) -> Result<Tensor> {
    let dims = dim.unwrap_or(&[]);
    let correction = correction.map_or(Ok(1.0), Scalar::to_f64)?;
    let ndim = self_.dim();
    let freedom = reduced_count(self_, dim)?.guard_int()? as f64 - correction;
    let grad = restore_reduced_dims(grad, dims, keepdim, ndim)?;
    if freedom <= 0.0 {
        // The variance is not finite, or does not depend on its one element.
        let nan = Scalar::Float(f64::NAN);
        let infinite = Scalar::Float(f64::INFINITY);
        let value = if freedom == 0.0 { nan } else { infinite };
        let values = at::mul_scalar(&grad, &value)?;
        return at::mul_tensor(
            &at::expand(&values, &self_.sym_sizes(), false)?,
            &at::ones_like(self_, None, None, None, None, None)?,
        );
    }
    let mean = at::mean_dim(self_, Some(dims), true, None)?;
    let centred = at::sub_tensor(self_, &mean, &ONE)?;
    at::mul_tensor(&at::mul_scalar(&grad, &Scalar::Float(2.0 / freedom))?, &centred)
}

/// `std.correction`: zero where the deviation is.
pub fn std_backward(
    result: &Tensor,
    grad: &Tensor,
    self_: &Tensor,
    dim: Option<&[i64]>,
    correction: Option<&Scalar>,
    keepdim: bool,
) -> Result<Tensor> {
    let slope = at::div_tensor(grad, &at::mul_scalar(result, &Scalar::Int(2))?)?;
    let slope = at::masked_fill_scalar(&slope, &at::eq_scalar(result, &ZERO)?, &ZERO)?;
    var_backward(&slope, self_, dim, correction, keepdim)
}

fn with_mean(
    first: Option<Tensor>,
    grad_mean: Option<&Tensor>,
    self_: &Tensor,
    dim: Option<&[i64]>,
    keepdim: bool,
) -> Result<Tensor> {
    let second = match grad_mean {
        Some(grad) => Some(mean_backward(grad, &self_.sym_sizes(), dim, self_.sym_numel(), keepdim)?),
        None => None,
    };
    match (first, second) {
        (first, Some(second)) => plus(first, second),
        (Some(first), None) => Ok(first),
        (None, None) => at::zeros_like(self_, None, None, None, None, None),
    }
}

/// `var_mean.correction`
pub fn var_mean_backward(
    grads: &[Option<Tensor>],
    self_: &Tensor,
    dim: Option<&[i64]>,
    correction: Option<&Scalar>,
    keepdim: bool,
) -> Result<Tensor> {
    let first =
        grads[0].as_ref().map(|grad| var_backward(grad, self_, dim, correction, keepdim)).transpose()?;
    with_mean(first, grads[1].as_ref(), self_, dim, keepdim)
}

/// `std_mean.correction`
pub fn std_mean_backward(
    grads: &[Option<Tensor>],
    self_: &Tensor,
    deviation: &Tensor,
    dim: Option<&[i64]>,
    correction: Option<&Scalar>,
    keepdim: bool,
) -> Result<Tensor> {
    let first = grads[0]
        .as_ref()
        .map(|grad| std_backward(deviation, grad, self_, dim, correction, keepdim))
        .transpose()?;
    with_mean(first, grads[1].as_ref(), self_, dim, keepdim)
}

/// `logsumexp`
pub fn logsumexp_backward(
    grad: &Tensor,
    self_: &Tensor,
    result: &Tensor,
    dim: &[i64],
    keepdim: bool,
) -> Result<Tensor> {
    let grad = restore_reduced_dims(grad, dim, keepdim, self_.dim())?;
    let result = restore_reduced_dims(result, dim, keepdim, self_.dim())?;
    at::mul_tensor(&grad, &conj(&at::exp(&at::sub_tensor(self_, &result, &ONE)?)?)?)
}

/// `aminmax`
pub fn aminmax_backward(
    grads: &[Option<Tensor>],
    self_: &Tensor,
    min: &Tensor,
    max: &Tensor,
    dim: Option<i64>,
    keepdim: bool,
) -> Result<Tensor> {
    let dims: &[i64] = match &dim {
        Some(dim) => std::slice::from_ref(dim),
        None => &[],
    };
    let part = |grad: Option<&Tensor>, value: &Tensor| {
        grad.map(|grad| amaxamin_backward(grad, self_, value, dims, keepdim)).transpose()
    };
    match (part(grads[0].as_ref(), min)?, part(grads[1].as_ref(), max)?) {
        (first, Some(second)) => plus(first, second),
        (Some(first), None) => Ok(first),
        (None, None) => sum_backward(min, &self_.sym_sizes(), Some(dims), keepdim),
    }
}
