//! Maxima over windows of any shape per position: `max_pool3d`, and pooling to a size.
//!
//! A window's maximum is the first one in row-major order, except that NaN beats everything and the last NaN counts.

use c10::{check, try_collect, try_filled, Element, Result, Tensor};
use iter::parallel::{parallel_for_result, GRAIN_SIZE};

use super::element::{Compared, Planes, Pooled};
use super::is_trivial;
use super::max_pool2d_backward::backward;
use super::taps::share;
use crate::address::{const_data_ptr, mutable_data_ptr, Address};
use crate::dispatch::dispatch;
use crate::registration::register;

pub(super) fn register() {
    register! {
        max_pool3d_kernel: fn(&Tensor, &[i64], &[i64], &[i64], &[i64], &[Tensor]);
        adaptive_max_pool2d_kernel: fn(&Tensor, &[Tensor]);
        adaptive_max_pool3d_kernel: fn(&Tensor, &[Tensor]);
        max_pool3d_backward_kernel: fn(&Tensor, &Tensor, &[Tensor]);
    }
}

/// One dimension: where each output's window starts, how many elements it has, and the distance between them.
struct Axis {
    input: usize,
    windows: Vec<(usize, usize)>,
    dilation: usize,
}

impl Axis {
    fn sliding(
        input: usize,
        outputs: usize,
        [kernel, stride, padding, dilation]: [usize; 4],
    ) -> Result<Axis> {
        let windows = (0..outputs).map(|o| {
            let start = (o * stride) as i64 - padding as i64;
            let skipped = if start < 0 { (-start as usize).div_ceil(dilation) } else { 0 };
            let first = (start + (skipped * dilation) as i64).max(0) as usize;
            let room = input.saturating_sub(first).div_ceil(dilation);
            (first, room.min(kernel.saturating_sub(skipped)))
        });
        Ok(Axis { input, windows: try_collect(windows)?, dilation })
    }

    fn shares(input: usize, outputs: usize) -> Result<Axis> {
        let windows = (0..outputs).map(|o| {
            let (start, end) = share(o, outputs, input);
            (start, end - start)
        });
        Ok(Axis { input, windows: try_collect(windows)?, dilation: 1 })
    }

    fn whole() -> Axis {
        Axis { input: 1, windows: vec![(0, 1)], dilation: 1 }
    }

    fn places(&self, output: usize) -> impl Iterator<Item = usize> {
        let (first, count) = self.windows[output];
        let dilation = self.dilation;
        (0..count).map(move |i| first + i * dilation)
    }
}

fn last(tensor: &Tensor, spatial: usize) -> Result<Vec<usize>> {
    let sizes = tensor.sizes()?;
    check!(sizes.len() >= spatial, "max_pool: expected at least {spatial} dimensions, got {sizes:?}");
    Ok(sizes[sizes.len() - spatial..].iter().map(|&size| size as usize).collect())
}

fn max_pool3d_kernel(
    input: &Tensor,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    outs: &[Tensor],
) -> Result<()> {
    let entry = |list: &[i64], d: usize| list.get(d).or(list.first()).map(|&value| value as usize);
    if is_trivial(input, &outs[0], false)? {
        return Ok(());
    }
    let (sizes, outputs) = (last(input, 3)?, last(&outs[0], 3)?);
    let mut axes = Vec::new();
    for d in 0..3 {
        let kernel = entry(kernel_size, d).unwrap_or(1);
        let window = [
            kernel,
            entry(stride, d).unwrap_or(kernel),
            entry(padding, d).unwrap_or(0),
            entry(dilation, d).unwrap_or(1),
        ];
        check!(window[3] > 0, "max_pool3d: expected a dilation greater than zero, got {dilation:?}");
        axes.push(Axis::sliding(sizes[d], outputs[d], window)?);
    }
    run("max_pool3d", input, outs, axes)
}

fn adaptive(name: &'static str, input: &Tensor, outs: &[Tensor], spatial: usize) -> Result<()> {
    if is_trivial(input, &outs[0], false)? {
        return Ok(());
    }
    let (sizes, outputs) = (last(input, spatial)?, last(&outs[0], spatial)?);
    let axes = sizes
        .iter()
        .zip(&outputs)
        .map(|(&size, &outputs)| Axis::shares(size, outputs))
        .collect::<Result<_>>()?;
    run(name, input, outs, axes)
}

fn adaptive_max_pool2d_kernel(input: &Tensor, outs: &[Tensor]) -> Result<()> {
    adaptive("adaptive_max_pool2d", input, outs, 2)
}

fn adaptive_max_pool3d_kernel(input: &Tensor, outs: &[Tensor]) -> Result<()> {
    adaptive("adaptive_max_pool3d_cpu", input, outs, 3)
}

fn dense(tensor: &Tensor) -> Result<Tensor> {
    if tensor.is_contiguous() {
        return Ok(tensor.clone());
    }
    let copy = iter::empty(tensor.sizes()?, &tensor.options())?;
    iter::copy_into(&copy, tensor, false)?;
    Ok(copy)
}

/// The tensor itself if it is dense, else one that will be copied to it.
fn writable(target: &Tensor) -> Result<Tensor> {
    if target.is_contiguous() {
        return Ok(target.clone());
    }
    iter::empty(target.sizes()?, &target.options())
}

fn run(name: &'static str, input: &Tensor, outs: &[Tensor], mut axes: Vec<Axis>) -> Result<()> {
    let source = dense(input)?;
    let (values, indices) = (writable(&outs[0])?, writable(&outs[1])?);
    while axes.len() < 3 {
        axes.insert(0, Axis::whole());
    }
    let (from, to) =
        axes.iter().fold((1, 1), |(from, to), axis| (from * axis.input, to * axis.windows.len()));
    let outer = input.numel()? as usize / from.max(1);
    check!(
        outer * to == values.numel()? as usize && values.numel()? == indices.numel()?,
        "{name}: expected {} outputs, got {} and {}",
        outer * to,
        values.numel()?,
        indices.numel()?
    );
    dispatch!(input.dtype(), name, ALL_AND_HALF, |T| {
        let data = [
            Address(const_data_ptr::<T>(&source)?.cast_mut().cast()),
            Address(mutable_data_ptr::<T>(&values)?.cast()),
            Address(mutable_data_ptr::<i64>(&indices)?.cast()),
        ];
        maxima::<T>(data, outer, &axes)
    })?;
    for (out, result) in outs.iter().zip([&values, &indices]) {
        if !out.is_same(result) {
            iter::copy_into(out, result, false)?;
        }
    }
    Ok(())
}

fn maxima<T: Pooled>([input, values, indices]: [Address; 3], outer: usize, axes: &[Axis]) -> Result<()> {
    let [deep, down, across] = axes else { c10::bail!(Internal, "expected three axes") };
    let plane = deep.input * down.input * across.input;
    let out_plane = deep.windows.len() * down.windows.len() * across.windows.len();
    let size = std::mem::size_of::<T>() as i64;
    parallel_for_result(0, outer, (GRAIN_SIZE / (plane + out_plane).max(1)).max(1), &|begin, end| {
        let mut wide = try_filled(<T::Compute as Element>::ZERO, plane)?;
        let mut found = try_filled(<T::Compute as Element>::ZERO, out_plane)?;
        for index in begin..end {
            // SAFETY: a plane of the dense input, and one of each dense output, which belong to one piece.
            let (source, result, places) = unsafe {
                (
                    input.offset((index * plane) as i64 * size).slice::<T>(plane),
                    values.offset((index * out_plane) as i64 * size).slice_mut::<T>(out_plane),
                    indices.offset((index * out_plane) as i64 * 8).slice_mut::<i64>(out_plane),
                )
            };
            T::widen(source, &mut wide);
            let mut o = 0;
            for z in 0..deep.windows.len() {
                for y in 0..down.windows.len() {
                    for x in 0..across.windows.len() {
                        (found[o], places[o]) = maximum(&wide, [deep, down, across], [z, y, x]);
                        o += 1;
                    }
                }
            }
            T::narrow(&found, result);
        }
        Ok(())
    })
}

#[allow(clippy::eq_op)]
fn maximum<S: Compared>(plane: &[S], [deep, down, across]: [&Axis; 3], [z, y, x]: [usize; 3]) -> (S, i64) {
    let start = (deep.windows[z].0 * down.input + down.windows[y].0) * across.input + across.windows[x].0;
    let (mut best, mut at) = (S::LOWEST, start as i64);
    for z in deep.places(z) {
        for y in down.places(y) {
            let row = (z * down.input + y) * across.input;
            for x in across.places(x) {
                let value = plane[row + x];
                // Unequal to itself: NaN.
                if value > best || value != value {
                    (best, at) = (value, (row + x) as i64);
                }
            }
        }
    }
    (best, at)
}

/// Every output's gradient goes to the input that was its maximum. A volume is a plane of all its rows.
fn max_pool3d_backward_kernel(grad_output: &Tensor, indices: &Tensor, outs: &[Tensor]) -> Result<()> {
    if is_trivial(grad_output, &outs[0], true)? {
        return Ok(());
    }
    let (grad, indices) = (dense(grad_output)?, dense(indices)?);
    let out = writable(&outs[0])?;
    let planes = |tensor: &Tensor| -> Result<Planes> {
        let sizes = last(tensor, 3)?;
        let area = (sizes[0] * sizes[1] * sizes[2]) as isize;
        Ok(Planes {
            images: 1,
            channels: tensor.numel()? as usize / (area as usize).max(1),
            height: sizes[0] * sizes[1],
            width: sizes[2],
            strides: [0, area, sizes[2] as isize, 1],
        })
    };
    let shapes = [planes(&grad)?, planes(&indices)?, planes(&out)?];
    dispatch!(grad.dtype(), "max_pool3d_backward", ALL_AND_HALF, |T| {
        let data = [
            Address(const_data_ptr::<T>(&grad)?.cast_mut().cast()),
            Address(const_data_ptr::<i64>(&indices)?.cast_mut().cast()),
            Address(mutable_data_ptr::<T>(&out)?.cast()),
        ];
        backward::<T>(data, shapes)
    })?;
    if !out.is_same(&outs[0]) {
        iter::copy_into(&outs[0], &out, false)?;
    }
    Ok(())
}
