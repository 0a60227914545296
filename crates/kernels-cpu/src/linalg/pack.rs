//! Copies parts of matrices into panels, in the order in which tiles read them.
//!
//! A panel holds `width` lines (rows of the left operand, columns of the right one): for each step of the depth an
//! element of every line, zeros for lines past the last.

use c10::Element;

use super::dot::gather;
use super::element::LinalgElement;
use super::interleave::interleave;
use super::matrix::Matrix;
use super::scratch::with_scratch;
use super::tile::Panel;

/// Packs the rows of `lines`, with the depth along its columns.
pub(super) fn pack<T: LinalgElement>(lines: Matrix<T>, width: usize, packed: &mut [T::Sum]) {
    if lines.cols == 0 {
        return;
    }
    if T::SUMS_IN_ITSELF {
        // The same type under two names.
        let lines = lines.cast::<T::Sum>();
        for (i, panel) in packed.chunks_exact_mut(width * lines.cols).enumerate() {
            let first = i * width;
            let count = width.min(lines.rows - first);
            pack_panel(lines.block(first, count, 0, lines.cols), width, panel);
        }
    } else if lines.row_stride == 1 && lines.col_stride != 1 {
        widen_steps(lines, width, packed);
    } else {
        widen_lines(lines, width, packed);
    }
}

/// One panel, by the copy that suits how its elements lie.
fn pack_panel<S: Panel>(lines: Matrix<S>, width: usize, panel: &mut [S]) {
    if lines.rows < width {
        return pack_strided(lines, width, panel);
    }
    macro_rules! of_width {
        ($($width:literal)*) => {
            match width {
                $(
                    // SAFETY: the caller's elements, `width` lines of them.
                    $width if lines.row_stride == 1 => unsafe { copy_steps::<S, $width>(lines, panel) },
                    // SAFETY: likewise.
                    $width if lines.col_stride == 1 => unsafe { interleave::<S, $width>(lines, panel) },
                )*
                _ => pack_strided(lines, width, panel),
            }
        };
    }
    of_width!(2 3 4 6 7 8 14 16 32);
}

/// Lines that lie side by side.
///
/// # Safety
/// `W` rows of `lines` exist.
unsafe fn copy_steps<S: Copy, const W: usize>(lines: Matrix<S>, panel: &mut [S]) {
    let mut from = lines.data.cast_const();
    for to in panel.chunks_exact_mut(W) {
        // SAFETY: a column of `lines`.
        to.copy_from_slice(&unsafe { from.cast::<[S; W]>().read_unaligned() });
        from = from.wrapping_offset(lines.col_stride);
    }
}

/// Lines that lie anyhow.
fn pack_strided<S: Panel>(lines: Matrix<S>, width: usize, panel: &mut [S]) {
    for (p, to) in panel.chunks_exact_mut(width).enumerate() {
        for (i, to) in to.iter_mut().enumerate() {
            // SAFETY: an element of the matrix.
            *to = if i < lines.rows { unsafe { lines.get(i, p) } } else { S::ZERO };
        }
    }
}

/// Elements that are widened at a time.
const RUN: usize = 256;

/// Lines that lie side by side, of elements that are widened: a step of many lines at a time.
fn widen_steps<T: LinalgElement>(lines: Matrix<T>, width: usize, packed: &mut [T::Sum]) {
    let depth = lines.cols;
    let mut run = [<T::Sum as Element>::ZERO; RUN];
    let lines_per_run = RUN / width * width;
    let steps = lines.transposed();
    for (i, packed) in packed.chunks_mut(lines_per_run * depth).enumerate() {
        let first = i * lines_per_run;
        let run = &mut run[..lines_per_run.min(lines.rows - first)];
        for p in 0..depth {
            gather(steps.block(p, 1, 0, steps.cols), first, run);
            put_step(packed, width, depth, p, run);
        }
    }
}

/// Writes step `p` of panels that are packed for `depth` steps; zeros stand for lines past the last.
pub(crate) fn put_step<S: Panel>(packed: &mut [S], width: usize, depth: usize, p: usize, step: &[S]) {
    for (panel, part) in packed.chunks_exact_mut(depth * width).zip(step.chunks(width)) {
        let to = &mut panel[p * width..(p + 1) * width];
        to[..part.len()].copy_from_slice(part);
        to[part.len()..].fill(S::ZERO);
    }
}

/// Lines that lie anyhow else, of elements that are widened: a part of a panel's lines at a time.
fn widen_lines<T: LinalgElement>(lines: Matrix<T>, width: usize, packed: &mut [T::Sum]) {
    with_scratch::<T::Sum, _>(width * RUN, |dense| {
        for (i, panel) in packed.chunks_exact_mut(width * lines.cols).enumerate() {
            let first = i * width;
            let count = width.min(lines.rows - first);
            for (j, panel) in panel.chunks_mut(width * RUN).enumerate() {
                let steps = panel.len() / width;
                for (line, dense) in dense.chunks_exact_mut(RUN).enumerate().take(count) {
                    gather(lines.block(first + line, 1, 0, lines.cols), j * RUN, &mut dense[..steps]);
                }
                let dense = Matrix {
                    data: dense.as_mut_ptr(),
                    rows: count,
                    cols: steps,
                    row_stride: RUN as isize,
                    col_stride: 1,
                };
                pack_panel(dense, width, panel);
            }
        }
    });
}
