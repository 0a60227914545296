//! Meta functions of the `conv` operators. Arguments were checked by `convolution`.

use c10::{check, Result, SizeInt, SizeVector, SymInt, Tensor};
use iter::StructuredOutputs;

/// The output size of a convolution along one dimension.
pub fn conv_output_size<I: SizeInt>(
    input: &I,
    kernel: &I,
    stride: &I,
    padding: &I,
    dilation: &I,
) -> Result<I> {
    let padded = input.sym_add(&padding.sym_mul(&I::from(2))?)?;
    let reach = dilation.sym_mul(&kernel.sym_sub(&I::ONE)?)?.sym_add(&I::ONE)?;
    padded.sym_sub(&reach)?.sym_floordiv(stride)?.sym_add(&I::ONE)
}

/// `_conv_forward`
#[allow(clippy::too_many_arguments)]
pub fn conv_forward_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    input: &Tensor,
    weight: &Tensor,
    _bias: Option<&Tensor>,
    stride: &[SymInt],
    padding: &[SymInt],
    dilation: &[SymInt],
    _groups: &SymInt,
) -> Result<()> {
    let stride = I::from_sym_slice(stride)?;
    let (padding, dilation) = (I::from_sym_slice(padding)?, I::from_sym_slice(dilation)?);
    let (input_sizes, weight_sizes) = (I::sizes_of(input)?, I::sizes_of(weight)?);
    let mut sizes: SizeVector<I> = [input_sizes[0].clone(), weight_sizes[0].clone()].into_iter().collect();
    let mut fits = true;
    for d in 0..stride.len() {
        let size = conv_output_size(
            &input_sizes[d + 2],
            &weight_sizes[d + 2],
            &stride[d],
            &padding[d],
            &dilation[d],
        )?;
        fits &= I::ZERO.expect_lt(&size)?;
        sizes.push(size);
    }
    check!(
        fits || I::numel_of(input)?.is_zero()?,
        "Given input size per channel: {:?}. Calculated output size per channel: {:?}. Output size is too small",
        &input_sizes[2..],
        &sizes[2..]
    );
    outs.set_output_contiguous(0, &sizes, input.options())
}

/// `_conv_input_backward`
#[allow(clippy::too_many_arguments)]
pub fn conv_input_backward_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    grad_output: &Tensor,
    _weight: &Tensor,
    input_sizes: &[SymInt],
    _stride: &[SymInt],
    _padding: &[SymInt],
    _dilation: &[SymInt],
    _groups: &SymInt,
) -> Result<()> {
    outs.set_output_contiguous(0, &I::from_sym_slice(input_sizes)?, grad_output.options())
}

/// `_conv_weight_backward`
#[allow(clippy::too_many_arguments)]
pub fn conv_weight_backward_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    grad_output: &Tensor,
    _input: &Tensor,
    weight_sizes: &[SymInt],
    _stride: &[SymInt],
    _padding: &[SymInt],
    _dilation: &[SymInt],
    _groups: &SymInt,
) -> Result<()> {
    outs.set_output_contiguous(0, &I::from_sym_slice(weight_sizes)?, grad_output.options())
}
