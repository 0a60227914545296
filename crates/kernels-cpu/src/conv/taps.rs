//! The taps of a kernel.

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
    /// Every tap, in the order of the weight's elements, for the convolution itself.
    pub(super) fn all(geometry: &Geometry, weights: &Images) -> Taps {
        Taps::of(
            weights,
            geometry.taps().map(|tap| {
                (tap, std::array::from_fn(|d| tap[d] as isize * geometry.dilation[d] - geometry.padding[d]))
            }),
        )
    }

    /// Given taps and their places.
    pub(super) fn of(weights: &Images, taps: impl Iterator<Item = (Spatial<usize>, Spatial<isize>)>) -> Taps {
        let offset = |tap: Spatial<usize>| -> isize {
            tap.iter().zip(&weights.spatial_strides).map(|(&tap, &stride)| tap as isize * stride).sum()
        };
        let (weights, places) = taps.map(|(tap, place)| (offset(tap), place)).unzip();
        Taps { weights, places }
    }

    pub(super) fn len(&self) -> usize {
        self.weights.len()
    }

    /// Whether the weights lie side by side.
    fn is_dense(&self) -> bool {
        self.weights.iter().enumerate().all(|(i, &offset)| offset == i as isize)
    }

    /// Writes weights `p..` of the sequence "channel, then tap", for a channel stride.
    pub(super) fn gather<T: LinalgElement>(
        &self,
        first: *const T,
        channel_stride: isize,
        p: usize,
        line: &mut [T::Sum],
    ) {
        if channel_stride == self.len() as isize && self.is_dense() {
            // SAFETY: the caller's weights: dense over channels and taps.
            T::widen_slice(unsafe { std::slice::from_raw_parts(first.wrapping_add(p), line.len()) }, line);
            return;
        }
        let (mut channel, mut tap) = ((p / self.len()) as isize, p % self.len());
        for to in line {
            // SAFETY: a weight of the caller's.
            *to = unsafe { *first.wrapping_offset(channel * channel_stride + self.weights[tap]) }.widen();
            tap += 1;
            if tap == self.len() {
                (channel, tap) = (channel + 1, 0);
            }
        }
    }
}
