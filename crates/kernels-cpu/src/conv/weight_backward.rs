//! `_conv_weight_backward`.
//!
//! For each group a product of the output's gradient (a row per output channel, a column per place) with the
//! transposed columns of the image, summed over the images. Blocks of columns run in parallel; if there are few, so
//! do parts of the batch, whose sums are then added in order.

use c10::{try_collect, try_filled, try_from_fn, try_with_capacity, Element, Result, Tensor};
use iter::parallel::parallel_for_result;
use parking_lot::Mutex;

use super::columns::Columns;
use super::depthwise::depthwise_weight_backward;
use super::forward::Target;
use super::shape::{Geometry, Images};
use super::taps::Taps;
use crate::address::{const_data_ptr, mutable_data_ptr};
use crate::dispatch::dispatch;
use crate::linalg::blocked::KC;
use crate::linalg::implicit::{multiply_block, PackedRows};
use crate::linalg::tile::Panel;
use crate::linalg::{Accumulator, LinalgElement};
use crate::registration::register;

pub(super) fn register() {
    register! {
        conv_weight_backward_kernel: fn(&Tensor, &Tensor, &[i64], &[i64], &[i64], i64, &[Tensor]);
    }
}

/// Columns (input channel and tap) of a block.
const BLOCK: usize = 192;
/// Pieces that are worth cutting the batch for.
const PIECES: usize = 8;

fn conv_weight_backward_kernel(
    grad_output: &Tensor,
    input: &Tensor,
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    groups: i64,
    outs: &[Tensor],
) -> Result<()> {
    let (grads, images, weights) = (Images::of(grad_output)?, Images::of(input)?, Images::of(&outs[0])?);
    let geometry = Geometry::new(weights.spatial, stride, padding, dilation, groups)?;
    dispatch!(input.dtype(), "convolution_backward", ALL_AND_COMPLEX + HALF, |T| {
        let sources = Sources::<T> {
            grad: const_data_ptr::<T>(grad_output)?,
            grads,
            input: const_data_ptr::<T>(input)?,
            images,
            taps: Taps::inside(&geometry, &weights, images.spatial, grads.spatial)?,
            geometry: &geometry,
            rows: grads.channels / geometry.groups,
            channels: weights.channels,
        };
        let result = Weights { data: mutable_data_ptr::<T>(&outs[0])?, weights };
        if sources.taps.len() < weights.places() {
            // Nothing arrives at the other taps.
            Target::whole(result.data, weights).clear();
        }
        if geometry.groups > 1 && weights.channels == 1 {
            by_channel(&sources, &result)
        } else {
            by_block(&sources, &result)
        }
    })
}

/// The result.
struct Weights<T> {
    data: *mut T,
    weights: Images,
}

impl<T: LinalgElement> Weights<T> {
    /// Writes the sum for an output channel and a column (input channel of the group, and tap).
    fn set(&self, taps: &Taps, output: usize, column: usize, sum: T::Sum) {
        let offset = self.weights.offset(output, column / taps.len()) + taps.weights[column % taps.len()];
        // SAFETY: an element of the output, which nobody else uses.
        unsafe { *self.data.wrapping_offset(offset) = T::narrow(sum) };
    }
}

fn by_channel<T: LinalgElement>(sources: &Sources<'_, T>, result: &Weights<T>) -> Result<()> {
    let sums = try_from_fn(sources.grads.channels, || Mutex::new(Vec::new()))?;
    parallel_for_result(0, sums.len(), 1, &|begin, end| {
        for (output, sums) in (begin..end).zip(&sums[begin..end]) {
            *sums.lock() = sources.sum_of_channel(output)?;
        }
        Ok(())
    })?;
    for (output, sums) in sums.into_iter().enumerate() {
        for (column, sum) in sums.into_inner().into_iter().enumerate() {
            result.set(&sources.taps, output, column, sum);
        }
    }
    Ok(())
}

/// One piece of the work: a block of a group's columns, for some images.
struct Piece {
    group: usize,
    first: usize,
    count: usize,
    images: std::ops::Range<usize>,
}

fn by_block<T: LinalgElement>(sources: &Sources<'_, T>, result: &Weights<T>) -> Result<()> {
    let (groups, rows, images) = (sources.geometry.groups, sources.rows, sources.images.count);
    let cols = sources.channels.saturating_mul(sources.taps.len());
    let blocks = cols.div_ceil(BLOCK);
    let block = cols.div_ceil(blocks.max(1)).next_multiple_of(<T::Sum as Panel>::kernel().nr).max(1);
    let parts = if groups * blocks >= PIECES { 1 } else { images.clamp(1, PIECES) };
    let mut pieces = try_with_capacity((groups * blocks).saturating_mul(parts))?;
    pieces.extend((0..groups * blocks).flat_map(|index| {
        let (group, first) = (index / blocks, index % blocks * block);
        (0..parts).map(move |part| Piece {
            group,
            first,
            count: block.min(cols.saturating_sub(first)),
            images: images * part / parts..images * (part + 1) / parts,
        })
    }));
    let sums = try_from_fn(pieces.len(), || Mutex::new(Vec::new()))?;
    parallel_for_result(0, pieces.len(), 1, &|begin, end| {
        for (piece, sums) in pieces[begin..end].iter().zip(&sums[begin..end]) {
            *sums.lock() = sources.sum(piece)?;
        }
        Ok(())
    })?;
    let sums: Vec<Vec<T::Sum>> = try_collect(sums.into_iter().map(Mutex::into_inner))?;
    for (pieces, sums) in pieces.chunks(parts).zip(sums.chunks(parts)) {
        let piece = &pieces[0];
        for row in 0..rows {
            for col in 0..piece.count {
                let at = row * piece.count + col;
                let sum = sums[1..].iter().fold(sums[0][at], |sum, part| sum.plus(part[at]));
                result.set(&sources.taps, piece.group * rows + row, piece.first + col, sum);
            }
        }
    }
    Ok(())
}

struct Sources<'a, T> {
    grad: *const T,
    grads: Images,
    input: *const T,
    images: Images,
    taps: Taps,
    geometry: &'a Geometry,
    /// Output channels of a group.
    rows: usize,
    /// Input channels of a group.
    channels: usize,
}

// SAFETY: addresses of tensors that are only read.
unsafe impl<T> Sync for Sources<'_, T> {}

impl<T: LinalgElement> Sources<'_, T> {
    /// See [`depthwise_weight_backward`].
    fn sum_of_channel(&self, output: usize) -> Result<Vec<T::Sum>> {
        let (grad, input) = ((self.grad, self.grads), (self.input, self.images));
        depthwise_weight_backward(grad, input, self.geometry, &self.taps, output)
    }

    /// The sum over a piece's images, one after the other, row by row.
    fn sum(&self, piece: &Piece) -> Result<Vec<T::Sum>> {
        let zero = <T::Sum as Element>::ZERO;
        let nr = <T::Sum as Panel>::kernel().nr;
        let (rows, count) = (self.rows, piece.count);
        let places = self.grads.places();
        let mut total = try_filled(zero, rows.saturating_mul(count))?;
        let mut packed = PackedRows::new();
        let mut lines = try_filled(zero, nr * KC)?;
        for image in piece.images.clone() {
            let first = self.grad.wrapping_offset(self.grads.offset(image, piece.group * rows));
            let gradient = Columns::new(first, self.grads, self.grads.spatial, [1; 3], &[[0; 3]]);
            packed.pack(rows, places, |row, place, line| gradient.row(row, place, line))?;
            let first = self.input.wrapping_offset(self.images.offset(image, piece.group * self.channels));
            let columns =
                Columns::new(first, self.images, self.grads.spatial, self.geometry.stride, &self.taps.places);
            multiply_block(
                &packed,
                count,
                &mut |buffer, place, depth| {
                    let lines = &mut lines[..nr * depth];
                    for (panel, buffer) in buffer.chunks_exact_mut(depth * nr).enumerate() {
                        // Each column of the panel is a row of the image's columns.
                        let some = nr.min(count - panel * nr);
                        for (j, line) in lines.chunks_exact_mut(depth).enumerate() {
                            if j < some {
                                columns.row(piece.first + panel * nr + j, place, line);
                            } else {
                                line.fill(zero);
                            }
                        }
                        transpose(lines, depth, buffer, nr);
                    }
                },
                &mut |row, sums| {
                    for (total, &sum) in total[row * count..(row + 1) * count].iter_mut().zip(&*sums) {
                        *total = total.plus(sum);
                    }
                },
            )?;
        }
        Ok(total)
    }
}

/// `to[p][j] = from[j][p]`, a few steps of `p` at a time so that what is written stays in the first cache level.
fn transpose<S: Copy>(from: &[S], depth: usize, to: &mut [S], nr: usize) {
    const STEPS: usize = 16;
    for begin in (0..depth).step_by(STEPS) {
        let end = depth.min(begin + STEPS);
        let to = &mut to[begin * nr..end * nr];
        for (j, line) in from.chunks_exact(depth).enumerate() {
            for (to, &from) in to[j..].iter_mut().step_by(nr).zip(&line[begin..end]) {
                *to = from;
            }
        }
    }
}
