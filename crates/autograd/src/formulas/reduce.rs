//! Derivatives of reductions.

use c10::{maybe_wrap_dim, GradMode, Result, Scalar, ScalarType, SymInt, Tensor};
use ops::at;

use super::pointwise::mul_conj;

const ZERO: Scalar = Scalar::Int(0);
const ONE: Scalar = Scalar::Int(1);

/// Puts reduced dimensions back as ones, if the reduction dropped them. No dimensions stand for all.
pub fn restore_reduced_dims(tensor: &Tensor, dims: &[i64], keepdim: bool, ndim: i64) -> Result<Tensor> {
    if keepdim || ndim == 0 || tensor.dim() == ndim {
        return Ok(tensor.clone());
    }
    let mut dims = wrapped(dims, ndim)?;
    dims.sort_unstable();
    dims.iter().try_fold(tensor.clone(), |tensor, &dim| at::unsqueeze(&tensor, dim))
}

fn wrapped(dims: &[i64], ndim: i64) -> Result<Vec<i64>> {
    if dims.is_empty() {
        return Ok((0..ndim).collect());
    }
    dims.iter().map(|&dim| maybe_wrap_dim(dim, ndim)).collect()
}

/// `sum.dim_IntList`
pub fn sum_backward(grad: &Tensor, sizes: &[SymInt], dim: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
    let restored = restore_reduced_dims(grad, dim.unwrap_or(&[]), keepdim, sizes.len() as i64)?;
    at::expand(&restored, sizes, false)
}

/// `nansum`: nothing for the elements that were left out
pub fn nansum_backward(grad: &Tensor, self_: &Tensor, dim: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
    let grad = sum_backward(grad, &self_.sym_sizes(), dim, keepdim)?;
    at::mul_tensor(&grad, &at::logical_not(&at::isnan(self_)?)?)
}

/// `mean`
pub fn mean_all_backward(grad: &Tensor, sizes: &[SymInt], numel: SymInt) -> Result<Tensor> {
    at::div_scalar(&at::expand(grad, sizes, false)?, &Scalar::SymInt(numel))
}

/// `mean.dim`
pub fn mean_backward(
    grad: &Tensor,
    sizes: &[SymInt],
    dim: Option<&[i64]>,
    numel: SymInt,
    keepdim: bool,
) -> Result<Tensor> {
    let dims = dim.unwrap_or(&[]);
    let count = if dims.is_empty() || sizes.is_empty() {
        numel
    } else {
        let mut count = SymInt::from(1);
        for dim in wrapped(dims, sizes.len() as i64)? {
            count = count.sym_mul(&sizes[dim as usize])?;
        }
        count
    };
    at::div_scalar(&sum_backward(grad, sizes, dim, keepdim)?, &Scalar::SymInt(count))
}

/// `prod`
pub fn prod_backward(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
    if self_.dim() == 0 {
        return Ok(grad.clone());
    }
    if !has_zero(self_)? {
        return mul_conj(grad, &at::div_tensor(result, self_)?);
    }
    let flat = at::reshape(self_, &[SymInt::from(-1)])?;
    let others = product_of_others(&flat, 0)?;
    mul_conj(grad, &at::reshape(&others, &self_.sym_sizes())?)
}

/// `prod.dim_int`
pub fn prod_dim_backward(
    grad: &Tensor,
    self_: &Tensor,
    result: &Tensor,
    dim: i64,
    keepdim: bool,
) -> Result<Tensor> {
    let ndim = self_.dim();
    if ndim == 0 {
        return Ok(grad.clone());
    }
    let dim = maybe_wrap_dim(dim, ndim)?;
    let grad = restore_reduced_dims(grad, &[dim], keepdim, ndim)?;
    if !has_zero(self_)? {
        let result = restore_reduced_dims(result, &[dim], keepdim, ndim)?;
        return mul_conj(&grad, &at::div_tensor(&result, self_)?);
    }
    mul_conj(&grad, &product_of_others(self_, dim)?)
}

fn has_zero(tensor: &Tensor) -> Result<bool> {
    at::is_nonzero(&at::any(&at::eq_scalar(tensor, &ZERO)?)?)
}

/// For each element along `dim` the product of all the others, where division doesn't help because some are zero.
fn product_of_others(tensor: &Tensor, dim: i64) -> Result<Tensor> {
    if GradMode::is_enabled() {
        return product_of_others_differentiable(tensor, dim);
    }
    // With one zero, only its own place has a product that isn't zero; with more, none has.
    let is_zero = at::eq_scalar(tensor, &ZERO)?;
    let zeros = at::sum_dim_intlist(&is_zero, Some(&[dim]), true, None)?;
    let filled = at::masked_fill_scalar(tensor, &is_zero, &ONE)?;
    let product = at::prod_dim_int(&filled, dim, true, None)?;
    let without_zero = at::div_tensor(&product, &filled)?;
    let at_zero =
        at::masked_fill_scalar(&at::expand_as(&product, tensor)?, &at::logical_not(&is_zero)?, &ZERO)?;
    let with_zero = at::masked_fill_scalar(&at_zero, &at::gt_scalar(&zeros, &ONE)?, &ZERO)?;
    at::where_self(&at::eq_scalar(&zeros, &ZERO)?, &without_zero, &with_zero)
}

/// As [`product_of_others`], by products from both ends: exact in every order of derivative.
fn product_of_others_differentiable(tensor: &Tensor, dim: i64) -> Result<Tensor> {
    let parts = at::unbind_int(tensor, dim)?;
    let Some(first) = parts.first() else { return Ok(tensor.clone()) };
    let one = at::ones_like(first, None, None, None, None, None)?;
    let mut before = vec![one.clone()];
    for part in &parts[..parts.len() - 1] {
        let next = at::mul_tensor(&before[before.len() - 1], part)?;
        before.push(next);
    }
    let mut after = one;
    let mut others = Vec::with_capacity(parts.len());
    for (part, before) in parts.iter().zip(&before).rev() {
        others.push(at::mul_tensor(before, &after)?);
        after = at::mul_tensor(&after, part)?;
    }
    others.reverse();
    at::stack(&others, dim)
}

/// Reductions that pick one element per slice: `max.dim`, `min.dim`, `median.dim`, `sort`
pub fn value_selecting_reduction_backward(
    grad: &Tensor,
    dim: i64,
    indices: &Tensor,
    sizes: &[SymInt],
    keepdim: bool,
) -> Result<Tensor> {
    let zeros = at::new_zeros(grad, sizes, None, None, None, None)?;
    if !keepdim && !sizes.is_empty() {
        return at::scatter_src(&zeros, dim, &at::unsqueeze(indices, dim)?, &at::unsqueeze(grad, dim)?);
    }
    at::scatter_src(&zeros, dim, indices, grad)
}

/// `max`, `min`, `median` over everything: elements equal to the result share the gradient.
pub fn evenly_distribute_backward(grad: &Tensor, input: &Tensor, value: &Tensor) -> Result<Tensor> {
    let mut mask = at::eq_tensor(input, value)?;
    if input.is_floating_point() {
        // The result is NaN if any element is, and then NaN elements share.
        mask = at::logical_or(&mask, &at::isnan(input)?)?;
    }
    let share = at::div_tensor(grad, &at::sum(&mask, None)?)?;
    at::mul_tensor(&mask, &share)
}

/// `amax`, `amin`: elements equal to the result share the gradient of their slice.
pub fn amaxamin_backward(
    grad: &Tensor,
    self_: &Tensor,
    result: &Tensor,
    dim: &[i64],
    keepdim: bool,
) -> Result<Tensor> {
    let ndim = self_.dim();
    let grad = restore_reduced_dims(grad, dim, keepdim, ndim)?;
    let result = restore_reduced_dims(result, dim, keepdim, ndim)?;
    let mask = at::eq_tensor(self_, &result)?;
    let count = at::sum_dim_intlist(&mask, Some(dim), true, None)?;
    at::div_tensor(&at::mul_tensor(&grad, &mask)?, &count)
}

fn sum_along(tensor: &Tensor, dim: i64) -> Result<Tensor> {
    at::sum_dim_intlist(tensor, Some(&[dim]), true, None)
}

/// `_softmax_backward_data` with respect to `output`
pub fn softmax_double_backward(
    grad: &Tensor,
    grad_output: &Tensor,
    dim: i64,
    output: &Tensor,
) -> Result<Tensor> {
    let product = at::mul_tensor(grad_output, grad)?;
    let first = at::mul_tensor(&sum_along(&at::mul_tensor(output, grad_output)?, dim)?, grad)?;
    let second = at::mul_tensor(grad_output, &sum_along(&at::mul_tensor(output, grad)?, dim)?)?;
    at::sub_tensor(&at::sub_tensor(&product, &first, &ONE)?, &second, &ONE)
}

/// `_softmax_backward_data` with respect to `grad_output`
pub fn softmax_backward_grad_output_backward(
    grad: &Tensor,
    output: &Tensor,
    dim: i64,
    input_dtype: ScalarType,
) -> Result<Tensor> {
    let grad = if grad.scalar_type() == output.scalar_type() {
        grad.clone()
    } else {
        at::_to_copy(grad, Some(output.scalar_type()), None, None, None, false, None)?
    };
    at::_softmax_backward_data(&grad, output, dim, input_dtype)
}

/// `_log_softmax_backward_data` with respect to `output`
pub fn log_softmax_double_backward(
    grad: &Tensor,
    grad_output: &Tensor,
    dim: i64,
    output: &Tensor,
) -> Result<Tensor> {
    let softmax = at::exp(output)?;
    let spread = at::sub_tensor(&sum_along(&at::mul_tensor(grad, &softmax)?, dim)?, grad, &ONE)?;
    at::mul_tensor(&at::mul_tensor(&softmax, &sum_along(grad_output, dim)?)?, &spread)
}

/// `_log_softmax_backward_data` with respect to `grad_output`
pub fn log_softmax_backward_grad_output_backward(grad: &Tensor, output: &Tensor, dim: i64) -> Result<Tensor> {
    let weighted = sum_along(&at::mul_tensor(grad, &at::exp(output)?)?, dim)?;
    at::sub_tensor(grad, &weighted, &ONE)
}
