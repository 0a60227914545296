//! Composites of the `conv` family.
//!
//! `convolution` checks its arguments and decides which of three operators computes: `_conv_forward`, or for a
//! transposed convolution `_conv_input_backward`, whose input is then the gradient.

use c10::{check, DimVector, Result, Scalar, SymInt, Tensor};

use crate::{at, sym};

/// A list argument with one entry per spatial dimension: as given, or one entry for all.
fn expand_param(values: &[SymInt], name: &str, spatial: usize) -> Result<DimVector> {
    let values = sym::ints(values)?;
    if values.len() == 1 {
        return Ok(DimVector::from_elem(values[0], spatial));
    }
    check!(
        values.len() == spatial,
        "expected {name} to be a single integer value or a list of {spatial} values to match the convolution dimensions, \
         but got {name}={values:?}"
    );
    Ok(values)
}

/// The arguments of a convolution, expanded and checked.
struct ConvParams {
    stride: DimVector,
    padding: DimVector,
    dilation: DimVector,
    output_padding: DimVector,
    transposed: bool,
    groups: i64,
}

impl ConvParams {
    #[allow(clippy::too_many_arguments)]
    fn new(
        input: &Tensor,
        weight: &Tensor,
        stride: &[SymInt],
        padding: &[SymInt],
        dilation: &[SymInt],
        transposed: bool,
        output_padding: &[SymInt],
        groups: &SymInt,
    ) -> Result<ConvParams> {
        let ndim = weight.dim();
        check!(ndim > 2, "weight should have at least three dimensions");
        check!(
            input.dim() == ndim,
            "Expected {ndim}-dimensional input for {ndim}-dimensional weight {:?}, but got {}-dimensional input of size \
             {:?} instead",
            weight.sizes()?,
            input.dim(),
            input.sizes()?
        );
        check!(ndim <= 5, "convolution(): expected one to three spatial dimensions, got {}", ndim - 2);
        let spatial = ndim as usize - 2;
        let params = ConvParams {
            stride: expand_param(stride, "stride", spatial)?,
            padding: expand_param(padding, "padding", spatial)?,
            dilation: expand_param(dilation, "dilation", spatial)?,
            output_padding: if transposed {
                expand_param(output_padding, "output_padding", spatial)?
            } else {
                DimVector::from_elem(0, spatial)
            },
            transposed,
            groups: groups.guard_int()?,
        };
        params.check_values()?;
        params.check_shapes(input, weight)?;
        Ok(params)
    }

    fn check_values(&self) -> Result<()> {
        check!(self.groups > 0, "expected groups to be greater than 0, but got groups={}", self.groups);
        check!(self.padding.iter().all(|&p| p >= 0), "negative padding is not supported");
        check!(self.stride.iter().all(|&s| s > 0), "non-positive stride is not supported");
        check!(self.dilation.iter().all(|&d| d > 0), "dilation should be greater than zero");
        let fits =
            |(d, &extra): (usize, &i64)| extra >= 0 && (extra < self.stride[d] || extra < self.dilation[d]);
        check!(
            self.output_padding.iter().enumerate().all(|pair| pair.1 == &0 || fits(pair)),
            "output padding must be smaller than either stride or dilation, but got output_padding={:?}, stride={:?}, \
             dilation={:?}",
            self.output_padding,
            self.stride,
            self.dilation
        );
        Ok(())
    }

    fn check_shapes(&self, input: &Tensor, weight: &Tensor) -> Result<()> {
        check!(
            input.dtype() == weight.dtype(),
            "Input type ({}) and weight type ({}) should be the same",
            input.dtype(),
            weight.dtype()
        );
        let (input_sizes, weight_sizes) = (input.sizes()?, weight.sizes()?);
        check!(
            weight_sizes[0] >= self.groups && weight_sizes[0] % self.groups == 0,
            "Given groups={}, expected weight to be at least {} at dimension 0 and divisible by it, but got weight of size \
             {weight_sizes:?} instead",
            self.groups,
            self.groups
        );
        if self.transposed {
            check!(
                input_sizes[1] == weight_sizes[0],
                "Given transposed=1, weight of size {weight_sizes:?}, expected input{input_sizes:?} to have {} channels, \
                 but got {} channels instead",
                weight_sizes[0],
                input_sizes[1]
            );
            return Ok(());
        }
        let Some(channels) = weight_sizes[1].checked_mul(self.groups) else {
            c10::bail!(Runtime, "convolution(): the number of input channels overflows");
        };
        check!(
            input_sizes[1] == channels,
            "Given groups={}, weight of size {weight_sizes:?}, expected input{input_sizes:?} to have {channels} channels, \
             but got {} channels instead",
            self.groups,
            input_sizes[1]
        );
        for d in 0..self.stride.len() {
            let padded = input_sizes[d + 2].saturating_add(self.padding[d].saturating_mul(2));
            let reach = self.dilation[d].saturating_mul(weight_sizes[d + 2] - 1).saturating_add(1);
            check!(
                padded >= reach,
                "Calculated padded input size per channel: ({padded}). Kernel size: ({reach}). Kernel size can't be \
                 greater than actual input size"
            );
        }
        Ok(())
    }

    /// The sizes of a transposed convolution's output.
    fn transposed_output_sizes(&self, input: &Tensor, weight: &Tensor) -> Result<DimVector> {
        let (input_sizes, weight_sizes) = (input.sizes()?, weight.sizes()?);
        let mut sizes = DimVector::from_slice(&[input_sizes[0], weight_sizes[1] * self.groups]);
        for d in 0..self.stride.len() {
            let size = (input_sizes[d + 2] - 1) * self.stride[d] - 2 * self.padding[d]
                + self.dilation[d] * (weight_sizes[d + 2] - 1)
                + self.output_padding[d]
                + 1;
            check!(
                size > 0,
                "Given input size per channel: {:?}. Calculated output size per channel is too small ({size})",
                &input_sizes[2..]
            );
            sizes.push(size);
        }
        Ok(sizes)
    }
}

fn check_bias(bias: Option<&Tensor>, channels: i64, input: &Tensor) -> Result<()> {
    if let Some(bias) = bias {
        check!(
            bias.dim() == 1 && bias.sizes()? == [channels],
            "Given weight with {channels} output channels, expected bias to be 1-dimensional with {channels} elements, but \
             got bias of size {:?} instead",
            bias.sizes()?
        );
        check!(
            bias.dtype() == input.dtype(),
            "Input type ({}) and bias type ({}) should be the same",
            input.dtype(),
            bias.dtype()
        );
    }
    Ok(())
}

/// `aten::convolution`
#[allow(clippy::too_many_arguments)]
pub fn convolution(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    stride: &[SymInt],
    padding: &[SymInt],
    dilation: &[SymInt],
    transposed: bool,
    output_padding: &[SymInt],
    groups: &SymInt,
) -> Result<Tensor> {
    let params =
        ConvParams::new(input, weight, stride, padding, dilation, transposed, output_padding, groups)?;
    let (stride, padding) = (sym::sym_ints(&params.stride), sym::sym_ints(&params.padding));
    let dilation = sym::sym_ints(&params.dilation);
    if !transposed {
        check_bias(bias, weight.sizes()?[0], input)?;
        return at::_conv_forward(input, weight, bias, &stride, &padding, &dilation, groups);
    }
    let sizes = params.transposed_output_sizes(input, weight)?;
    check_bias(bias, sizes[1], input)?;
    let sym_sizes = sym::sym_ints(&sizes);
    let output = at::_conv_input_backward(input, weight, &sym_sizes, &stride, &padding, &dilation, groups)?;
    match bias {
        None => Ok(output),
        Some(bias) => {
            let mut shape = DimVector::from_elem(1, sizes.len());
            shape[1] = sizes[1];
            at::add_tensor(&output, &at::view(bias, &sym::sym_ints(&shape))?, &Scalar::Int(1))
        }
    }
}

/// `aten::convolution_backward`
#[allow(clippy::too_many_arguments)]
pub fn convolution_backward(
    grad_output: &Tensor,
    input: &Tensor,
    weight: &Tensor,
    _bias_sizes: Option<&[SymInt]>,
    stride: &[SymInt],
    padding: &[SymInt],
    dilation: &[SymInt],
    transposed: bool,
    output_padding: &[SymInt],
    groups: &SymInt,
    output_mask: &[bool],
) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
    let params =
        ConvParams::new(input, weight, stride, padding, dilation, transposed, output_padding, groups)?;
    let (stride, padding) = (sym::sym_ints(&params.stride), sym::sym_ints(&params.padding));
    let dilation = sym::sym_ints(&params.dilation);
    let wanted = |i: usize| output_mask.get(i).copied().unwrap_or(false);
    let grad_input = if !wanted(0) {
        None
    } else if transposed {
        Some(at::_conv_forward(grad_output, &conj(weight)?, None, &stride, &padding, &dilation, groups)?)
    } else {
        let sizes = input.sym_sizes();
        Some(at::_conv_input_backward(
            grad_output,
            &conj(weight)?,
            &sizes,
            &stride,
            &padding,
            &dilation,
            groups,
        )?)
    };
    let grad_weight = if wanted(1) {
        // In a transposed convolution input and output change places.
        let input = &conj(input)?;
        let (grad, input) = if transposed { (input, grad_output) } else { (grad_output, input) };
        Some(at::_conv_weight_backward(
            grad,
            input,
            &weight.sym_sizes(),
            &stride,
            &padding,
            &dilation,
            groups,
        )?)
    } else {
        None
    };
    let grad_bias = if wanted(2) {
        let mut dims: DimVector = (0..grad_output.dim()).collect();
        dims.remove(1);
        Some(at::sum_dim_intlist(grad_output, Some(&dims), false, None)?)
    } else {
        None
    };
    Ok((grad_input, grad_weight, grad_bias))
}

/// Adds the batch dimension that an input lacks, and says so.
fn batchify(input: &Tensor, spatial: i64, name: &str) -> Result<(Tensor, bool)> {
    let batched = input.dim() == spatial + 2;
    check!(
        batched || input.dim() == spatial + 1,
        "Expected {}D (unbatched) or {}D (batched) input to {name}, but got input of size: {:?}",
        spatial + 1,
        spatial + 2,
        input.sizes()?
    );
    Ok((if batched { input.clone() } else { at::unsqueeze(input, 0)? }, batched))
}

#[allow(clippy::too_many_arguments)]
fn conv_nd(
    name: &str,
    spatial: i64,
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    stride: &[SymInt],
    padding: &[SymInt],
    dilation: &[SymInt],
    groups: &SymInt,
) -> Result<Tensor> {
    let (input, batched) = batchify(input, spatial, name)?;
    let zero = [SymInt::from(0_i64)];
    let output = at::convolution(&input, weight, bias, stride, padding, dilation, false, &zero, groups)?;
    if batched {
        Ok(output)
    } else {
        at::squeeze_dim(&output, 0)
    }
}

/// `aten::conv1d`
pub fn conv1d(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    stride: &[SymInt],
    padding: &[SymInt],
    dilation: &[SymInt],
    groups: &SymInt,
) -> Result<Tensor> {
    conv_nd("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)
}

/// `aten::conv2d`
pub fn conv2d(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    stride: &[SymInt],
    padding: &[SymInt],
    dilation: &[SymInt],
    groups: &SymInt,
) -> Result<Tensor> {
    conv_nd("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)
}

/// `aten::conv2d.padding`
pub fn conv2d_padding(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    stride: &[SymInt],
    padding: &str,
    dilation: &[SymInt],
    groups: &SymInt,
) -> Result<Tensor> {
    match padding {
        "valid" => at::conv2d(input, weight, bias, stride, &[SymInt::from(0_i64)], dilation, groups),
        "same" => conv2d_same(input, weight, bias, stride, dilation, groups),
        _ => c10::bail!(Runtime, "Invalid padding string: '{padding}'"),
    }
}

/// The output has the input's spatial size; where the padding is odd, the right side gets one more.
fn conv2d_same(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    stride: &[SymInt],
    dilation: &[SymInt],
    groups: &SymInt,
) -> Result<Tensor> {
    check!(weight.dim() == 4, "conv2d(): expected a 4-dimensional weight, got {} dimensions", weight.dim());
    let (stride, dilation) = (expand_param(stride, "stride", 2)?, expand_param(dilation, "dilation", 2)?);
    check!(stride.iter().all(|&s| s == 1), "padding='same' is not supported for strided convolutions");
    let (mut input, batched) = batchify(input, 2, "conv2d")?;
    let mut symmetric = DimVector::new();
    for d in 0..2 {
        let total = dilation[d].saturating_mul(weight.sizes()?[d + 2] - 1).max(0);
        symmetric.push(total / 2);
        if total % 2 == 1 {
            let mut edge = DimVector::from_slice(input.sizes()?);
            edge[d + 2] = 1;
            let options = (Some(input.dtype()), Some(input.layout()), Some(input.device()));
            let edge = at::zeros(&sym::sym_ints(&edge), options.0, options.1, options.2, None)?;
            input = at::cat(&[input, edge], d as i64 + 2)?;
        }
    }
    let (stride, dilation) = (sym::sym_ints(&stride), sym::sym_ints(&dilation));
    let output = at::conv2d(&input, weight, bias, &stride, &sym::sym_ints(&symmetric), &dilation, groups)?;
    if batched {
        Ok(output)
    } else {
        at::squeeze_dim(&output, 0)
    }
}

/// The factor that a gradient is multiplied by: the conjugate, which for real numbers is the number.
fn conj(tensor: &Tensor) -> Result<Tensor> {
    if tensor.is_complex() {
        at::conj_physical(tensor)
    } else {
        Ok(tensor.clone())
    }
}
