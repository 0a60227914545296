//! Products of matrices, blocked for the caches.
//!
//! # Note [Blocks]
//! The loops are those of Goto and van de Geijn (*Anatomy of high-performance matrix multiplication*, ACM TOMS 34(3),
//! 2008), with sizes by the argument of Low et al. (*Analytical modeling is enough for high-performance BLIS*, ACM
//! TOMS 43(2), 2016). A block of the right operand, a few hundred steps of the depth deep, is packed once for all
//! threads and stays in the last cache level; a block of rows of the left one is packed by the thread that multiplies
//! it and stays in the second; a panel of the right block stays in the first (with AVX-512, whose panels are three
//! times as wide, in the second) while the panels of the left block pass by it.
//!
//! Every element of the result is, per block of the depth, one sum over its steps in order, and these sums are added
//! to the result in order. Blocks of the depth depend on the depth alone; so how rows and columns are cut does not
//! show in the bits, and it may follow the number of threads.

use c10::{Element, Result};
use iter::parallel::{in_parallel_region, num_threads, parallel_for, parallel_for_result, GRAIN_SIZE};

use super::element::LinalgElement;
use super::matrix::Matrix;
use super::pack::pack;
use super::scratch::with_scratch;
use super::tile::{Kernel, Panel, Tile, MAX_TILE};
use crate::vec::{capability, CpuCapability};

/// The deepest block: a panel of the right operand takes half of the first cache level (16 KiB with AVX2).
pub(crate) const KC: usize = 256;
/// With AVX-512, whose panels stream from the second level anyway: deeper blocks add to the result less often.
const DEEP_KC: usize = 384;
/// The first cache level.
const FIRST_LEVEL_BYTES: usize = 32 << 10;
/// Bytes of a packed block of the right operand.
const RIGHT_BYTES: usize = 4 << 20;
/// Multiplications that are worth a piece: about 40 µs.
const PIECE: usize = 1 << 21;
/// Rows and columns of results at a time for which sums are kept apart from them.
const SUMS: (usize, usize) = (1024, 2048);

fn deepest() -> usize {
    match capability() {
        CpuCapability::Avx512 => DEEP_KC,
        _ => KC,
    }
}

/// The second cache level: CPUs with AVX-512 mostly have 1 or 2 MiB, others half a MiB.
fn second_level_bytes() -> usize {
    match capability() {
        CpuCapability::Avx512 => 1 << 20,
        _ => 512 << 10,
    }
}

/// The size of the blocks that cut `size` evenly into parts of at most `most`, a multiple of `unit`.
fn even(size: usize, most: usize, unit: usize) -> usize {
    let most = (most / unit * unit).max(unit);
    size.div_ceil(size.div_ceil(most).max(1)).next_multiple_of(unit)
}

/// Bytes from the first to the last element of a part of a matrix, which is not empty.
fn span<T>(matrix: Matrix<T>, rows: usize, cols: usize) -> usize {
    let last = matrix.row_stride.unsigned_abs() * (rows - 1) + matrix.col_stride.unsigned_abs() * (cols - 1);
    (last + 1) * std::mem::size_of::<T>()
}

/// `c = alpha·a·b + beta·c`, in parallel.
pub(super) fn multiply<T: LinalgElement>(
    alpha: T::Sum,
    a: Matrix<T>,
    b: Matrix<T>,
    beta: Option<T::Sum>,
    c: Matrix<T>,
) -> Result<()> {
    if c.col_stride != 1 && c.row_stride == 1 {
        // Tiles are written row by row.
        return multiply(alpha, b.transposed(), a.transposed(), beta, c.transposed());
    }
    if T::SUMS_IN_ITSELF || a.cols <= deepest() {
        return Product { alpha, a, b, beta, c, sums: None, kernel: T::Sum::kernel() }.run();
    }
    let (rows, cols) = SUMS;
    for row in (0..c.rows).step_by(rows) {
        let rows = rows.min(c.rows - row);
        for col in (0..c.cols).step_by(cols) {
            let cols = cols.min(c.cols - col);
            with_scratch::<T::Sum, _>(rows * cols, |sums| {
                let sums =
                    Matrix { data: sums.as_mut_ptr(), rows, cols, row_stride: cols as isize, col_stride: 1 };
                let (a, b) = (a.block(row, rows, 0, a.cols), b.block(0, b.rows, col, cols));
                let c = c.block(row, rows, col, cols);
                Product { alpha, a, b, beta, c, sums: Some(sums), kernel: T::Sum::kernel() }.run()
            })?;
        }
    }
    Ok(())
}

/// How lines are cut into panels: evenly, because narrow panels are slow, in whole units, the wider ones first.
#[derive(Clone, Copy)]
struct Cut {
    unit: usize,
    panels: usize,
    /// Units of every panel.
    units: usize,
    /// Panels that have one more.
    wider: usize,
}

impl Cut {
    /// Panels of at most `most` lines, a multiple of `unit`.
    fn new(lines: usize, unit: usize, most: usize) -> Cut {
        let units = lines.div_ceil(unit);
        let panels = units.div_ceil(most / unit).max(1);
        Cut { unit, panels, units: units / panels, wider: units % panels }
    }

    /// The first line of a panel; of that after the last, the end in whole units.
    #[inline(always)]
    fn start(&self, panel: usize) -> usize {
        (panel * self.units + panel.min(self.wider)) * self.unit
    }

    /// Lines of a panel, in whole units.
    #[inline(always)]
    fn width(&self, panel: usize) -> usize {
        (self.units + usize::from(panel < self.wider)) * self.unit
    }
}

/// A block of an operand: panels of some lines, each as many steps long, of which the first `direct` are read where the
/// matrix lies.
#[derive(Clone, Copy)]
struct Panels<S> {
    lines: Matrix<S>,
    cut: Cut,
    direct: usize,
    packed: *mut S,
}

// SAFETY: addresses, like those of a matrix; who reads them vouches that nobody writes.
unsafe impl<S> Sync for Panels<S> {}

impl<S> Panels<S> {
    /// Elements that [`Panels::new`] packs at most, for up to so many lines.
    fn len(lines: usize, depth: usize, unit: usize, most: usize, direct: bool) -> usize {
        if direct {
            most * depth
        } else {
            lines.next_multiple_of(unit) * depth
        }
    }

    /// Packs the rows of `lines`, the depth along its columns, into `buffer`, unless `direct`: then only a last panel
    /// that is not made of whole units.
    fn new<T: LinalgElement<Sum = S>>(
        lines: Matrix<T>,
        cut: Cut,
        direct: bool,
        buffer: &mut [S],
    ) -> Result<Panels<S>>
    where
        S: Panel,
    {
        let (count, depth) = (lines.rows, lines.cols);
        let whole = count % cut.unit == 0;
        let direct = if direct { cut.panels - usize::from(!whole) } else { 0 };
        let panels = Panels { lines: lines.cast(), cut, direct, packed: buffer.as_mut_ptr() };
        debug_assert!(buffer.len() >= panels.offset(cut.panels));
        parallel_for(direct, cut.panels, (GRAIN_SIZE / (cut.width(0) * depth)).max(1), &|begin, end| {
            let wider = cut.wider.clamp(begin, end);
            // Neighbours of the same width go together.
            for (begin, end) in [(begin, wider), (wider, end)] {
                if begin == end {
                    continue;
                }
                let first = cut.start(begin);
                let part = lines.block(first, cut.start(end).min(count) - first, 0, depth);
                let (from, to) = (panels.offset(begin), panels.offset(end));
                // SAFETY: these panels of the buffer, which belong to this piece alone.
                let to = unsafe { std::slice::from_raw_parts_mut(panels.packed.add(from), to - from) };
                pack(part, cut.width(begin), to);
            }
        })?;
        Ok(panels)
    }

    /// Where a packed panel begins.
    #[inline(always)]
    fn offset(&self, panel: usize) -> usize {
        (self.cut.start(panel) - self.cut.start(self.direct)) * self.lines.cols
    }

    /// Where a panel begins, and the elements between its lines and between its steps.
    #[inline(always)]
    fn panel(&self, i: usize) -> (*const S, isize, isize)
    where
        S: Copy,
    {
        if i < self.direct {
            (self.lines.at(self.cut.start(i), 0), self.lines.row_stride, self.lines.col_stride)
        } else {
            (self.packed.wrapping_add(self.offset(i)), 1, self.cut.width(i) as isize)
        }
    }
}

impl<S: Copy> Panels<S> {
    /// Share `i` of `n` of a packed panel, to ask for before its turn: its first reader would wait for each line from
    /// the third cache level.
    #[inline(always)]
    fn share(&self, panel: usize, i: usize, n: usize) -> (*const u8, usize) {
        if panel < self.direct || panel >= self.cut.panels {
            return (std::ptr::null(), 0);
        }
        let bytes = self.cut.width(panel) * self.lines.cols * std::mem::size_of::<S>();
        let share = bytes.div_ceil(n).next_multiple_of(64);
        (self.panel(panel).0.cast::<u8>().wrapping_add(i * share), share)
    }
}

/// `c = alpha·a·b + beta·c`.
struct Product<T: LinalgElement> {
    alpha: T::Sum,
    a: Matrix<T>,
    b: Matrix<T>,
    beta: Option<T::Sum>,
    c: Matrix<T>,
    /// Where sums are kept between blocks of the depth, unless `c` can hold them.
    sums: Option<Matrix<T::Sum>>,
    kernel: Kernel<T::Sum>,
}

/// Which block of the depth.
#[derive(Clone, Copy)]
struct Block {
    is_first: bool,
    is_last: bool,
}

impl<T: LinalgElement> Product<T> {
    fn run(&self) -> Result<()> {
        let (rows, cols, depth) = (self.c.rows, self.c.cols, self.a.cols);
        let Kernel { mr, nr, col_unit, .. } = self.kernel;
        let deep = even(depth, deepest(), 1);
        let bytes = deep * std::mem::size_of::<T::Sum>();
        let wide = even(cols, RIGHT_BYTES / bytes, nr);
        let high = even(rows, second_level_bytes() / 2 / bytes, mr);
        let direct = (self.left_is_direct(deep), self.right_is_direct(deep));
        let (down, across) = (rows.div_ceil(high), self.parts(rows.div_ceil(high), wide));
        let piece = high * deep * (wide / across).max(1);
        with_scratch::<T::Sum, _>(Panels::<T::Sum>::len(wide, deep, col_unit, nr, direct.1), |buffer| {
            for col in (0..cols).step_by(wide) {
                let wide = wide.min(cols - col);
                let cut = Cut::new(wide, col_unit, nr);
                for step in (0..depth).step_by(deep) {
                    let deep = deep.min(depth - step);
                    let right = self.b.block(step, deep, col, wide).transposed();
                    let right = Panels::new(right, cut, direct.1, buffer)?;
                    let block = Block { is_first: step == 0, is_last: step + deep == depth };
                    parallel_for_result(0, down * across, (PIECE / piece).max(1), &|begin, end| {
                        (begin..end).try_for_each(|i| {
                            let (row, part) = (i / across * high, i % across);
                            let left = self.a.block(row, high.min(rows - row), step, deep);
                            let part = cut.panels * part / across..cut.panels * (part + 1) / across;
                            self.multiply_block(block, left, direct.0, &right, (row, col), part)
                        })
                    })?;
                }
            }
            Ok(())
        })
    }

    /// Whether the left operand is read where it lies: if it is small, or few panels of the right one meet it, packing
    /// costs more than it gives.
    fn left_is_direct(&self, deep: usize) -> bool {
        T::SUMS_IN_ITSELF
            && self.kernel.strided_rows
            && (self.a.col_stride == 1 || self.a.row_stride == 1)
            && (self.c.cols <= 4 * self.kernel.nr
                || span(self.a, self.c.rows, deep) <= second_level_bytes() / 2)
    }

    /// Whether the right operand is read where it lies, likewise. A wide step has several lines of it in one place,
    /// which come from the second cache level in time.
    fn right_is_direct(&self, deep: usize) -> bool {
        let is_wide = self.kernel.nr * std::mem::size_of::<T::Sum>() > 128;
        let most = if is_wide { second_level_bytes() / 2 } else { FIRST_LEVEL_BYTES };
        T::SUMS_IN_ITSELF
            && self.b.col_stride == 1
            && (self.c.rows <= self.kernel.mr || span(self.b, deep, self.c.cols) <= most)
    }

    /// Parts to cut columns into, so that there is work for every thread.
    fn parts(&self, down: usize, wide: usize) -> usize {
        let threads = if in_parallel_region() { 1 } else { num_threads() };
        let work = self.c.rows.saturating_mul(self.c.cols).saturating_mul(self.a.cols) / PIECE;
        if threads <= 1 || work <= 1 {
            return 1;
        }
        // Two pieces per thread, so that one that is held up does not hold up the rest.
        let wanted = work.min(2 * threads).div_ceil(down);
        // Each part packs the left block again.
        wanted.min(wide / (4 * self.kernel.nr)).max(1)
    }

    /// One block of the left operand times some panels of a block of the right one.
    fn multiply_block(
        &self,
        block: Block,
        left: Matrix<T>,
        direct: bool,
        right: &Panels<T::Sum>,
        (row, col): (usize, usize),
        part: std::ops::Range<usize>,
    ) -> Result<()> {
        let Kernel { mr, row_unit, .. } = self.kernel;
        let cut = Cut::new(left.rows, row_unit, mr);
        let len = Panels::<T::Sum>::len(left.rows, left.cols, row_unit, mr, direct);
        with_scratch::<T::Sum, _>(len, |buffer| {
            let panels = Panels::new(left, cut, direct, buffer)?;
            for j in part {
                let (b, _, b_step) = right.panel(j);
                let first = right.cut.start(j);
                let cols = right.cut.width(j);
                for i in 0..cut.panels {
                    let (a, a_row, a_step) = panels.panel(i);
                    let tile = Tile {
                        rows: cut.width(i).min(left.rows - cut.start(i)),
                        cols,
                        depth: left.cols,
                        a,
                        a_row,
                        a_step,
                        b,
                        b_step,
                        c: std::ptr::null_mut(),
                        c_row: 0,
                        alpha: self.alpha,
                        beta: if block.is_first { self.beta } else { Some(<T::Sum as Element>::ONE) },
                        ahead: right.share(j + 1, i, cut.panels),
                    };
                    self.write(
                        block,
                        tile,
                        row + cut.start(i),
                        col + first,
                        cols.min(right.lines.rows - first),
                    );
                }
            }
            Ok(())
        })
    }

    /// Computes a tile, of which `cols` columns count, and writes it where the block of the depth says.
    #[inline]
    fn write(&self, block: Block, tile: Tile<T::Sum>, row: usize, col: usize, cols: usize) {
        let nr = self.kernel.nr;
        let to_sums = self.sums.filter(|_| !block.is_last);
        let from_sums = self.sums.filter(|_| !block.is_first);
        let plain = if T::SUMS_IN_ITSELF {
            Some(self.c.cast::<T::Sum>()).filter(|c| c.col_stride == 1)
        } else {
            to_sums.filter(|_| from_sums.is_some() || tile.beta.is_none())
        };
        if let Some(to) = plain.filter(|_| cols == tile.cols) {
            // SAFETY: a full tile of the result (or of sums kept for it), which belongs to this piece alone; the
            // operands' panels are packed, or matrices that the caller of `multiply` vouches for.
            unsafe { self.kernel.run(&Tile { c: to.at(row, col), c_row: to.row_stride, ..tile }) };
            return;
        }
        let mut buffer = [<T::Sum as Element>::ZERO; MAX_TILE];
        if tile.beta.is_some() {
            for (i, buffer) in buffer.chunks_exact_mut(nr).enumerate().take(tile.rows) {
                for (j, value) in buffer.iter_mut().enumerate().take(cols) {
                    // SAFETY: an element of the result, or of sums kept for it, of this piece.
                    *value = unsafe {
                        match from_sums {
                            Some(sums) => sums.get(row + i, col + j),
                            None => self.c.get(row + i, col + j).widen(),
                        }
                    };
                }
            }
        }
        // SAFETY: the buffer has room for a tile; the operands as above.
        unsafe { self.kernel.run(&Tile { c: buffer.as_mut_ptr(), c_row: nr as isize, ..tile }) };
        for (i, buffer) in buffer.chunks_exact(nr).enumerate().take(tile.rows) {
            let values = &buffer[..cols];
            match to_sums {
                // SAFETY: elements of this piece, as above.
                Some(sums) => unsafe {
                    std::ptr::copy_nonoverlapping(values.as_ptr(), sums.at(row + i, col), cols);
                },
                None if self.c.col_stride == 1 => {
                    // SAFETY: as above.
                    T::narrow_slice(values, unsafe {
                        std::slice::from_raw_parts_mut(self.c.at(row + i, col), cols)
                    });
                }
                None => {
                    for (j, &value) in values.iter().enumerate() {
                        // SAFETY: as above.
                        unsafe { self.c.set(row + i, col + j, T::narrow(value)) };
                    }
                }
            }
        }
    }
}
