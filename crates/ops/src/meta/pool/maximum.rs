//! Meta functions of maxima over volumes, and of maxima to a size.

use c10::{check, compute_strides_for_memory_format, Result, ScalarType, SizeInt, Tensor};
use iter::StructuredOutputs;

use super::average::{adaptive_sizes, pooled_sizes};

fn set_both<I: SizeInt>(outs: &mut StructuredOutputs, sizes: &[I], self_: &Tensor) -> Result<()> {
    let strides = compute_strides_for_memory_format(sizes, self_.suggest_memory_format())?;
    outs.set_output_strided(0, sizes, &strides, self_.options())?;
    outs.set_output_strided(1, sizes, &strides, self_.options().dtype(ScalarType::Long))
}

/// `max_pool3d_with_indices`
#[allow(clippy::too_many_arguments)]
pub fn max_pool3d_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    ceil_mode: bool,
) -> Result<()> {
    let sizes = pooled_sizes::<I>(self_, 3, [kernel_size, stride, padding, dilation], ceil_mode)?;
    set_both(outs, &sizes, self_)
}

/// `adaptive_max_pool2d` and `adaptive_max_pool3d`
pub fn adaptive_max_pool_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    output_size: &[i64],
) -> Result<()> {
    let output_size = crate::sym::sym_ints(output_size);
    let sizes = adaptive_sizes::<I>("adaptive_max_pool", self_, &output_size)?;
    set_both(outs, &sizes, self_)
}

fn backward<I: SizeInt>(
    outs: &mut StructuredOutputs,
    grad_output: &Tensor,
    self_: &Tensor,
    indices: &Tensor,
) -> Result<()> {
    check!(
        self_.dtype() == grad_output.dtype(),
        "expected dtype {} for `grad_output` but got dtype {}",
        self_.dtype().short_name(),
        grad_output.dtype().short_name()
    );
    let (input, grad) = (I::sizes_of(self_)?, I::sizes_of(grad_output)?);
    check!(
        I::expect_same(&I::sizes_of(indices)?, &grad)? && indices.dtype() == ScalarType::Long,
        "max_pool_backward(): expected int64 indices of shape {:?}, got {} of shape {:?}",
        &grad[..],
        indices.dtype().short_name(),
        indices.sym_sizes()
    );
    check!(
        input.len() == grad.len() && input.len() >= 3,
        "max_pool_backward(): grad_output of shape {:?} does not fit an input of shape {:?}",
        &grad[..],
        &input[..]
    );
    outs.set_output_contiguous(0, &input, self_.options())
}

/// `adaptive_max_pool2d_backward` and `adaptive_max_pool3d_backward`
pub fn adaptive_max_pool_backward_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    grad_output: &Tensor,
    self_: &Tensor,
    indices: &Tensor,
) -> Result<()> {
    backward::<I>(outs, grad_output, self_, indices)
}

/// `max_pool3d_with_indices_backward`
#[allow(clippy::too_many_arguments)]
pub fn max_pool3d_backward_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    grad_output: &Tensor,
    self_: &Tensor,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    ceil_mode: bool,
    indices: &Tensor,
) -> Result<()> {
    let expected = pooled_sizes::<I>(self_, 3, [kernel_size, stride, padding, dilation], ceil_mode)?;
    let grad = I::sizes_of(grad_output)?;
    check!(
        grad.len() == expected.len() && I::expect_same(&grad, &expected)?,
        "max_pool3d_with_indices_backward(): expected grad_output of shape {expected:?}, got {:?}",
        &grad[..]
    );
    backward::<I>(outs, grad_output, self_, indices)
}
