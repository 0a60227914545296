//! Where a reduction's elements lie: dimensions that are reduced, and dimensions that are kept.

use c10::{wrap_dim, Result, SmallVec, Tensor};
use iter::TensorIterator;

use crate::address::{byte_stride, Address};

/// A dimension, with byte strides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Dim {
    pub(super) size: usize,
    pub(super) input: i64,
    /// For each of up to two outputs.
    pub(super) output: [i64; 2],
}

pub(super) type Dims = SmallVec<[Dim; 4]>;

/// One input, up to two outputs. Dimensions of size 1 are left out; the fastest come first.
pub(super) struct Layout {
    pub(super) input: Address,
    pub(super) output: [Address; 2],
    pub(super) reduced: Dims,
    pub(super) kept: Dims,
}

impl Layout {
    /// The walk of a reduction's iterator.
    pub(super) fn of_iterator(iter: &TensorIterator) -> Layout {
        let (mut reduced, mut kept) = (Dims::new(), Dims::new());
        for (dim, &size) in iter.shape().iter().enumerate() {
            let dim =
                Dim { size: size as usize, input: iter.strides(1)[dim], output: [iter.strides(0)[dim], 0] };
            match (size, dim.output[0]) {
                (1, _) => {}
                (_, 0) => reduced.push(dim),
                _ => kept.push(dim),
            }
        }
        reduced.sort_by_key(|dim| dim.input.unsigned_abs());
        let output = Address(iter.data_ptr(0));
        Layout { input: Address(iter.data_ptr(1)), output: [output, output], reduced, kept }
    }

    /// A tensor that is reduced along one dimension, or along all of them in row-major order. Outputs may have kept
    /// the dimension.
    pub(super) fn of_tensor(
        input: &Tensor,
        dim: Option<i64>,
        keepdim: bool,
        outs: &[Tensor],
    ) -> Result<Layout> {
        let item_size = input.item_size();
        let reduced_dim = match dim {
            Some(dim) => Some(wrap_dim(dim, input.dim(), true)? as usize),
            None => None,
        };
        let (mut reduced, mut kept) = (Dims::new(), Dims::new());
        let mut output_dim = 0;
        for (dim, (&size, &stride)) in input.sizes()?.iter().zip(input.strides()?).enumerate() {
            let mut this = Dim { size: size as usize, input: byte_stride(stride, item_size), output: [0; 2] };
            let is_reduced = reduced_dim.is_none_or(|reduced_dim| reduced_dim == dim);
            if !is_reduced {
                for (to, out) in this.output.iter_mut().zip(outs) {
                    *to = out.strides()?[output_dim] * out.item_size() as i64;
                }
            }
            if !is_reduced || keepdim {
                output_dim += 1;
            }
            match (size, is_reduced) {
                (1, _) => {}
                (_, true) => push_coalesced(&mut reduced, this),
                (_, false) => kept.push(this),
            }
        }
        reduced.reverse();
        kept.reverse();
        let output =
            |i: usize| outs.get(i).map_or(Address(std::ptr::null_mut()), |out| Address(out.data_ptr()));
        Ok(Layout {
            input: Address(input.const_data_ptr().cast_mut()),
            output: [output(0), output(1)],
            reduced,
            kept,
        })
    }

    /// Elements that go into each output element.
    pub(super) fn reduced_numel(&self) -> usize {
        self.reduced.iter().map(|dim| dim.size).product()
    }

    /// Output elements.
    pub(super) fn kept_numel(&self) -> usize {
        self.kept.iter().map(|dim| dim.size).product()
    }

    /// The kept dimension that is dense in the input, if the reduced ones are not: columns to be reduced together.
    pub(super) fn column_dim(&self, item_size: usize) -> Option<usize> {
        let item_size = item_size as i64;
        if self.reduced.first().is_none_or(|dim| dim.input == item_size) {
            return None;
        }
        self.kept.iter().position(|dim| dim.input == item_size && dim.size >= 4)
    }
}

/// Adds a faster dimension, merged with the one before it if both walk the input as one would.
fn push_coalesced(dims: &mut Dims, dim: Dim) {
    match dims.last_mut() {
        Some(last) if last.input == dim.input * dim.size as i64 => {
            last.size *= dim.size;
            last.input = dim.input;
        }
        _ => dims.push(dim),
    }
}

/// A position in some dimensions, and the byte offsets that go with it.
pub(super) struct Position<'a> {
    dims: &'a [Dim],
    index: SmallVec<[usize; 4]>,
    pub(super) input: i64,
    pub(super) output: [i64; 2],
}

impl<'a> Position<'a> {
    /// At a linear index, the first dimension being the fastest.
    pub(super) fn new(dims: &'a [Dim], linear: usize) -> Position<'a> {
        let mut position = Position { dims, index: SmallVec::new(), input: 0, output: [0; 2] };
        let mut rest = linear;
        for dim in dims {
            let at = rest % dim.size;
            rest /= dim.size;
            position.index.push(at);
            position.input += at as i64 * dim.input;
            position.output[0] += at as i64 * dim.output[0];
            position.output[1] += at as i64 * dim.output[1];
        }
        position
    }

    /// How far the fastest dimension goes on from here.
    pub(super) fn run(&self) -> usize {
        self.dims.first().zip(self.index.first()).map_or(1, |(dim, at)| dim.size - at)
    }

    /// Moves on by `steps`, which do not go beyond the end of the fastest dimension.
    pub(super) fn advance(&mut self, steps: usize) {
        let mut steps = steps;
        for (dim, at) in self.dims.iter().zip(&mut self.index) {
            *at += steps;
            self.input += steps as i64 * dim.input;
            self.output[0] += steps as i64 * dim.output[0];
            self.output[1] += steps as i64 * dim.output[1];
            if *at < dim.size {
                return;
            }
            *at = 0;
            self.input -= dim.size as i64 * dim.input;
            self.output[0] -= dim.size as i64 * dim.output[0];
            self.output[1] -= dim.size as i64 * dim.output[1];
            steps = 1;
        }
    }
}
