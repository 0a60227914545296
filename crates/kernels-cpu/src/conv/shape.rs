//! Sizes and strides of a convolution, always in three spatial dimensions.

use c10::{check, Result, Tensor};

/// Sizes, steps or places along depth, height and width. Missing dimensions come first, with size 1.
pub(super) type Spatial<T> = [T; 3];

/// A batch of images: sizes, and strides in elements.
#[derive(Clone, Copy)]
pub(super) struct Images {
    pub(super) count: usize,
    pub(super) channels: usize,
    pub(super) spatial: Spatial<usize>,
    pub(super) image_stride: isize,
    pub(super) channel_stride: isize,
    pub(super) spatial_strides: Spatial<isize>,
}

impl Images {
    /// Of a tensor (N, C, spatial…); also of a weight, whose "images" are output channels.
    pub(super) fn of(tensor: &Tensor) -> Result<Images> {
        let (sizes, strides) = (tensor.sizes()?, tensor.strides()?);
        check!(
            (3..=5).contains(&sizes.len()),
            "convolution: expected tensors with one to three spatial dimensions, got sizes {sizes:?}"
        );
        let mut spatial = [1; 3];
        let mut spatial_strides = [0; 3];
        let missing = 5 - sizes.len();
        for i in 2..sizes.len() {
            spatial[i - 2 + missing] = sizes[i] as usize;
            spatial_strides[i - 2 + missing] = strides[i] as isize;
        }
        Ok(Images {
            count: sizes[0] as usize,
            channels: sizes[1] as usize,
            spatial,
            image_stride: strides[0] as isize,
            channel_stride: strides[1] as isize,
            spatial_strides,
        })
    }

    /// Places of one channel.
    pub(super) fn places(&self) -> usize {
        self.spatial.iter().product()
    }

    /// The offset of a channel's first element.
    pub(super) fn offset(&self, image: usize, channel: usize) -> isize {
        image as isize * self.image_stride + channel as isize * self.channel_stride
    }

    /// Whether a channel's places lie in memory in order without gaps.
    pub(super) fn is_dense(&self) -> bool {
        let [_, height, width] = self.spatial;
        let [along_depth, along_height, along_width] = self.spatial_strides;
        (width == 1 || along_width == 1)
            && (height == 1 || along_height == width as isize)
            && (self.spatial[0] == 1 || along_depth == (height * width) as isize)
    }
}

/// How outputs relate to inputs.
#[derive(Clone, Copy)]
pub(super) struct Geometry {
    pub(super) kernel: Spatial<usize>,
    pub(super) stride: Spatial<isize>,
    pub(super) padding: Spatial<isize>,
    pub(super) dilation: Spatial<isize>,
    pub(super) groups: usize,
}

impl Geometry {
    /// From the operator's lists, one entry per spatial dimension.
    pub(super) fn new(
        kernel: Spatial<usize>,
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        groups: i64,
    ) -> Result<Geometry> {
        let wide = |list: &[i64], missing: isize| {
            let mut wide = [missing; 3];
            let used = list.len().min(3);
            for (to, &from) in wide[3 - used..].iter_mut().zip(list) {
                *to = from as isize;
            }
            wide
        };
        let (stride, dilation) = (wide(stride, 1), wide(dilation, 1));
        check!(
            groups > 0 && stride.iter().chain(&dilation).all(|&step| step > 0),
            "convolution: expected positive stride, dilation and groups, got {stride:?}, {dilation:?}, {groups}"
        );
        Ok(Geometry { kernel, stride, padding: wide(padding, 0), dilation, groups: groups as usize })
    }

    /// Along dimension `d` the taps that fall inside `input` places for some of `output` places, in order.
    ///
    /// Tap `k` of output place `o` looks at `o·stride + k·dilation − padding`: for each `o` those inside are a range,
    /// which moves up as `o` goes down. So the work is that of the output and of what is given, however large the
    /// kernel is.
    pub(super) fn taps_inside(&self, d: usize, input: usize, output: usize) -> impl Iterator<Item = usize> {
        let [stride, padding, dilation] = [self.stride[d], self.padding[d], self.dilation[d]];
        let (kernel, input) = (self.kernel[d], input as isize);
        // The first place at or past `place` that a tap of an output place which begins at `start` looks at.
        let first_from = move |place: isize, start: isize| -> usize {
            usize::try_from(place - start).unwrap_or(0).div_ceil(dilation as usize)
        };
        let mut given = 0;
        (0..output as isize)
            .rev()
            .map_while(move |o| {
                (given < kernel).then(|| {
                    let start = o * stride - padding;
                    let end = first_from(input, start).min(kernel);
                    let first = first_from(0, start).clamp(given, end.max(given));
                    given = given.max(end);
                    first..end
                })
            })
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taps_inside_are_those_that_meet_the_input() {
        let cases = (0..5_usize).flat_map(|kernel| (1..4).map(move |stride| (kernel, stride)));
        for (kernel, stride) in cases {
            for (padding, dilation) in
                (0..7).flat_map(|padding| (1..4).map(move |dilation| (padding, dilation)))
            {
                for (input, output) in
                    (0..4_usize).flat_map(|input| (0..5).map(move |output| (input, output)))
                {
                    let geometry =
                        Geometry::new([1, 1, kernel], &[stride], &[padding], &[dilation], 1).unwrap();
                    let meets = |tap: usize| {
                        (0..output as i64).any(|o| {
                            (0..input as i64).contains(&(o * stride + tap as i64 * dilation - padding))
                        })
                    };
                    let expected: Vec<usize> = (0..kernel).filter(|&tap| meets(tap)).collect();
                    let found: Vec<usize> = geometry.taps_inside(2, input, output).collect();
                    assert_eq!(found, expected, "{kernel} {stride} {padding} {dilation} {input} {output}");
                }
            }
        }
    }

    #[test]
    fn a_huge_kernel_over_a_small_input_has_few_taps_inside() {
        let geometry = Geometry::new([1, 1, 1 << 60], &[1 << 58], &[1 << 59], &[1], 1).unwrap();
        let found: Vec<usize> = geometry.taps_inside(2, 2, 1).collect();
        assert_eq!(found, [1 << 59, (1 << 59) + 1]);
    }
}
