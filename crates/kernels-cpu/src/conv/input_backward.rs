//! `_conv_input_backward`.
//!
//! The input's place `y` takes part in output place `o` by tap `k` where `y = o·stride − padding + k·dilation`. Among
//! places with one remainder `r` by the stride, `y = r + t·stride`, the taps that take part are those for which
//! `r + padding − k·dilation` is divisible by the stride, and then `o = t + (r + padding − k·dilation) / stride`: a
//! convolution with step 1 over the output's gradient. So nothing is scattered, and no product has zeros for terms.

use c10::{try_collect, try_with_capacity, Result, Tensor};

use super::columns::Columns;
use super::depthwise::depthwise_input_backward;
use super::forward::{pack_groups, product, Target};
use super::shape::{Geometry, Images, Spatial};
use super::taps::Taps;
use crate::address::{const_data_ptr, mutable_data_ptr};
use crate::dispatch::dispatch;
use crate::linalg::LinalgElement;
use crate::registration::register;

pub(super) fn register() {
    register! {
        conv_input_backward_kernel: fn(&Tensor, &Tensor, &[i64], &[i64], &[i64], i64, &[Tensor]);
    }
}

fn conv_input_backward_kernel(
    grad_output: &Tensor,
    weight: &Tensor,
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    groups: i64,
    outs: &[Tensor],
) -> Result<()> {
    let (grads, weights, inputs) = (Images::of(grad_output)?, Images::of(weight)?, Images::of(&outs[0])?);
    let geometry = Geometry::new(weights.spatial, stride, padding, dilation, groups)?;
    dispatch!(grad_output.dtype(), "convolution_backward", ALL_AND_COMPLEX + HALF, |T| {
        let grad = (const_data_ptr::<T>(grad_output)?, grads);
        let weight = (const_data_ptr::<T>(weight)?, weights);
        backward(grad, weight, (mutable_data_ptr::<T>(&outs[0])?, inputs), &geometry)
    })
}

/// The taps, and their offsets `o − t`, of the `grid` places of one remainder in one dimension, for `outputs` places of
/// the output.
///
/// Runs through the offsets that lead from some `t` to some `o` by a tap of the kernel, not through the taps: of an
/// expanded kernel, which takes no memory, there may be any number that meet nothing.
fn taps_of(
    geometry: &Geometry,
    d: usize,
    remainder: usize,
    grid: usize,
    outputs: usize,
) -> Result<Vec<(usize, isize)>> {
    let [stride, dilation, kernel] = [geometry.stride[d], geometry.dilation[d], geometry.kernel[d] as isize];
    let origin = remainder as isize + geometry.padding[d];
    let reach = (kernel - 1) * dilation;
    let last = (outputs as isize - 1).min(origin.div_euclid(stride));
    let first = (1 - grid as isize).max(-(reach - origin).div_euclid(stride));
    let mut taps = try_with_capacity((last + 1 - first).clamp(0, kernel) as usize)?;
    taps.extend((first..=last).rev().filter_map(|offset| {
        let distance = origin - offset * stride;
        (distance % dilation == 0).then(|| ((distance / dilation) as usize, offset))
    }));
    Ok(taps)
}

fn backward<T: LinalgElement>(
    (grad, grads): (*const T, Images),
    (weight, weights): (*const T, Images),
    (out, inputs): (*mut T, Images),
    geometry: &Geometry,
) -> Result<()> {
    let groups = geometry.groups;
    let (rows, grad_channels) = (inputs.channels / groups, grads.channels / groups);
    let steps = geometry.stride.map(|step| step as usize);
    let target = Target { data: out, images: inputs, grid: inputs.spatial, step: steps, start: [0; 3] };
    let remainders: Spatial<usize> = std::array::from_fn(|d| steps[d].min(inputs.spatial[d]));
    let count = remainders.iter().product::<usize>();
    let of_each = |index: usize| -> Spatial<usize> {
        [index / remainders[2] / remainders[1], index / remainders[2] % remainders[1], index % remainders[2]]
    };
    let grid_along = |d: usize, remainder: usize| (inputs.spatial[d] - remainder).div_ceil(steps[d]);
    let taps_along = |d: usize| -> Result<Vec<Vec<(usize, isize)>>> {
        let mut taps = try_with_capacity(remainders[d])?;
        for remainder in 0..remainders[d] {
            taps.push(taps_of(geometry, d, remainder, grid_along(d, remainder), grads.spatial[d])?);
        }
        Ok(taps)
    };
    let along = [taps_along(0)?, taps_along(1)?, taps_along(2)?];
    if along.iter().flatten().any(Vec::is_empty) {
        target.clear();
    }
    for index in 0..count {
        let start = of_each(index);
        let taps = Taps::of(&weights, std::array::from_fn(|d| &along[d][start[d]][..]))?;
        if taps.len() == 0 {
            continue;
        }
        let grid = std::array::from_fn(|d| grid_along(d, start[d]));
        let target = Target { grid, start, ..target };
        if groups > 1 && rows == 1 {
            depthwise_input_backward((grad, grads), (weight, weights), target, &taps)?;
            continue;
        }
        let depth = grad_channels.saturating_mul(taps.len());
        let packed = pack_groups(groups, rows, depth, |group, row, p, line| {
            let first = weight.wrapping_offset(weights.offset(group * grad_channels, row));
            // SAFETY: the output channels' weights, for the rows and the depth that are packed.
            unsafe { taps.gather(first, weights.image_stride, p, line) };
        })?;
        let columns = try_collect((0..inputs.count * groups).map(|index| {
            let first = grads.offset(index / groups, index % groups * grad_channels);
            Columns::new(grad.wrapping_offset(first), grads, grid, [1; 3], &taps.places)
        }))?;
        product(&columns, rows, depth, |index| &packed[index % groups], &|index, row, first, sums| {
            target.store(index / groups, index % groups * rows + row, first, sums);
        })?;
    }
    Ok(())
}
