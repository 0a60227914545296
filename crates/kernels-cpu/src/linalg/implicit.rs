//! A matrix product whose operands need not lie in memory: what packs them is a closure.
//!
//! It makes a convolution's columns out of an image that never exists as a matrix. A sum takes its terms in the order
//! of the depth, whatever the blocks around it.

use c10::{try_filled, try_reserve, Result};

use super::blocked::KC;
use super::scratch::try_with_scratch;
use super::tile::{Panel, Tile};

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
    pub(crate) fn pack(
        &mut self,
        rows: usize,
        depth: usize,
        fill: impl Fn(usize, usize, &mut [T]),
    ) -> Result<()> {
        let mr = T::kernel().mr;
        let panels = rows.div_ceil(mr);
        (self.rows, self.depth) = (rows, depth);
        let len = (panels * mr).saturating_mul(depth);
        self.data.clear();
        try_reserve(&mut self.data, len)?;
        self.data.resize(len, T::ZERO);
        let mut line = try_filled(T::ZERO, KC.min(depth))?;
        for begin in (0..depth).step_by(KC) {
            let line = &mut line[..KC.min(depth - begin)];
            let block = &mut self.data[begin * panels * mr..][..panels * mr * line.len()];
            for row in 0..rows {
                fill(row, begin, line);
                let panel = &mut block[row / mr * mr * line.len()..][..mr * line.len()];
                for (to, &from) in panel.iter_mut().skip(row % mr).step_by(mr).zip(&*line) {
                    *to = from;
                }
            }
        }
        Ok(())
    }

    /// The panel of rows `panel * mr..` for a block of the depth.
    fn panel(&self, mr: usize, panel: usize, begin: usize, depth: usize) -> &[T] {
        let panels = self.rows.div_ceil(mr);
        &self.data[begin * panels * mr + panel * depth * mr..][..depth * mr]
    }
}

/// Multiplies packed rows with one block of columns.
///
/// `pack(packed, p, depth)` writes the block's elements for `depth` steps from `p` on, panel after panel of
/// [`Kernel::nr`](super::tile::Kernel) columns (see [`super::pack::put_step`]). `store(row, values)` takes each
/// finished row of sums, `cols` of them.
pub(crate) fn multiply_block<T: Panel>(
    a: &PackedRows<T>,
    cols: usize,
    pack: &mut dyn FnMut(&mut [T], usize, usize),
    store: &mut dyn FnMut(usize, &mut [T]),
) -> Result<()> {
    let kernel = T::kernel();
    let (mr, nr) = (kernel.mr, kernel.nr);
    let panels_a = a.rows.div_ceil(mr);
    let panels_b = cols.div_ceil(nr);
    let ld = panels_b * nr;
    let sums_len = a.rows.saturating_mul(ld);
    let packed_len = KC.min(a.depth) * ld;
    try_with_scratch::<T, _>(sums_len.saturating_add(packed_len), |scratch| {
        let (sums, packed) = scratch.split_at_mut(sums_len);
        if a.depth == 0 {
            sums.fill(T::ZERO);
        }
        for begin in (0..a.depth).step_by(KC) {
            let depth = KC.min(a.depth - begin);
            pack(&mut packed[..depth * ld], begin, depth);
            for panel in 0..panels_b {
                let cols = (cols - panel * nr).min(nr).next_multiple_of(kernel.col_unit);
                let right = &packed[panel * depth * nr..][..depth * nr];
                for row in 0..panels_a {
                    let left = a.panel(mr, row, begin, depth);
                    let rows = mr.min(a.rows - row * mr);
                    let sums = &mut sums[row * mr * ld + panel * nr..][..(rows - 1) * ld + nr];
                    // SAFETY: packed panels of `depth` steps, and `rows` rows of sums that are `ld` apart.
                    unsafe {
                        kernel.run(&Tile {
                            rows,
                            cols,
                            depth,
                            a: left.as_ptr(),
                            a_row: 1,
                            a_step: mr as isize,
                            b: right.as_ptr(),
                            b_step: nr as isize,
                            c: sums.as_mut_ptr(),
                            c_row: ld as isize,
                            alpha: T::ONE,
                            beta: (begin > 0).then_some(T::ONE),
                            ahead: (std::ptr::null(), 0),
                        });
                    }
                }
            }
        }
        for row in 0..a.rows {
            store(row, &mut sums[row * ld..row * ld + cols]);
        }
    })
}
