//! The columns of an image, read from the image.

use c10::Element;

use super::shape::{Images, Spatial};
use crate::linalg::pack::put_step;
use crate::linalg::tile::Panel;
use crate::linalg::LinalgElement;

/// Where the elements of columns lie: tap `t` at place `p` of a grid is the source's place `p · step + taps[t]`, and
/// zero outside the source.
pub(super) struct Columns<'a, T> {
    /// The first element of an image's channels.
    data: *const T,
    images: Images,
    grid: Spatial<usize>,
    step: Spatial<isize>,
    taps: &'a [Spatial<isize>],
    /// Whether the grid is a channel of the source that lies in memory without gaps, but for the tap.
    is_plane: bool,
}

// SAFETY: an address, read while the tensor it belongs to is alive and not written.
unsafe impl<T> Sync for Columns<'_, T> {}

impl<'a, T: LinalgElement> Columns<'a, T> {
    pub(super) fn new(
        data: *const T,
        images: Images,
        grid: Spatial<usize>,
        step: Spatial<isize>,
        taps: &'a [Spatial<isize>],
    ) -> Columns<'a, T> {
        let is_plane = step == [1; 3] && grid == images.spatial && images.is_dense();
        Columns { data, images, grid, step, taps, is_plane }
    }

    /// Places of the grid.
    pub(super) fn places(&self) -> usize {
        self.grid.iter().product()
    }

    /// Writes the elements of a row of the columns at places `first..first + out.len()`.
    pub(super) fn row(&self, channel_and_tap: usize, first: usize, out: &mut [T::Sum]) {
        let (channel, tap) = (channel_and_tap / self.taps.len(), channel_and_tap % self.taps.len());
        let [depth, height, width] = self.grid;
        if self.is_plane && self.taps[tap] == [0; 3] {
            let source = self.data.wrapping_offset(channel as isize * self.images.channel_stride);
            // SAFETY: the grid is the source's dense channel, of which these are places.
            T::widen_slice(unsafe { std::slice::from_raw_parts(source.wrapping_add(first), out.len()) }, out);
            return;
        }
        let (line, mut x) = (first / width, first % width);
        let (mut z, mut y) = (line / height, line % height);
        debug_assert!(z < depth || out.is_empty());
        let mut rest = out;
        while !rest.is_empty() {
            let (now, later) = rest.split_at_mut((width - x).min(rest.len()));
            self.copy_line(channel, tap, [z, y, x], now);
            rest = later;
            x = 0;
            y += 1;
            if y == height {
                (z, y) = (z + 1, 0);
            }
        }
    }

    /// A part of one line of the grid.
    #[inline]
    fn copy_line(&self, channel: usize, tap: usize, at: Spatial<usize>, out: &mut [T::Sum]) {
        let zero = <T::Sum as Element>::ZERO;
        let Line { before, inside, source, stride } = self.line(channel, tap, at, out.len());
        out[..before].fill(zero);
        out[inside..].fill(zero);
        let out = &mut out[before..inside];
        if stride == 1 {
            // SAFETY: the line's places from `before` to `inside` lie inside the source.
            T::widen_slice(unsafe { std::slice::from_raw_parts(source, out.len()) }, out);
        } else {
            let mut from = source;
            for out in out {
                // SAFETY: as above.
                *out = unsafe { *from }.widen();
                from = from.wrapping_offset(stride);
            }
        }
    }

    /// Where `count` places of one line of the grid lie.
    #[inline]
    pub(super) fn line(&self, channel: usize, tap: usize, at: Spatial<usize>, count: usize) -> Line<T> {
        let tap = self.taps[tap];
        let [z, y, x] =
            std::array::from_fn(|i| (at[i] as isize).wrapping_mul(self.step[i]).wrapping_add(tap[i]));
        let [depth, height, width] = self.images.spatial.map(|size| size as isize);
        let [along_z, along_y, along_x] = self.images.spatial_strides;
        let step = self.step[2];
        if z < 0 || z >= depth || y < 0 || y >= height {
            return Line {
                before: count,
                inside: count,
                source: self.data,
                stride: along_x.wrapping_mul(step),
            };
        }
        // Positions i with 0 <= x + i·step < width.
        let before = if x < 0 { 1 + (-x - 1) / step } else { 0 }.min(count as isize);
        let inside = if width > x { 1 + (width - x - 1) / step } else { 0 }.clamp(before, count as isize);
        let source = self.data.wrapping_offset(
            channel as isize * self.images.channel_stride
                + z * along_z
                + y * along_y
                + before.wrapping_mul(step).wrapping_add(x).wrapping_mul(along_x),
        );
        Line { before: before as usize, inside: inside as usize, source, stride: along_x.wrapping_mul(step) }
    }

    /// Packs a block of places for [`crate::linalg::implicit::multiply_block`]; `line` has room for its places.
    pub(super) fn pack(
        &self,
        packed: &mut [T::Sum],
        first: usize,
        row: usize,
        depth: usize,
        line: &mut [T::Sum],
    ) {
        let nr = <T::Sum as Panel>::kernel().nr;
        for p in 0..depth {
            self.row(row + p, first, line);
            put_step(packed, nr, depth, p, line);
        }
    }
}

/// A part of a line: places `before..inside` lie in memory from `source` on, `stride` elements apart; the others are
/// outside the source, and zero.
pub(super) struct Line<T> {
    pub(super) before: usize,
    pub(super) inside: usize,
    pub(super) source: *const T,
    pub(super) stride: isize,
}
