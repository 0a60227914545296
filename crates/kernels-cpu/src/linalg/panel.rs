//! A matrix product over packed panels, for every element type, with operands that need not lie in memory.
//!
//! # Note [Panels]
//! `C = A·B` is computed in tiles of `MR × NR` sums that stay in registers while the depth runs. `A` is packed once
//! into panels of `MR` rows, `B` into panels of `NR` columns for a block of columns and `KC` of the depth at a time
//! (Goto and van de Geijn, *Anatomy of high-performance matrix multiplication*, ACM TOMS 34(3), 2008). What packs an
//! operand is a closure: it converts halves to float32, and makes a convolution's columns out of an image that
//! never exists as a matrix. A sum takes its terms in the order of the depth, whatever the blocks around it.

use c10::{Element, Result};
use num_complex::Complex;

use super::element::Accumulator;
use super::scratch::with_scratch;
use crate::vec::tiered;

/// Rows of a tile.
pub(crate) const MR: usize = 6;
/// Depth of a block: a panel of B (16 KiB) and one of A (6 KiB) share the first cache level.
pub(crate) const KC: usize = 256;

/// A type that has a tile kernel.
pub(crate) trait Panel: Accumulator {
    /// Columns of a tile: 64 bytes' worth.
    const NR: usize;
    /// Adds `a · b` to the tile at `c`, or replaces it if `first`.
    ///
    /// `a` holds `MR` and `b` holds `NR` elements per step of the depth; `c` has rows `ld` apart.
    fn tile(a: &[Self], b: &[Self], c: &mut [Self], ld: usize, first: bool);
}

macro_rules! panel {
    ($($T:ty, $nr:literal, $tile:ident;)*) => {
        $(
            impl Panel for $T {
                const NR: usize = $nr;
                #[inline]
                fn tile(a: &[$T], b: &[$T], c: &mut [$T], ld: usize, first: bool) {
                    $tile(a, b, c, ld, first);
                }
            }
        )*
        tiered! {$(
            fn $tile(a: &[$T], b: &[$T], c: &mut [$T], ld: usize, first: bool) => A {
                const NR: usize = $nr;
                let mut sums = [[<$T as Element>::ZERO; NR]; MR];
                if !first {
                    for (i, sums) in sums.iter_mut().enumerate() {
                        sums.copy_from_slice(&c[i * ld..i * ld + NR]);
                    }
                }
                for (a, b) in a.chunks_exact(MR).zip(b.chunks_exact(NR)) {
                    for i in 0..MR {
                        for j in 0..NR {
                            sums[i][j] = Accumulator::mul_add::<A>(a[i], b[j], sums[i][j]);
                        }
                    }
                }
                for (i, sums) in sums.iter().enumerate() {
                    c[i * ld..i * ld + NR].copy_from_slice(sums);
                }
            }
        )*}
    };
}

panel! {
    f32, 16, tile_f32;
    f64, 8, tile_f64;
    i32, 16, tile_i32;
    i64, 8, tile_i64;
    Complex<f32>, 4, tile_c32;
    Complex<f64>, 2, tile_c64;
}

/// The left operand, packed.
pub(crate) struct PackedRows<T> {
    data: Vec<T>,
    rows: usize,
    depth: usize,
}

impl<T: Panel> PackedRows<T> {
    /// Nothing yet.
    pub(crate) fn new() -> PackedRows<T> {
        PackedRows { data: Vec::new(), rows: 0, depth: 0 }
    }

    /// Packs `rows × depth` elements, keeping the memory; `fill(row, p, line)` writes those of a row from `p` on.
    pub(crate) fn pack(&mut self, rows: usize, depth: usize, fill: impl Fn(usize, usize, &mut [T])) {
        let panels = rows.div_ceil(MR);
        (self.rows, self.depth) = (rows, depth);
        self.data.clear();
        self.data.resize(panels * MR * depth, T::ZERO);
        let mut line = vec![T::ZERO; KC.min(depth)];
        for begin in (0..depth).step_by(KC) {
            let line = &mut line[..KC.min(depth - begin)];
            let block = &mut self.data[begin * panels * MR..][..panels * MR * line.len()];
            for row in 0..rows {
                fill(row, begin, line);
                let panel = &mut block[row / MR * MR * line.len()..][..MR * line.len()];
                for (to, &from) in panel.iter_mut().skip(row % MR).step_by(MR).zip(&*line) {
                    *to = from;
                }
            }
        }
    }

    /// The panel of rows `panel * MR..` for a block of the depth.
    fn panel(&self, panel: usize, begin: usize, depth: usize) -> &[T] {
        let panels = self.rows.div_ceil(MR);
        &self.data[begin * panels * MR + panel * depth * MR..][..depth * MR]
    }
}

/// Writes step `p` of a block of columns that is packed for `depth` steps; zeros stand for columns past the last.
pub(crate) fn put_row<T: Panel>(packed: &mut [T], depth: usize, p: usize, row: &[T]) {
    for (panel, part) in packed.chunks_exact_mut(depth * T::NR).zip(row.chunks(T::NR)) {
        let to = &mut panel[p * T::NR..(p + 1) * T::NR];
        to[..part.len()].copy_from_slice(part);
        to[part.len()..].fill(T::ZERO);
    }
}

/// Multiplies packed rows with one block of columns.
///
/// `pack(packed, p, depth)` writes the block's elements for `depth` steps from `p` on, panel after panel of `NR`
/// columns (see [`put_row`]). `store(row, values)` takes each finished row of sums, `cols` of them.
pub(crate) fn multiply_block<T: Panel>(
    a: &PackedRows<T>,
    cols: usize,
    pack: &mut dyn FnMut(&mut [T], usize, usize),
    store: &mut dyn FnMut(usize, &mut [T]),
) {
    let panels_a = a.rows.div_ceil(MR);
    let panels_b = cols.div_ceil(T::NR);
    let ld = panels_b * T::NR;
    let sums_len = panels_a * MR * ld;
    let packed_len = KC.min(a.depth) * ld;
    with_scratch::<T, _>(sums_len + packed_len, |scratch| {
        let (sums, packed) = scratch.split_at_mut(sums_len);
        if a.depth == 0 {
            sums.fill(T::ZERO);
        }
        for begin in (0..a.depth).step_by(KC) {
            let depth = KC.min(a.depth - begin);
            pack(&mut packed[..depth * ld], begin, depth);
            for row in 0..panels_a {
                let left = a.panel(row, begin, depth);
                for panel in 0..panels_b {
                    let right = &packed[panel * depth * T::NR..][..depth * T::NR];
                    T::tile(left, right, &mut sums[row * MR * ld + panel * T::NR..], ld, begin == 0);
                }
            }
        }
        for row in 0..a.rows {
            store(row, &mut sums[row * ld..row * ld + cols]);
        }
    });
}

/// Rows packed at a time, and columns of a block, in a product of matrices.
const ROWS: usize = 85 * MR;
const COLS: usize = 256;

/// `rows × cols` sums over `depth`: blocks of columns run in parallel.
///
/// `left(row, p, line)` writes elements of the left operand's row from `p` on, `right(p, col, line)` those of the
/// right one's row from `col` on; `store(row, col, values)` gets each part of a row once.
pub(crate) fn multiply<T: Panel>(
    (rows, cols, depth): (usize, usize, usize),
    left: &(dyn Fn(usize, usize, &mut [T]) + Sync),
    right: &(dyn Fn(usize, usize, &mut [T]) + Sync),
    store: &(dyn Fn(usize, usize, &mut [T]) + Sync),
) -> Result<()> {
    // Narrower blocks where there are few, so that threads share them; a function of the shape alone.
    let block = if cols >= 4 * COLS { COLS } else { cols.div_ceil(4).next_multiple_of(T::NR).min(COLS) };
    let mut packed = PackedRows::new();
    for first_row in (0..rows).step_by(ROWS) {
        let some = ROWS.min(rows - first_row);
        packed.pack(some, depth, |row, p, line| left(first_row + row, p, line));
        let packed = &packed;
        let body = |begin: usize, end: usize| {
            let mut line = [T::ZERO; COLS];
            for first_col in (begin..end).step_by(block) {
                let count = block.min(end - first_col);
                let line = &mut line[..count];
                multiply_block(
                    packed,
                    count,
                    &mut |buffer, begin, depth| {
                        for p in 0..depth {
                            right(begin + p, first_col, line);
                            put_row(buffer, depth, p, line);
                        }
                    },
                    &mut |row, values| store(first_row + row, first_col, values),
                );
            }
        };
        if some * cols * depth < iter::parallel::GRAIN_SIZE * 8 {
            body(0, cols);
        } else {
            iter::parallel::parallel_for(0, cols, block, &body)?;
        }
    }
    Ok(())
}
