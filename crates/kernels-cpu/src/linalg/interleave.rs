//! Transposes lines into a panel: what packing costs where the depth runs along memory.

use super::matrix::Matrix;

/// Writes `W` dense lines step by step: `panel[p * W + i]` is element `p` of line `i`.
///
/// # Safety
/// `W` rows of `lines` exist, with elements side by side, one for each step of the panel.
pub(super) unsafe fn interleave<S: Copy, const W: usize>(lines: Matrix<S>, panel: &mut [S]) {
    let steps = panel.len() / W;
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    {
        let squares = match std::mem::size_of::<S>() {
            4 => Some((4, x86_64::square_of_4::<W> as Square)),
            8 => Some((2, x86_64::square_of_2::<W> as Square)),
            _ => None,
        };
        if let Some((side, square)) = squares {
            let bytes = std::mem::size_of::<S>() as isize;
            done = steps / side * side;
            // SAFETY: `done` steps of the lines and of the panel.
            unsafe { square(lines.data.cast(), lines.row_stride * bytes, panel.as_mut_ptr().cast(), done) };
        }
    }
    for (p, to) in panel.chunks_exact_mut(W).enumerate().take(steps).skip(done) {
        for (i, to) in to.iter_mut().enumerate() {
            // SAFETY: an element of a row of `lines`.
            *to = unsafe { lines.get(i, p) };
        }
    }
}

/// Lines, the bytes between them, the panel, and a number of steps that squares fill.
#[cfg(target_arch = "x86_64")]
type Square = unsafe fn(*const u8, isize, *mut u8, usize);

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::*;

    /// Elements of 4 bytes, in squares of 4 × 4.
    ///
    /// # Safety
    /// `W` lines of `steps` elements exist, and room for as many; `steps` is a multiple of 4.
    pub(super) unsafe fn square_of_4<const W: usize>(
        lines: *const u8,
        stride: isize,
        panel: *mut u8,
        steps: usize,
    ) {
        for p in (0..steps).step_by(4) {
            // SAFETY: the caller's elements; SSE2 is part of x86-64.
            unsafe {
                let line = |i: usize| lines.offset(i as isize * stride).cast::<f32>().add(p);
                let to = |q: usize, i: usize| panel.cast::<f32>().add((p + q) * W + i);
                for i in (0..W / 4 * 4).step_by(4) {
                    let mut rows: [__m128; 4] = std::array::from_fn(|k| _mm_loadu_ps(line(i + k)));
                    let [a, b, c, d] = &mut rows;
                    _MM_TRANSPOSE4_PS(a, b, c, d);
                    for (q, &row) in rows.iter().enumerate() {
                        _mm_storeu_ps(to(q, i), row);
                    }
                }
                if W % 4 >= 2 {
                    let i = W / 4 * 4;
                    let (a, b) = (_mm_loadu_ps(line(i)), _mm_loadu_ps(line(i + 1)));
                    // Two steps in each, as halves.
                    let low = _mm_castps_pd(_mm_unpacklo_ps(a, b));
                    let high = _mm_castps_pd(_mm_unpackhi_ps(a, b));
                    _mm_storel_pd(to(0, i).cast(), low);
                    _mm_storeh_pd(to(1, i).cast(), low);
                    _mm_storel_pd(to(2, i).cast(), high);
                    _mm_storeh_pd(to(3, i).cast(), high);
                }
                if W % 2 == 1 {
                    for q in 0..4 {
                        *to(q, W - 1) = *line(W - 1).add(q);
                    }
                }
            }
        }
    }

    /// Elements of 8 bytes, in squares of 2 × 2.
    ///
    /// # Safety
    /// As for [`square_of_4`], with a multiple of 2.
    pub(super) unsafe fn square_of_2<const W: usize>(
        lines: *const u8,
        stride: isize,
        panel: *mut u8,
        steps: usize,
    ) {
        for p in (0..steps).step_by(2) {
            // SAFETY: as above.
            unsafe {
                let line = |i: usize| lines.offset(i as isize * stride).cast::<f64>().add(p);
                let to = |q: usize, i: usize| panel.cast::<f64>().add((p + q) * W + i);
                for i in (0..W / 2 * 2).step_by(2) {
                    let (a, b) = (_mm_loadu_pd(line(i)), _mm_loadu_pd(line(i + 1)));
                    _mm_storeu_pd(to(0, i), _mm_unpacklo_pd(a, b));
                    _mm_storeu_pd(to(1, i), _mm_unpackhi_pd(a, b));
                }
                if W % 2 == 1 {
                    // Pairs of float32 lie at any multiple of 4.
                    to(0, W - 1).write_unaligned(line(W - 1).read_unaligned());
                    to(1, W - 1).write_unaligned(line(W - 1).add(1).read_unaligned());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<S: Copy + PartialEq + std::fmt::Debug, const W: usize>(of: impl Fn(usize) -> S) {
        for steps in [0, 1, 2, 3, 4, 7, 13, 40] {
            let stride = steps + 3;
            let mut values: Vec<S> = (0..W * stride).map(&of).collect();
            let lines = Matrix {
                data: values.as_mut_ptr(),
                rows: W,
                cols: steps,
                row_stride: stride as isize,
                col_stride: 1,
            };
            let mut panel = vec![of(0); W * steps];
            // SAFETY: `W` lines of `steps` elements.
            unsafe { interleave::<S, W>(lines, &mut panel) };
            for (at, &value) in panel.iter().enumerate() {
                assert_eq!(
                    value,
                    values[at % W * stride + at / W],
                    "{W} lines, element {at} of {steps} steps"
                );
            }
        }
    }

    #[test]
    fn a_panel_holds_the_lines_step_by_step() {
        check::<f32, 6>(|i| i as f32);
        check::<u32, 16>(|i| i as u32);
        check::<u32, 3>(|i| i as u32);
        check::<f64, 6>(|i| i as f64);
        check::<(u32, u32), 3>(|i| (i as u32, 7));
        check::<[f64; 2], 3>(|i| [i as f64, 1.0]);
    }
}
