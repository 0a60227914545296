//! Convolutions with one input channel per group: too little depth for a matrix product, bound by memory.

use c10::{try_collect, try_filled, try_with_capacity, Element, Result};
use iter::parallel::{parallel_for_result, GRAIN_SIZE};

use super::columns::{Columns, Line};
use super::forward::{Bias, Target};
use super::shape::{Geometry, Images};
use super::taps::Taps;
use crate::linalg::{Accumulator, LinalgElement};
use crate::vec::tiered;

tiered! {
    /// `sums += factor · row`.
    fn add_scaled<S>(sums: &mut [S], row: &[S], factor: S) where { S: Accumulator } => A {
        for (sum, &x) in sums.iter_mut().zip(row) {
            *sum = x.mul_add::<A>(factor, *sum);
        }
    }
    /// `sums += factor · row` for every `stride`th element of the row.
    fn add_scaled_strided<S>(sums: &mut [S], row: &[S], stride: usize, factor: S) where { S: Accumulator } => A {
        for (sum, x) in sums.iter_mut().zip(row.chunks(stride)) {
            *sum = x[0].mul_add::<A>(factor, *sum);
        }
    }
}

/// One source channel of a plane of results: its columns (of one channel), and a factor per tap.
struct Term<'a, T: LinalgElement> {
    columns: Columns<'a, T>,
    factors: Vec<T::Sum>,
}

impl<T: LinalgElement> Term<'_, T> {
    /// Adds the places of a line to `sums`; `wide` has as much room.
    fn add_line(&self, z: usize, y: usize, sums: &mut [T::Sum], wide: &mut [T::Sum]) {
        for (tap, &factor) in self.factors.iter().enumerate() {
            let Line { before, inside, source, stride } = self.columns.line(0, tap, [z, y, 0], sums.len());
            if before == inside {
                continue;
            }
            let sums = &mut sums[before..inside];
            if T::SUMS_IN_ITSELF && stride > 0 {
                let reach = (sums.len() - 1) * stride as usize + 1;
                // SAFETY: from the first to the last place inside the source's line; `T` is `T::Sum`.
                let row = unsafe { std::slice::from_raw_parts(source.cast::<T::Sum>(), reach) };
                if stride == 1 {
                    add_scaled(sums, row, factor);
                } else {
                    add_scaled_strided(sums, row, stride as usize, factor);
                }
            } else {
                let wide = &mut wide[..sums.len()];
                let mut from = source;
                for wide in wide.iter_mut() {
                    // SAFETY: a place inside the source.
                    *wide = unsafe { *from }.widen();
                    from = from.wrapping_offset(stride);
                }
                add_scaled(sums, wide, factor);
            }
        }
    }
}

/// Computes every plane of `target` as the sum of what `terms(image, channel)` gives, plus the bias.
fn planes<'a, T: LinalgElement>(
    target: Target<T>,
    bias: Option<Bias<T>>,
    cost: usize,
    terms: &(dyn Fn(usize, usize) -> Result<Vec<Term<'a, T>>> + Sync),
) -> Result<()> {
    let [depth, height, width] = target.grid;
    let channels = target.images.channels;
    let grain = (GRAIN_SIZE / (depth * height * width).saturating_mul(cost).max(1)).max(1);
    parallel_for_result(0, target.images.count * channels, grain, &|begin, end| {
        let zero = <T::Sum as Element>::ZERO;
        let (mut sums, mut wide) = (try_filled(zero, width)?, try_filled(zero, width)?);
        for plane in begin..end {
            let (image, channel) = (plane / channels, plane % channels);
            let terms = terms(image, channel)?;
            let start = bias.map_or(zero, |bias| bias.at(channel));
            for line in 0..depth * height {
                sums.fill(start);
                for term in &terms {
                    term.add_line(line / height, line % height, &mut sums, &mut wide);
                }
                target.store(image, channel, line * width, &sums);
            }
        }
        Ok(())
    })
}

/// Addresses that closures share.
struct Source<T>(*const T);

// SAFETY: an address of a tensor that is only read.
unsafe impl<T> Sync for Source<T> {}

impl<T> Source<T> {
    fn offset(&self, offset: isize) -> *const T {
        self.0.wrapping_offset(offset)
    }
}

/// `out = conv(input, weight) + bias` with as many groups as input channels.
pub(super) fn depthwise<T: LinalgElement>(
    (input, images): (*const T, Images),
    (weight, weights): (*const T, Images),
    bias: Option<Bias<T>>,
    target: Target<T>,
    geometry: &Geometry,
) -> Result<()> {
    let (input, weight) = (Source(input), Source(weight));
    let taps = Taps::inside(geometry, &weights, images.spatial, target.grid)?;
    let per_group = target.images.channels / geometry.groups;
    planes(target, bias, taps.len(), &|image, channel| {
        let source = input.offset(images.offset(image, channel / per_group));
        let mut factors = try_filled(<T::Sum as Element>::ZERO, taps.len())?;
        // SAFETY: weights of the tensor's only input channel.
        unsafe { taps.gather(weight.offset(weights.offset(channel, 0)), 0, 0, &mut factors) };
        let columns = Columns::new(source, images, target.grid, geometry.stride, &taps.places);
        Ok(vec![Term { columns, factors }])
    })
}

/// The gradient with respect to the input's places that `target` takes, to which `taps` of the output's gradient
/// contribute.
pub(super) fn depthwise_input_backward<T: LinalgElement>(
    (grad, grads): (*const T, Images),
    (weight, weights): (*const T, Images),
    target: Target<T>,
    taps: &Taps,
) -> Result<()> {
    let (grad, weight) = (Source(grad), Source(weight));
    let per_group = grads.channels / target.images.channels;
    planes(target, None, taps.len().saturating_mul(per_group), &|image, channel| {
        let mut terms = try_with_capacity(per_group)?;
        for output in channel * per_group..(channel + 1) * per_group {
            let source = grad.offset(grads.offset(image, output));
            let columns = Columns::new(source, grads, target.grid, [1; 3], &taps.places);
            let mut factors = try_filled(<T::Sum as Element>::ZERO, taps.len())?;
            // SAFETY: as above.
            unsafe { taps.gather(weight.offset(weights.offset(output, 0)), 0, 0, &mut factors) };
            terms.push(Term { columns, factors });
        }
        Ok(terms)
    })
}

tiered! {
    /// Adds products to interleaved sums.
    fn add_products<S>(sums: &mut [S; LANES], x: &[S], y: &[S]) where { S: Accumulator } => A {
        let (x_chunks, y_chunks) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
        let (x_rest, y_rest) = (x_chunks.remainder(), y_chunks.remainder());
        for (x, y) in x_chunks.zip(y_chunks) {
            for i in 0..LANES {
                sums[i] = x[i].mul_add::<A>(y[i], sums[i]);
            }
        }
        for ((sum, &x), &y) in sums.iter_mut().zip(x_rest).zip(y_rest) {
            *sum = x.mul_add::<A>(y, *sum);
        }
    }
}

const LANES: usize = 16;

/// The gradient with respect to the weight of output channel `output`: its taps' sums over images and places, in order.
pub(super) fn depthwise_weight_backward<T: LinalgElement>(
    (grad, grads): (*const T, Images),
    (input, images): (*const T, Images),
    geometry: &Geometry,
    taps: &Taps,
    output: usize,
) -> Result<Vec<T::Sum>> {
    let zero = <T::Sum as Element>::ZERO;
    let channel = output / (grads.channels / geometry.groups);
    let [depth, height, width] = grads.spatial;
    let mut sums = try_filled([zero; LANES], taps.len())?;
    let (mut upper, mut lower) = (try_filled(zero, width)?, try_filled(zero, width)?);
    for image in 0..grads.count {
        let gradient = grad.wrapping_offset(grads.offset(image, output));
        let gradient = Columns::new(gradient, grads, grads.spatial, [1; 3], &[[0; 3]]);
        let source = input.wrapping_offset(images.offset(image, channel));
        let columns = Columns::new(source, images, grads.spatial, geometry.stride, &taps.places);
        for line in 0..depth * height {
            gradient.row(0, line * width, &mut upper);
            for (tap, sums) in sums.iter_mut().enumerate() {
                let Line { before, inside, source, stride } =
                    columns.line(0, tap, [line / height, line % height, 0], width);
                if before == inside {
                    continue;
                }
                let upper = &upper[before..inside];
                if T::SUMS_IN_ITSELF && stride == 1 {
                    // SAFETY: the places inside the source's line; `T` is `T::Sum`.
                    let row = unsafe { std::slice::from_raw_parts(source.cast::<T::Sum>(), upper.len()) };
                    add_products(sums, upper, row);
                } else {
                    let mut from = source;
                    for lower in &mut lower[..upper.len()] {
                        // SAFETY: as above.
                        *lower = unsafe { *from }.widen();
                        from = from.wrapping_offset(stride);
                    }
                    add_products(sums, upper, &lower[..upper.len()]);
                }
            }
        }
    }
    try_collect(sums.into_iter().map(|lanes| lanes.into_iter().fold(zero, Accumulator::plus)))
}
