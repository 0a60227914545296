//! The N-dimensional walk.
//!
//! Compiled once, for every operator and dtype: what varies is a closure over rows of raw pointers and byte strides,
//! reached through `&dyn`. Dimension 0 is the fastest.

use c10::{DimVector, Result, SmallVec};

use crate::iterator::TensorIterator;
use crate::parallel;

/// A loop over one row: a pointer and a byte stride per operand, and the number of elements.
pub type Loop1d<'a> = &'a (dyn Fn(&[*mut u8], &[i64], usize) + Sync);

/// A loop over a block of rows: a pointer per operand; the byte strides of the inner dimension, then those of the
/// outer one; the size of the inner dimension, then that of the outer one.
pub type Loop2d<'a> = &'a (dyn Fn(&[*mut u8], &[i64], usize, usize) + Sync);

/// A [`Loop1d`] that runs on one thread and may keep state.
pub type SerialLoop1d<'a> = &'a mut dyn FnMut(&[*mut u8], &[i64], usize);

/// A [`Loop2d`] that runs on one thread and may keep state.
pub type SerialLoop2d<'a> = &'a mut dyn FnMut(&[*mut u8], &[i64], usize, usize);

/// A pointer per operand.
pub(crate) type Pointers = SmallVec<[*mut u8; 4]>;

/// Shape, base pointers and strides, without the tensors.
pub(crate) struct Walk {
    shape: DimVector,
    base: Pointers,
    /// Byte strides, one row of `base.len()` per dimension, padded with zeros to two rows.
    strides: SmallVec<[i64; 16]>,
}

// SAFETY: the pointers are addresses handed on to loops; whoever builds a walk keeps the memory alive meanwhile.
unsafe impl Send for Walk {}
// SAFETY: as above; nothing in a walk changes.
unsafe impl Sync for Walk {}

impl Walk {
    /// `stride(dim, arg)` in bytes.
    pub(crate) fn new(shape: &[i64], base: Pointers, stride: impl Fn(usize, usize) -> i64) -> Self {
        let mut strides = SmallVec::with_capacity(shape.len().max(2) * base.len());
        for dim in 0..shape.len() {
            strides.extend((0..base.len()).map(|arg| stride(dim, arg)));
        }
        strides.resize(shape.len().max(2) * base.len(), 0);
        Self { shape: DimVector::from_slice(shape), base, strides }
    }

    pub(crate) fn shape(&self) -> &[i64] {
        &self.shape
    }

    pub(crate) fn base(&self) -> &[*mut u8] {
        &self.base
    }

    /// The byte strides of all operands in one dimension.
    pub(crate) fn strides_of_dim(&self, dim: usize) -> &[i64] {
        &self.strides[dim * self.base.len()..][..self.base.len()]
    }

    pub(crate) fn numel(&self) -> usize {
        self.shape.iter().product::<i64>() as usize
    }

    /// Moves pointers by `steps` along a dimension.
    pub(crate) fn advance_in_dim(&self, pointers: &mut [*mut u8], dim: usize, steps: i64) {
        if steps != 0 {
            advance(pointers, self.strides_of_dim(dim), steps);
        }
    }

    /// The part with index `begin..end` in a dimension.
    pub(crate) fn narrow(&self, dim: usize, begin: usize, end: usize) -> Self {
        let mut shape = self.shape.clone();
        shape[dim] = (end - begin) as i64;
        let mut base = self.base.clone();
        self.advance_in_dim(&mut base, dim, begin as i64);
        Self { shape, base, strides: self.strides.clone() }
    }

    /// The same walk with another place for the first operand.
    pub(crate) fn replace_output(&self, base: *mut u8, strides: &[i64]) -> Self {
        let mut pointers = self.base.clone();
        pointers[0] = base;
        Self::new(&self.shape, pointers, |dim, arg| match arg {
            0 => strides[dim],
            _ => self.strides_of_dim(dim)[arg],
        })
    }

    /// A walk of two operands: a new one first, then the only one of this walk.
    pub(crate) fn with_output(&self, base: *mut u8, strides: &[i64]) -> Self {
        Self::new(&self.shape, SmallVec::from_slice(&[base, self.base[0]]), |dim, arg| match arg {
            0 => strides[dim],
            _ => self.strides_of_dim(dim)[0],
        })
    }

    /// A walk of two operands: the only one of this walk, then a new one.
    pub(crate) fn with_input(&self, base: *mut u8, strides: &[i64]) -> Self {
        Self::new(&self.shape, SmallVec::from_slice(&[self.base[0], base]), |dim, arg| match arg {
            0 => self.strides_of_dim(dim)[0],
            _ => strides[dim],
        })
    }

    /// The pointers at an index.
    pub(crate) fn pointers_at(&self, index: &[i64]) -> Pointers {
        let mut pointers = self.base.clone();
        for (dim, &i) in index.iter().enumerate() {
            self.advance_in_dim(&mut pointers, dim, i);
        }
        pointers
    }

    /// Calls the loop for the elements with linear index in `begin..end`, in order, in as large blocks as there are.
    pub(crate) fn serial_for_each_2d(&self, loop_: SerialLoop2d<'_>, begin: usize, end: usize) {
        if begin >= end {
            return;
        }
        let ntensors = self.base.len();
        if self.shape.len() <= 1 {
            let pointers = self.pointers_at(&[begin as i64][..self.shape.len()]);
            loop_(&pointers, &self.strides[..2 * ntensors], end - begin, 1);
            return;
        }
        let mut counter = DimCounter::new(&self.shape, begin as i64, end as i64);
        while !counter.is_done() {
            let (size0, size1) = counter.max_2d_step();
            let pointers = self.pointers_at(&counter.values);
            loop_(&pointers, &self.strides[..2 * ntensors], size0 as usize, size1 as usize);
            counter.increment(size0, size1);
        }
    }
}

/// Moves every pointer by `steps` strides.
pub(crate) fn advance(pointers: &mut [*mut u8], strides: &[i64], steps: i64) {
    for (pointer, &stride) in pointers.iter_mut().zip(strides) {
        // Wrapping: the address stays inside the operand's storage by `operand::check_in_storage`, except one step
        // past the end of a row, which is never read.
        *pointer = pointer.wrapping_offset((stride * steps) as isize);
    }
}

/// Calls a row loop for every row of a block.
pub(crate) fn rows_of_block(
    loop_: SerialLoop1d<'_>,
    data: &[*mut u8],
    strides: &[i64],
    size0: usize,
    size1: usize,
) {
    let (inner, outer) = strides.split_at(data.len());
    let mut pointers = Pointers::from_slice(data);
    for row in 0..size1 {
        if row > 0 {
            advance(&mut pointers, outer, 1);
        }
        loop_(&pointers, inner, size0);
    }
}

/// A position in a shape, moved in blocks of rows.
pub(crate) struct DimCounter<'a> {
    shape: &'a [i64],
    end: i64,
    offset: i64,
    pub(crate) values: DimVector,
}

impl<'a> DimCounter<'a> {
    /// Starts at linear index `begin`, of `end`. No size may be 0.
    pub(crate) fn new(shape: &'a [i64], begin: i64, end: i64) -> Self {
        let mut values = DimVector::from_elem(0, shape.len());
        if begin != 0 {
            let mut rest = begin;
            for (value, &size) in values.iter_mut().zip(shape) {
                *value = rest % size;
                rest /= size;
            }
        }
        Self { shape, end, offset: begin, values }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.offset >= self.end
    }

    /// The elements from here to the end of the row.
    pub(crate) fn max_row_step(&self) -> i64 {
        let left = self.end - self.offset;
        self.shape.first().zip(self.values.first()).map_or(1, |(size, value)| left.min(size - value))
    }

    /// The largest block (inner, outer) from here that is whole rows or a part of one.
    pub(crate) fn max_2d_step(&self) -> (i64, i64) {
        let left = self.end - self.offset;
        let (Some(&size0), Some(&value0)) = (self.shape.first(), self.values.first()) else {
            return (1, 1);
        };
        let step0 = left.min(size0 - value0);
        if step0 != size0 || self.shape.len() < 2 {
            return (step0, 1);
        }
        (step0, (left / size0).min(self.shape[1] - self.values[1]))
    }

    /// Moves on by a block that [`max_2d_step`](Self::max_2d_step) gave.
    pub(crate) fn increment(&mut self, size0: i64, size1: i64) {
        self.offset += size0 * size1;
        let (first, mut carry) = if size1 == 1 { (0, size0) } else { (1, size1) };
        for (value, &size) in self.values.iter_mut().zip(self.shape).skip(first) {
            if carry == 0 {
                break;
            }
            *value += carry;
            carry = 0;
            if *value >= size {
                *value -= size;
                carry = 1;
            }
        }
    }
}

impl TensorIterator {
    /// The walk over all operands.
    pub(crate) fn walk(&self) -> Walk {
        Walk::new(self.shape(), self.base_pointers(), |dim, arg| self.strides(arg)[dim])
    }

    /// Calls a row loop over all elements, on several threads if there are more than `grain`.
    ///
    /// See Note [Results do not depend on the number of threads] in `parallel`.
    pub fn for_each(&self, loop_: Loop1d<'_>, grain: usize) -> Result<()> {
        let numel = self.numel();
        if numel == 0 {
            return Ok(());
        }
        if self.ndim() <= 1 && numel <= grain {
            let strides: SmallVec<[i64; 4]> =
                (0..self.ntensors()).map(|arg| self.strides(arg).first().copied().unwrap_or(0)).collect();
            loop_(&self.base_pointers(), &strides, numel);
            return Ok(());
        }
        self.for_each_2d(
            &|data, strides, size0, size1| {
                rows_of_block(&mut |d, s, n| loop_(d, s, n), data, strides, size0, size1);
            },
            grain,
        )
    }

    /// Calls a block loop over all elements, on several threads if there are more than `grain`.
    pub fn for_each_2d(&self, loop_: Loop2d<'_>, grain: usize) -> Result<()> {
        let numel = self.numel();
        if numel == 0 {
            return Ok(());
        }
        let walk = self.walk();
        let range = |begin, end| {
            walk.serial_for_each_2d(&mut |d, s, n0, n1| loop_(d, s, n0, n1), begin, end);
        };
        if numel <= grain {
            range(0, numel);
            return Ok(());
        }
        parallel::parallel_for(0, numel, grain, &range)
    }

    /// Calls a row loop for the elements with linear index in `range` (dimension 0 fastest), in order, here.
    pub fn serial_for_each(&self, loop_: SerialLoop1d<'_>, range: std::ops::Range<usize>) {
        self.serial_for_each_2d(
            &mut |data, strides, size0, size1| rows_of_block(loop_, data, strides, size0, size1),
            range,
        );
    }

    /// Calls a block loop for the elements with linear index in `range`, in order, on the calling thread.
    pub fn serial_for_each_2d(&self, loop_: SerialLoop2d<'_>, range: std::ops::Range<usize>) {
        self.walk().serial_for_each_2d(loop_, range.start, range.end.min(self.numel()));
    }
}
