//! Composites of the `conv` family.
//!
//! `convolution` checks its arguments and decides which of three operators computes: `_conv_forward`, or for a
//! transposed convolution `_conv_input_backward`, whose input is then the gradient.

mod columns;

pub use columns::*;

use c10::{
    check, check_not_implemented, DimVector, Result, Scalar, ScalarType, SizeInt, SizeVector, SymDimVector,
    SymInt, Tensor,
};

use crate::at;
use crate::meta::conv::{all_at_least, kernel_reach, padded_size};
use crate::sym::with_sizes;

/// A list argument with one entry per spatial dimension: as given, or one entry for all.
fn expand_param<I: SizeInt>(values: &[SymInt], name: &str, spatial: usize) -> Result<SizeVector<I>> {
    let values = I::from_sym_slice(values)?;
    if values.len() == 1 {
        return Ok(SizeVector::from_elem(values[0].clone(), spatial));
    }
    check!(
        values.len() == spatial,
        "expected {name} to be a single integer value or a list of {spatial} values to match the convolution dimensions, \
         but got {name}={values:?}"
    );
    Ok(values)
}

/// The arguments of a convolution, expanded and checked.
struct ConvParams<I: SizeInt> {
    stride: SizeVector<I>,
    padding: SizeVector<I>,
    dilation: SizeVector<I>,
    output_padding: SizeVector<I>,
    transposed: bool,
    groups: I,
}

impl<I: SizeInt> ConvParams<I> {
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
    ) -> Result<Self> {
        let ndim = weight.dim();
        check!(ndim > 2, "weight should have at least three dimensions");
        check!(
            input.dim() == ndim,
            "Expected {ndim}-dimensional input for {ndim}-dimensional weight {:?}, but got {}-dimensional input of size \
             {:?} instead",
            weight.sym_sizes(),
            input.dim(),
            input.sym_sizes()
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
                SizeVector::from_elem(I::ZERO, spatial)
            },
            transposed,
            groups: I::from_sym(groups)?,
        };
        params.check_values()?;
        params.check_shapes(input, weight)?;
        params.check_kernel(input, weight)?;
        Ok(params)
    }

    fn check_values(&self) -> Result<()> {
        check!(
            I::ONE.expect_le(&self.groups)?,
            "expected groups to be greater than 0, but got groups={}",
            self.groups
        );
        check!(all_at_least(&I::ZERO, &self.padding)?, "negative padding is not supported");
        check!(all_at_least(&I::ONE, &self.stride)?, "non-positive stride is not supported");
        check!(all_at_least(&I::ONE, &self.dilation)?, "dilation should be greater than zero");
        for (d, extra) in self.output_padding.iter().enumerate() {
            check!(
                *extra == 0
                    || extra.expect_nonnegative()?
                        && extra.expect_lt(&self.stride[d].sym_max(&self.dilation[d])?)?,
                "output padding must be smaller than either stride or dilation, but got output_padding={:?}, \
                 stride={:?}, dilation={:?}",
                self.output_padding,
                self.stride,
                self.dilation
            );
        }
        Ok(())
    }

    fn check_shapes(&self, input: &Tensor, weight: &Tensor) -> Result<()> {
        check!(
            input.dtype() == weight.dtype(),
            "Input type ({}) and weight type ({}) should be the same",
            input.dtype(),
            weight.dtype()
        );
        let (input_sizes, weight_sizes) = (I::sizes_of(input)?, I::sizes_of(weight)?);
        check!(
            self.groups.expect_le(&weight_sizes[0])?
                && (self.groups == 1 || weight_sizes[0].sym_mod(&self.groups)?.expect_eq(&I::ZERO)?),
            "Given groups={}, expected weight to be at least {} at dimension 0 and divisible by it, but got weight of size \
             {:?} instead",
            self.groups,
            self.groups,
            &weight_sizes[..]
        );
        if self.transposed {
            check!(
                input_sizes[1].expect_eq(&weight_sizes[0])?,
                "Given transposed=1, weight of size {:?}, expected input{:?} to have {} channels, but got {} channels \
                 instead",
                &weight_sizes[..],
                &input_sizes[..],
                weight_sizes[0],
                input_sizes[1]
            );
            return Ok(());
        }
        let channels = weight_sizes[1].sym_mul(&self.groups)?;
        check!(
            input_sizes[1].expect_eq(&channels)?,
            "Given groups={}, weight of size {:?}, expected input{:?} to have {channels} channels, but got {} channels \
             instead",
            self.groups,
            &weight_sizes[..],
            &input_sizes[..],
            input_sizes[1]
        );
        let (mut padded, mut reaches, mut fits) = (Vec::new(), Vec::new(), true);
        for d in 0..self.stride.len() {
            let size = padded_size(&input_sizes[d + 2], &self.padding[d])?;
            let reach = kernel_reach(&weight_sizes[d + 2], &self.dilation[d])?;
            fits &= reach.expect_le(&size)?;
            padded.push(size.to_string());
            reaches.push(reach.to_string());
        }
        check!(
            fits,
            "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater than actual \
             input size",
            padded.join(" x "),
            reaches.join(" x ")
        );
        Ok(())
    }

    /// What PyTorch's kernels refuse.
    fn check_kernel(&self, input: &Tensor, weight: &Tensor) -> Result<()> {
        let (input_sizes, weight_sizes) = (I::sizes_of(input)?, I::sizes_of(weight)?);
        for size in &weight_sizes[2..] {
            check!(
                I::ONE.expect_le(size)?,
                "kernel size should be greater than zero, but got weight of size {:?}",
                &weight_sizes[..]
            );
        }
        for size in &input_sizes[2..] {
            check!(
                I::ONE.expect_le(size)? || input_sizes[..2].iter().any(|size| *size == 0),
                "Only zero batch or zero channel inputs are supported, but got input shape: {:?}",
                &input_sizes[..]
            );
        }
        let dilated = self.dilation.iter().any(|dilation| *dilation != 1);
        check_not_implemented!(
            !dilated
                || self.transposed
                || !input.dtype().is_integral(false)
                || input.dtype() == ScalarType::Long,
            "\"slow_conv_dilated<>\" not implemented for '{}'",
            input.dtype().short_name()
        );
        Ok(())
    }

    /// The sizes of a transposed convolution's output.
    fn transposed_output_sizes(&self, input: &Tensor, weight: &Tensor) -> Result<SizeVector<I>> {
        let (input_sizes, weight_sizes) = (I::sizes_of(input)?, I::sizes_of(weight)?);
        let mut sizes = SizeVector::new();
        sizes.push(input_sizes[0].clone());
        sizes.push(weight_sizes[1].sym_mul(&self.groups)?);
        for d in 0..self.stride.len() {
            let size = input_sizes[d + 2]
                .sym_sub(&I::ONE)?
                .sym_mul(&self.stride[d])?
                .sym_sub(&self.padding[d].sym_mul(&I::from(2))?)?
                .sym_add(&self.dilation[d].sym_mul(&weight_sizes[d + 2].sym_sub(&I::ONE)?)?)?
                .sym_add(&self.output_padding[d])?
                .sym_add(&I::ONE)?;
            check!(
                I::ONE.expect_le(&size)?,
                "Given input size per channel: {:?}. Calculated output size per channel is too small ({size})",
                &input_sizes[2..]
            );
            sizes.push(size);
        }
        Ok(sizes)
    }

    /// The input of a transposed convolution, which is a gradient to the kernels. An output padding of a stride or more is
    /// room for further positions of that gradient; they are zero.
    fn with_room(&self, input: &Tensor) -> Result<Tensor> {
        let mut pads = SymDimVector::new();
        for (extra, stride) in self.output_padding.iter().zip(&self.stride).rev() {
            pads.push(SymInt::ZERO);
            pads.push(extra.sym_floordiv(stride)?.to_sym());
        }
        if pads.iter().all(|pad| *pad == 0) {
            return Ok(input.clone());
        }
        at::constant_pad_nd(input, &pads, &Scalar::Int(0))
    }

    /// Stride, padding and dilation as arguments.
    fn to_arguments(&self) -> [SymDimVector; 3] {
        [&self.stride, &self.padding, &self.dilation].map(|values| I::to_sym_slice(values))
    }
}

fn check_bias<I: SizeInt>(bias: Option<&Tensor>, channels: &I, input: &Tensor) -> Result<()> {
    if let Some(bias) = bias {
        check!(
            bias.dim() == 1 && I::sizes_of(bias)?[0].expect_eq(channels)?,
            "Given weight with {channels} output channels, expected bias to be 1-dimensional with {channels} elements, but \
             got bias of size {:?} instead",
            bias.sym_sizes()
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
    with_sizes!(
        [input, weight, bias, stride, padding, dilation, output_padding, groups]
        convolve(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    )
}

#[allow(clippy::too_many_arguments)]
fn convolve<I: SizeInt>(
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
        ConvParams::<I>::new(input, weight, stride, padding, dilation, transposed, output_padding, groups)?;
    let [stride, padding, dilation] = params.to_arguments();
    if !transposed {
        check_bias(bias, &I::sizes_of(weight)?[0], input)?;
        let output = at::_conv_forward(input, weight, bias, &stride, &padding, &dilation, groups)?;
        // As in PyTorch nothing comes out of no channels, whatever the weight.
        return if has_no_channels::<I>(input)? {
            at::narrow(&output, 1, &SymInt::ZERO, &SymInt::ZERO)
        } else {
            Ok(output)
        };
    }
    let sizes = params.transposed_output_sizes(input, weight)?;
    check_bias(bias, &sizes[1], input)?;
    if let (Some(bias), true) = (bias, input.dtype().is_reduced_floating_point()) {
        // The bias is part of the sum that is rounded.
        let wide = |t: &Tensor| at::to_dtype(t, ScalarType::Float, false, false, None);
        let (x, weight, bias) = (wide(input)?, wide(weight)?, wide(bias)?);
        let out = at::convolution(
            &x,
            &weight,
            Some(&bias),
            &stride,
            &padding,
            &dilation,
            true,
            output_padding,
            groups,
        )?;
        return at::to_dtype(&out, input.dtype(), false, false, None);
    }
    let sizes = I::to_sym_slice(&sizes);
    let input = &params.with_room(input)?;
    let output = at::_conv_input_backward(input, weight, &sizes, &stride, &padding, &dilation, groups)?;
    match bias {
        None => Ok(output),
        Some(bias) => {
            let mut shape = SymDimVector::from_elem(SymInt::ONE, sizes.len());
            shape[1] = sizes[1].clone();
            at::add_tensor(&output, &at::view(bias, &shape)?, &Scalar::Int(1))
        }
    }
}

fn has_no_channels<I: SizeInt>(input: &Tensor) -> Result<bool> {
    Ok(I::sizes_of(input)?[1] == 0)
}

/// Stride, padding and dilation, checked, with one entry per spatial dimension, and the input of [`ConvParams::with_room`].
#[allow(clippy::too_many_arguments)]
fn checked_arguments<I: SizeInt>(
    input: &Tensor,
    weight: &Tensor,
    stride: &[SymInt],
    padding: &[SymInt],
    dilation: &[SymInt],
    transposed: bool,
    output_padding: &[SymInt],
    groups: &SymInt,
) -> Result<([SymDimVector; 3], Tensor)> {
    let params =
        ConvParams::<I>::new(input, weight, stride, padding, dilation, transposed, output_padding, groups)?;
    Ok((params.to_arguments(), params.with_room(input)?))
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
    let ([stride, padding, dilation], roomy) = with_sizes!(
        [input, weight, stride, padding, dilation, output_padding, groups]
        checked_arguments(input, weight, stride, padding, dilation, transposed, output_padding, groups)
    )?;
    let wanted = |i: usize| output_mask.get(i).copied().unwrap_or(false);
    if !transposed && with_sizes!([input] has_no_channels(input))? {
        let zeros = |sizes: &[SymInt]| at::new_zeros(weight, sizes, None, None, None, None);
        let sizes = [input.sym_sizes(), weight.sym_sizes(), SymDimVector::from(&weight.sym_sizes()[..1])];
        let [input, weight, bias] = [0, 1, 2].map(|i| wanted(i).then(|| zeros(&sizes[i])).transpose());
        return Ok((input?, weight?, bias?));
    }
    let grad_input = if !wanted(0) {
        None
    } else if transposed {
        let mut grad =
            at::_conv_forward(grad_output, &conj(weight)?, None, &stride, &padding, &dilation, groups)?;
        if !roomy.is_same(input) {
            for (d, size) in input.sym_sizes().iter().enumerate().skip(2) {
                grad = at::narrow(&grad, d as i64, &SymInt::ZERO, size)?;
            }
        }
        Some(grad)
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
        let input = &conj(&roomy)?;
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
        input.sym_sizes()
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

/// `aten::conv3d`
pub fn conv3d(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    stride: &[SymInt],
    padding: &[SymInt],
    dilation: &[SymInt],
    groups: &SymInt,
) -> Result<Tensor> {
    conv_nd("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)
}

macro_rules! conv_padding {
    ($($(#[$doc:meta])* $name:ident, $operator:literal, $spatial:literal;)*) => {$(
        $(#[$doc])*
        pub fn $name(
            input: &Tensor,
            weight: &Tensor,
            bias: Option<&Tensor>,
            stride: &[SymInt],
            padding: &str,
            dilation: &[SymInt],
            groups: &SymInt,
        ) -> Result<Tensor> {
            match padding {
                "valid" => {
                    let none = [SymInt::ZERO];
                    conv_nd($operator, $spatial, input, weight, bias, stride, &none, dilation, groups)
                }
                "same" => conv_same($operator, $spatial, input, weight, bias, stride, dilation, groups),
                _ => c10::bail!(Runtime, "Invalid padding string: '{padding}'"),
            }
        }
    )*};
}

conv_padding! {
    /// `aten::conv1d.padding`
    conv1d_padding, "conv1d", 1;
    /// `aten::conv2d.padding`
    conv2d_padding, "conv2d", 2;
    /// `aten::conv3d.padding`
    conv3d_padding, "conv3d", 3;
}

/// The output has the input's spatial size; where the padding is odd, the right side gets one more.
#[allow(clippy::too_many_arguments)]
fn conv_same(
    name: &str,
    spatial: usize,
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    stride: &[SymInt],
    dilation: &[SymInt],
    groups: &SymInt,
) -> Result<Tensor> {
    let ndim = spatial as i64 + 2;
    check!(
        weight.dim() == ndim,
        "{name}(): expected a {ndim}-dimensional weight, got {} dimensions",
        weight.dim()
    );
    let stride: SymDimVector = expand_param(stride, "stride", spatial)?;
    let dilation: SymDimVector = expand_param(dilation, "dilation", spatial)?;
    check!(stride.iter().all(|s| *s == 1), "padding='same' is not supported for strided convolutions");
    let (mut input, batched) = batchify(input, spatial as i64, name)?;
    let two = SymInt::from(2);
    let mut symmetric = SymDimVector::new();
    for (d, dilation) in dilation.iter().enumerate() {
        let dim = d as i64 + 2;
        let reach = weight.sym_size(dim)?.sym_sub(&SymInt::ONE)?;
        let total = dilation.sym_mul(&reach)?.sym_max(&SymInt::ZERO)?;
        symmetric.push(total.sym_floordiv(&two)?);
        if total.sym_mod(&two)?.guard_eq(&SymInt::ONE)? {
            let mut edge = input.sym_sizes();
            edge[dim as usize] = SymInt::ONE;
            let options = (Some(input.dtype()), Some(input.layout()), Some(input.device()));
            let edge = at::zeros(&edge, options.0, options.1, options.2, None)?;
            input = at::cat(&[input, edge], dim)?;
        }
    }
    let zero = [SymInt::ZERO];
    let output = at::convolution(&input, weight, bias, &stride, &symmetric, &dilation, false, &zero, groups)?;
    if batched {
        Ok(output)
    } else {
        at::squeeze_dim(&output, 0)
    }
}

macro_rules! conv_transpose {
    ($($(#[$doc:meta])* $name:ident, $operator:literal, $spatial:literal;)*) => {$(
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        pub fn $name(
            input: &Tensor,
            weight: &Tensor,
            bias: Option<&Tensor>,
            stride: &[SymInt],
            padding: &[SymInt],
            output_padding: &[SymInt],
            groups: &SymInt,
            dilation: &[SymInt],
        ) -> Result<Tensor> {
            let (input, batched) = batchify(input, $spatial, $operator)?;
            let output =
                at::convolution(&input, weight, bias, stride, padding, dilation, true, output_padding, groups)?;
            if batched {
                Ok(output)
            } else {
                at::squeeze_dim(&output, 0)
            }
        }
    )*};
}

conv_transpose! {
    /// `aten::conv_transpose1d`
    conv_transpose1d, "conv_transpose1d", 1;
    /// `aten::conv_transpose2d.input`
    conv_transpose2d_input, "conv_transpose2d", 2;
    /// `aten::conv_transpose3d.input`
    conv_transpose3d_input, "conv_transpose3d", 3;
}

/// The factor that a gradient is multiplied by: the conjugate, which for real numbers is the number.
fn conj(tensor: &Tensor) -> Result<Tensor> {
    if tensor.is_complex() {
        at::conj_physical(tensor)
    } else {
        Ok(tensor.clone())
    }
}
