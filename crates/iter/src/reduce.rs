//! Reductions: iterators whose outputs stand still along some dimensions, and the walks over them.
//!
//! How the work is cut depends on shapes alone, and partial results are combined in the order of the pieces. See
//! Note [Results do not depend on the number of threads] in `parallel`.

use c10::{
    check, internal_assert, maybe_wrap_dim, DimVector, Result, ScalarType, SizeInt, SizeVector, SmallVec,
    SymInt, Tensor, TensorOptions,
};

use crate::cast::to_dtype;
use crate::config::TensorIteratorConfig;
use crate::iterator::TensorIterator;
use crate::loops::{DimCounter, Loop2d, Pointers, Walk};
use crate::parallel::{self, GRAIN_SIZE};
use crate::structured_outputs::StructuredOutputs;

/// With fewer output elements than this, `parallel_reduce` cuts the reduced dimensions instead of the outputs.
const MIN_OUTPUTS_TO_SPLIT: usize = 64;

/// The mask of every dimension, of tensors with more dimensions than bits too.
pub const ALL_DIMS: u64 = u64::MAX;

/// The dimensions to reduce, as bits. Without dimensions, all of them (none, if `allow_empty_dims`).
///
/// # Errors
/// If a dimension is wrong or given twice, and for any list of dimensions if the tensor has more than 64.
pub fn make_dim_mask(dims: Option<&[i64]>, ndim: i64, allow_empty_dims: bool) -> Result<u64> {
    let dims = match dims {
        Some(dims) if !dims.is_empty() || allow_empty_dims => dims,
        _ => return Ok(ALL_DIMS),
    };
    check!(ndim <= 64, "only tensors with up to 64 dims are supported");
    let mut mask = 0_u64;
    for &dim in dims {
        let bit = 1_u64 << maybe_wrap_dim(dim, ndim)?;
        check!(mask & bit == 0, "dim {} appears multiple times in the list of dims", bit.trailing_zeros());
        mask |= bit;
    }
    Ok(mask)
}

/// The shape that is left when the dimensions in `mask` are reduced.
pub fn shape_from_dim_mask<I: SizeInt>(sizes: &[I], mask: u64, keepdim: bool) -> SizeVector<I> {
    let mut shape = SizeVector::new();
    for (dim, size) in sizes.iter().enumerate() {
        if !is_reduced(mask, dim) {
            shape.push(size.clone());
        } else if keepdim {
            shape.push(I::ONE);
        }
    }
    shape
}

/// Whether a dimension is in the mask. Dimensions from 64 on have no bit: they are in [`ALL_DIMS`] only.
pub fn is_reduced(mask: u64, dim: usize) -> bool {
    if dim < 64 {
        mask & (1 << dim) != 0
    } else {
        mask == ALL_DIMS
    }
}

/// The iterator of a reduction over `dims` (all of them if `None` or empty).
///
/// Sets the shapes of all `outs`, one dtype each, and casts the input to `in_dtype`.
pub fn make_reduction(
    op_name: &'static str,
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dims: Option<&[i64]>,
    keepdim: bool,
    in_dtype: ScalarType,
    out_dtypes: &[ScalarType],
) -> Result<TensorIterator> {
    internal_assert!(out_dtypes.len() == outs.len(), "{op_name}: {} dtypes", out_dtypes.len());
    let mask = make_dim_mask(dims, self_.dim(), false)?;
    if self_.has_symbolic_sizes_strides() || outs.is_symbolic() {
        set_reduced_outputs::<SymInt>(outs, self_, mask, keepdim, out_dtypes)?;
        return Ok(TensorIterator::unwalked(op_name, Some(in_dtype), self_.device()));
    }
    set_reduced_outputs::<i64>(outs, self_, mask, keepdim, out_dtypes)?;
    let input = to_dtype(self_, in_dtype)?;
    let outputs = outs.outputs()?;
    let mut config = TensorIteratorConfig::new().op_name(op_name).reduce_dims(mask, keepdim);
    for output in &outputs {
        config = config.add_output(output);
    }
    config.add_input(&input).build_standalone()
}

fn set_reduced_outputs<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    mask: u64,
    keepdim: bool,
    out_dtypes: &[ScalarType],
) -> Result<()> {
    let shape = shape_from_dim_mask(&I::sizes_of(self_)?, mask, keepdim);
    for (i, &dtype) in out_dtypes.iter().enumerate() {
        let options = TensorOptions::new().dtype(dtype).device(self_.device());
        outs.set_output_raw_strided(i, &shape, &[], options)?;
    }
    Ok(())
}

/// The elements that one output element is reduced from.
pub struct ReducedElements<'a> {
    outputs: Pointers,
    input: *const u8,
    shape: &'a [i64],
    /// The input's byte strides over `shape`.
    strides: &'a [i64],
    begin: usize,
    end: usize,
}

// SAFETY: addresses of operands that the iterator keeps alive while the kernel's closure runs; handing a part of
// the elements to another thread only reads them. Outputs are written by whoever the kernel lets write.
unsafe impl Sync for ReducedElements<'_> {}

impl ReducedElements<'_> {
    /// Address of the output element, in output `i`.
    pub fn output(&self, i: usize) -> *mut u8 {
        self.outputs[i]
    }

    /// How many elements these are.
    pub fn numel(&self) -> usize {
        self.end - self.begin
    }

    /// Linear index of the first of these among all that go to the output element.
    pub fn begin(&self) -> usize {
        self.begin
    }

    /// Calls `run(pointer, byte stride, n, index)` for rows that together are these elements, in order. `index` is
    /// the linear index of the row's first element: its index in the dimension, if one dimension is reduced.
    pub fn for_each_run(&self, run: &mut dyn FnMut(*const u8, i64, usize, usize)) {
        if self.begin >= self.end {
            return;
        }
        if self.shape.len() <= 1 {
            let stride = self.strides.first().copied().unwrap_or(0);
            run(self.at(&[self.begin as i64]), stride, self.end - self.begin, self.begin);
            return;
        }
        let mut counter = DimCounter::new(self.shape, self.begin as i64, self.end as i64);
        let mut index = self.begin;
        while !counter.is_done() {
            let n = counter.max_row_step();
            run(self.at(&counter.values), self.strides[0], n as usize, index);
            counter.increment(n, 1);
            index += n as usize;
        }
    }

    /// Cuts these elements into pieces of `chunk`, maps each (on several threads where that is allowed), and
    /// combines the values in order. `None` if there are no elements.
    pub fn fold_chunks<T: Send>(
        &self,
        chunk: usize,
        map: &(dyn Fn(&ReducedElements<'_>) -> T + Sync),
        combine: impl FnMut(T, T) -> T,
    ) -> Result<Option<T>> {
        if self.numel() != 0 && self.numel() <= chunk {
            return Ok(Some(map(self)));
        }
        parallel::parallel_reduce(
            self.begin,
            self.end,
            chunk,
            &|begin, end| map(&self.part(begin, end)),
            combine,
        )
    }

    fn part(&self, begin: usize, end: usize) -> ReducedElements<'_> {
        ReducedElements { outputs: self.outputs.clone(), begin, end, ..*self }
    }

    fn at(&self, index: &[i64]) -> *const u8 {
        let offset: i64 = index.iter().zip(self.strides).map(|(i, stride)| i * stride).sum();
        self.input.wrapping_offset(offset as isize)
    }
}

impl TensorIterator {
    /// Calls `f` once for every output element, with the elements that are reduced to it.
    ///
    /// Calls run on several threads when there are many outputs; with few, [`ReducedElements::fold_chunks`] is what
    /// uses the threads.
    pub fn foreach_reduced_elt(&self, f: &(dyn Fn(&ReducedElements<'_>) -> Result<()> + Sync)) -> Result<()> {
        internal_assert!(self.ninputs() == 1 && self.noutputs() >= 1, "{}: not a reduction", self.op_name);
        let walk = self.walk();
        let (reduced_shape, output_shape) = walk.shape().split_at(self.num_reduce_dims());
        let reduced_numel = product(reduced_shape);
        let output_numel = product(output_shape);
        if output_numel == 0 {
            return Ok(());
        }
        let strides = &self.strides(self.noutputs)[..reduced_shape.len()];
        let outputs_in = |begin: usize, end: usize| {
            let mut counter = DimCounter::new(output_shape, begin as i64, end as i64);
            while !counter.is_done() {
                let mut outputs = Pointers::from_slice(walk.base());
                for (dim, &i) in counter.values.iter().enumerate() {
                    walk.advance_in_dim(&mut outputs, reduced_shape.len() + dim, i);
                }
                let input = outputs.pop().unwrap_or(std::ptr::null_mut());
                f(&ReducedElements {
                    outputs,
                    input,
                    shape: reduced_shape,
                    strides,
                    begin: 0,
                    end: reduced_numel,
                })?;
                counter.increment(1, 1);
            }
            Ok(())
        };
        // Which threads run which outputs does not show in the results, so the number of threads may decide.
        if output_numel < parallel::num_threads() {
            return outputs_in(0, output_numel);
        }
        let grain = (GRAIN_SIZE / reduced_numel.max(1)).max(1);
        parallel::parallel_for_result(0, output_numel, grain, &outputs_in)
    }

    /// Reduces with a block loop that computes `out = out ∘ in`; `∘` is associative, and the output holds its
    /// identity already. One output, one input.
    ///
    /// With many outputs, threads take different ones. With few, the reduced elements are cut into fixed pieces,
    /// each reduced into a buffer of its own; that needs input and output of one dtype.
    pub fn parallel_reduce(&self, loop_: Loop2d<'_>) -> Result<()> {
        internal_assert!(
            self.ninputs() == 1 && self.noutputs() == 1,
            "{}: not a simple reduction",
            self.op_name
        );
        let numel = self.numel();
        if numel == 0 {
            return Ok(());
        }
        let outputs = self.num_output_elements();
        if numel > GRAIN_SIZE {
            if outputs < MIN_OUTPUTS_TO_SPLIT && self.dtype(0) == self.dtype(1) {
                return self.two_pass_reduce(loop_);
            }
            if outputs > 1 {
                return self.split_outputs(loop_);
            }
        }
        self.walk().serial_for_each_2d(&mut |d, s, n0, n1| loop_(d, s, n0, n1), 0, numel);
        Ok(())
    }

    /// Threads take ranges of the largest output dimension.
    fn split_outputs(&self, loop_: Loop2d<'_>) -> Result<()> {
        let walk = self.walk();
        let Some(dim) = largest_dim(walk.shape(), |dim| self.strides(0)[dim] != 0) else { return Ok(()) };
        let size = walk.shape()[dim] as usize;
        let mut grain = (GRAIN_SIZE / (self.numel() / size).max(1)).max(1);
        if self.strides(0)[dim] == self.element_size(0) as i64 {
            // Whole pairs of cache lines, so that threads do not write to the same one.
            grain = grain.next_multiple_of((128 / self.element_size(0)).max(1));
        }
        parallel::parallel_for(0, size, grain, &|begin, end| {
            let part = walk.narrow(dim, begin, end);
            part.serial_for_each_2d(&mut |d, s, n0, n1| loop_(d, s, n0, n1), 0, part.numel());
        })
    }

    /// Pieces of the largest reduced dimension are reduced into buffers, and these into the output, in order.
    fn two_pass_reduce(&self, loop_: Loop2d<'_>) -> Result<()> {
        let walk = self.walk();
        let output_stride = |dim: usize| self.strides(0)[dim];
        let Some(dim) = largest_dim(walk.shape(), |dim| output_stride(dim) == 0) else {
            return self.split_outputs(loop_);
        };
        let size = walk.shape()[dim] as usize;
        let grain = (GRAIN_SIZE / (self.numel() / size).max(1)).max(1);
        let pieces = size.div_ceil(grain);

        // The outputs' shape, and the strides of one dense buffer, over the iterator's dimensions.
        let element_size = self.element_size(0);
        let mut output_shape = DimVector::from_slice(walk.shape());
        let mut buffer_strides = DimVector::from_elem(0, walk.shape().len());
        let mut buffer_nbytes = element_size;
        for d in 0..output_shape.len() {
            if output_stride(d) == 0 {
                output_shape[d] = 1;
            } else {
                buffer_strides[d] = buffer_nbytes as i64;
                buffer_nbytes *= output_shape[d] as usize;
            }
        }
        // Words of 16 bytes, for the alignment of any element.
        let words_per_piece = buffer_nbytes.div_ceil(size_of::<u128>());
        let mut buffer = vec![0_u128; words_per_piece * pieces];
        let output =
            Walk::new(&output_shape, SmallVec::from_slice(&walk.base()[..1]), |d, _| output_stride(d));
        let pieces_of_buffer = Buffer { base: buffer.as_mut_ptr(), words_per_piece };
        parallel::parallel_for(0, size, grain, &|begin, end| {
            let base = pieces_of_buffer.piece(begin / grain);
            let fill = output.with_output(base, &buffer_strides);
            fill.serial_for_each_2d(
                // SAFETY: both walks stay in their operands: an output that `check_in_storage` passed, and a buffer made
                // for the same shape; the buffer is new, so they do not overlap.
                &mut |data, strides, n0, n1| unsafe { copy_elements(data, strides, n0, n1, element_size) },
                0,
                fill.numel(),
            );
            let part = walk.replace_output(base, &buffer_strides).narrow(dim, begin, end);
            part.serial_for_each_2d(&mut |d, s, n0, n1| loop_(d, s, n0, n1), 0, part.numel());
        })?;
        for piece in 0..pieces {
            let combine = output.with_input(pieces_of_buffer.piece(piece), &buffer_strides);
            combine.serial_for_each_2d(&mut |d, s, n0, n1| loop_(d, s, n0, n1), 0, combine.numel());
        }
        drop(buffer);
        Ok(())
    }
}

/// The address of a buffer, shared by the threads that each write a piece of it.
struct Buffer {
    base: *mut u128,
    words_per_piece: usize,
}

// SAFETY: only addresses are computed here; each piece is used by one thread at a time.
unsafe impl Sync for Buffer {}

impl Buffer {
    fn piece(&self, i: usize) -> *mut u8 {
        self.base.wrapping_add(i * self.words_per_piece).cast()
    }
}

/// Copies elements from the second operand to the first.
///
/// # Safety
/// Both walks must stay in memory that nobody else uses, and must not overlap.
unsafe fn copy_elements(data: &[*mut u8], strides: &[i64], size0: usize, size1: usize, element_size: usize) {
    for j in 0..size1 as i64 {
        for i in 0..size0 as i64 {
            let at =
                |arg: usize| data[arg].wrapping_offset((i * strides[arg] + j * strides[2 + arg]) as isize);
            // SAFETY: the caller's promise.
            unsafe { std::ptr::copy_nonoverlapping(at(1), at(0), element_size) };
        }
    }
}

fn product(sizes: &[i64]) -> usize {
    sizes.iter().product::<i64>() as usize
}

/// The largest of the dimensions that qualify, the slowest of equal ones.
fn largest_dim(shape: &[i64], qualifies: impl Fn(usize) -> bool) -> Option<usize> {
    (0..shape.len()).filter(|&dim| qualifies(dim)).max_by_key(|&dim| shape[dim])
}
