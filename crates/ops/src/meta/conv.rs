//! Meta functions of the `conv` operators. Arguments were checked by `convolution`.

use c10::{check, DimVector, Result, SymInt, Tensor};
use iter::StructuredOutputs;

use crate::sym::ints;

/// The output size of a convolution along one dimension.
pub fn conv_output_size(input: i64, kernel: i64, stride: i64, padding: i64, dilation: i64) -> i64 {
    (input + 2 * padding - (dilation * (kernel - 1) + 1)) / stride + 1
}

/// `_conv_forward`
#[allow(clippy::too_many_arguments)]
pub fn conv_forward_meta(
    outs: &mut StructuredOutputs,
    input: &Tensor,
    weight: &Tensor,
    _bias: Option<&Tensor>,
    stride: &[SymInt],
    padding: &[SymInt],
    dilation: &[SymInt],
    _groups: &SymInt,
) -> Result<()> {
    let (stride, padding, dilation) = (ints(stride)?, ints(padding)?, ints(dilation)?);
    let (input_sizes, weight_sizes) = (input.sizes()?, weight.sizes()?);
    let mut sizes = DimVector::from_slice(&[input_sizes[0], weight_sizes[0]]);
    for d in 0..stride.len() {
        let size =
            conv_output_size(input_sizes[d + 2], weight_sizes[d + 2], stride[d], padding[d], dilation[d]);
        sizes.push(size);
    }
    check!(
        sizes[2..].iter().all(|&size| size > 0) || input.numel()? == 0,
        "Given input size per channel: {:?}. Calculated output size per channel: {:?}. Output size is too small",
        &input_sizes[2..],
        &sizes[2..]
    );
    outs.set_output_contiguous(0, &sizes, input.options())
}

/// `_conv_input_backward`
#[allow(clippy::too_many_arguments)]
pub fn conv_input_backward_meta(
    outs: &mut StructuredOutputs,
    grad_output: &Tensor,
    _weight: &Tensor,
    input_sizes: &[SymInt],
    _stride: &[SymInt],
    _padding: &[SymInt],
    _dilation: &[SymInt],
    _groups: &SymInt,
) -> Result<()> {
    outs.set_output_contiguous(0, &ints(input_sizes)?, grad_output.options())
}

/// `_conv_weight_backward`
#[allow(clippy::too_many_arguments)]
pub fn conv_weight_backward_meta(
    outs: &mut StructuredOutputs,
    grad_output: &Tensor,
    _input: &Tensor,
    weight_sizes: &[SymInt],
    _stride: &[SymInt],
    _padding: &[SymInt],
    _dilation: &[SymInt],
    _groups: &SymInt,
) -> Result<()> {
    outs.set_output_contiguous(0, &ints(weight_sizes)?, grad_output.options())
}
