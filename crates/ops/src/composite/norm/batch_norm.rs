//! Batch normalization: statistics per channel (dimension 1) over everything else.

use c10::{check, check_not_implemented, DimVector, Result, Scalar, ScalarType, SizeInt, SymInt, Tensor};

use crate::meta::norm::{has_mixed_parameters, statistics_dtype};
use crate::terms::{along, but_channels, cast, mul, shift, square, sub, sum};
use crate::{at, sym};

type Gradients = (Option<Tensor>, Option<Tensor>, Option<Tensor>);

/// Every given tensor has an element per channel.
fn check_parameters(input: &Tensor, parameters: [(&str, Option<&Tensor>); 4]) -> Result<()> {
    if input.dim() == 1 && sym::is_empty(input)? {
        // As in PyTorch nothing has no channels to compare with.
        return Ok(());
    }
    check!(input.dim() >= 2, "batch_norm(): expected an input of at least 2 dimensions, got {}", input.dim());
    let channels = input.sym_size(1)?;
    for (name, parameter) in parameters {
        if let Some(parameter) = parameter {
            let count = parameter.sym_numel();
            check!(count.expect_eq(&channels)?, "{name} should contain {channels} elements not {count}");
        }
    }
    Ok(())
}

/// `1 / sqrt(variance + eps)`, zero where that would divide by zero for an `eps` of zero.
fn inverse_deviation(variance: &Tensor, eps: f64) -> Result<Tensor> {
    let inverse = at::reciprocal(&at::sqrt(&shift(variance, eps)?)?)?;
    if eps == 0.0 {
        return at::masked_fill_scalar(&inverse, &at::eq_scalar(variance, &Scalar::Int(0))?, &Scalar::Int(0));
    }
    Ok(inverse)
}

/// Moves a running statistic towards `value`, in place.
fn update(running: Option<&Tensor>, value: &Tensor, momentum: f64) -> Result<()> {
    if let Some(running) = running {
        let value = cast(value, running.dtype())?;
        at::add__tensor(
            &at::mul__scalar(running, &Scalar::Float(1.0 - momentum))?,
            &value,
            &Scalar::Float(momentum),
        )?;
    }
    Ok(())
}

/// `aten::native_batch_norm`: the result, and in training the mean and the reciprocal deviation of each channel.
#[allow(clippy::too_many_arguments)]
pub fn native_batch_norm(
    input: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    running_mean: Option<&Tensor>,
    running_var: Option<&Tensor>,
    training: bool,
    momentum: f64,
    eps: f64,
) -> Result<(Tensor, Tensor, Tensor)> {
    check_not_implemented!(
        input.is_floating_point(),
        "\"batch_norm\" not implemented for '{}'",
        input.dtype().short_name()
    );
    check!(input.dim() >= 2, "batch_norm(): expected an input of at least 2 dimensions, got {}", input.dim());
    check_parameters(
        input,
        [("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias)],
    )?;
    let mixed = has_mixed_parameters(input, &[weight, bias, running_mean, running_var])?;
    let compute = statistics_dtype(input.dtype());
    let saved = if mixed { ScalarType::Float } else { input.dtype() };
    let x = cast(input, compute)?;
    let ndim = input.dim();
    let (mean, inverse) = if training {
        let dims = but_channels(ndim);
        let channels = input.sym_size(1)?.sym_max(&SymInt::ONE)?;
        let count = input.sym_numel().sym_floordiv(&channels)?;
        let mean = at::div_scalar(&sum(&x, &dims, false)?, &sym::scalar(&count))?;
        let squares = sum(&square(&sub(&x, &along(&mean, 1, ndim)?)?)?, &dims, false)?;
        update(running_mean, &mean, momentum)?;
        if running_var.is_some() {
            let unbiased = at::div_scalar(&squares, &sym::scalar(&count.sym_sub(&SymInt::ONE)?))?;
            update(running_var, &unbiased, momentum)?;
        }
        let variance = at::div_scalar(&squares, &sym::scalar(&count))?;
        (mean, inverse_deviation(&variance, eps)?)
    } else {
        let (Some(mean), Some(variance)) = (running_mean, running_var) else {
            c10::bail!(Runtime, "running_mean and running_var must be defined in evaluation mode")
        };
        (cast(mean, compute)?, inverse_deviation(&cast(variance, compute)?, eps)?)
    };
    // One multiplication and one addition per element.
    let factor = match weight {
        Some(weight) => mul(&inverse, &cast(weight, compute)?)?,
        None => inverse.clone(),
    };
    let offset = at::neg(&mul(&mean, &factor)?)?;
    let offset = match bias {
        Some(bias) => at::add_tensor(&offset, &cast(bias, compute)?, &Scalar::Int(1))?,
        None => offset,
    };
    let out = at::addcmul(&along(&offset, 1, ndim)?, &x, &along(&factor, 1, ndim)?, &Scalar::Int(1))?;
    let out = cast(&out, input.dtype())?;
    if training {
        return Ok((out, cast(&mean, saved)?, cast(&inverse, saved)?));
    }
    let none = || at::new_empty(input, &[SymInt::ZERO], Some(saved), None, None, None);
    Ok((out, none()?, none()?))
}

/// `aten::_native_batch_norm_legit`
#[allow(clippy::too_many_arguments)]
pub fn _native_batch_norm_legit(
    input: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    running_mean: &Tensor,
    running_var: &Tensor,
    training: bool,
    momentum: f64,
    eps: f64,
) -> Result<(Tensor, Tensor, Tensor)> {
    native_batch_norm(input, weight, bias, Some(running_mean), Some(running_var), training, momentum, eps)
}

/// `aten::_native_batch_norm_legit.no_stats`
pub fn _native_batch_norm_legit_no_stats(
    input: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    training: bool,
    momentum: f64,
    eps: f64,
) -> Result<(Tensor, Tensor, Tensor)> {
    native_batch_norm(input, weight, bias, None, None, training, momentum, eps)
}

fn reserve(input: &Tensor) -> Result<Tensor> {
    at::new_empty(input, &[SymInt::ZERO], Some(ScalarType::Byte), None, None, None)
}

/// `aten::_batch_norm_with_update`; what a backend would keep for the backward pass is empty.
pub fn _batch_norm_with_update(
    input: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    running_mean: &Tensor,
    running_var: &Tensor,
    momentum: f64,
    eps: f64,
) -> Result<(Tensor, Tensor, Tensor, Tensor)> {
    let (out, mean, inverse) =
        native_batch_norm(input, weight, bias, Some(running_mean), Some(running_var), true, momentum, eps)?;
    Ok((out, mean, inverse, reserve(input)?))
}

/// `aten::_batch_norm_no_update`
pub fn _batch_norm_no_update(
    input: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    running_mean: Option<&Tensor>,
    running_var: Option<&Tensor>,
    momentum: f64,
    eps: f64,
) -> Result<(Tensor, Tensor, Tensor, Tensor)> {
    let (out, mean, inverse) =
        native_batch_norm(input, weight, bias, running_mean, running_var, false, momentum, eps)?;
    Ok((out, mean, inverse, reserve(input)?))
}

/// Mean and reciprocal deviation of each channel that a backward pass goes by: those of the batch in training, else the
/// running ones.
pub fn statistics(
    running: [Option<&Tensor>; 2],
    saved: [Option<&Tensor>; 2],
    train: bool,
    eps: f64,
) -> Result<(Tensor, Tensor)> {
    let (found, name) =
        if train { (saved, "save_mean and save_invstd") } else { (running, "running_mean and running_var") };
    let [Some(mean), Some(second)] = found else {
        c10::bail!(Runtime, "native_batch_norm_backward(): expected {name}, got none")
    };
    let dtype = statistics_dtype(mean.dtype());
    let (mean, second) = (cast(mean, dtype)?, cast(second, dtype)?);
    Ok((mean, if train { second } else { inverse_deviation(&second, eps)? }))
}

/// `aten::native_batch_norm_backward`
#[allow(clippy::too_many_arguments)]
pub fn native_batch_norm_backward(
    grad_out: &Tensor,
    input: &Tensor,
    weight: Option<&Tensor>,
    running_mean: Option<&Tensor>,
    running_var: Option<&Tensor>,
    save_mean: Option<&Tensor>,
    save_invstd: Option<&Tensor>,
    train: bool,
    eps: f64,
    output_mask: &[bool],
) -> Result<Gradients> {
    check_parameters(
        input,
        [("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", None)],
    )?;
    let wanted = |i: usize| output_mask.get(i).copied().unwrap_or(false);
    let compute = statistics_dtype(input.dtype());
    let ndim = input.dim();
    let dims: DimVector = but_channels(ndim).into_iter().collect();
    let (mean, inverse) = statistics([running_mean, running_var], [save_mean, save_invstd], train, eps)?;
    let (mean, inverse) =
        (along(&cast(&mean, compute)?, 1, ndim)?, along(&cast(&inverse, compute)?, 1, ndim)?);
    let grad = cast(grad_out, compute)?;
    let parameter_dtype = weight.map_or_else(|| input.dtype(), |weight| weight.dtype());
    let total = sum(&grad, &dims, true)?;
    let needs_product = wanted(1) || (wanted(0) && train);
    let normalized =
        if needs_product { Some(mul(&sub(&cast(input, compute)?, &mean)?, &inverse)?) } else { None };
    let product = normalized.as_ref().map(|n| sum(&mul(&grad, n)?, &dims, true)).transpose()?;
    let as_parameter = |t: &Tensor| cast(&at::reshape(t, &[input.sym_size(1)?])?, parameter_dtype);

    let grad_input = if wanted(0) {
        let scale = match weight {
            Some(weight) => mul(&inverse, &along(&cast(weight, compute)?, 1, ndim)?)?,
            None => inverse.clone(),
        };
        let inside = match (&normalized, &product, train) {
            (Some(normalized), Some(product), true) => {
                let channels = input.sym_size(1)?.sym_max(&SymInt::ONE)?;
                let count = sym::scalar(&input.sym_numel().sym_floordiv(&channels)?);
                let inside = sub(&grad, &at::div_scalar(&total, &count)?)?;
                sub(&inside, &mul(normalized, &at::div_scalar(product, &count)?)?)?
            }
            _ => grad.clone(),
        };
        Some(cast(&mul(&inside, &scale)?, input.dtype())?)
    } else {
        None
    };
    let grad_weight = match product {
        Some(product) if wanted(1) => Some(as_parameter(&product)?),
        _ => None,
    };
    let grad_bias = if wanted(2) { Some(as_parameter(&total)?) } else { None };
    Ok((grad_input, grad_weight, grad_bias))
}

/// `aten::batch_norm_backward`
#[allow(clippy::too_many_arguments)]
pub fn batch_norm_backward(
    grad_out: &Tensor,
    input: &Tensor,
    weight: &Tensor,
    running_mean: Option<&Tensor>,
    running_var: Option<&Tensor>,
    save_mean: Option<&Tensor>,
    save_var: Option<&Tensor>,
    update: bool,
    eps: f64,
    output_mask: &[bool],
    _reserve: &Tensor,
) -> Result<Gradients> {
    native_batch_norm_backward(
        grad_out,
        input,
        Some(weight),
        running_mean,
        running_var,
        save_mean,
        save_var,
        update,
        eps,
        output_mask,
    )
}

/// `aten::batch_norm`
#[allow(clippy::too_many_arguments)]
pub fn batch_norm(
    input: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    running_mean: Option<&Tensor>,
    running_var: Option<&Tensor>,
    training: bool,
    momentum: f64,
    eps: f64,
    _cudnn_enabled: bool,
) -> Result<Tensor> {
    check_parameters(
        input,
        [("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias)],
    )?;
    check!(
        training || (running_mean.is_some() && running_var.is_some()),
        "running_mean and running_var must be defined in evaluation mode"
    );
    if sym::is_empty(input)? {
        // Nothing to normalize, but the parameters are part of the graph.
        let channel_dim = usize::from(input.dim() > 1);
        let mut out = at::clone(input, None)?;
        if let Some(weight) = weight {
            out = mul(&out, &along(weight, channel_dim, input.dim())?)?;
        }
        if let Some(bias) = bias {
            out = at::add_tensor(&out, &along(bias, channel_dim, input.dim())?, &Scalar::Int(1))?;
        }
        return Ok(out);
    }
    Ok(at::native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)?.0)
}

/// `aten::instance_norm`: batch normalization in which every sample's channel is one of its own.
#[allow(clippy::too_many_arguments)]
pub fn instance_norm(
    input: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    running_mean: Option<&Tensor>,
    running_var: Option<&Tensor>,
    use_input_stats: bool,
    momentum: f64,
    eps: f64,
    cudnn_enabled: bool,
) -> Result<Tensor> {
    check!(
        use_input_stats || (running_mean.is_some() && running_var.is_some()),
        "Expected running_mean and running_var to be defined when use_input_stats is false"
    );
    check!(
        input.dim() >= 2,
        "instance_norm(): expected an input of at least 2 dimensions, got {}",
        input.dim()
    );
    let sizes = input.sym_sizes();
    let (batch, channels) = (sizes[0].clone(), sizes[1].clone());
    let rows = batch.sym_mul(&channels)?;
    let mut shape = sizes.clone();
    shape[0] = SymInt::ONE;
    shape[1] = rows.clone();
    let repeated = |t: Option<&Tensor>| {
        t.map(|t| {
            let spread = at::expand(t, &[batch.clone(), channels.clone()], false)?;
            // Copies, which are updated in place of the arguments.
            at::reshape(&at::clone(&spread, Some(c10::MemoryFormat::Contiguous))?, &[rows.clone()])
        })
        .transpose()
    };
    let (weight, bias) = (repeated(weight)?, repeated(bias)?);
    let (mean, variance) = (repeated(running_mean)?, repeated(running_var)?);
    let x = at::reshape(&at::contiguous(input, c10::MemoryFormat::Contiguous)?, &shape)?;
    let out = at::batch_norm(
        &x,
        weight.as_ref(),
        bias.as_ref(),
        mean.as_ref(),
        variance.as_ref(),
        use_input_stats,
        momentum,
        eps,
        cudnn_enabled,
    )?;
    if use_input_stats {
        for (running, rows) in [(running_mean, &mean), (running_var, &variance)] {
            if let (Some(running), Some(rows)) = (running, rows) {
                let table = at::view(rows, &[batch.clone(), channels.clone()])?;
                at::copy_(&at::alias(running)?, &at::mean_dim(&table, Some(&[0]), false, None)?, false)?;
            }
        }
    }
    at::view(&out, &sizes)
}
