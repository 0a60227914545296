//! Losses of probabilities: cross entropies of two classes, the divergence of distributions, and of counts.

use c10::{check, check_not_implemented, Result, Scalar, Tensor};

use super::{apply_reduction, robust::share};
use crate::at;
use crate::terms::{add, mul, scale, shift, sub, zeros_like, ONE};

/// What denominators and logarithms of zero are replaced by.
const TINY: f64 = 1e-12;
const LOWEST_LOGARITHM: f64 = -100.0;

/// `log(sigmoid(x))`, without overflow.
pub fn log_of_sigmoid(x: &Tensor) -> Result<Tensor> {
    let low = at::clamp_max(x, &Scalar::Int(0))?;
    sub(&low, &at::log1p(&at::exp(&at::neg(&at::abs(x)?)?)?)?)
}

/// `x log x`, zero at zero.
pub fn x_log_x(x: &Tensor) -> Result<Tensor> {
    let zero = at::eq_scalar(x, &Scalar::Int(0))?;
    let safe = at::masked_fill_scalar(x, &zero, &ONE)?;
    at::masked_fill_scalar(&mul(x, &at::log(&safe)?)?, &zero, &Scalar::Int(0))
}

fn weighted(loss: Tensor, weight: Option<&Tensor>) -> Result<Tensor> {
    weight.map_or_else(|| Ok(loss.clone()), |weight| mul(&loss, weight))
}

fn check_unit_interval(name: &str, values: &Tensor) -> Result<()> {
    if values.is_meta() || values.has_symbolic_sizes_strides() {
        return Ok(());
    }
    let inside =
        at::logical_and(&at::ge_scalar(values, &Scalar::Int(0))?, &at::le_scalar(values, &Scalar::Int(1))?)?;
    check!(at::is_nonzero(&at::all(&inside)?)?, "all elements of {name} should be between 0 and 1");
    Ok(())
}

/// `aten::binary_cross_entropy`
pub fn binary_cross_entropy(
    self_: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
) -> Result<Tensor> {
    check_not_implemented!(
        self_.is_floating_point(),
        "\"binary_cross_entropy\" not implemented for '{}'",
        self_.dtype().short_name()
    );
    check!(
        self_.dtype() == target.dtype(),
        "Found dtype {} but expected {}",
        target.dtype().short_name(),
        self_.dtype().short_name()
    );
    check_unit_interval("input", self_)?;
    check_unit_interval("target", target)?;
    let floor = Scalar::Float(LOWEST_LOGARITHM);
    let positive = at::clamp_min(&at::log(self_)?, &floor)?;
    let negative = at::clamp_min(&at::log1p(&at::neg(self_)?)?, &floor)?;
    let loss = sub(&mul(&shift(target, -1.0)?, &negative)?, &mul(target, &positive)?)?;
    apply_reduction(weighted(loss, weight)?, reduction)
}

/// `x (1 - x)`, kept from zero.
pub fn binary_variance(x: &Tensor) -> Result<Tensor> {
    at::clamp_min(&mul(x, &shift(&at::neg(x)?, 1.0)?)?, &Scalar::Float(TINY))
}

/// `aten::binary_cross_entropy_backward`
pub fn binary_cross_entropy_backward(
    grad_output: &Tensor,
    self_: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
) -> Result<Tensor> {
    let slope = at::div_tensor(&sub(self_, target)?, &binary_variance(self_)?)?;
    share(&weighted(mul(grad_output, &slope)?, weight)?, self_, reduction)
}

/// `aten::binary_cross_entropy_with_logits`
pub fn binary_cross_entropy_with_logits(
    self_: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    pos_weight: Option<&Tensor>,
    reduction: i64,
) -> Result<Tensor> {
    let log_sigmoid = log_of_sigmoid(self_)?;
    // (1 - t) x - (1 + (p - 1) t) log σ(x)
    let negative = mul(&shift(&at::neg(target)?, 1.0)?, self_)?;
    let positive = match pos_weight {
        Some(pos_weight) => mul(&shift(&mul(&shift(pos_weight, -1.0)?, target)?, 1.0)?, &log_sigmoid)?,
        None => log_sigmoid,
    };
    apply_reduction(weighted(sub(&negative, &positive)?, weight)?, reduction)
}

/// The gradient of `binary_cross_entropy_with_logits` with respect to the logits.
pub fn logits_gradient(
    grad: &Tensor,
    self_: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    pos_weight: Option<&Tensor>,
    reduction: i64,
) -> Result<Tensor> {
    let probability = at::sigmoid(self_)?;
    let slope = match pos_weight {
        Some(pos_weight) => {
            let positive = mul(pos_weight, target)?;
            let total = shift(&sub(&positive, target)?, 1.0)?;
            sub(&mul(&total, &probability)?, &positive)?
        }
        None => sub(&probability, target)?,
    };
    share(&weighted(mul(&slope, grad)?, weight)?, self_, reduction)
}

/// The gradient of `binary_cross_entropy_with_logits` with respect to the target.
pub fn logits_target_gradient(
    grad: &Tensor,
    self_: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    pos_weight: Option<&Tensor>,
    reduction: i64,
) -> Result<Tensor> {
    let slope = match pos_weight {
        // -x = log σ(-x) - log σ(x)
        Some(pos_weight) => {
            let other = log_of_sigmoid(&at::neg(self_)?)?;
            sub(&other, &mul(pos_weight, &log_of_sigmoid(self_)?)?)?
        }
        None => at::neg(self_)?,
    };
    share(&weighted(mul(&slope, grad)?, weight)?, target, reduction)
}

/// `aten::kl_div`
pub fn kl_div(self_: &Tensor, target: &Tensor, reduction: i64, log_target: bool) -> Result<Tensor> {
    check!(!self_.is_complex() && !target.is_complex(), "kl_div: Complex inputs are not supported");
    check!(
        !self_.dtype().is_integral(true) && !target.dtype().is_integral(true),
        "kl_div: Integral inputs not supported."
    );
    let loss = if log_target {
        mul(&at::exp(target)?, &sub(target, self_)?)?
    } else {
        sub(&x_log_x(target)?, &mul(target, self_)?)?
    };
    apply_reduction(loss, reduction)
}

/// `aten::poisson_nll_loss`
pub fn poisson_nll_loss(
    input: &Tensor,
    target: &Tensor,
    log_input: bool,
    full: bool,
    eps: f64,
    reduction: i64,
) -> Result<Tensor> {
    let mut loss = if log_input {
        sub(&at::exp(input)?, &mul(target, input)?)?
    } else {
        sub(input, &mul(target, &at::log(&shift(input, eps)?)?)?)?
    };
    if full {
        let stirling = add(
            &sub(&mul(target, &at::log(target)?)?, target)?,
            &scale(&at::log(&scale(target, 2.0 * std::f64::consts::PI)?)?, 0.5)?,
        )?;
        let small = at::le_scalar(target, &ONE)?;
        loss = add(&loss, &at::masked_fill_scalar(&stirling, &small, &Scalar::Int(0))?)?;
    }
    apply_reduction(loss, reduction)
}

/// `aten::hinge_embedding_loss`
pub fn hinge_embedding_loss(self_: &Tensor, target: &Tensor, margin: f64, reduction: i64) -> Result<Tensor> {
    let zeros = zeros_like(self_)?;
    let room = at::clamp_min(&shift(&at::neg(self_)?, margin)?, &Scalar::Int(0))?;
    let apart = at::where_self(&at::ne_scalar(target, &ONE)?, &room, &zeros)?;
    let together = at::where_self(&at::ne_scalar(target, &Scalar::Int(-1))?, self_, &zeros)?;
    apply_reduction(add(&apart, &together)?, reduction)
}
