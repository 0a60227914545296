//! The columns of an image, read from the image.

use c10::Element;

use super::shape::{Images, Spatial};
use crate::linalg::LinalgElement;

/// Where the elements of columns lie: tap `t` at place `p` of a grid is the source's place `p · step + taps[t]`, and
/// zero outside the source.
pub(super) struct Columns<T> {
    /// The first element of an image's channels.
    pub(super) data: *const T,
    pub(super) images: Images,
    pub(super) grid: Spatial<usize>,
    pub(super) step: Spatial<isize>,
    pub(super) taps: Vec<Spatial<isize>>,
}

// SAFETY: an address, read while the tensor it belongs to is alive and not written.
unsafe impl<T> Sync for Columns<T> {}

impl<T: LinalgElement> Columns<T> {
    /// Places of the grid.
    pub(super) fn places(&self) -> usize {
        self.grid.iter().product()
    }

    /// Writes the elements of row `row` (channel and tap) at places `first..first + out.len()`.
    pub(super) fn row(&self, channel_and_tap: usize, first: usize, out: &mut [T::Sum]) {
        let (channel, tap) = (channel_and_tap / self.taps.len(), channel_and_tap % self.taps.len());
        let [_, height, width] = self.grid;
        let mut done = 0;
        while done < out.len() {
            let place = first + done;
            let (line, x) = (place / width, place % width);
            let count = (width - x).min(out.len() - done);
            let (z, y) = (line / height, line % height);
            self.line(channel, self.taps[tap], [z, y, x], &mut out[done..done + count]);
            done += count;
        }
    }

    /// A part of one line of the grid.
    #[inline]
    fn line(&self, channel: usize, tap: Spatial<isize>, at: Spatial<usize>, out: &mut [T::Sum]) {
        let zero = <T::Sum as Element>::ZERO;
        let [z, y, x] = std::array::from_fn(|i| at[i] as isize * self.step[i] + tap[i]);
        let [depth, height, width] = self.images.spatial.map(|size| size as isize);
        if z < 0 || z >= depth || y < 0 || y >= height {
            out.fill(zero);
            return;
        }
        let step = self.step[2];
        // Positions i with 0 <= x + i·step < width.
        let before = if x < 0 { (-x + step - 1) / step } else { 0 }.min(out.len() as isize);
        let inside =
            if width > x { (width - x + step - 1) / step } else { 0 }.clamp(before, out.len() as isize);
        let (before, inside) = (before as usize, inside as usize);
        out[..before].fill(zero);
        out[inside..].fill(zero);
        let [along_z, along_y, along_x] = self.images.spatial_strides;
        let source = self.data.wrapping_offset(
            channel as isize * self.images.channel_stride
                + z * along_z
                + y * along_y
                + (x + before as isize * step) * along_x,
        );
        let out = &mut out[before..inside];
        let stride = along_x * step;
        if stride == 1 {
            // SAFETY: the line's places from `before` to `inside` lie inside the source.
            T::widen_slice(unsafe { std::slice::from_raw_parts(source, out.len()) }, out);
        } else {
            for (i, out) in out.iter_mut().enumerate() {
                // SAFETY: as above.
                *out = unsafe { *source.wrapping_offset(i as isize * stride) }.widen();
            }
        }
    }

    /// Fills a panel of `nr` columns from place `first` on with `depth` rows from `row` on; `count` of the columns
    /// exist.
    pub(super) fn panel(
        &self,
        out: &mut [T::Sum],
        nr: usize,
        first: usize,
        count: usize,
        row: usize,
        depth: usize,
    ) {
        for (i, out) in out.chunks_exact_mut(nr).take(depth).enumerate() {
            self.row(row + i, first, &mut out[..count]);
            out[count..].fill(<T::Sum as Element>::ZERO);
        }
    }
}
