//! Meta functions of the `pool` operators.

mod average;
mod maximum;
mod resize;

pub use average::*;
pub use maximum::*;
pub use resize::*;

use c10::{check, compute_strides_for_memory_format, Result, ScalarType, SizeInt, Tensor};
use iter::StructuredOutputs;

/// One value per spatial dimension: as given, or one for both.
pub fn pair(name: &str, values: &[i64]) -> Result<[i64; 2]> {
    match values {
        [both] => Ok([*both, *both]),
        [height, width] => Ok([*height, *width]),
        _ => c10::bail!(Runtime, "max_pool2d: {name} must either be a single int, or a tuple of two ints"),
    }
}

/// The output size of a pooling window sliding along one dimension.
pub fn pooling_output_shape<I: SizeInt>(
    input: &I,
    kernel: i64,
    padding: i64,
    stride: i64,
    dilation: i64,
    ceil_mode: bool,
) -> Result<I> {
    check!(stride != 0, "stride should not be zero");
    check!(padding >= 0, "pad must be non-negative, but got pad: {padding}");
    let reach = kernel.sym_sub(&1)?.sym_mul(&dilation)?;
    check!(
        padding <= reach.sym_add(&1)? / 2,
        "pad should be at most half of effective kernel size, but got pad={padding}, kernel_size={kernel} and \
         dilation={dilation}"
    );
    let rounding = if ceil_mode { stride.sym_sub(&1)? } else { 0 };
    let extra = padding.sym_mul(&2)?.sym_sub(&reach)?.sym_add(&rounding.sym_sub(&1)?)?;
    let mut size = input.sym_add(&I::from(extra))?.sym_floordiv(&I::from(stride))?.sym_add(&I::ONE)?;
    if ceil_mode {
        // The last window has to start inside the input or its left padding.
        let last = size.sym_sub(&I::ONE)?;
        if input.sym_add(&I::from(padding))?.guard_le(&last.sym_mul(&I::from(stride))?)? {
            size = last;
        }
    }
    Ok(size)
}

/// `max_pool2d_with_indices`
#[allow(clippy::too_many_arguments)]
pub fn max_pool2d_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    ceil_mode: bool,
) -> Result<()> {
    let kernel = pair("kernel_size", kernel_size)?;
    let stride = if stride.is_empty() { kernel } else { pair("stride", stride)? };
    let padding = pair("padding", padding)?;
    let dilation = pair("dilation", dilation)?;
    check!(
        kernel.iter().all(|&k| k > 0),
        "kernel size should be greater than zero, but got kH: {} kW: {}",
        kernel[0],
        kernel[1]
    );
    check!(
        stride.iter().all(|&s| s > 0),
        "stride should be greater than zero, but got dH: {} dW: {}",
        stride[0],
        stride[1]
    );
    check!(
        dilation.iter().all(|&d| d > 0),
        "dilation should be greater than zero, but got dilationH: {} dilationW: {}",
        dilation[0],
        dilation[1]
    );
    let sizes = I::sizes_of(self_)?;
    let ndim = sizes.len();
    let mut valid = ndim == 3 || ndim == 4;
    for size in sizes.iter().skip(ndim.saturating_sub(3)) {
        valid = valid && !size.is_zero()?;
    }
    check!(
        valid,
        "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:{:?}",
        &sizes[..]
    );
    let mut out = I::to_vector(&sizes[..ndim - 2]);
    for d in 0..2 {
        let input = &sizes[ndim - 2 + d];
        out.push(pooling_output_shape(input, kernel[d], padding[d], stride[d], dilation[d], ceil_mode)?);
    }
    check!(
        I::ONE.expect_le(&out[ndim - 2])? && I::ONE.expect_le(&out[ndim - 1])?,
        "Given input size: ({}x{}x{}). Calculated output size: ({}x{}x{}). Output size is too small",
        sizes[ndim - 3],
        sizes[ndim - 2],
        sizes[ndim - 1],
        sizes[ndim - 3],
        out[ndim - 2],
        out[ndim - 1]
    );
    let strides = compute_strides_for_memory_format(&out, self_.suggest_memory_format())?;
    let options = c10::TensorOptions::new().device(self_.device());
    outs.set_output_strided(0, &out, &strides, options.dtype(self_.dtype()))?;
    outs.set_output_strided(1, &out, &strides, options.dtype(ScalarType::Long))
}

/// `max_pool2d_with_indices_backward`
#[allow(clippy::too_many_arguments)]
pub fn max_pool2d_backward_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    grad_output: &Tensor,
    self_: &Tensor,
    _kernel_size: &[i64],
    _stride: &[i64],
    _padding: &[i64],
    _dilation: &[i64],
    _ceil_mode: bool,
    indices: &Tensor,
) -> Result<()> {
    check!(
        self_.dtype() == grad_output.dtype(),
        "expected dtype {} for `gradOutput` but got dtype {}",
        self_.dtype(),
        grad_output.dtype()
    );
    let (input, grad) = (I::sizes_of(self_)?, I::sizes_of(grad_output)?);
    check!(
        I::expect_same(&I::sizes_of(indices)?, &grad)? && indices.dtype() == ScalarType::Long,
        "max_pool2d_with_indices_backward(): expected int64 indices of shape {:?}, got {} of shape {:?}",
        &grad[..],
        indices.dtype(),
        indices.sym_sizes()
    );
    check!(
        input.len() == grad.len()
            && input.len() >= 3
            && I::expect_same(&input[..input.len() - 2], &grad[..grad.len() - 2])?,
        "max_pool2d_with_indices_backward(): grad_output of shape {:?} does not fit an input of shape {:?}",
        &grad[..],
        &input[..]
    );
    outs.set_output_contiguous(0, &input, self_.options())
}
