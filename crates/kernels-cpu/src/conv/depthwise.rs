//! Convolutions with one input channel per group: too little depth for a matrix product, bound by memory.

use c10::{Element, Result};
use iter::parallel::{parallel_for, GRAIN_SIZE};

use super::columns::Columns;
use super::forward::Bias;
use super::shape::{Geometry, Images};
use crate::linalg::{Accumulator, LinalgElement};
use crate::vec::tiered;

tiered! {
    /// `sums += factor · row`.
    fn add_scaled<S>(sums: &mut [S], row: &[S], factor: S) where { S: Accumulator } => A {
        for (sum, &x) in sums.iter_mut().zip(row) {
            *sum = x.mul_add::<A>(factor, *sum);
        }
    }
}

/// `out = conv(input, weight) + bias` with as many groups as input channels.
pub(super) fn depthwise<T: LinalgElement>(
    (input, images): (*const T, Images),
    (weight, weights): (*const T, Images),
    bias: Option<Bias<T>>,
    (out, outputs): (*mut T, Images),
    geometry: &Geometry,
) -> Result<()> {
    let (input, weight, out) = (input as usize, weight as usize, out as usize);
    let per_group = outputs.channels / geometry.groups;
    let taps: Vec<_> = geometry.taps().collect();
    let offsets: Vec<_> = taps
        .iter()
        .map(|tap| std::array::from_fn(|i| tap[i] as isize * geometry.dilation[i] - geometry.padding[i]))
        .collect();
    let [depth, height, width] = outputs.spatial;
    let lines = depth * height;
    let work = outputs.places() * taps.len();
    let grain = (GRAIN_SIZE / work.max(1)).max(1);
    parallel_for(0, outputs.count * outputs.channels, grain, &|begin, end| {
        let zero = <T::Sum as Element>::ZERO;
        let mut sums = vec![zero; width];
        let mut row = vec![zero; width];
        let mut narrow = vec![T::default(); width];
        for plane in begin..end {
            let (image, channel) = (plane / outputs.channels, plane % outputs.channels);
            let data = (input as *const T).wrapping_offset(images.offset(image, channel / per_group));
            let columns =
                Columns { data, images, grid: outputs.spatial, step: geometry.stride, taps: offsets.clone() };
            let factors: Vec<T::Sum> = taps
                .iter()
                .map(|tap| {
                    let offset: isize = tap
                        .iter()
                        .zip(&weights.spatial_strides)
                        .map(|(&tap, &stride)| tap as isize * stride)
                        .sum();
                    // SAFETY: a tap of the channel's kernel.
                    unsafe { *(weight as *const T).wrapping_offset(weights.offset(channel, 0) + offset) }
                        .widen()
                })
                .collect();
            let start = bias.map_or(zero, |bias| bias.at(channel));
            for line in 0..lines {
                sums.fill(start);
                for (tap, &factor) in factors.iter().enumerate() {
                    columns.row(tap, line * width, &mut row);
                    add_scaled(&mut sums, &row, factor);
                }
                T::narrow_slice(&sums, &mut narrow);
                let first = (out as *mut T).wrapping_offset(
                    outputs.offset(image, channel)
                        + (line / height) as isize * outputs.spatial_strides[0]
                        + (line % height) as isize * outputs.spatial_strides[1],
                );
                for (x, &value) in narrow.iter().enumerate() {
                    // SAFETY: an element of the output; each plane belongs to one piece.
                    unsafe { *first.wrapping_offset(x as isize * outputs.spatial_strides[2]) = value };
                }
            }
        }
    })
}
