//! Which elements of a line make up each element of another line, and with what weight.
//!
//! Padding, averages over windows and interpolation are linear and treat each dimension of an image by itself. Each is
//! a table per dimension; [`super::separable`] applies the tables, and a backward pass is the same with transposed ones.

use c10::{try_collect, try_filled, try_reserve, try_with_capacity, Result};

/// A table for one dimension.
pub(super) struct Taps {
    /// Size of the line that is read.
    pub(super) input: usize,
    /// Output `o` has the taps `starts[o]..starts[o + 1]`.
    pub(super) starts: Vec<usize>,
    /// Where a tap reads, and its weight.
    pub(super) taps: Vec<(usize, f64)>,
    /// What each output is divided by, if by anything.
    pub(super) divisors: Option<Vec<f64>>,
}

impl Taps {
    /// The number of outputs.
    pub(super) fn outputs(&self) -> usize {
        self.starts.len() - 1
    }

    /// The taps of an output.
    #[inline(always)]
    pub(super) fn of(&self, output: usize) -> &[(usize, f64)] {
        &self.taps[self.starts[output]..self.starts[output + 1]]
    }

    /// A dimension of one element that stays as it is.
    pub(super) fn identity() -> Taps {
        Taps { input: 1, starts: vec![0, 1], taps: vec![(0, 1.0)], divisors: None }
    }

    /// A table from the taps of each output.
    pub(super) fn new<I: IntoIterator<Item = (usize, f64)>>(
        input: usize,
        outputs: usize,
        mut of: impl FnMut(usize) -> I,
    ) -> Result<Taps> {
        let mut starts = try_with_capacity(outputs + 1)?;
        let mut taps = try_with_capacity(outputs)?;
        starts.push(0);
        for output in 0..outputs {
            let of_output = of(output).into_iter();
            let needed = of_output.size_hint().0;
            let length = taps.len();
            if taps.capacity() - length < needed {
                try_reserve(&mut taps, needed.max(length))?;
            }
            taps.extend(of_output);
            starts.push(taps.len());
        }
        Ok(Taps { input, starts, taps, divisors: None })
    }

    /// The same weights, read the other way: output and input change places. Divisors stay with what they divided, which
    /// is now the input.
    pub(super) fn transposed(&self) -> Result<Taps> {
        let mut starts = try_filled(0usize, self.input + 1)?;
        for &(place, _) in &self.taps {
            starts[place + 1] += 1;
        }
        for i in 0..self.input {
            starts[i + 1] += starts[i];
        }
        let mut next = try_collect(starts.iter().copied())?;
        let mut taps = try_filled((0, 0.0), self.taps.len())?;
        for output in 0..self.outputs() {
            for &(place, weight) in self.of(output) {
                taps[next[place]] = (output, weight);
                next[place] += 1;
            }
        }
        let divisors =
            self.divisors.as_ref().map(|divisors| try_collect(divisors.iter().copied())).transpose()?;
        Ok(Taps { input: self.outputs(), starts, taps, divisors })
    }

    /// Mirrored at the edges, which are not repeated.
    pub(super) fn reflected(size: usize, before: i64, outputs: usize) -> Result<Taps> {
        let last = size as i64 - 1;
        Taps::new(size, outputs, |o| {
            let mut at = (o as i64 - before).abs();
            if at > last {
                at = 2 * last - at;
            }
            Some((at.clamp(0, last.max(0)) as usize, 1.0))
        })
    }

    /// Continued with the edges' values.
    pub(super) fn replicated(size: usize, before: i64, outputs: usize) -> Result<Taps> {
        let last = size as i64 - 1;
        Taps::new(size, outputs, |o| Some(((o as i64 - before).clamp(0, last.max(0)) as usize, 1.0)))
    }

    /// Averages over a sliding window; with `count_padding` its size counts the padding that it covers.
    pub(super) fn windows(
        size: usize,
        outputs: usize,
        [kernel, stride, padding]: [i64; 3],
        count_padding: bool,
    ) -> Result<Taps> {
        let mut divisors = try_with_capacity(outputs)?;
        let size_ = size as i64;
        let mut table = Taps::new(size, outputs, |o| {
            let start = o as i64 * stride - padding;
            let padded_end = (start + kernel).min(size_ + padding);
            let (first, end) = (start.max(0), padded_end.min(size_));
            let count = if count_padding { padded_end - start } else { end - first };
            divisors.push(count as f64);
            (first..end.max(first)).map(|i| (i as usize, 1.0))
        })?;
        table.divisors = Some(divisors);
        Ok(table)
    }

    /// Averages over windows that share the line out evenly.
    pub(super) fn shares(size: usize, outputs: usize) -> Result<Taps> {
        let mut divisors = try_with_capacity(outputs)?;
        let mut table = Taps::new(size, outputs, |o| {
            let (start, end) = share(o, outputs, size);
            divisors.push((end - start) as f64);
            (start..end).map(|i| (i, 1.0))
        })?;
        table.divisors = Some(divisors);
        Ok(table)
    }

    /// The nearest element; `exact` measures from the centres.
    pub(super) fn nearest(size: usize, outputs: usize, scale: Option<f64>, exact: bool) -> Result<Taps> {
        // Of every dtype in float32, as PyTorch's.
        let step = match scale {
            Some(scale) if scale > 0.0 => (1.0 / scale) as f32,
            _ => size as f32 / outputs as f32,
        };
        let last = size.saturating_sub(1);
        Taps::new(size, outputs, |o| {
            let at = if exact {
                ((o as f32 + 0.5) * step).floor() as usize
            } else if outputs == size {
                o
            } else if outputs == 2 * size {
                o / 2
            } else {
                (o as f32 * step).floor() as usize
            };
            Some((at.min(last), 1.0))
        })
    }
}

/// The range of a line of `size` elements that share `i` of `parts` covers.
pub(super) fn share(i: usize, parts: usize, size: usize) -> (usize, usize) {
    (i * size / parts, ((i + 1) * size).div_ceil(parts))
}

/// How an output reads its neighbourhood.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Interpolation {
    Linear,
    Cubic,
}

/// The arithmetic that positions are computed in: that of the elements, since rounding decides which are neighbours.
pub(super) trait Position: Copy {
    fn step(input: usize, output: usize, align_corners: bool, scale: Option<f64>) -> Self;
    fn of(self, output: usize, align_corners: bool) -> Self;
    /// Its whole part and its fraction.
    fn split(self) -> (i64, f64);
    fn at_least_zero(self) -> Self;
    fn value(self) -> f64;
    fn rounded(value: f64) -> Self;
}

macro_rules! position {
    ($($T:ty),*) => {$(
        impl Position for $T {
            fn step(input: usize, output: usize, align_corners: bool, scale: Option<f64>) -> $T {
                if align_corners {
                    return if output > 1 { (input as $T - 1.0) / (output as $T - 1.0) } else { 0.0 };
                }
                match scale {
                    Some(scale) if scale > 0.0 => (1.0 / scale) as $T,
                    _ => input as $T / output as $T,
                }
            }
            fn of(self, output: usize, align_corners: bool) -> $T {
                if align_corners { self * output as $T } else { self * (output as $T + 0.5) - 0.5 }
            }
            fn split(self) -> (i64, f64) {
                let whole = self.floor();
                (whole as i64, (self - whole).clamp(0.0, 1.0) as f64)
            }
            fn at_least_zero(self) -> $T { if self < 0.0 { 0.0 } else { self } }
            fn value(self) -> f64 { self as f64 }
            fn rounded(value: f64) -> $T { value as $T }
        }
    )*};
}

position!(f32, f64);

/// The weights of four neighbours at the distance `t` from the second, for the cubic of slope `a`.
fn cubic_weights(t: f64, a: f64) -> [f64; 4] {
    let near = |x: f64| ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    let far = |x: f64| ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
    [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]
}

impl Taps {
    /// Interpolation between neighbours.
    pub(super) fn interpolated<P: Position>(
        size: usize,
        outputs: usize,
        align_corners: bool,
        scale: Option<f64>,
        how: Interpolation,
    ) -> Result<Taps> {
        let step = P::step(size, outputs, align_corners, scale);
        let last = size as i64 - 1;
        Taps::new(size, outputs, |o| {
            let position = step.of(o, align_corners);
            let mut taps = [(0, 0.0); 4];
            let n = match how {
                Interpolation::Linear => {
                    let (mut whole, mut t) = position.at_least_zero().split();
                    if size == outputs {
                        (whole, t) = (o as i64, 0.0);
                    }
                    if whole > last {
                        (whole, t) = (last, 1.0);
                    }
                    let next = (whole + 1).min(last);
                    taps[0] = (whole as usize, P::rounded(1.0 - t).value());
                    taps[1] = (next as usize, t);
                    2
                }
                Interpolation::Cubic => {
                    let (whole, t) = position.split();
                    for (i, weight) in cubic_weights(t, -0.75).into_iter().enumerate() {
                        taps[i] = ((whole - 1 + i as i64).clamp(0, last) as usize, weight);
                    }
                    4
                }
            };
            taps.into_iter().take(n)
        })
    }

    /// Interpolation whose reach grows when the image shrinks, so that every element counts.
    pub(super) fn antialiased<P: Position>(
        size: usize,
        outputs: usize,
        align_corners: bool,
        scale: Option<f64>,
        how: Interpolation,
    ) -> Result<Taps> {
        let step = P::step(size, outputs, align_corners, scale).value();
        let reach = if how == Interpolation::Linear { 1.0 } else { 2.0 };
        let (support, inverse) = if step >= 1.0 { (reach * step, 1.0 / step) } else { (reach, 1.0) };
        let filter = |x: f64| {
            let x = x.abs();
            match how {
                Interpolation::Linear => (1.0 - x).max(0.0),
                Interpolation::Cubic if x < 1.0 => cubic_weights(x, -0.5)[1],
                Interpolation::Cubic if x < 2.0 => cubic_weights(x - 1.0, -0.5)[0],
                Interpolation::Cubic => 0.0,
            }
        };
        Taps::new(size, outputs, |o| {
            let centre = step * (o as f64 + 0.5);
            let first = ((centre - support + 0.5) as i64).max(0);
            let end = ((centre + support + 0.5) as i64).min(size as i64);
            let weights: Vec<f64> =
                (first..end).map(|i| filter((i as f64 - centre + 0.5) * inverse)).collect();
            let total: f64 = weights.iter().sum();
            let total = if total == 0.0 { 1.0 } else { total };
            weights.into_iter().enumerate().map(move |(i, w)| (first as usize + i, w / total))
        })
    }
}

/// An error rather than tables that disagree with the tensors, which a kernel trusts.
pub(super) fn check_tables(name: &str, tables: &[Taps], input: &[i64], output: &[i64]) -> Result<()> {
    for ((table, &size), &outputs) in tables.iter().zip(input).zip(output) {
        c10::check!(
            table.input == size as usize
                && table.outputs() == outputs as usize
                && table.taps.iter().all(|&(place, _)| place < table.input),
            "{name}(): expected planes of {input:?} elements to give planes of {output:?} elements"
        );
    }
    Ok(())
}
