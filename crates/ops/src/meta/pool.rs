//! Meta functions of the `pool` operators.

use c10::{check, DimVector, Result, ScalarType, Tensor};
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
pub fn pooling_output_shape(
    input: i64,
    kernel: i64,
    padding: i64,
    stride: i64,
    dilation: i64,
    ceil_mode: bool,
) -> Result<i64> {
    check!(stride != 0, "stride should not be zero");
    check!(padding >= 0, "pad must be non-negative, but got pad: {padding}");
    check!(
        padding <= ((kernel - 1) * dilation + 1) / 2,
        "pad should be at most half of effective kernel size, but got pad={padding}, kernel_size={kernel} and \
         dilation={dilation}"
    );
    let span = input + 2 * padding - dilation * (kernel - 1) - 1 + if ceil_mode { stride - 1 } else { 0 };
    let mut size = span.div_euclid(stride) + 1;
    // The last window has to start inside the input or its left padding.
    if ceil_mode && (size - 1) * stride >= input + padding {
        size -= 1;
    }
    Ok(size)
}

/// `max_pool2d_with_indices`
#[allow(clippy::too_many_arguments)]
pub fn max_pool2d_meta(
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
    let sizes = self_.sizes()?;
    let ndim = sizes.len();
    check!(
        (ndim == 3 || ndim == 4) && sizes[ndim - 3..].iter().all(|&size| size != 0),
        "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:{sizes:?}"
    );
    let mut out = DimVector::from_slice(&sizes[..ndim - 2]);
    for d in 0..2 {
        let input = sizes[ndim - 2 + d];
        out.push(pooling_output_shape(input, kernel[d], padding[d], stride[d], dilation[d], ceil_mode)?);
    }
    check!(
        out[ndim - 2] >= 1 && out[ndim - 1] >= 1,
        "Given input size: ({}x{}x{}). Calculated output size: ({}x{}x{}). Output size is too small",
        sizes[ndim - 3],
        sizes[ndim - 2],
        sizes[ndim - 1],
        sizes[ndim - 3],
        out[ndim - 2],
        out[ndim - 1]
    );
    let options = c10::TensorOptions::new().device(self_.device());
    outs.set_output_contiguous(0, &out, options.dtype(self_.dtype()))?;
    outs.set_output_contiguous(1, &out, options.dtype(ScalarType::Long))
}

/// `max_pool2d_with_indices_backward`
#[allow(clippy::too_many_arguments)]
pub fn max_pool2d_backward_meta(
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
    check!(
        indices.sizes()? == grad_output.sizes()? && indices.dtype() == ScalarType::Long,
        "max_pool2d_with_indices_backward(): expected int64 indices of shape {:?}, got {} of shape {:?}",
        grad_output.sizes()?,
        indices.dtype(),
        indices.sizes()?
    );
    let (input, grad) = (self_.sizes()?, grad_output.sizes()?);
    check!(
        input.len() == grad.len() && input.len() >= 3 && input[..input.len() - 2] == grad[..grad.len() - 2],
        "max_pool2d_with_indices_backward(): grad_output of shape {grad:?} does not fit an input of shape {input:?}"
    );
    outs.set_output_contiguous(0, input, self_.options())
}
