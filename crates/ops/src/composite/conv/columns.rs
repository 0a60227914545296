//! `im2col` and `col2im`: the windows of an image as columns of a matrix, and their sum back into an image.
//!
//! Both go through the kernel's elements: for each, what all windows have there is one strided view of the padded image.

use c10::{check, Result, Scalar, SizeInt, SymDimVector, SymInt, Tensor};

use crate::at;
use crate::terms::add;

/// One direction of the windows.
struct Axis {
    kernel: i64,
    dilation: i64,
    padding: i64,
    stride: i64,
    /// The image's size.
    size: SymInt,
    /// The number of windows.
    windows: SymInt,
}

impl Axis {
    /// The image's size with its padding.
    fn padded(&self) -> Result<SymInt> {
        self.size.sym_add(&SymInt::from(2 * self.padding))
    }

    /// Where the windows have their element `tap`, in the padded image.
    fn places(&self, image: &Tensor, dim: i64, tap: i64) -> Result<Tensor> {
        let start = SymInt::from(tap * self.dilation);
        let reach = self.windows.sym_sub(&SymInt::ONE)?.sym_mul(&SymInt::from(self.stride))?;
        let end = start.sym_add(&reach)?.sym_add(&SymInt::ONE)?;
        at::slice_tensor(image, dim, Some(&start), Some(&end), &SymInt::from(self.stride))
    }
}

fn axes(name: &str, sizes: &[SymInt], [kernel, dilation, padding, stride]: [&[i64]; 4]) -> Result<[Axis; 2]> {
    let lists = [
        ("kernel_size", kernel, 1),
        ("dilation", dilation, 1),
        ("padding", padding, 0),
        ("stride", stride, 1),
    ];
    for (list, values, least) in lists {
        check!(
            values.len() == 2 && values.iter().all(|&value| value >= least),
            "{list} should be {} than zero, but got {values:?}",
            if least == 1 { "greater" } else { "not less" }
        );
        check!(
            values.iter().all(|&value| value <= i64::from(i32::MAX)),
            "{name}(): expected {list} below 2^31, got {values:?}"
        );
    }
    let axis = |i: usize| {
        let reach = dilation[i] * (kernel[i] - 1) + 1;
        let room = sizes[i].sym_add(&SymInt::from(2 * padding[i] - reach))?;
        let windows = room.sym_floordiv(&SymInt::from(stride[i]))?.sym_add(&SymInt::ONE)?;
        Ok::<Axis, c10::Error>(Axis {
            kernel: kernel[i],
            dilation: dilation[i],
            padding: padding[i],
            stride: stride[i],
            size: sizes[i].clone(),
            windows,
        })
    };
    let axes = [axis(0)?, axis(1)?];
    check!(
        SymInt::ONE.expect_le(&axes[0].windows)? && SymInt::ONE.expect_le(&axes[1].windows)?,
        "Given input with spatial size ({}, {}), kernel_size=({}, {}), dilation=({}, {}), padding=({}, {}), calculated shape \
         of the array of sliding blocks as ({}, {}), but its components must be at least one.",
        sizes[0],
        sizes[1],
        kernel[0],
        kernel[1],
        dilation[0],
        dilation[1],
        padding[0],
        padding[1],
        axes[0].windows,
        axes[1].windows
    );
    Ok(axes)
}

/// `aten::im2col`
pub fn im2col(
    self_: &Tensor,
    kernel_size: &[i64],
    dilation: &[i64],
    padding: &[i64],
    stride: &[i64],
) -> Result<Tensor> {
    let ndim = self_.dim();
    let sizes = self_.sym_sizes();
    let mut valid = ndim == 3 || ndim == 4;
    for size in sizes.iter().skip(usize::from(ndim == 4)) {
        valid = valid && !size.is_zero()?;
    }
    check!(
        valid,
        "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: \
         {sizes:?}"
    );
    let input = if ndim == 3 { at::unsqueeze(self_, 0)? } else { self_.clone() };
    let [down, across] =
        axes("im2col", &sizes[ndim as usize - 2..], [kernel_size, dilation, padding, stride])?;
    let pads = [across.padding, across.padding, down.padding, down.padding].map(SymInt::from);
    let padded = at::constant_pad_nd(&input, &pads, &Scalar::Int(0))?;
    let mut columns = Vec::new();
    for y in 0..down.kernel {
        let rows = down.places(&padded, 2, y)?;
        for x in 0..across.kernel {
            columns.push(across.places(&rows, 3, x)?);
        }
    }
    // [N, C, taps, windows down, windows across]
    let stacked = at::stack(&columns, 2)?;
    let sizes = input.sym_sizes();
    let rows = sizes[1].sym_mul(&SymInt::from(down.kernel * across.kernel))?;
    let count = down.windows.sym_mul(&across.windows)?;
    let out = at::reshape(&stacked, &[sizes[0].clone(), rows, count])?;
    if ndim == 3 {
        at::squeeze_dim(&out, 0)
    } else {
        Ok(out)
    }
}

/// `aten::col2im`
pub fn col2im(
    self_: &Tensor,
    output_size: &[SymInt],
    kernel_size: &[i64],
    dilation: &[i64],
    padding: &[i64],
    stride: &[i64],
) -> Result<Tensor> {
    check!(
        output_size.len() == 2,
        "It is expected output_size equals to 2, but got size {}",
        output_size.len()
    );
    let ndim = self_.dim();
    let sizes = self_.sym_sizes();
    let mut valid = ndim == 2 || ndim == 3;
    for size in sizes.iter().skip(usize::from(ndim == 3)) {
        valid = valid && !size.is_zero()?;
    }
    check!(
        valid,
        "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but \
         got: {sizes:?}"
    );
    let [down, across] = axes("col2im", output_size, [kernel_size, dilation, padding, stride])?;
    let input = if ndim == 2 { at::unsqueeze(self_, 0)? } else { self_.clone() };
    let sizes = input.sym_sizes();
    let taps = SymInt::from(down.kernel * across.kernel);
    check!(
        sizes[1].sym_mod(&taps)?.expect_eq(&SymInt::ZERO)?,
        "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)={} and \
         kernel_size=({}, {}).",
        sizes[1],
        down.kernel,
        across.kernel
    );
    let count = down.windows.sym_mul(&across.windows)?;
    check!(
        sizes[2].expect_eq(&count)?,
        "Given output_size=({}, {}), kernel_size=({}, {}), dilation=({}, {}), padding=({}, {}), stride=({}, {}), expected \
         size of input's dimension 2 to match the calculated number of sliding blocks {} * {} = {count}, but got \
         input.size(2)={}.",
        output_size[0],
        output_size[1],
        down.kernel,
        across.kernel,
        down.dilation,
        across.dilation,
        down.padding,
        across.padding,
        down.stride,
        across.stride,
        down.windows,
        across.windows,
        sizes[2]
    );
    let channels = sizes[1].sym_floordiv(&taps)?;
    let columns = [sizes[0].clone(), channels.clone(), taps, down.windows.clone(), across.windows.clone()];
    let columns = at::reshape(&input, &columns)?;
    let shape = [sizes[0].clone(), channels, down.padded()?, across.padded()?];
    let padded = at::new_zeros(self_, &shape, None, None, None, None)?;
    for y in 0..down.kernel {
        let rows = down.places(&padded, 2, y)?;
        for x in 0..across.kernel {
            let tap = at::select_int(&columns, 2, &SymInt::from(y * across.kernel + x))?;
            let places = across.places(&rows, 3, x)?;
            at::copy_(&places, &add(&places, &tap)?, false)?;
        }
    }
    let crop = |image: &Tensor, dim: i64, axis: &Axis| {
        at::narrow(image, dim, &SymInt::from(axis.padding), &axis.size)
    };
    let out = at::contiguous(&crop(&crop(&padded, 2, &down)?, 3, &across)?, c10::MemoryFormat::Contiguous)?;
    if ndim == 2 {
        at::squeeze_dim(&out, 0)
    } else {
        Ok(out)
    }
}

/// The sizes of the last two dimensions.
pub fn last_two(sizes: &[SymInt]) -> Result<SymDimVector> {
    check!(sizes.len() >= 2, "expected at least two dimensions, got {}", sizes.len());
    Ok(SymDimVector::from(&sizes[sizes.len() - 2..]))
}
