//! Derivatives of normalizations.

use c10::{Result, Scalar, SymInt, Tensor};
use ops::at;

use super::plus;

const ONE: Scalar = Scalar::Int(1);

/// What the terms of layer norm's second derivative share.
struct Rows<'a> {
    /// The normalized dimensions.
    dims: Vec<i64>,
    /// The normalized input.
    x_hat: Tensor,
    rstd: &'a Tensor,
}

impl Rows<'_> {
    fn mean(&self, t: &Tensor) -> Result<Tensor> {
        at::mean_dim(t, Some(&self.dims), true, None)
    }

    /// `v - mean(v) - x_hat * mean(v * x_hat)`: the projection that makes up the derivative of normalization. It is its
    /// own adjoint.
    fn project(&self, v: &Tensor) -> Result<Tensor> {
        let along = at::mul_tensor(&self.x_hat, &self.mean(&at::mul_tensor(v, &self.x_hat)?)?)?;
        at::sub_tensor(&at::sub_tensor(v, &self.mean(v)?, &ONE)?, &along, &ONE)
    }
}

/// `native_layer_norm_backward` with respect to the input, the weight and the gradient.
///
/// With `x_hat = (x - mean) * rstd`, `a = grad_out * weight` and the projection `P` of [`Rows::project`], the first derivatives are
/// `rstd * P(a)`, `sum(grad_out * x_hat)` and `sum(grad_out)`. The terms below are the derivatives of their inner products
/// with `grads`.
#[allow(clippy::too_many_arguments)] // The operator has that many.
pub fn layer_norm_double_backward(
    input: &Tensor,
    weight: Option<&Tensor>,
    grads: &[Option<Tensor>],
    grad_out: &Tensor,
    mean: &Tensor,
    rstd: &Tensor,
    normalized_shape: &[SymInt],
    mask: [bool; 3],
) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
    let term = |i: usize| grads.get(i).and_then(Option::as_ref);
    let (for_input, for_weight, for_bias) = (term(0), term(1), term(2));
    let (ndim, inner) = (input.dim(), normalized_shape.len() as i64);
    let rows = Rows {
        dims: (ndim - inner..ndim).collect(),
        x_hat: at::mul_tensor(&at::sub_tensor(input, mean, &ONE)?, rstd)?,
        rstd,
    };
    let outer: Vec<i64> = (0..ndim - inner).collect();
    let over_rows = |t: &Tensor| {
        if outer.is_empty() {
            Ok(t.clone())
        } else {
            at::sum_dim_intlist(t, Some(&outer), false, None)
        }
    };
    let weighted = |t: &Tensor| weight.map_or_else(|| Ok(t.clone()), |weight| at::mul_tensor(t, weight));

    let (mut to_input, mut to_weight, mut to_grad) = (None, None, None);
    if let Some(g) = for_input {
        let projected = at::mul_tensor(rows.rstd, &rows.project(g)?)?;
        if mask[1] && weight.is_some() {
            to_weight = Some(plus(to_weight, over_rows(&at::mul_tensor(grad_out, &projected)?)?)?);
        }
        if mask[2] {
            to_grad = Some(plus(to_grad, weighted(&projected)?)?);
        }
        if mask[0] {
            to_input = Some(plus(to_input, input_term(&rows, g, &weighted(grad_out)?)?)?);
        }
    }
    if let Some(g) = for_weight {
        if mask[2] {
            to_grad = Some(plus(to_grad, at::mul_tensor(&rows.x_hat, g)?)?);
        }
        if mask[0] {
            let projected = rows.project(&at::mul_tensor(grad_out, g)?)?;
            to_input = Some(plus(to_input, at::mul_tensor(rows.rstd, &projected)?)?);
        }
    }
    if let (Some(g), true) = (for_bias, mask[2]) {
        to_grad = Some(plus(to_grad, at::expand(g, &grad_out.sym_sizes(), false)?)?);
    }
    Ok((to_input, to_weight, to_grad))
}

/// The derivative of `<g, rstd * P(a)>` with respect to the input: `rstd` and `x_hat` both move.
fn input_term(rows: &Rows<'_>, g: &Tensor, a: &Tensor) -> Result<Tensor> {
    let a_along = rows.mean(&at::mul_tensor(a, &rows.x_hat)?)?;
    let g_along = rows.mean(&at::mul_tensor(g, &rows.x_hat)?)?;
    // <g, P(a)> per element of a row.
    let inner = at::sub_tensor(
        &at::sub_tensor(
            &rows.mean(&at::mul_tensor(g, a)?)?,
            &at::mul_tensor(&rows.mean(g)?, &rows.mean(a)?)?,
            &ONE,
        )?,
        &at::mul_tensor(&g_along, &a_along)?,
        &ONE,
    )?;
    let through_rstd = at::mul_tensor(&rows.x_hat, &inner)?;
    let moved = at::add_tensor(&at::mul_tensor(g, &a_along)?, &at::mul_tensor(a, &g_along)?, &ONE)?;
    let through_x_hat = rows.project(&moved)?;
    let sum = at::add_tensor(&through_rstd, &through_x_hat, &ONE)?;
    at::neg(&at::mul_tensor(&at::mul_tensor(rows.rstd, rows.rstd)?, &sum)?)
}
