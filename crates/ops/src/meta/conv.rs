//! Meta functions of the `conv` operators.

use c10::{
    check, compute_strides_for_memory_format, MemoryFormat, Result, SizeInt, SizeVector, SmallVec, SymInt,
    Tensor,
};
use iter::StructuredOutputs;

/// Whether every value is expected to be at least `least`.
pub fn all_at_least<I: SizeInt>(least: &I, values: &[I]) -> Result<bool> {
    for value in values {
        if !least.expect_le(value)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The size of an input with its padding.
pub fn padded_size<I: SizeInt>(input: &I, padding: &I) -> Result<I> {
    input.sym_add(&padding.sym_mul(&I::from(2))?)
}

/// What a kernel with gaps reaches over.
pub fn kernel_reach<I: SizeInt>(kernel: &I, dilation: &I) -> Result<I> {
    dilation.sym_mul(&kernel.sym_sub(&I::ONE)?)?.sym_add(&I::ONE)
}

/// The output size of a convolution along one dimension.
pub fn conv_output_size<I: SizeInt>(
    input: &I,
    kernel: &I,
    stride: &I,
    padding: &I,
    dilation: &I,
) -> Result<I> {
    let room = padded_size(input, padding)?.sym_sub(&kernel_reach(kernel, dilation)?)?;
    room.sym_floordiv(stride)?.sym_add(&I::ONE)
}

/// Convolutions have one dtype.
fn check_dtype(name: &str, input: &Tensor, others: &[&Tensor]) -> Result<()> {
    for other in others {
        check!(
            input.dtype() == other.dtype(),
            "{name}(): expected tensors of one dtype, got {} and {}",
            input.dtype().short_name(),
            other.dtype().short_name()
        );
    }
    Ok(())
}

/// What a convolution of the given geometry gives: the output's sizes. Every argument is checked, since kernels trust
/// them; `name` is the operator's.
#[allow(clippy::too_many_arguments)]
fn output_sizes<I: SizeInt>(
    name: &str,
    input: &[I],
    weight: &[I],
    stride: &[SymInt],
    padding: &[SymInt],
    dilation: &[SymInt],
    groups: &SymInt,
) -> Result<SizeVector<I>> {
    check!(
        (3..=5).contains(&weight.len()) && input.len() == weight.len(),
        "{name}(): expected an input and a weight of the same three to five dimensions, got {input:?} and {weight:?}"
    );
    let lists = [("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1)];
    let mut values = SmallVec::<[SizeVector<I>; 3]>::new();
    for (list, given, least) in lists {
        let given = I::from_sym_slice(given)?;
        check!(
            given.len() == weight.len() - 2 && all_at_least(&I::from(least), &given)?,
            "{name}(): expected {list} to be {} numbers of at least {least}, got {given:?}",
            weight.len() - 2
        );
        values.push(given);
    }
    let groups = I::from_sym(groups)?;
    check!(
        I::ONE.expect_le(&groups)?
            && weight[0].sym_mod(&groups)?.expect_eq(&I::ZERO)?
            && input[1].expect_eq(&weight[1].sym_mul(&groups)?)?,
        "{name}(): expected a weight for {groups} groups of the input's channels, got {weight:?} for {input:?}"
    );
    let mut sizes: SizeVector<I> = [input[0].clone(), weight[0].clone()].into_iter().collect();
    for d in 0..weight.len() - 2 {
        let [stride, padding, dilation] = [0, 1, 2].map(|list| &values[list][d]);
        sizes.push(conv_output_size(&input[d + 2], &weight[d + 2], stride, padding, dilation)?);
    }
    Ok(sizes)
}

/// `_conv_forward`
#[allow(clippy::too_many_arguments)]
pub fn conv_forward_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    stride: &[SymInt],
    padding: &[SymInt],
    dilation: &[SymInt],
    groups: &SymInt,
) -> Result<()> {
    check_dtype("_conv_forward", input, &[weight])?;
    check_dtype("_conv_forward", input, bias.as_slice())?;
    let (input_sizes, weight_sizes) = (I::sizes_of(input)?, I::sizes_of(weight)?);
    let sizes =
        output_sizes("_conv_forward", &input_sizes, &weight_sizes, stride, padding, dilation, groups)?;
    let mut fits = true;
    for size in &sizes[2..] {
        fits &= I::ZERO.expect_lt(size)?;
    }
    check!(
        fits || I::numel_of(input)?.is_zero()?,
        "Given input size per channel: {:?}. Calculated output size per channel: {:?}. Output size is too small",
        &input_sizes[2..],
        &sizes[2..]
    );
    if let Some(bias) = bias {
        check!(
            bias.dim() == 1 && I::sizes_of(bias)?[0].expect_eq(&sizes[1])?,
            "_conv_forward(): expected a bias of {} elements, got {:?}",
            sizes[1],
            bias.sym_sizes()
        );
    }
    let strides = compute_strides_for_memory_format(&sizes, output_format(input, weight))?;
    outs.set_output_strided(0, &sizes, &strides, input.options())
}

/// Channels come last if they do in the input or in the weight.
fn output_format(input: &Tensor, weight: &Tensor) -> MemoryFormat {
    match input.suggest_memory_format() {
        MemoryFormat::Contiguous => weight.suggest_memory_format(),
        format => format,
    }
}

/// A gradient has the sizes of the output.
fn check_gradient<I: SizeInt>(name: &str, grad_output: &Tensor, expected: &[I]) -> Result<()> {
    let found = I::sizes_of(grad_output)?;
    let mut same = found.len() == expected.len();
    for (found, expected) in found.iter().zip(expected) {
        same &= found.expect_eq(expected)?;
    }
    check!(same, "{name}(): expected a gradient of sizes {expected:?}, got {:?}", &found[..]);
    Ok(())
}

/// `_conv_input_backward`
#[allow(clippy::too_many_arguments)]
pub fn conv_input_backward_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    grad_output: &Tensor,
    weight: &Tensor,
    input_sizes: &[SymInt],
    stride: &[SymInt],
    padding: &[SymInt],
    dilation: &[SymInt],
    groups: &SymInt,
) -> Result<()> {
    let name = "_conv_input_backward";
    check_dtype(name, grad_output, &[weight])?;
    let sizes = I::from_sym_slice(input_sizes)?;
    let output = output_sizes(name, &sizes, &I::sizes_of(weight)?, stride, padding, dilation, groups)?;
    check_gradient(name, grad_output, &output)?;
    outs.set_output_contiguous(0, &sizes, grad_output.options())
}

/// `_conv_weight_backward`
#[allow(clippy::too_many_arguments)]
pub fn conv_weight_backward_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    grad_output: &Tensor,
    input: &Tensor,
    weight_sizes: &[SymInt],
    stride: &[SymInt],
    padding: &[SymInt],
    dilation: &[SymInt],
    groups: &SymInt,
) -> Result<()> {
    let name = "_conv_weight_backward";
    check_dtype(name, grad_output, &[input])?;
    let sizes = I::from_sym_slice(weight_sizes)?;
    let output = output_sizes(name, &I::sizes_of(input)?, &sizes, stride, padding, dilation, groups)?;
    check_gradient(name, grad_output, &output)?;
    outs.set_output_contiguous(0, &sizes, grad_output.options())
}
