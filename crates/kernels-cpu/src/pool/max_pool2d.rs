//! `max_pool2d_with_indices`.
//!
//! A window's maximum is the first one in row-major order, except that NaN beats everything and the last NaN counts.
//! Where rows are dense, windows are run through one tap at a time for a whole row of outputs, which vectorizes;
//! where channels are dense, one tap at a time for all channels.

use c10::{check, try_collect, try_filled, Result, Tensor};
use iter::parallel::{parallel_for_result, GRAIN_SIZE};

use super::element::{gather_plane, pointer, Compared, Planes, Pooled};
use crate::address::{const_data_ptr, mutable_data_ptr, Address};
use crate::dispatch::dispatch;
use crate::registration::register;
use crate::vec::tiered;

pub(super) fn register() {
    register! {
        max_pool2d_kernel: fn(&Tensor, &[i64], &[i64], &[i64], &[i64], &[Tensor]);
    }
}

/// One direction of the window.
#[derive(Clone, Copy)]
struct Axis {
    kernel: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
    input: usize,
}

impl Axis {
    /// The taps of output position `o` that fall inside the input, and where the first of them lies.
    fn taps(&self, o: usize) -> (std::ops::Range<usize>, usize) {
        let start = (o * self.stride) as isize - self.padding as isize;
        let first = if start < 0 { (-start as usize).div_ceil(self.dilation) } else { 0 };
        let end = if start >= self.input as isize { 0 } else { (self.input as isize - start) as usize };
        let last = end.div_ceil(self.dilation).min(self.kernel);
        (first..last.max(first), (start + (first * self.dilation) as isize).max(0) as usize)
    }

    /// The outputs among `0..count` for which a tap falls inside the input.
    fn outputs(&self, tap: usize, count: usize) -> std::ops::Range<usize> {
        // 0 <= o·stride + tap·dilation − padding < input
        let shift = (tap * self.dilation) as isize - self.padding as isize;
        let first = if shift < 0 { (-shift as usize).div_ceil(self.stride) } else { 0 };
        let room = self.input as isize - shift;
        let end = if room <= 0 { 0 } else { (room as usize).div_ceil(self.stride) };
        let end = end.min(count);
        first.min(end)..end
    }

    /// The taps that fall inside the input for some of `count` outputs: a window may be much larger.
    fn reached(&self, count: usize) -> std::ops::Range<usize> {
        let last_start = count.saturating_sub(1).saturating_mul(self.stride);
        let first = self.padding.saturating_sub(last_start).div_ceil(self.dilation);
        let end = self.input.saturating_add(self.padding).div_ceil(self.dilation).min(self.kernel);
        first.min(end)..end
    }

    /// Where a tap of an output lies, if it is inside.
    fn position(&self, o: usize, tap: usize) -> usize {
        (o * self.stride + tap * self.dilation).wrapping_sub(self.padding)
    }
}

/// Entry `i` of a list for both directions, or its only one; `None` of an empty list.
fn entry(list: &[i64], i: usize) -> Option<usize> {
    list.get(i).or(list.first()).map(|&value| value as usize)
}

fn max_pool2d_kernel(
    input: &Tensor,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    outs: &[Tensor],
) -> Result<()> {
    let planes = Planes::of(input)?;
    let axis = |i: usize, size: usize| -> Result<Axis> {
        let kernel = entry(kernel_size, i).unwrap_or(1);
        let axis = Axis {
            kernel,
            stride: entry(stride, i).unwrap_or(kernel),
            padding: entry(padding, i).unwrap_or(0),
            dilation: entry(dilation, i).unwrap_or(1),
            input: size,
        };
        check!(
            axis.kernel > 0 && axis.stride > 0 && axis.dilation > 0,
            "max_pool2d: expected kernel_size, stride and dilation greater than zero, got {kernel_size:?}, {stride:?}, {dilation:?}"
        );
        Ok(axis)
    };
    let axes = [axis(0, planes.height)?, axis(1, planes.width)?];
    dispatch!(input.dtype(), "max_pool2d", ALL_AND_HALF, |T| {
        let (out, indices) = (Planes::of(&outs[0])?, Planes::of(&outs[1])?);
        let data = [
            Address(const_data_ptr::<T>(input)?.cast_mut().cast()),
            Address(mutable_data_ptr::<T>(&outs[0])?.cast()),
            Address(mutable_data_ptr::<i64>(&outs[1])?.cast()),
        ];
        if planes.is_channels_last() {
            channels_last::<T>(data, [planes, out, indices], axes)
        } else {
            by_plane::<T>(data, [planes, out, indices], axes)
        }
    })
}

tiered! {
    /// One tap for a row of outputs: `values[o]` against `row[o * stride]`, which lies at index `first + o * stride`.
    fn tap_row<S>(values: &mut [S], indices: &mut [i32], row: &[S], stride: usize, first: i32) where { S: Compared } => A {
        let _ = std::marker::PhantomData::<A>;
        if stride == 1 {
            for (o, ((value, index), &x)) in values.iter_mut().zip(indices.iter_mut()).zip(row).enumerate() {
                take(value, index, x, first + o as i32);
            }
        } else if stride == 2 {
            for (o, ((value, index), x)) in values.iter_mut().zip(indices.iter_mut()).zip(row.chunks(2)).enumerate() {
                take(value, index, x[0], first + 2 * o as i32);
            }
        } else {
            for (o, (value, index)) in values.iter_mut().zip(indices.iter_mut()).enumerate() {
                take(value, index, row[o * stride], first + (o * stride) as i32);
            }
        }
    }
    /// One tap for all channels of an output.
    fn tap_channels<S>(values: &mut [S], indices: &mut [i32], place: &[S], at: i32) where { S: Compared } => A {
        let _ = std::marker::PhantomData::<A>;
        for ((value, index), &x) in values.iter_mut().zip(indices).zip(place) {
            take(value, index, x, at);
        }
    }
}

/// Branch-free, so that loops over it vectorize.
#[inline(always)]
#[allow(clippy::eq_op)]
fn take<S: Compared>(value: &mut S, index: &mut i32, x: S, at: i32) {
    // Unequal to itself: NaN.
    let better = x > *value || x != x;
    *value = if better { x } else { *value };
    *index = if better { at } else { *index };
}

fn by_plane<T: Pooled>(
    [input, out, indices]: [Address; 3],
    [planes, out_planes, index_planes]: [Planes; 3],
    [down, across]: [Axis; 2],
) -> Result<()> {
    let area = planes.height * planes.width;
    check!(area <= i32::MAX as usize, "max_pool2d: expected planes of less than 2^31 elements, got {area}");
    let (out_height, out_width) = (out_planes.height, out_planes.width);
    let taps = down.kernel.saturating_mul(across.kernel);
    let work = area.max((out_height * out_width).saturating_mul(taps));
    parallel_for_result(
        0,
        planes.images * planes.channels,
        (GRAIN_SIZE / work.max(1)).max(1),
        &|begin, end| {
            let direct = T::ITSELF && planes.is_dense_plane();
            let mut copy = try_filled(T::Compute::LOWEST, if direct { 0 } else { area })?;
            let mut values = try_filled(T::Compute::LOWEST, out_width)?;
            let mut places = try_filled(0i32, out_width)?;
            let mut narrow = try_filled(T::default(), out_width)?;
            let firsts = try_collect((0..out_width).map(|o| across.taps(o).1 as i32))?;
            for index in begin..end {
                let (image, channel) = (index / planes.channels, index % planes.channels);
                let plane: &[T::Compute] = if direct {
                    let first = pointer::<T::Compute>(input, planes.offset(image, channel, 0, 0));
                    // SAFETY: a dense plane of the input; `T` is `T::Compute`.
                    unsafe { std::slice::from_raw_parts(first, area) }
                } else {
                    // SAFETY: the input, as `planes` describes it.
                    unsafe { gather_plane::<T>(pointer(input, 0), &planes, image, channel, &mut copy) };
                    &copy
                };
                for y in 0..out_height {
                    let (taps, first_row) = down.taps(y);
                    values.fill(T::Compute::LOWEST);
                    for (place, &first) in places.iter_mut().zip(&firsts) {
                        *place = (first_row * planes.width) as i32 + first;
                    }
                    for tap in taps {
                        let row = down.position(y, tap) * planes.width;
                        for tap in across.reached(out_width) {
                            let some = across.outputs(tap, out_width);
                            if some.is_empty() {
                                continue;
                            }
                            let at = row + across.position(some.start, tap);
                            tap_row(
                                &mut values[some.clone()],
                                &mut places[some],
                                &plane[at..row + planes.width],
                                across.stride,
                                at as i32,
                            );
                        }
                    }
                    T::narrow(&values, &mut narrow);
                    for x in 0..out_width {
                        let to = pointer::<T>(out, out_planes.offset(image, channel, y, x));
                        let index = pointer::<i64>(indices, index_planes.offset(image, channel, y, x));
                        // SAFETY: an element of each output; each plane belongs to one piece.
                        unsafe {
                            *to = narrow[x];
                            *index = i64::from(places[x]);
                        }
                    }
                }
            }
            Ok(())
        },
    )
}

fn channels_last<T: Pooled>(
    [input, out, indices]: [Address; 3],
    [planes, out_planes, index_planes]: [Planes; 3],
    [down, across]: [Axis; 2],
) -> Result<()> {
    let area = planes.height * planes.width;
    check!(area <= i32::MAX as usize, "max_pool2d: expected planes of less than 2^31 elements, got {area}");
    let channels = planes.channels;
    let work = (out_planes.width * channels).saturating_mul(down.kernel.saturating_mul(across.kernel));
    let rows = planes.images * out_planes.height;
    parallel_for_result(0, rows, (GRAIN_SIZE / work.max(1)).max(1), &|begin, end| {
        let mut values = try_filled(T::Compute::LOWEST, channels)?;
        let mut wide = try_filled(T::Compute::LOWEST, if T::ITSELF { 0 } else { channels })?;
        let mut places = try_filled(0i32, channels)?;
        let mut narrow = try_filled(T::default(), channels)?;
        for row in begin..end {
            let (image, y) = (row / out_planes.height, row % out_planes.height);
            let (taps_down, first_row) = down.taps(y);
            for x in 0..out_planes.width {
                let (taps_across, first_col) = across.taps(x);
                values.fill(T::Compute::LOWEST);
                places.fill((first_row * planes.width + first_col) as i32);
                for tap_down in taps_down.clone() {
                    let in_y = down.position(y, tap_down);
                    for tap_across in taps_across.clone() {
                        let in_x = across.position(x, tap_across);
                        let at = (in_y * planes.width + in_x) as i32;
                        let first = pointer::<T>(input, planes.offset(image, 0, in_y, in_x));
                        // SAFETY: the dense channels of one place of the input.
                        let place = unsafe { std::slice::from_raw_parts(first, channels) };
                        if T::ITSELF {
                            // SAFETY: `T` is `T::Compute`.
                            let place =
                                unsafe { std::slice::from_raw_parts(first.cast::<T::Compute>(), channels) };
                            tap_channels(&mut values, &mut places, place, at);
                        } else {
                            T::widen(place, &mut wide);
                            tap_channels(&mut values, &mut places, &wide, at);
                        }
                    }
                }
                T::narrow(&values, &mut narrow);
                for channel in 0..channels {
                    let to = pointer::<T>(out, out_planes.offset(image, channel, y, x));
                    let index = pointer::<i64>(indices, index_planes.offset(image, channel, y, x));
                    // SAFETY: an element of each output; each row belongs to one piece.
                    unsafe {
                        *to = narrow[channel];
                        *index = i64::from(places[channel]);
                    }
                }
            }
        }
        Ok(())
    })
}
