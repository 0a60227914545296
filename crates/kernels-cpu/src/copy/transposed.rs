//! Copies between layouts whose fastest dimensions differ.
//!
//! Walking either operand in its own order would touch a new cache line of the other with every element. Square
//! tiles use each line they touch whole, in both.

use c10::{DimVector, Result};
use iter::{parallel, TensorIterator};

use crate::address::Address;
use crate::vec::tiered;

/// Elements along each side of a tile: small enough that two tiles of 16-byte elements fit the first cache level.
const TILE: usize = 32;
/// Below this extent of either side, rows are as good.
const MIN_SIDE: i64 = 4;

/// A copy where dimension 0 is dense in the output, and another one, `across`, is dense in the input.
pub(super) struct Plan {
    to: Address,
    from: Address,
    size: usize,
    /// Extents of dimension 0 and of `across`.
    sides: [usize; 2],
    /// Input stride along dimension 0, output stride along `across`.
    from_stride: i64,
    to_stride: i64,
    /// The other dimensions: extent, output stride, input stride.
    outer: Vec<(i64, i64, i64)>,
}

impl Plan {
    /// `None` if the iterator is not such a copy.
    pub(super) fn new(iter: &TensorIterator) -> Option<Plan> {
        let size = iter.element_size(0);
        if iter.ndim() < 2 || !matches!(size, 1 | 2 | 4 | 8 | 16) {
            return None;
        }
        let (shape, to, from) = (iter.shape(), iter.strides(0), iter.strides(1));
        let dense = size as i64;
        if to[0] != dense || from[0] == dense || from[0] == 0 || shape[0] < MIN_SIDE {
            return None;
        }
        let across = (1..iter.ndim()).find(|&dim| from[dim] == dense && shape[dim] >= MIN_SIDE)?;
        let outer = (1..iter.ndim()).filter(|&dim| dim != across).map(|dim| (shape[dim], to[dim], from[dim]));
        Some(Plan {
            to: Address(iter.data_ptr(0)),
            from: Address(iter.data_ptr(1)),
            size,
            sides: [shape[0] as usize, shape[across] as usize],
            from_stride: from[0],
            to_stride: to[across],
            outer: outer.collect(),
        })
    }

    /// Copies.
    pub(super) fn run(&self) -> Result<()> {
        let planes: i64 = self.outer.iter().map(|&(extent, ..)| extent).product();
        let tiles = [self.sides[0].div_ceil(TILE), self.sides[1].div_ceil(TILE)];
        let total = planes as usize * tiles[0] * tiles[1];
        let grain = (parallel::GRAIN_SIZE / (TILE * TILE)).max(1);
        parallel::parallel_for(0, total, grain, &|begin, end| {
            for tile in begin..end {
                // Neighbours share rows of the output.
                let (rest, i) = (tile / tiles[0], tile % tiles[0]);
                let (plane, j) = (rest / tiles[1], rest % tiles[1]);
                self.tile(plane as i64, i * TILE, j * TILE);
            }
        })
    }

    fn tile(&self, plane: i64, i: usize, j: usize) {
        let (mut to, mut from) = (self.to, self.from);
        let mut rest = plane;
        let mut index = DimVector::new();
        for &(extent, ..) in &self.outer {
            index.push(rest % extent);
            rest /= extent;
        }
        for (&at, &(_, to_stride, from_stride)) in index.iter().zip(&self.outer) {
            to = to.offset(at * to_stride);
            from = from.offset(at * from_stride);
        }
        let dense = self.size as i64;
        to = to.offset(i as i64 * dense + j as i64 * self.to_stride);
        from = from.offset(i as i64 * self.from_stride + j as i64 * dense);
        let sides = [TILE.min(self.sides[0] - i), TILE.min(self.sides[1] - j)];
        let (to_stride, from_stride) = (self.to_stride as isize, self.from_stride as isize);
        match self.size {
            1 => tile::<u8>(to.0, to_stride, from.0, from_stride, sides),
            2 => tile::<u16>(to.0, to_stride, from.0, from_stride, sides),
            4 => tile::<u32>(to.0, to_stride, from.0, from_stride, sides),
            8 => tile::<u64>(to.0, to_stride, from.0, from_stride, sides),
            _ => tile::<[u64; 2]>(to.0, to_stride, from.0, from_stride, sides),
        }
    }
}

tiered! { memory_bound:
    /// Transposes a tile by way of a buffer: rows are read and written whole, once, so that it does not matter when
    /// strides that are powers of two map all of them to a few places of the cache. In the buffer it is blocks of
    /// 8 × 8, rows of which are registers.
    fn tile<T>(to: *mut u8, to_stride: isize, from: *const u8, from_stride: isize, sides: [usize; 2])
    where { T: Copy + Default } => A {
        let _ = std::marker::PhantomData::<A>;
        const B: usize = 8;
        let [rows, columns] = sides;
        let mut buffer = [[T::default(); TILE]; TILE];
        for (i, row) in buffer.iter_mut().enumerate().take(rows) {
            // SAFETY: the tile lies in the operands, which the iterator checked against their storages.
            unsafe {
                let from = from.wrapping_offset(i as isize * from_stride).cast::<T>();
                std::ptr::copy_nonoverlapping(from, row.as_mut_ptr(), columns);
            }
        }
        for first in (0..columns).step_by(B) {
            let mut transposed = [[T::default(); TILE]; B];
            for block in (0..rows).step_by(B) {
                for k in 0..B {
                    for l in 0..B {
                        transposed[k][block + l] = buffer[block + l][first + k];
                    }
                }
            }
            for (k, row) in transposed.iter().enumerate().take(columns - first) {
                // SAFETY: as above.
                unsafe {
                    let to = to.wrapping_offset((first + k) as isize * to_stride).cast::<T>();
                    std::ptr::copy_nonoverlapping(row.as_ptr(), to, rows);
                }
            }
        }
    }
}
