//! The kernels that are a table per dimension: padding, averages, interpolation, and their gradients.

use c10::{check, try_filled, Result, ScalarType, Tensor};

use super::is_trivial;
use super::separable::{map_planes, select_planes, Divide};
use super::taps::{Interpolation, Taps};
use crate::registration::register;

pub(super) fn register() {
    register! {
        reflection_pad_kernel: fn(&Tensor, &[i64], &[Tensor]);
        reflection_pad_backward_kernel: fn(&Tensor, &[i64], &[Tensor]);
        replication_pad_kernel: fn(&Tensor, &[i64], &[Tensor]);
        replication_pad_backward_kernel: fn(&Tensor, &[i64], &[Tensor]);
        avg_pool_kernel: fn(&Tensor, &[i64], &[i64], &[i64], bool, Option<i64>, &[Tensor]);
        avg_pool_backward_kernel: fn(&Tensor, &[i64], &[i64], &[i64], bool, Option<i64>, &[Tensor]);
        adaptive_avg_pool2d_kernel: fn(&Tensor, &[Tensor]);
        adaptive_avg_pool3d_kernel: fn(&Tensor, &[Tensor]);
        adaptive_avg_pool2d_backward_kernel: fn(&Tensor, &[Tensor]);
        adaptive_avg_pool3d_backward_kernel: fn(&Tensor, &[Tensor]);
        upsample_nearest1d_kernel: fn(&Tensor, Option<f64>, &[Tensor]);
        upsample_nearest2d_kernel: fn(&Tensor, Option<f64>, Option<f64>, &[Tensor]);
        upsample_nearest3d_kernel: fn(&Tensor, Option<f64>, Option<f64>, Option<f64>, &[Tensor]);
        upsample_nearest1d_backward_kernel: fn(&Tensor, Option<f64>, &[Tensor]);
        upsample_nearest2d_backward_kernel: fn(&Tensor, Option<f64>, Option<f64>, &[Tensor]);
        upsample_nearest3d_backward_kernel: fn(&Tensor, Option<f64>, Option<f64>, Option<f64>, &[Tensor]);
        upsample_nearest_exact1d_kernel: fn(&Tensor, Option<f64>, &[Tensor]);
        upsample_nearest_exact2d_kernel: fn(&Tensor, Option<f64>, Option<f64>, &[Tensor]);
        upsample_nearest_exact3d_kernel: fn(&Tensor, Option<f64>, Option<f64>, Option<f64>, &[Tensor]);
        upsample_nearest_exact1d_backward_kernel: fn(&Tensor, Option<f64>, &[Tensor]);
        upsample_nearest_exact2d_backward_kernel: fn(&Tensor, Option<f64>, Option<f64>, &[Tensor]);
        upsample_nearest_exact3d_backward_kernel: fn(&Tensor, Option<f64>, Option<f64>, Option<f64>, &[Tensor]);
        upsample_linear1d_kernel: fn(&Tensor, bool, Option<f64>, &[Tensor]);
        upsample_bilinear2d_kernel: fn(&Tensor, bool, Option<f64>, Option<f64>, &[Tensor]);
        upsample_trilinear3d_kernel: fn(&Tensor, bool, Option<f64>, Option<f64>, Option<f64>, &[Tensor]);
        upsample_bicubic2d_kernel: fn(&Tensor, bool, Option<f64>, Option<f64>, &[Tensor]);
        upsample_bilinear2d_aa_kernel: fn(&Tensor, bool, Option<f64>, Option<f64>, &[Tensor]);
        upsample_bicubic2d_aa_kernel: fn(&Tensor, bool, Option<f64>, Option<f64>, &[Tensor]);
        upsample_linear1d_backward_kernel: fn(&Tensor, bool, Option<f64>, &[Tensor]);
        upsample_bilinear2d_backward_kernel: fn(&Tensor, bool, Option<f64>, Option<f64>, &[Tensor]);
        upsample_trilinear3d_backward_kernel: fn(&Tensor, bool, Option<f64>, Option<f64>, Option<f64>, &[Tensor]);
        upsample_bicubic2d_backward_kernel: fn(&Tensor, bool, Option<f64>, Option<f64>, &[Tensor]);
        upsample_bilinear2d_aa_backward_kernel: fn(&Tensor, bool, Option<f64>, Option<f64>, &[Tensor]);
        upsample_bicubic2d_aa_backward_kernel: fn(&Tensor, bool, Option<f64>, Option<f64>, &[Tensor]);
    }
}

/// Input and output sizes of the last `spatial` dimensions; `from` is what the forward pass reads.
fn sizes_of(from: &Tensor, to: &Tensor, spatial: usize) -> Result<Vec<(usize, usize)>> {
    let (from, to) = (from.sizes()?, to.sizes()?);
    check!(
        from.len() >= spatial && to.len() >= spatial,
        "expected tensors of at least {spatial} dimensions, got {from:?} and {to:?}"
    );
    let lasts = from[from.len() - spatial..].iter().zip(&to[to.len() - spatial..]);
    Ok(lasts.map(|(&from, &to)| (from as usize, to as usize)).collect())
}

/// Applies forward tables, transposed where `out` is the gradient of the input.
fn run(name: &'static str, from: &Tensor, out: &Tensor, tables: Vec<Taps>, backward: bool) -> Result<()> {
    if backward {
        return map_planes(
            name,
            from,
            out,
            tables.iter().map(Taps::transposed).collect::<Result<_>>()?,
            Divide::Inputs,
        );
    }
    map_planes(name, from, out, tables, Divide::Outputs)
}

/// The sizes of the forward pass, whichever way it goes.
fn forward_sizes(
    given: &Tensor,
    out: &Tensor,
    spatial: usize,
    backward: bool,
) -> Result<Vec<(usize, usize)>> {
    if backward {
        sizes_of(out, given, spatial)
    } else {
        sizes_of(given, out, spatial)
    }
}

fn pad(
    name: &'static str,
    given: &Tensor,
    padding: &[i64],
    out: &Tensor,
    backward: bool,
    table: fn(usize, i64, usize) -> Result<Taps>,
) -> Result<()> {
    let spatial = padding.len() / 2;
    if is_trivial(given, out, backward)? {
        return Ok(());
    }
    let sizes = forward_sizes(given, out, spatial, backward)?;
    // Paddings come last dimension first.
    let tables = sizes
        .iter()
        .enumerate()
        .map(|(d, &(size, outputs))| table(size, padding[2 * (spatial - 1 - d)], outputs))
        .collect::<Result<Vec<_>>>()?;
    if backward {
        return run(name, given, out, tables, true);
    }
    select_planes(name, given, out, &tables)
}

fn reflection_pad_kernel(input: &Tensor, padding: &[i64], outs: &[Tensor]) -> Result<()> {
    pad("reflection_pad", input, padding, &outs[0], false, Taps::reflected)
}

fn reflection_pad_backward_kernel(grad: &Tensor, padding: &[i64], outs: &[Tensor]) -> Result<()> {
    pad("reflection_pad_backward", grad, padding, &outs[0], true, Taps::reflected)
}

fn replication_pad_kernel(input: &Tensor, padding: &[i64], outs: &[Tensor]) -> Result<()> {
    pad("replication_pad", input, padding, &outs[0], false, Taps::replicated)
}

fn replication_pad_backward_kernel(grad: &Tensor, padding: &[i64], outs: &[Tensor]) -> Result<()> {
    pad("replication_pad_backward", grad, padding, &outs[0], true, Taps::replicated)
}

#[allow(clippy::too_many_arguments)]
fn avg_pool(
    name: &'static str,
    given: &Tensor,
    [kernel, stride, padding]: [&[i64]; 3],
    count_include_pad: bool,
    divisor_override: Option<i64>,
    out: &Tensor,
    spatial: usize,
    backward: bool,
) -> Result<()> {
    if is_trivial(given, out, backward)? {
        return Ok(());
    }
    let sizes = forward_sizes(given, out, spatial, backward)?;
    let entry = |list: &[i64], d: usize| list.get(d).or(list.first()).copied();
    let mut tables = Vec::new();
    for (d, &(size, outputs)) in sizes.iter().enumerate() {
        let k = entry(kernel, d).unwrap_or(1);
        let window = [k, entry(stride, d).unwrap_or(k), entry(padding, d).unwrap_or(0)];
        let mut table = Taps::windows(size, outputs, window, count_include_pad)?;
        if let Some(divisor) = divisor_override {
            // One divisor for all, which the first dimension carries.
            let divisor = if d == 0 { divisor as f64 } else { 1.0 };
            table.divisors = Some(try_filled(divisor, outputs)?);
        }
        tables.push(table);
    }
    run(name, given, out, tables, backward)
}

fn avg_pool_kernel(
    input: &Tensor,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    count_include_pad: bool,
    divisor_override: Option<i64>,
    outs: &[Tensor],
) -> Result<()> {
    let spatial = kernel_size.len();
    let window = [kernel_size, stride, padding];
    avg_pool("avg_pool", input, window, count_include_pad, divisor_override, &outs[0], spatial, false)
}

fn avg_pool_backward_kernel(
    grad: &Tensor,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    count_include_pad: bool,
    divisor_override: Option<i64>,
    outs: &[Tensor],
) -> Result<()> {
    let spatial = kernel_size.len();
    let window = [kernel_size, stride, padding];
    avg_pool("avg_pool_backward", grad, window, count_include_pad, divisor_override, &outs[0], spatial, true)
}

fn adaptive(name: &'static str, given: &Tensor, out: &Tensor, spatial: usize, backward: bool) -> Result<()> {
    if is_trivial(given, out, backward)? {
        return Ok(());
    }
    let sizes = forward_sizes(given, out, spatial, backward)?;
    let tables = sizes.iter().map(|&(size, outputs)| Taps::shares(size, outputs)).collect::<Result<_>>()?;
    run(name, given, out, tables, backward)
}

fn adaptive_avg_pool2d_kernel(input: &Tensor, outs: &[Tensor]) -> Result<()> {
    adaptive("adaptive_avg_pool2d", input, &outs[0], 2, false)
}

fn adaptive_avg_pool3d_kernel(input: &Tensor, outs: &[Tensor]) -> Result<()> {
    adaptive("adaptive_avg_pool3d_cpu", input, &outs[0], 3, false)
}

fn adaptive_avg_pool2d_backward_kernel(grad: &Tensor, outs: &[Tensor]) -> Result<()> {
    adaptive("adaptive_avg_pool2d_backward", grad, &outs[0], 2, true)
}

fn adaptive_avg_pool3d_backward_kernel(grad: &Tensor, outs: &[Tensor]) -> Result<()> {
    adaptive("adaptive_avg_pool3d_backward_cpu", grad, &outs[0], 3, true)
}

fn nearest(given: &Tensor, scales: &[Option<f64>], out: &Tensor, exact: bool, backward: bool) -> Result<()> {
    if is_trivial(given, out, backward)? {
        return Ok(());
    }
    let sizes = forward_sizes(given, out, scales.len(), backward)?;
    let tables: Vec<Taps> = sizes
        .iter()
        .zip(scales)
        .map(|(&(size, outputs), &scale)| Taps::nearest(size, outputs, scale, exact))
        .collect::<Result<_>>()?;
    if backward {
        return run("upsample_nearest_backward", given, out, tables, true);
    }
    select_planes("upsample_nearest", given, out, &tables)
}

macro_rules! nearest_kernels {
    ($($forward:ident $backward:ident $exact:literal [$($scale:ident),*];)*) => {$(
        fn $forward(input: &Tensor, $($scale: Option<f64>,)* outs: &[Tensor]) -> Result<()> {
            nearest(input, &[$($scale),*], &outs[0], $exact, false)
        }
        fn $backward(grad: &Tensor, $($scale: Option<f64>,)* outs: &[Tensor]) -> Result<()> {
            nearest(grad, &[$($scale),*], &outs[0], $exact, true)
        }
    )*};
}

nearest_kernels! {
    upsample_nearest1d_kernel upsample_nearest1d_backward_kernel false [w];
    upsample_nearest2d_kernel upsample_nearest2d_backward_kernel false [h, w];
    upsample_nearest3d_kernel upsample_nearest3d_backward_kernel false [d, h, w];
    upsample_nearest_exact1d_kernel upsample_nearest_exact1d_backward_kernel true [w];
    upsample_nearest_exact2d_kernel upsample_nearest_exact2d_backward_kernel true [h, w];
    upsample_nearest_exact3d_kernel upsample_nearest_exact3d_backward_kernel true [d, h, w];
}

#[allow(clippy::too_many_arguments)]
fn interpolate(
    name: &'static str,
    given: &Tensor,
    align_corners: bool,
    scales: &[Option<f64>],
    out: &Tensor,
    how: Interpolation,
    antialias: bool,
    backward: bool,
) -> Result<()> {
    if is_trivial(given, out, backward)? {
        return Ok(());
    }
    let sizes = forward_sizes(given, out, scales.len(), backward)?;
    let wide = matches!(given.dtype(), ScalarType::Double | ScalarType::ComplexDouble);
    let table = match (wide, antialias) {
        (true, false) => Taps::interpolated::<f64>,
        (false, false) => Taps::interpolated::<f32>,
        (true, true) => Taps::antialiased::<f64>,
        (false, true) => Taps::antialiased::<f32>,
    };
    let tables = sizes
        .iter()
        .zip(scales)
        .map(|(&(size, outputs), &scale)| table(size, outputs, align_corners, scale, how))
        .collect::<Result<_>>()?;
    run(name, given, out, tables, backward)
}

macro_rules! interpolation_kernels {
    ($($forward:ident $backward:ident $name:literal $how:ident $antialias:literal [$($scale:ident),*];)*) => {$(
        fn $forward(input: &Tensor, align_corners: bool, $($scale: Option<f64>,)* outs: &[Tensor]) -> Result<()> {
            let scales = [$($scale),*];
            interpolate($name, input, align_corners, &scales, &outs[0], Interpolation::$how, $antialias, false)
        }
        fn $backward(grad: &Tensor, align_corners: bool, $($scale: Option<f64>,)* outs: &[Tensor]) -> Result<()> {
            let scales = [$($scale),*];
            interpolate($name, grad, align_corners, &scales, &outs[0], Interpolation::$how, $antialias, true)
        }
    )*};
}

interpolation_kernels! {
    upsample_linear1d_kernel upsample_linear1d_backward_kernel "upsample_linear1d" Linear false [w];
    upsample_bilinear2d_kernel upsample_bilinear2d_backward_kernel "upsample_bilinear2d" Linear false [h, w];
    upsample_trilinear3d_kernel upsample_trilinear3d_backward_kernel "upsample_trilinear3d" Linear false [d, h, w];
    upsample_bicubic2d_kernel upsample_bicubic2d_backward_kernel "upsample_bicubic2d" Cubic false [h, w];
    upsample_bilinear2d_aa_kernel upsample_bilinear2d_aa_backward_kernel "upsample_bilinear2d_aa" Linear true [h, w];
    upsample_bicubic2d_aa_kernel upsample_bicubic2d_aa_backward_kernel "upsample_bicubic2d_aa" Cubic true [h, w];
}
