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

/// An expression with the width as a constant, or another for a width that no kernel has.
macro_rules! of_width {
    ($width:expr, $W:ident => $with:expr, $otherwise:expr) => {
        of_width!(@ $width, $W => $with, $otherwise, 2 3 4 6 8 12 16 24 32 48)
    };
    (@ $width:expr, $W:ident => $with:expr, $otherwise:expr, $($n:literal)*) => {
        match $width {
            $($n => {
                const $W: usize = $n;
                $with
            })*
            _ => $otherwise,
        }
    };
}

/// Panels that are written side by side, where a step of several lies in one piece: as many as the first
/// cache level holds lines that lie a multiple of 4 KiB apart.
const TOGETHER: usize = 8;

/// Packs the rows of `lines`, with the depth along its columns.
pub(crate) fn pack<T: LinalgElement>(lines: Matrix<T>, width: usize, packed: &mut [T::Sum]) {
    if lines.cols == 0 {
        return;
    }
    if T::SUMS_IN_ITSELF {
        // The same type under two names.
        let lines = lines.cast::<T::Sum>();
        for (i, panels) in packed.chunks_mut(TOGETHER * width * lines.cols).enumerate() {
            let first = i * TOGETHER * width;
            let count = (TOGETHER * width).min(lines.rows - first);
            pack_panels(lines.block(first, count, 0, lines.cols), width, panels);
        }
    } else if lines.row_stride == 1 && lines.col_stride != 1 {
        widen_steps(lines, width, packed);
    } else {
        widen_lines(lines, width, packed);
    }
}

/// A few panels.
fn pack_panels<S: Panel>(lines: Matrix<S>, width: usize, packed: &mut [S]) {
    let whole = if lines.row_stride == 1 { lines.rows / width } else { 0 };
    let (together, rest) = packed.split_at_mut(whole * width * lines.cols);
    if whole > 0 {
        of_width!(
            width,
            // SAFETY: the caller's elements, whole panels of them.
            W => unsafe { copy_steps::<S, W>(lines, together) },
            pack_strided(lines.block(0, whole * width, 0, lines.cols), width, together)
        );
    }
    for (i, panel) in rest.chunks_exact_mut(width * lines.cols).enumerate() {
        let first = (whole + i) * width;
        let count = width.min(lines.rows - first);
        pack_panel(lines.block(first, count, 0, lines.cols), width, panel);
    }
}

/// One panel, by the copy that suits how its elements lie.
fn pack_panel<S: Panel>(lines: Matrix<S>, width: usize, panel: &mut [S]) {
    if lines.rows < width || lines.col_stride != 1 {
        return pack_strided(lines, width, panel);
    }
    of_width!(
        width,
        // SAFETY: the caller's elements, `width` lines of them.
        W => unsafe { interleave::<S, W>(lines, panel) },
        pack_strided(lines, width, panel)
    );
}

/// Lines that lie side by side, whole panels of them.
///
/// # Safety
/// `W` rows of `lines` exist for each panel.
unsafe fn copy_steps<S: Copy, const W: usize>(lines: Matrix<S>, packed: &mut [S]) {
    let depth = lines.cols;
    let panels = packed.len() / (W * depth);
    for p in 0..depth {
        let from = lines.at(0, p).cast::<[S; W]>();
        for i in 0..panels {
            // SAFETY: a part of a column of `lines`.
            packed[(i * depth + p) * W..][..W].copy_from_slice(&unsafe { from.add(i).read_unaligned() });
        }
    }
}

/// Lines that lie anyhow.
fn pack_strided<S: Panel>(lines: Matrix<S>, width: usize, packed: &mut [S]) {
    for (i, panel) in packed.chunks_exact_mut(width * lines.cols).enumerate() {
        for (p, to) in panel.chunks_exact_mut(width).enumerate() {
            for (line, to) in (i * width..).zip(to) {
                // SAFETY: an element of the matrix.
                *to = if line < lines.rows { unsafe { lines.get(line, p) } } else { S::ZERO };
            }
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
