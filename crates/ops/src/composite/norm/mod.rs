//! Composites of the `norm` family.

mod batch_norm;
mod group_norm;

pub use batch_norm::*;
pub use group_norm::*;

use c10::{DimVector, MemoryFormat, Result, Scalar, SymInt, Tensor};

use crate::at;
use crate::meta::norm::statistics_dtype;

/// `aten::layer_norm`
pub fn layer_norm(
    input: &Tensor,
    normalized_shape: &[SymInt],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
    _cudnn_enable: bool,
) -> Result<Tensor> {
    let input = at::contiguous(input, MemoryFormat::Contiguous)?;
    let row_major = |parameter: Option<&Tensor>| {
        parameter.map(|p| at::contiguous(p, MemoryFormat::Contiguous)).transpose()
    };
    let (weight, bias) = (row_major(weight)?, row_major(bias)?);
    Ok(at::native_layer_norm(&input, normalized_shape, weight.as_ref(), bias.as_ref(), eps)?.0)
}

/// `aten::native_layer_norm_backward`
///
/// With `x̂ = (x - mean) * rstd` and `g = grad * weight`, the input's gradient is
/// `rstd * (g - mean(g) - x̂ * mean(g * x̂))` over the normalized dimensions.
#[allow(clippy::too_many_arguments)]
pub fn native_layer_norm_backward(
    grad_out: &Tensor,
    input: &Tensor,
    normalized_shape: &[SymInt],
    mean: &Tensor,
    rstd: &Tensor,
    weight: Option<&Tensor>,
    _bias: Option<&Tensor>,
    output_mask: &[bool],
) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
    let ndim = input.dim();
    let leading = ndim - normalized_shape.len() as i64;
    let inner: DimVector = (leading..ndim).collect();
    let outer: DimVector = (0..leading).collect();
    let wanted = |i: usize| output_mask.get(i).copied().unwrap_or(false);
    let dtype = statistics_dtype(input.dtype());
    let grad = at::to_dtype(grad_out, dtype, false, false, None)?;
    let centred = at::sub_tensor(&at::to_dtype(input, dtype, false, false, None)?, mean, &Scalar::Int(1))?;
    let normalized = at::mul_tensor(&centred, rstd)?;
    let narrow = |tensor: Tensor| at::to_dtype(&tensor, input.dtype(), false, false, None);
    let grad_input = if wanted(0) {
        let weighted = match weight {
            Some(weight) => at::mul_tensor(&grad, &at::to_dtype(weight, dtype, false, false, None)?)?,
            None => grad.clone(),
        };
        let projected = at::mean_dim(&at::mul_tensor(&weighted, &normalized)?, Some(&inner), true, None)?;
        let centre = at::mean_dim(&weighted, Some(&inner), true, None)?;
        let inside = at::sub_tensor(&weighted, &centre, &Scalar::Int(1))?;
        let inside = at::sub_tensor(&inside, &at::mul_tensor(&normalized, &projected)?, &Scalar::Int(1))?;
        Some(narrow(at::mul_tensor(&inside, rstd)?)?)
    } else {
        None
    };
    let over_rows = |tensor: &Tensor| {
        if outer.is_empty() {
            Ok(tensor.clone())
        } else {
            at::sum_dim_intlist(tensor, Some(&outer), false, None)
        }
    };
    let grad_weight = if wanted(1) && weight.is_some() {
        Some(narrow(over_rows(&at::mul_tensor(&grad, &normalized)?)?)?)
    } else {
        None
    };
    let grad_bias = if wanted(2) { Some(narrow(over_rows(&grad)?)?) } else { None };
    Ok((grad_input, grad_weight, grad_bias))
}
