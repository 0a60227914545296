//! `_conv_forward`.

use c10::{try_collect, try_filled, try_with_capacity, Element, Result, Tensor};
use iter::parallel::parallel_for_result;

use super::columns::Columns;
use super::depthwise::depthwise;
use super::shape::{Geometry, Images, Spatial};
use super::taps::Taps;
use crate::address::{const_data_ptr, mutable_data_ptr, Address};
use crate::dispatch::dispatch;
use crate::linalg::implicit::{multiply_block, PackedRows};
use crate::linalg::tile::Panel;
use crate::linalg::{Accumulator, LinalgElement};
use crate::registration::register;

pub(super) fn register() {
    register! {
        conv_forward_kernel: fn(&Tensor, &Tensor, Option<&Tensor>, &[i64], &[i64], &[i64], i64, &[Tensor]);
    }
}

/// A value per output channel.
#[derive(Clone, Copy)]
pub(super) struct Bias<T> {
    data: Address,
    stride: isize,
    element: std::marker::PhantomData<fn() -> T>,
}

impl<T: LinalgElement> Bias<T> {
    fn of(tensor: &Tensor) -> Result<Bias<T>> {
        let stride = tensor.stride(0)? as isize;
        Ok(Bias {
            data: Address(const_data_ptr::<T>(tensor)?.cast_mut().cast()),
            stride,
            element: std::marker::PhantomData,
        })
    }

    pub(super) fn at(&self, channel: usize) -> T::Sum {
        // SAFETY: the meta function checked that there is one per output channel.
        unsafe { *self.data.0.cast::<T>().wrapping_offset(channel as isize * self.stride) }.widen()
    }
}

/// Columns of a block: with its sums it stays in the second cache level.
pub(super) const BLOCK: usize = 256;

#[allow(clippy::too_many_arguments)]
fn conv_forward_kernel(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    groups: i64,
    outs: &[Tensor],
) -> Result<()> {
    let (images, weights, outputs) = (Images::of(input)?, Images::of(weight)?, Images::of(&outs[0])?);
    let geometry = Geometry::new(weights.spatial, stride, padding, dilation, groups)?;
    dispatch!(input.dtype(), "convolution", ALL_AND_COMPLEX + HALF, |T| {
        let bias = bias.map(Bias::<T>::of).transpose()?;
        let input = (const_data_ptr::<T>(input)?, images);
        let weight = (const_data_ptr::<T>(weight)?, weights);
        let target = Target::whole(mutable_data_ptr::<T>(&outs[0])?, outputs);
        if geometry.groups > 1 && weights.channels == 1 {
            return depthwise(input, weight, bias, target, &geometry);
        }
        forward(input, weight, bias, target, &geometry)
    })
}

fn forward<T: LinalgElement>(
    (input, images): (*const T, Images),
    (weight, weights): (*const T, Images),
    bias: Option<Bias<T>>,
    target: Target<T>,
    geometry: &Geometry,
) -> Result<()> {
    let (groups, outputs) = (geometry.groups, target.images);
    let taps = Taps::inside(geometry, &weights, images.spatial, outputs.spatial)?;
    let rows = outputs.channels / groups;
    let depth = weights.channels.saturating_mul(taps.len());
    let packed = pack_groups(groups, rows, depth, |group, row, p, line| {
        let first = weight.wrapping_offset(weights.offset(group * rows + row, 0));
        // SAFETY: the input channels' weights, for the rows and the depth that are packed.
        unsafe { taps.gather(first, weights.channel_stride, p, line) };
    })?;
    let columns = try_collect((0..outputs.count * groups).map(|index| {
        let first = images.offset(index / groups, index % groups * weights.channels);
        Columns::new(input.wrapping_offset(first), images, outputs.spatial, geometry.stride, &taps.places)
    }))?;
    product(&columns, rows, depth, |index| &packed[index % groups], &|index, row, first, sums| {
        let channel = index % groups * rows + row;
        if let Some(bias) = &bias {
            let bias = bias.at(channel);
            for sum in sums.iter_mut() {
                *sum = sum.plus(bias);
            }
        }
        target.store(index / groups, channel, first, sums);
    })
}

/// The left operand of each group; `fill(group, row, p, line)` writes elements of a row from `p` on.
pub(super) fn pack_groups<S: Panel>(
    groups: usize,
    rows: usize,
    depth: usize,
    fill: impl Fn(usize, usize, usize, &mut [S]),
) -> Result<Vec<PackedRows<S>>> {
    let mut all = try_with_capacity(groups)?;
    for group in 0..groups {
        let mut packed = PackedRows::new();
        packed.pack(rows, depth, |row, p, line| fill(group, row, p, line))?;
        all.push(packed);
    }
    Ok(all)
}

/// For each set of columns the product with its packed rows; `store(set, row, first place, sums)` takes the results.
///
/// Blocks of places run in parallel.
pub(super) fn product<'a, T: LinalgElement>(
    columns: &[Columns<T>],
    rows: usize,
    depth: usize,
    packed: impl Fn(usize) -> &'a PackedRows<T::Sum> + Sync,
    store: &(dyn Fn(usize, usize, usize, &mut [T::Sum]) + Sync),
) -> Result<()> {
    let Some(first) = columns.first() else { return Ok(()) };
    let places = first.places();
    let blocks = places.div_ceil(BLOCK);
    // Even blocks, so that the last is not much smaller.
    let block = places.div_ceil(blocks.max(1)).next_multiple_of(<T::Sum as Panel>::kernel().nr).max(1);
    let work = rows.saturating_mul(depth.max(1)).saturating_mul(block);
    let grain = (iter::parallel::GRAIN_SIZE * 16 / work.max(1)).max(1);
    parallel_for_result(0, columns.len() * blocks, grain, &|begin, end| {
        let mut line = try_filled(<T::Sum as Element>::ZERO, block)?;
        for index in begin..end {
            let (set, first) = (index / blocks, index % blocks * block);
            let count = block.min(places.saturating_sub(first));
            if count == 0 {
                continue;
            }
            let line = &mut line[..count];
            multiply_block(
                packed(set),
                count,
                &mut |buffer, row, depth| columns[set].pack(buffer, first, row, depth, line),
                &mut |row, sums| store(set, row, first, sums),
            )?;
        }
        Ok(())
    })
}

/// Where results go: place `p` of a grid is the images' place `p · step + start`.
#[derive(Clone, Copy)]
pub(super) struct Target<T> {
    pub(super) data: *mut T,
    pub(super) images: Images,
    pub(super) grid: Spatial<usize>,
    pub(super) step: Spatial<usize>,
    pub(super) start: Spatial<usize>,
}

// SAFETY: an address; blocks of places that run in parallel do not overlap.
unsafe impl<T> Sync for Target<T> {}

impl<T: LinalgElement> Target<T> {
    /// Every place.
    pub(super) fn whole(data: *mut T, images: Images) -> Target<T> {
        Target { data, images, grid: images.spatial, step: [1; 3], start: [0; 3] }
    }

    /// Writes places `first..` of a channel.
    pub(super) fn store(&self, image: usize, channel: usize, first: usize, sums: &[T::Sum]) {
        let base = self.data.wrapping_offset(self.images.offset(image, channel));
        if self.step == [1; 3]
            && self.start == [0; 3]
            && self.grid == self.images.spatial
            && self.images.is_dense()
        {
            // SAFETY: dense places of an output channel, which belong to this call alone.
            T::narrow_slice(sums, unsafe {
                std::slice::from_raw_parts_mut(base.wrapping_add(first), sums.len())
            });
            return;
        }
        let [_, height, width] = self.grid;
        let mut done = 0;
        while done < sums.len() {
            let place = first + done;
            let at = [place / width / height, place / width % height, place % width];
            let count = (width - at[2]).min(sums.len() - done);
            let offset: isize = (0..3)
                .map(|d| (at[d] * self.step[d] + self.start[d]) as isize * self.images.spatial_strides[d])
                .sum();
            let stride = self.step[2] as isize * self.images.spatial_strides[2];
            let mut to = base.wrapping_offset(offset);
            for &sum in &sums[done..done + count] {
                // SAFETY: a place of the output that belongs to this call alone.
                unsafe { *to = T::narrow(sum) };
                to = to.wrapping_offset(stride);
            }
            done += count;
        }
    }

    /// Writes zeros everywhere.
    pub(super) fn clear(&self) {
        let places = self.images.places();
        let zeros = [<T::Sum as Element>::ZERO; BLOCK];
        let whole = Target::whole(self.data, self.images);
        for image in 0..self.images.count {
            for channel in 0..self.images.channels {
                for first in (0..places).step_by(BLOCK) {
                    whole.store(image, channel, first, &zeros[..BLOCK.min(places - first)]);
                }
            }
        }
    }
}
