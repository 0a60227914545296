//! Derivatives of normalizations.

use c10::{GradMode, Result, Scalar, SymInt, Tensor};
use ops::at;
use ops::terms::{add, along, but_channels, mean, mul, shift, square, sub, sum};

use super::plus;

/// What the terms of a normalization's second derivative share.
struct Normalization<'a> {
    /// The dimensions that a mean is taken over.
    dims: Vec<i64>,
    /// The normalized input.
    x_hat: Tensor,
    /// The reciprocal deviation, which broadcasts against the input.
    rstd: &'a Tensor,
    /// The statistics are constants rather than the input's own.
    fixed: bool,
}

impl Normalization<'_> {
    fn mean(&self, t: &Tensor) -> Result<Tensor> {
        mean(t, &self.dims, true)
    }

    /// `v - mean(v) - x_hat * mean(v * x_hat)`: the projection that makes up the derivative of normalization. It is its
    /// own adjoint. Of fixed statistics nothing moves.
    fn project(&self, v: &Tensor) -> Result<Tensor> {
        if self.fixed {
            return Ok(v.clone());
        }
        let along = mul(&self.x_hat, &self.mean(&mul(v, &self.x_hat)?)?)?;
        sub(&sub(v, &self.mean(v)?)?, &along)
    }

    /// The derivative of `<g, rstd * P(a)>` with respect to the input: `rstd` and `x_hat` both move.
    fn input_term(&self, g: &Tensor, a: &Tensor) -> Result<Tensor> {
        let a_along = self.mean(&mul(a, &self.x_hat)?)?;
        let g_along = self.mean(&mul(g, &self.x_hat)?)?;
        // <g, P(a)> per element of a row.
        let inner = sub(&self.mean(&mul(g, a)?)?, &mul(&self.mean(g)?, &self.mean(a)?)?)?;
        let through_rstd = mul(&self.x_hat, &sub(&inner, &mul(&g_along, &a_along)?)?)?;
        let moved = add(&mul(g, &a_along)?, &mul(a, &g_along)?)?;
        let sum = add(&through_rstd, &self.project(&moved)?)?;
        at::neg(&mul(&square(self.rstd)?, &sum)?)
    }

    /// The second derivative with respect to the input, the weight and the gradient. `weight` and what belongs to the
    /// gradients of weight and bias broadcast against the input; the weight's own is summed by `over`.
    ///
    /// With `a = grad_out * weight` and the projection `P` the first derivatives are `rstd * P(a)`, `sum(grad_out * x_hat)` and
    /// `sum(grad_out)`. The terms below are the derivatives of their inner products with `terms`.
    fn double_backward(
        &self,
        [for_input, for_weight, for_bias]: [Option<&Tensor>; 3],
        grad_out: &Tensor,
        weight: Option<&Tensor>,
        over: impl Fn(&Tensor) -> Result<Tensor>,
        mask: [bool; 3],
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let weighted = |t: &Tensor| weight.map_or_else(|| Ok(t.clone()), |weight| mul(t, weight));
        let (mut to_input, mut to_weight, mut to_grad) = (None, None, None);
        if let Some(g) = for_input {
            let projected = mul(self.rstd, &self.project(g)?)?;
            if mask[1] && weight.is_some() {
                to_weight = Some(over(&mul(grad_out, &projected)?)?);
            }
            if mask[2] {
                to_grad = Some(weighted(&projected)?);
            }
            if mask[0] && !self.fixed {
                to_input = Some(self.input_term(g, &weighted(grad_out)?)?);
            }
        }
        if let Some(g) = for_weight {
            if mask[2] {
                to_grad = Some(plus(to_grad, mul(&self.x_hat, g)?)?);
            }
            if mask[0] {
                let projected = self.project(&mul(grad_out, g)?)?;
                to_input = Some(plus(to_input, mul(self.rstd, &projected)?)?);
            }
        }
        if let (Some(g), true) = (for_bias, mask[2]) {
            to_grad = Some(plus(to_grad, at::expand(g, &grad_out.sym_sizes(), false)?)?);
        }
        Ok((to_input, to_weight, to_grad))
    }
}

/// `native_layer_norm_backward` with respect to the input, the weight and the gradient.
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
    let (ndim, inner) = (input.dim(), normalized_shape.len() as i64);
    let rows = Normalization {
        dims: (ndim - inner..ndim).collect(),
        x_hat: mul(&sub(input, mean)?, rstd)?,
        rstd,
        fixed: false,
    };
    let outer: Vec<i64> = (0..ndim - inner).collect();
    let terms = [0, 1, 2].map(|i| grads.get(i).and_then(Option::as_ref));
    rows.double_backward(terms, grad_out, weight, |t| sum(t, &outer, false), mask)
}

/// `native_batch_norm_backward` with respect to the input, the weight and the gradient.
#[allow(clippy::too_many_arguments)] // The operator has that many.
pub fn batch_norm_double_backward(
    input: &Tensor,
    weight: Option<&Tensor>,
    grads: &[Option<Tensor>],
    grad_out: &Tensor,
    running: [Option<&Tensor>; 2],
    saved: [Option<&Tensor>; 2],
    train: bool,
    eps: f64,
    mask: [bool; 3],
) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
    let ndim = input.dim();
    let (mean, rstd) = ops::composite::norm::statistics(running, saved, train, eps)?;
    let (mean, rstd) = (along(&mean, 1, ndim)?, along(&rstd, 1, ndim)?);
    let dims = but_channels(ndim);
    let channels = Normalization {
        dims: dims.clone(),
        x_hat: mul(&sub(input, &mean)?, &rstd)?,
        rstd: &rstd,
        fixed: !train,
    };
    let spread = |t: Option<&Tensor>| t.map(|t| along(t, 1, ndim)).transpose();
    let term = |i: usize| grads.get(i).and_then(Option::as_ref);
    let (for_weight, for_bias, weight) = (spread(term(1))?, spread(term(2))?, spread(weight)?);
    let terms = [term(0), for_weight.as_ref(), for_bias.as_ref()];
    channels.double_backward(terms, grad_out, weight.as_ref(), |t| sum(t, &dims, false), mask)
}

/// `native_group_norm`. Where the result is to be differentiated again, the statistics are computed anew, so that they
/// are part of the graph.
#[allow(clippy::too_many_arguments)] // The operator has that many.
pub fn group_norm_backward(
    grads: &[Option<Tensor>],
    input: &Tensor,
    result1: &Tensor,
    result2: &Tensor,
    weight: Option<&Tensor>,
    n: &SymInt,
    c: &SymInt,
    hxw: &SymInt,
    group: i64,
    eps: f64,
    mask: [bool; 3],
) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
    let term = |i: usize| grads.get(i).and_then(Option::as_ref);
    let (for_mean, for_rstd) = (term(1), term(2));
    if !GradMode::is_enabled() && for_mean.is_none() && for_rstd.is_none() {
        let Some(grad) = term(0) else { return Ok((None, None, None)) };
        return at::native_group_norm_backward(
            grad, input, result1, result2, weight, n, c, hxw, group, &mask,
        );
    }
    let groups = SymInt::from(group);
    let row = c.sym_floordiv(&groups)?.sym_mul(hxw)?;
    let x = at::reshape(input, &[n.clone(), groups.clone(), row.clone()])?;
    let average = mean(&x, &[2], true)?;
    let centred = sub(&x, &average)?;
    let variance = mean(&square(&centred)?, &[2], true)?;
    let rstd = at::rsqrt(&shift(&variance, eps)?)?;
    let (mut to_input, mut to_weight, mut to_bias) = (None, None, None);
    if let Some(grad) = term(0) {
        let statistics = [&average, &rstd];
        (to_input, to_weight, to_bias) = ops::composite::norm::group_norm_gradients(
            grad,
            input,
            statistics,
            weight,
            [n, c, hxw],
            group,
            mask,
        )?;
    }
    // The mean is everybody's share; the deviation moves with the distance from the mean.
    let count = Scalar::SymInt(row);
    let statistic = |g: &Tensor| at::reshape(g, &[n.clone(), groups.clone(), SymInt::from(1)]);
    if mask[0] {
        if let Some(g) = for_mean {
            let share = at::expand(&at::div_scalar(&statistic(g)?, &count)?, &x.sym_sizes(), false)?;
            to_input = Some(plus(to_input, at::reshape(&share, &input.sym_sizes())?)?);
        }
        if let Some(g) = for_rstd {
            let slope = at::neg(&mul(&square(&rstd)?, &rstd)?)?;
            let moved = at::div_scalar(&mul(&mul(&statistic(g)?, &slope)?, &centred)?, &count)?;
            to_input = Some(plus(to_input, at::reshape(&moved, &input.sym_sizes())?)?);
        }
    }
    Ok((to_input, to_weight, to_bias))
}
