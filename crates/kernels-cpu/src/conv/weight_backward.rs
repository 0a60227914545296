//! `_conv_weight_backward`.
//!
//! For each group a product of the output's gradient (a row per output channel, a column per place) with the
//! transposed columns of the image, summed over the images. Blocks of columns run in parallel; if there are few, so
//! do parts of the batch, whose sums are then added in order.

use c10::{Element, Result, Tensor};
use iter::parallel::parallel_for;
use parking_lot::Mutex;

use super::columns::Columns;
use super::shape::{Geometry, Images};
use crate::dispatch::dispatch;
use crate::linalg::panel::{multiply_block, PackedRows, Panel};
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
        let grad = (grad_output.data_ptr().cast::<T>().cast_const(), grads);
        let input = (input.data_ptr().cast::<T>().cast_const(), images);
        backward(grad, input, (outs[0].data_ptr().cast::<T>(), weights), &geometry)
    })
}

/// One piece of the work: a block of a group's columns, for some images.
struct Piece {
    group: usize,
    first: usize,
    count: usize,
    images: std::ops::Range<usize>,
}

fn backward<T: LinalgElement>(
    (grad, grads): (*const T, Images),
    (input, images): (*const T, Images),
    (out, weights): (*mut T, Images),
    geometry: &Geometry,
) -> Result<()> {
    let groups = geometry.groups;
    let taps: Vec<_> = geometry.taps().collect();
    let offsets: Vec<_> = taps
        .iter()
        .map(|tap| std::array::from_fn(|i| tap[i] as isize * geometry.dilation[i] - geometry.padding[i]))
        .collect();
    let rows = grads.channels / groups;
    let cols = weights.channels * taps.len();
    let blocks = cols.div_ceil(BLOCK);
    let block = cols.div_ceil(blocks.max(1)).next_multiple_of(<T::Sum as Panel>::NR).max(1);
    let parts = if groups * blocks >= PIECES { 1 } else { images.count.clamp(1, PIECES) };
    let pieces: Vec<Piece> = (0..groups * blocks)
        .flat_map(|index| {
            let (group, first) = (index / blocks, index % blocks * block);
            (0..parts).map(move |part| Piece {
                group,
                first,
                count: block.min(cols.saturating_sub(first)),
                images: images.count * part / parts..images.count * (part + 1) / parts,
            })
        })
        .collect();
    let sources = Sources { grad, grads, input, images, offsets, geometry, rows, channels: weights.channels };
    let sums: Vec<Mutex<Vec<T::Sum>>> = pieces.iter().map(|_| Mutex::new(Vec::new())).collect();
    parallel_for(0, pieces.len(), 1, &|begin, end| {
        for index in begin..end {
            let sum = sources.sum(&pieces[index]);
            *sums[index].lock() = sum;
        }
    })?;
    let sums: Vec<Vec<T::Sum>> = sums.into_iter().map(Mutex::into_inner).collect();
    for (pieces, sums) in pieces.chunks(parts).zip(sums.chunks(parts)) {
        let piece = &pieces[0];
        for row in 0..rows {
            for col in 0..piece.count {
                let at = row * piece.count + col;
                let sum = sums[1..].iter().fold(sums[0][at], |sum, part| sum.plus(part[at]));
                let (channel, tap) =
                    ((piece.first + col) / taps.len(), taps[(piece.first + col) % taps.len()]);
                let offset: isize = tap
                    .iter()
                    .zip(&weights.spatial_strides)
                    .map(|(&tap, &stride)| tap as isize * stride)
                    .sum();
                let to = out.wrapping_offset(weights.offset(piece.group * rows + row, channel) + offset);
                // SAFETY: an element of the output, which nobody else uses.
                unsafe { *to = T::narrow(sum) };
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
    offsets: Vec<[isize; 3]>,
    geometry: &'a Geometry,
    /// Output channels of a group.
    rows: usize,
    /// Input channels of a group.
    channels: usize,
}

// SAFETY: addresses of tensors that are only read.
unsafe impl<T> Sync for Sources<'_, T> {}

impl<T: LinalgElement> Sources<'_, T> {
    /// The sum over a piece's images, one after the other, row by row.
    fn sum(&self, piece: &Piece) -> Vec<T::Sum> {
        let zero = <T::Sum as Element>::ZERO;
        let nr = <T::Sum as Panel>::NR;
        let (rows, count) = (self.rows, piece.count);
        let mut total = vec![zero; rows * count];
        let places = self.grads.places();
        let [_, height, width] = self.grads.spatial;
        let strides = self.grads.spatial_strides;
        let mut packed = PackedRows::pack(0, 0, |_, _| zero);
        let mut transposed = vec![zero; nr * crate::linalg::panel::KC];
        let transposed = std::cell::RefCell::new(&mut transposed);
        for image in piece.images.clone() {
            let first_channel = piece.group * rows;
            let dense = self.grads.is_dense();
            packed.repack(rows, places, |row, place| {
                let base = self.grad.wrapping_offset(self.grads.offset(image, first_channel + row));
                let offset = if dense {
                    place as isize
                } else {
                    (place / width / height) as isize * strides[0]
                        + (place / width % height) as isize * strides[1]
                        + (place % width) as isize * strides[2]
                };
                // SAFETY: a place of an output channel's gradient.
                unsafe { *base.wrapping_offset(offset) }.widen()
            });
            let columns = Columns {
                data: self.input.wrapping_offset(self.images.offset(image, piece.group * self.channels)),
                images: self.images,
                grid: self.grads.spatial,
                step: self.geometry.stride,
                taps: self.offsets.clone(),
            };
            multiply_block(
                &packed,
                count,
                &|buffer, panel, place, depth| {
                    // Each column of the panel is a row of the image's columns.
                    let mut lines = transposed.borrow_mut();
                    let some = nr.min(count - panel * nr);
                    for j in 0..some {
                        columns.row(
                            piece.first + panel * nr + j,
                            place,
                            &mut lines[j * depth..(j + 1) * depth],
                        );
                    }
                    lines[some * depth..nr * depth].fill(zero);
                    for (p, out) in buffer.chunks_exact_mut(nr).take(depth).enumerate() {
                        for (j, out) in out.iter_mut().enumerate() {
                            *out = lines[j * depth + p];
                        }
                    }
                },
                &mut |row, sums| {
                    for (total, &sum) in total[row * count..(row + 1) * count].iter_mut().zip(&*sums) {
                        *total = total.plus(sum);
                    }
                },
            );
        }
        total
    }
}
