//! Meta functions of padding by index and of averages.

use c10::{check, compute_strides_for_memory_format, Result, SizeInt, SymInt, Tensor};
use iter::StructuredOutputs;

use super::pooling_output_shape;

/// Output 0 has the format that the tensor suggests.
fn set_like<I: SizeInt>(outs: &mut StructuredOutputs, sizes: &[I], like: &Tensor) -> Result<()> {
    let strides = compute_strides_for_memory_format(sizes, like.suggest_memory_format())?;
    outs.set_output_strided(0, sizes, &strides, like.options())
}

/// An image, or a batch of images, of `spatial` dimensions without empty ones (but the batch).
fn check_image<I: SizeInt>(sizes: &[I], spatial: usize) -> Result<()> {
    let ndim = sizes.len();
    let mut valid = ndim == spatial + 1 || ndim == spatial + 2;
    for size in sizes.iter().skip(usize::from(ndim == spatial + 2)) {
        valid = valid && !size.is_zero()?;
    }
    check!(
        valid,
        "Expected {}D or {}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but \
         got: {sizes:?}",
        spatial + 1,
        spatial + 2
    );
    Ok(())
}

/// The sizes of a padded tensor; `reflects` says that a padding may not reach further than the other edge.
fn padded<I: SizeInt>(self_: &Tensor, padding: &[SymInt], reflects: bool) -> Result<Vec<I>> {
    let spatial = padding.len() / 2;
    check!(
        padding.len() == 2 * spatial && spatial > 0,
        "padding size is expected to be even, but got {}",
        padding.len()
    );
    let padding = I::from_sym_slice(padding)?;
    let mut sizes = I::to_vector(&I::sizes_of(self_)?).to_vec();
    check_image(&sizes, spatial)?;
    let ndim = sizes.len();
    for d in 0..spatial {
        let (before, after) = (&padding[2 * d], &padding[2 * d + 1]);
        let dim = ndim - 1 - d;
        let size = &sizes[dim];
        if reflects {
            check!(
                before.expect_lt(size)? && after.expect_lt(size)?,
                "Argument #{}: Padding size should be less than the corresponding input dimension, but got: padding \
                 ({before}, {after}) at dimension {dim} of input {:?}",
                2 * (d + 2),
                &sizes[..]
            );
        }
        let out = size.sym_add(before)?.sym_add(after)?;
        check!(
            I::ONE.expect_le(&out)?,
            "input ({}: {size}) is too small. Calculated output: {out}",
            ["W", "H", "D"].get(d).unwrap_or(&"size")
        );
        sizes[dim] = out;
    }
    Ok(sizes)
}

/// `reflection_pad*`
pub fn reflection_pad_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    padding: &[SymInt],
) -> Result<()> {
    let sizes = padded::<I>(self_, padding, true)?;
    set_like(outs, &sizes, self_)
}

/// `replication_pad*`
pub fn replication_pad_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    padding: &[SymInt],
) -> Result<()> {
    let sizes = padded::<I>(self_, padding, false)?;
    set_like(outs, &sizes, self_)
}

fn pad_backward<I: SizeInt>(
    outs: &mut StructuredOutputs,
    grad_output: &Tensor,
    self_: &Tensor,
    padding: &[SymInt],
    reflects: bool,
) -> Result<()> {
    let expected = padded::<I>(self_, padding, reflects)?;
    check_gradient(&expected, grad_output)?;
    outs.set_output_contiguous(0, &I::sizes_of(self_)?, self_.options())
}

fn check_gradient<I: SizeInt>(expected: &[I], grad_output: &Tensor) -> Result<()> {
    let found = I::sizes_of(grad_output)?;
    check!(
        found.len() == expected.len() && I::expect_same(&found, expected)?,
        "grad_output unexpected. Expected: {expected:?}, Got: {:?}",
        &found[..]
    );
    Ok(())
}

/// `reflection_pad*_backward`
pub fn reflection_pad_backward_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    grad_output: &Tensor,
    self_: &Tensor,
    padding: &[SymInt],
) -> Result<()> {
    pad_backward::<I>(outs, grad_output, self_, padding, true)
}

/// `replication_pad*_backward`
pub fn replication_pad_backward_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    grad_output: &Tensor,
    self_: &Tensor,
    padding: &[SymInt],
) -> Result<()> {
    pad_backward::<I>(outs, grad_output, self_, padding, false)
}

/// The arguments of a window, one value for each dimension, as given or one for all.
pub fn window(name: &str, values: &[i64], spatial: usize) -> Result<Vec<i64>> {
    if values.len() == 1 {
        return Ok(vec![values[0]; spatial]);
    }
    check!(
        values.len() == spatial,
        "{name} must either be a single int, or a tuple of {spatial} ints, but got {values:?}"
    );
    Ok(values.to_vec())
}

/// The sizes that pooling with windows gives.
pub fn pooled_sizes<I: SizeInt>(
    self_: &Tensor,
    spatial: usize,
    [kernel, stride, padding, dilation]: [&[i64]; 4],
    ceil_mode: bool,
) -> Result<Vec<I>> {
    let kernel = window("kernel_size", kernel, spatial)?;
    let stride = if stride.is_empty() { kernel.clone() } else { window("stride", stride, spatial)? };
    let padding = window("padding", padding, spatial)?;
    let dilation = window("dilation", dilation, spatial)?;
    check!(kernel.iter().all(|&k| k > 0), "kernel size should be greater than zero, but got {kernel:?}");
    check!(stride.iter().all(|&s| s > 0), "stride should be greater than zero, but got {stride:?}");
    check!(dilation.iter().all(|&d| d > 0), "dilation should be greater than zero, but got {dilation:?}");
    let mut sizes = I::to_vector(&I::sizes_of(self_)?).to_vec();
    check_image(&sizes, spatial)?;
    let lead = sizes.len() - spatial;
    let before = sizes.clone();
    for d in 0..spatial {
        let out =
            pooling_output_shape(&sizes[lead + d], kernel[d], padding[d], stride[d], dilation[d], ceil_mode)?;
        check!(
            I::ONE.expect_le(&out)?,
            "Given input size: {:?}. Calculated output size: {out} in dimension {}. Output size is too small",
            &before[lead - 1..],
            lead + d
        );
        sizes[lead + d] = out;
    }
    Ok(sizes)
}

fn check_divisor(divisor: Option<i64>) -> Result<()> {
    check!(divisor != Some(0), "divisor must be not zero");
    Ok(())
}

/// `avg_pool2d` and `avg_pool3d`
#[allow(clippy::too_many_arguments)]
pub fn avg_pool_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    ceil_mode: bool,
    _count_include_pad: bool,
    divisor_override: Option<i64>,
) -> Result<()> {
    check_divisor(divisor_override)?;
    let sizes = pooled_sizes::<I>(self_, kernel_size.len(), [kernel_size, stride, padding, &[1]], ceil_mode)?;
    set_like(outs, &sizes, self_)
}

/// `avg_pool2d_backward` and `avg_pool3d_backward`
#[allow(clippy::too_many_arguments)]
pub fn avg_pool_backward_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    grad_output: &Tensor,
    self_: &Tensor,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    ceil_mode: bool,
    _count_include_pad: bool,
    divisor_override: Option<i64>,
) -> Result<()> {
    check_divisor(divisor_override)?;
    let expected =
        pooled_sizes::<I>(self_, kernel_size.len(), [kernel_size, stride, padding, &[1]], ceil_mode)?;
    check_gradient(&expected, grad_output)?;
    set_like(outs, &I::sizes_of(self_)?, self_)
}

/// `_adaptive_avg_pool2d` and `_adaptive_avg_pool3d`
pub fn adaptive_avg_pool_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    output_size: &[SymInt],
) -> Result<()> {
    let sizes = adaptive_sizes::<I>("adaptive_avg_pool", self_, output_size)?;
    set_like(outs, &sizes, self_)
}

/// The sizes that pooling to `output_size` gives.
pub fn adaptive_sizes<I: SizeInt>(name: &str, self_: &Tensor, output_size: &[SymInt]) -> Result<Vec<I>> {
    let spatial = output_size.len();
    let mut sizes = I::to_vector(&I::sizes_of(self_)?).to_vec();
    check!(
        sizes.len() == spatial + 1 || sizes.len() == spatial + 2,
        "{name}{spatial}d(): Expected {}D or {}D tensor, but got {sizes:?}",
        spatial + 1,
        spatial + 2
    );
    let lead = sizes.len() - spatial;
    for (d, wanted) in I::from_sym_slice(output_size)?.iter().enumerate() {
        check!(
            !sizes[lead + d].is_zero()?,
            "{name}{spatial}d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes \
             {sizes:?} with dimension {} being empty",
            lead + d
        );
        check!(
            wanted.expect_nonnegative()?,
            "{name}{spatial}d(): elements of output_size must be greater than or equal to 0 but received {output_size:?}"
        );
        sizes[lead + d] = wanted.clone();
    }
    Ok(sizes)
}

/// `_adaptive_avg_pool2d_backward` and `_adaptive_avg_pool3d_backward`
pub fn adaptive_avg_pool_backward_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    grad_output: &Tensor,
    self_: &Tensor,
) -> Result<()> {
    let (sizes, grad) = (I::sizes_of(self_)?, I::sizes_of(grad_output)?);
    let ndim = sizes.len();
    check!(
        grad_output.dtype() == self_.dtype(),
        "expected dtype {} for `grad_output` but got dtype {}",
        self_.dtype().short_name(),
        grad_output.dtype().short_name()
    );
    check!(
        grad.len() == ndim && ndim >= 3,
        "adaptive_avg_pool_backward(): expected grad_output of the input's dimensions {:?}, got {:?}",
        &sizes[..],
        &grad[..]
    );
    for (d, size) in grad.iter().enumerate().skip(ndim - 2) {
        check!(
            !size.is_zero()?,
            "adaptive_avg_pool_backward(): Expected grad_output to have non-zero size for non-batch dimensions, but \
             grad_output has sizes {:?} with dimension {d} being empty",
            &grad[..]
        );
    }
    set_like(outs, &sizes, self_)
}
