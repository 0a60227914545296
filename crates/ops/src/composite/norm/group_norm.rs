//! Normalization of groups of channels, and by the root of the mean square.

use c10::{check, check_not_implemented, MemoryFormat, Result, Scalar, ScalarType, SizeInt, SymInt, Tensor};

use crate::at;
use crate::meta::norm::{has_mixed_parameters, statistics_dtype};
use crate::terms::{add, along, cast, mul, square};

/// `aten::group_norm`
pub fn group_norm(
    input: &Tensor,
    num_groups: i64,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
    _cudnn_enabled: bool,
) -> Result<Tensor> {
    check!(input.dim() >= 2, "Expected at least 2 dimensions for input tensor but received {}", input.dim());
    let sizes = input.sym_sizes();
    let mut inner = SymInt::ONE;
    for size in &sizes[2..] {
        inner = inner.sym_mul(size)?;
    }
    at::native_group_norm(
        &at::contiguous(input, MemoryFormat::Contiguous)?,
        weight,
        bias,
        &sizes[0],
        &sizes[1],
        &inner,
        num_groups,
        eps,
    )
    .map(|(out, _, _)| out)
}

fn check_groups(
    input: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    channels: &SymInt,
    group: i64,
) -> Result<()> {
    check!(group > 0, "Expected num groups to be greater than 0, got {group}");
    check!(
        channels.sym_mod(&SymInt::from(group))?.expect_eq(&SymInt::ZERO)?,
        "Expected number of channels in input to be divisible by num_groups, but got input of shape {:?} and \
         num_groups={group}",
        input.sym_sizes()
    );
    for (name, parameter) in [("weight", weight), ("bias", bias)] {
        if let Some(parameter) = parameter {
            check!(
                parameter.dim() == 1 && parameter.sym_numel().expect_eq(channels)?,
                "Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape \
                 {:?} and input of shape {:?}",
                parameter.sym_sizes(),
                input.sym_sizes()
            );
        }
    }
    Ok(())
}

/// `aten::native_group_norm`: the result, and mean and reciprocal deviation of each group.
#[allow(clippy::too_many_arguments)]
pub fn native_group_norm(
    input: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    n: &SymInt,
    c: &SymInt,
    hxw: &SymInt,
    group: i64,
    eps: f64,
) -> Result<(Tensor, Tensor, Tensor)> {
    check_not_implemented!(
        input.is_floating_point(),
        "\"GroupNormKernelImpl\" not implemented for '{}'",
        input.dtype().short_name()
    );
    check_groups(input, weight, bias, c, group)?;
    let mixed = has_mixed_parameters(input, &[weight, bias])?;
    let compute = statistics_dtype(input.dtype());
    let saved = if mixed { ScalarType::Float } else { input.dtype() };
    // A group is a row, which is what layer normalization works on.
    let groups = SymInt::from(group);
    let rows = n.sym_mul(&groups)?;
    let row = c.sym_floordiv(&groups)?.sym_mul(hxw)?;
    let x = at::reshape(&cast(input, compute)?, &[rows, row.clone()])?;
    let (x, mean, rstd) = at::native_layer_norm(&x, &[row], None, None, eps)?;
    let mut out = at::reshape(&x, &[n.clone(), c.clone(), hxw.clone()])?;
    if let Some(weight) = weight {
        out = mul(&out, &along(&cast(weight, compute)?, 1, 3)?)?;
    }
    if let Some(bias) = bias {
        out = add(&out, &along(&cast(bias, compute)?, 1, 3)?)?;
    }
    let out = at::view(&cast(&out, input.dtype())?, &input.sym_sizes())?;
    let shape = [n.clone(), groups];
    Ok((out, cast(&at::view(&mean, &shape)?, saved)?, cast(&at::view(&rstd, &shape)?, saved)?))
}

/// `aten::native_group_norm_backward`
#[allow(clippy::too_many_arguments)]
pub fn native_group_norm_backward(
    grad_out: &Tensor,
    input: &Tensor,
    mean: &Tensor,
    rstd: &Tensor,
    weight: Option<&Tensor>,
    n: &SymInt,
    c: &SymInt,
    hxw: &SymInt,
    group: i64,
    output_mask: &[bool],
) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
    check_groups(input, weight, None, c, group)?;
    let wanted = |i: usize| output_mask.get(i).copied().unwrap_or(false);
    group_norm_gradients(grad_out, input, [mean, rstd], weight, [n, c, hxw], group, [0, 1, 2].map(wanted))
}

/// The gradients of group normalization by way of differentiable operators, for statistics that are given.
pub fn group_norm_gradients(
    grad_out: &Tensor,
    input: &Tensor,
    [mean, rstd]: [&Tensor; 2],
    weight: Option<&Tensor>,
    [n, c, hxw]: [&SymInt; 3],
    group: i64,
    mask: [bool; 3],
) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
    let compute = statistics_dtype(input.dtype());
    let groups = SymInt::from(group);
    let rows = [n.clone(), groups.clone(), c.sym_floordiv(&groups)?.sym_mul(hxw)?];
    let channels = [n.clone(), c.clone(), hxw.clone()];
    let statistic = |t: &Tensor| at::reshape(&cast(t, compute)?, &[n.clone(), groups.clone(), SymInt::ONE]);
    let (mean, rstd) = (statistic(mean)?, statistic(rstd)?);
    let x = at::reshape(&cast(input, compute)?, &rows)?;
    let normalized = mul(&at::sub_tensor(&x, &mean, &Scalar::Int(1))?, &rstd)?;
    let grad = at::reshape(&cast(grad_out, compute)?, &channels)?;
    let parameter_dtype = weight.map_or_else(|| input.dtype(), |weight| weight.dtype());
    let grad_input = if mask[0] {
        let weighted = match weight {
            Some(weight) => mul(&grad, &along(&cast(weight, compute)?, 1, 3)?)?,
            None => grad.clone(),
        };
        let weighted = at::reshape(&weighted, &rows)?;
        let row_mean = |t: &Tensor| at::mean_dim(t, Some(&[2]), true, None);
        let inside = at::sub_tensor(&weighted, &row_mean(&weighted)?, &Scalar::Int(1))?;
        let along_x = mul(&normalized, &row_mean(&mul(&weighted, &normalized)?)?)?;
        let inside = mul(&at::sub_tensor(&inside, &along_x, &Scalar::Int(1))?, &rstd)?;
        Some(cast(&at::reshape(&inside, &input.sym_sizes())?, input.dtype())?)
    } else {
        None
    };
    let over = |t: &Tensor| cast(&at::sum_dim_intlist(t, Some(&[0, 2]), false, None)?, parameter_dtype);
    let grad_weight =
        if mask[1] { Some(over(&mul(&grad, &at::reshape(&normalized, &channels)?)?)?) } else { None };
    let grad_bias = if mask[2] { Some(over(&grad)?) } else { None };
    Ok((grad_input, grad_weight, grad_bias))
}

/// What halves and floats can tell from one.
fn epsilon(dtype: ScalarType) -> f64 {
    match dtype {
        ScalarType::Double | ScalarType::ComplexDouble => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    }
}

/// `aten::rms_norm`
pub fn rms_norm(
    input: &Tensor,
    normalized_shape: &[SymInt],
    weight: Option<&Tensor>,
    eps: Option<f64>,
) -> Result<Tensor> {
    Ok(rms_norm_parts(input, normalized_shape, weight, eps)?.0)
}

/// `aten::_fused_rms_norm`: the result and the reciprocal root of the mean square.
pub fn _fused_rms_norm(
    input: &Tensor,
    normalized_shape: &[i64],
    weight: Option<&Tensor>,
    eps: Option<f64>,
) -> Result<(Tensor, Tensor)> {
    rms_norm_parts(input, &crate::sym::sym_ints(normalized_shape), weight, eps)
}

fn rms_norm_parts(
    input: &Tensor,
    normalized_shape: &[SymInt],
    weight: Option<&Tensor>,
    eps: Option<f64>,
) -> Result<(Tensor, Tensor)> {
    check!(
        !normalized_shape.is_empty(),
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got \
         normalized_shape = {normalized_shape:?}"
    );
    if let Some(weight) = weight {
        check!(
            same(&weight.sym_sizes(), normalized_shape)?,
            "Expected weight to be of same shape as normalized_shape, but got weight of shape {:?} and normalized_shape = \
             {normalized_shape:?}",
            weight.sym_sizes()
        );
    }
    let sizes = input.sym_sizes();
    let leading = sizes.len().checked_sub(normalized_shape.len());
    check!(
        leading.map_or(Ok(false), |leading| same(&sizes[leading..], normalized_shape))?,
        "Given normalized_shape={normalized_shape:?}, expected input with shape [*, {}], but got input of size{sizes:?}",
        normalized_shape.iter().map(SymInt::to_string).collect::<Vec<_>>().join(", ")
    );
    check_not_implemented!(
        input.is_floating_point() || input.is_complex(),
        "\"rms_norm\" not implemented for '{}'",
        input.dtype().short_name()
    );
    let dims: Vec<i64> = (leading.unwrap_or(0) as i64..input.dim()).collect();
    let compute = match input.dtype() {
        ScalarType::ComplexHalf => ScalarType::ComplexFloat,
        dtype => statistics_dtype(dtype),
    };
    let x = cast(input, compute)?;
    let mean_square = at::mean_dim(&square(&x)?, Some(&dims), true, None)?;
    let eps = Scalar::Float(eps.unwrap_or_else(|| epsilon(input.dtype())));
    let root = at::rsqrt(&at::add_scalar(&mean_square, &eps, &Scalar::Int(1))?)?;
    let mut out = mul(&x, &root)?;
    if let Some(weight) = weight {
        out = mul(&out, weight)?;
    }
    Ok((cast(&out, input.dtype())?, root))
}

fn same(a: &[SymInt], b: &[SymInt]) -> Result<bool> {
    Ok(a.len() == b.len() && SymInt::expect_same(a, b)?)
}
