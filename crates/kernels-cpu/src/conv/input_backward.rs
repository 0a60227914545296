//! `_conv_input_backward`.
//!
//! The input's place `y` takes part in output place `o` by tap `k` where `y = o·stride − padding + k·dilation`. Among
//! places with one remainder `r` by the stride, `y = r + t·stride`, the taps that take part are those for which
//! `r + padding − k·dilation` is divisible by the stride, and then `o = t + (r + padding − k·dilation) / stride`: a
//! convolution with step 1 over the output's gradient. So nothing is scattered, and no product has zeros for terms.

use c10::{Result, Tensor};

use super::columns::Columns;
use super::depthwise::depthwise_input_backward;
use super::forward::{product, Target};
use super::shape::{Geometry, Images, Spatial};
use super::taps::Taps;
use crate::address::{const_data_ptr, mutable_data_ptr};
use crate::dispatch::dispatch;
use crate::linalg::implicit::PackedRows;
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

/// The taps, and their offsets, of one remainder in one dimension.
fn taps_of(geometry: &Geometry, d: usize, remainder: usize) -> Vec<(usize, isize)> {
    (0..geometry.kernel[d])
        .filter_map(|tap| {
            let shift = remainder as isize + geometry.padding[d] - tap as isize * geometry.dilation[d];
            (shift.rem_euclid(geometry.stride[d]) == 0).then(|| (tap, shift.div_euclid(geometry.stride[d])))
        })
        .collect()
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
    let taps_at = |start: Spatial<usize>| -> [Vec<(usize, isize)>; 3] {
        std::array::from_fn(|d| taps_of(geometry, d, start[d]))
    };
    if (0..count).any(|index| taps_at(of_each(index)).iter().any(Vec::is_empty)) {
        target.clear();
    }
    for index in 0..count {
        let start = of_each(index);
        let [along_z, along_y, along_x] = &taps_at(start);
        let taps = along_z.iter().flat_map(|&(z, shift_z)| {
            along_y.iter().flat_map(move |&(y, shift_y)| {
                along_x.iter().map(move |&(x, shift_x)| ([z, y, x], [shift_z, shift_y, shift_x]))
            })
        });
        let taps = Taps::of(&weights, taps);
        if taps.len() == 0 {
            continue;
        }
        let grid = std::array::from_fn(|d| (inputs.spatial[d] - start[d]).div_ceil(steps[d]));
        let target = Target { grid, start, ..target };
        if groups > 1 && rows == 1 {
            depthwise_input_backward((grad, grads), (weight, weights), target, &taps)?;
            continue;
        }
        let depth = grad_channels * taps.len();
        let packed: Vec<PackedRows<T::Sum>> = (0..groups)
            .map(|group| {
                let mut packed = PackedRows::new();
                packed.pack(rows, depth, |row, p, line| {
                    let first = weight.wrapping_offset(weights.offset(group * grad_channels, row));
                    taps.gather(first, weights.image_stride, p, line);
                });
                packed
            })
            .collect();
        let columns: Vec<Columns<T>> = (0..inputs.count * groups)
            .map(|index| {
                let first = grads.offset(index / groups, index % groups * grad_channels);
                Columns::new(grad.wrapping_offset(first), grads, grid, [1; 3], taps.places.clone())
            })
            .collect();
        product(&columns, rows, depth, |index| &packed[index % groups], &|index, row, first, sums| {
            target.store(index / groups, index % groups * rows + row, first, sums);
        })?;
    }
    Ok(())
}
