//! The taps of a kernel.

use c10::{try_with_capacity, Result};

use super::shape::{Geometry, Images, Spatial};
use crate::linalg::LinalgElement;

/// Some taps of a kernel, by where their weights lie and where they look.
pub(super) struct Taps {
    /// Offsets of the weights, in elements.
    pub(super) weights: Vec<isize>,
    /// Offsets of places.
    pub(super) places: Vec<Spatial<isize>>,
}

impl Taps {
    /// The taps that fall inside the input for some place of the output, in the order of the weight's elements, for
    /// the convolution itself. The others meet nothing but padding: an expanded weight, which takes no memory, may
    /// have any number of them.
    pub(super) fn inside(
        geometry: &Geometry,
        weights: &Images,
        input: Spatial<usize>,
        output: Spatial<usize>,
    ) -> Result<Taps> {
        let along = |d: usize| -> Result<Vec<(usize, isize)>> {
            let taps = || geometry.taps_inside(d, input[d], output[d]);
            let mut list = try_with_capacity(taps().count())?;
            list.extend(taps().map(|tap| (tap, tap as isize * geometry.dilation[d] - geometry.padding[d])));
            Ok(list)
        };
        Taps::of(weights, [&along(0)?, &along(1)?, &along(2)?])
    }

    /// Every combination of taps, and of their places, along the three dimensions.
    pub(super) fn of(weights: &Images, along: [&[(usize, isize)]; 3]) -> Result<Taps> {
        let [depth, height, width] = along;
        let count = depth.len().saturating_mul(height.len()).saturating_mul(width.len());
        let [along_z, along_y, along_x] = weights.spatial_strides;
        let mut taps = Taps { weights: try_with_capacity(count)?, places: try_with_capacity(count)? };
        for &(z, at_z) in depth {
            for &(y, at_y) in height {
                let line = z as isize * along_z + y as isize * along_y;
                taps.weights.extend(width.iter().map(|&(x, _)| line + x as isize * along_x));
                taps.places.extend(width.iter().map(|&(_, at_x)| [at_z, at_y, at_x]));
            }
        }
        Ok(taps)
    }

    pub(super) fn len(&self) -> usize {
        self.weights.len()
    }

    /// Whether the weights lie side by side.
    fn is_dense(&self) -> bool {
        self.weights.iter().enumerate().all(|(i, &offset)| offset == i as isize)
    }

    /// Writes weights `p..` of the sequence "channel, then tap", for a channel stride.
    ///
    /// # Safety
    /// These weights must lie in memory, as the tensor that the taps are of, from `first` on.
    pub(super) unsafe fn gather<T: LinalgElement>(
        &self,
        first: *const T,
        channel_stride: isize,
        p: usize,
        line: &mut [T::Sum],
    ) {
        if line.is_empty() {
            return;
        }
        if channel_stride == self.len() as isize && self.is_dense() {
            // SAFETY: the caller's promise; they are dense over channels and taps.
            T::widen_slice(unsafe { std::slice::from_raw_parts(first.wrapping_add(p), line.len()) }, line);
            return;
        }
        let (mut channel, mut tap) = ((p / self.len()) as isize, p % self.len());
        for to in line {
            // SAFETY: the caller's promise.
            *to = unsafe { *first.wrapping_offset(channel * channel_stride + self.weights[tap]) }.widen();
            tap += 1;
            if tap == self.len() {
                (channel, tap) = (channel + 1, 0);
            }
        }
    }
}
