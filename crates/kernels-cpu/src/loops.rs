//! Feeds elementwise kernels: one driver, compiled once, for every operator, dtype and layout.
//!
//! # Note [Block kernels]
//! An elementwise kernel is a function over *contiguous blocks*: pointers (outputs first, then inputs) and a number
//! of elements. It exists once per dtype and instruction tier. Everything else is done here, by the byte: operands
//! that are strided, broadcast, or aliased by the output are gathered into small buffers that stay in the first
//! cache level, float16 and bfloat16 are widened to float32 on the way in and rounded on the way out, and results are
//! scattered back. A contiguous operand is handed over as it lies in memory.
//!
//! So a new operator costs one instance of its loop per dtype, not one per layout and broadcast form.

use std::mem::MaybeUninit;

use c10::{internal_assert, BFloat16, Half, Result, ScalarType};
use half::slice::HalfFloatSliceExt;
use iter::TensorIterator;
use smallvec::SmallVec;

use crate::narrow::round_bfloat16_slice;

/// A kernel over contiguous blocks: one pointer per operand, outputs first, and how many elements each has.
pub(crate) type Block<'a> = &'a (dyn Fn(&[*mut u8], usize) + Sync);

/// Elements per buffered block: 16 bytes each, four operands, half of a 32 KiB cache.
const BLOCK: usize = 256;
/// The largest element a buffer holds, in bytes.
const MAX_ELEMENT: usize = 16;
/// Rows shorter than this are buffered several at a time rather than handed over one by one.
const SHORT_ROW: usize = 32;

/// How an operand's elements change between memory and kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Widen {
    No,
    Half,
    BFloat16,
}

#[derive(Clone, Copy)]
struct Operand {
    /// Bytes per element in memory.
    size: usize,
    widen: Widen,
    is_output: bool,
}

impl Operand {
    fn new(dtype: ScalarType, is_output: bool) -> Operand {
        let widen = match dtype {
            ScalarType::Half => Widen::Half,
            ScalarType::BFloat16 => Widen::BFloat16,
            _ => Widen::No,
        };
        Operand { size: dtype.item_size(), widen, is_output }
    }
}

#[repr(align(64))]
struct Buffer([MaybeUninit<u8>; BLOCK * MAX_ELEMENT]);

impl Buffer {
    const fn new() -> Buffer {
        Buffer([MaybeUninit::uninit(); BLOCK * MAX_ELEMENT])
    }

    fn pointer(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// The dtype a kernel computes in: float32 for the halves, which [`run`] widens.
pub(crate) fn compute_dtype(dtype: ScalarType) -> ScalarType {
    match dtype {
        ScalarType::Half | ScalarType::BFloat16 => ScalarType::Float,
        other => other,
    }
}

/// The second operand of a product or quotient of halves, if it is one number: it enters as float32, unrounded, as in
/// PyTorch, so that `x * 0.37` has the factor that was written.
pub(crate) fn unrounded_scalar(iter: &TensorIterator, arg: usize) -> Option<f32> {
    let half = matches!(iter.common_dtype(), ScalarType::Half | ScalarType::BFloat16);
    if half {
        iter.original_scalar_value(arg)
    } else {
        None
    }
}

/// Whether a kernel that was compiled for a type may be handed elements of a dtype. A bool is a byte in memory, and read
/// and written as one.
fn is_stored_as(dtype: ScalarType, wanted: ScalarType) -> bool {
    let as_byte = |dtype| if dtype == ScalarType::Bool { ScalarType::Byte } else { dtype };
    as_byte(compute_dtype(dtype)) == as_byte(wanted)
}

/// Runs a block kernel over all elements of an iterator, on several threads above `grain` elements. `types` are those that
/// the kernel was compiled for, one per operand: see Note [Typed pointers] in `address.rs`.
pub(crate) fn run(
    iter: &TensorIterator,
    types: &[ScalarType],
    kernel: Block<'_>,
    grain: usize,
) -> Result<()> {
    for (arg, &wanted) in types.iter().enumerate() {
        internal_assert!(
            arg < iter.ntensors() && is_stored_as(iter.dtype(arg), wanted),
            "operand {arg} is of dtype {}, and the kernel computes with {wanted}",
            iter.dtype(arg)
        );
    }
    let operands: SmallVec<[Operand; 5]> =
        (0..iter.ntensors()).map(|arg| Operand::new(iter.dtype(arg), arg < iter.noutputs())).collect();
    iter.for_each_2d(
        // SAFETY: operands of the iterator, whose accesses were checked against their storages and each other.
        &|data, strides, size0, size1| unsafe { block_2d(&operands, kernel, data, strides, size0, size1) },
        grain,
    )
}

/// One two-dimensional piece of the iteration space; `strides` are the inner ones, then the outer ones, in bytes.
///
/// # Safety
/// The operands' elements must lie in memory that nobody else uses; an operand is aliased by another only exactly.
unsafe fn block_2d(
    operands: &[Operand],
    kernel: Block<'_>,
    data: &[*mut u8],
    strides: &[i64],
    size0: usize,
    size1: usize,
) {
    let (inner, outer) = strides.split_at(operands.len());
    let in_place = |arg: usize| {
        !operands[arg].is_output
            && operands.iter().zip(data).any(|(other, &pointer)| other.is_output && pointer == data[arg])
    };
    // Whether the kernel may read or write the operand where it lies, as far as one row goes.
    let direct: SmallVec<[bool; 5]> = (0..operands.len())
        .map(|arg| {
            operands[arg].widen == Widen::No && inner[arg] == operands[arg].size as i64 && !in_place(arg)
        })
        .collect();
    if direct.iter().all(|&d| d) && (size1 == 1 || size0 >= SHORT_ROW) {
        let mut row: SmallVec<[*mut u8; 5]> = SmallVec::from_slice(data);
        for i in 0..size1 {
            if i != 0 {
                for (pointer, stride) in row.iter_mut().zip(outer) {
                    *pointer = pointer.wrapping_offset(*stride as isize);
                }
            }
            kernel(&row, size0);
        }
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { buffered(operands, kernel, data, inner, outer, &direct, size0, size1) };
}

/// # Safety
/// As for [`block_2d`].
#[allow(clippy::too_many_arguments)]
unsafe fn buffered(
    operands: &[Operand],
    kernel: Block<'_>,
    data: &[*mut u8],
    inner: &[i64],
    outer: &[i64],
    direct: &[bool],
    size0: usize,
    size1: usize,
) {
    // Left where they are: a vector that collects them would copy pages of nothing, a tenth of the cost of `x + 1`.
    let mut on_stack = [const { Buffer::new() }; 4];
    let mut on_heap = Vec::new();
    let buffers = if operands.len() <= on_stack.len() {
        &mut on_stack[..]
    } else {
        on_heap.resize_with(operands.len(), Buffer::new);
        &mut on_heap[..]
    };
    let total = size0 * size1;
    // A broadcast scalar fills its buffer once.
    let constant: SmallVec<[bool; 5]> = (0..operands.len())
        .map(|arg| !operands[arg].is_output && inner[arg] == 0 && (outer[arg] == 0 || size1 == 1))
        .collect();
    for arg in (0..operands.len()).filter(|&arg| constant[arg]) {
        let source = Strided { base: data[arg], inner: 0, outer: 0, size0 };
        // SAFETY: the caller's promise; a buffer has room for a block.
        unsafe { gather(operands[arg], source, 0, total.min(BLOCK), buffers[arg].pointer()) };
    }
    let mut begin = 0;
    while begin < total {
        // With an operand that is used in place a block must not cross the end of a row.
        let mut count = BLOCK.min(total - begin);
        let column = begin % size0;
        let within_row = (size1 == 1 || size0 >= SHORT_ROW) && direct.iter().any(|&d| d);
        if within_row {
            count = count.min(size0 - column);
        }
        let usable = |arg: usize| direct[arg] && within_row;
        let strided = |arg: usize| Strided { base: data[arg], inner: inner[arg], outer: outer[arg], size0 };
        let mut pointers: SmallVec<[*mut u8; 5]> = SmallVec::new();
        for arg in 0..operands.len() {
            let pointer = if usable(arg) { strided(arg).at(begin) } else { buffers[arg].pointer() };
            if !usable(arg) && !operands[arg].is_output && !constant[arg] {
                // SAFETY: as above.
                unsafe { gather(operands[arg], strided(arg), begin, count, pointer) };
            }
            pointers.push(pointer);
        }
        kernel(&pointers, count);
        for arg in (0..operands.len()).filter(|&arg| operands[arg].is_output && !usable(arg)) {
            // SAFETY: as above; the kernel wrote the buffer.
            unsafe { scatter(operands[arg], strided(arg), begin, count, pointers[arg]) };
        }
        begin += count;
    }
}

/// Where an operand's elements lie, by their linear index in the two-dimensional piece.
#[derive(Clone, Copy)]
struct Strided {
    base: *mut u8,
    inner: i64,
    outer: i64,
    size0: usize,
}

impl Strided {
    fn at(self, index: usize) -> *mut u8 {
        let (row, column) = (index / self.size0, index % self.size0);
        self.base.wrapping_offset(row as isize * self.outer as isize + column as isize * self.inner as isize)
    }

    /// Calls `f` for each row's share of `count` elements: first element, offset from the start, length.
    fn rows(self, begin: usize, count: usize, mut f: impl FnMut(*mut u8, usize, usize)) {
        let mut done = 0;
        while done < count {
            let index = begin + done;
            let length = (self.size0 - index % self.size0).min(count - done);
            f(self.at(index), done, length);
            done += length;
        }
    }
}

/// Fills a buffer, widening.
///
/// # Safety
/// The elements must lie in memory, and the buffer must have room for them; they must not overlap.
unsafe fn gather(operand: Operand, source: Strided, begin: usize, count: usize, buffer: *mut u8) {
    // SAFETY: the caller's promise, for each row's share.
    source.rows(begin, count, |pointer, offset, length| unsafe {
        let wide = buffer.cast::<f32>().wrapping_add(offset);
        match operand.widen {
            Widen::No => {
                let to = buffer.wrapping_add(offset * operand.size);
                by_size(operand.size, pointer, source.inner, to, operand.size as i64, length);
            }
            Widen::Half => widen::<Half>(pointer, source.inner, wide, length),
            Widen::BFloat16 => widen::<BFloat16>(pointer, source.inner, wide, length),
        }
    });
}

/// Empties a buffer, rounding.
///
/// # Safety
/// As for [`gather`]; the buffer must have been written.
unsafe fn scatter(operand: Operand, target: Strided, begin: usize, count: usize, buffer: *mut u8) {
    // SAFETY: the caller's promise, for each row's share.
    target.rows(begin, count, |pointer, offset, length| unsafe {
        let wide = buffer.cast::<f32>().wrapping_add(offset);
        match operand.widen {
            Widen::No => {
                let from = buffer.wrapping_add(offset * operand.size);
                by_size(operand.size, from, operand.size as i64, pointer, target.inner, length);
            }
            Widen::Half => round::<Half>(wide, pointer, target.inner, length),
            Widen::BFloat16 => round::<BFloat16>(wide, pointer, target.inner, length),
        }
    });
}

/// Copies elements of a size, whatever their dtype; strides in bytes.
///
/// # Safety
/// As for [`copy_strided`].
unsafe fn by_size(size: usize, from: *mut u8, from_stride: i64, to: *mut u8, to_stride: i64, count: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match size {
            1 => copy_strided::<u8>(from, from_stride, to, to_stride, count),
            2 => copy_strided::<u16>(from, from_stride, to, to_stride, count),
            4 => copy_strided::<u32>(from, from_stride, to, to_stride, count),
            8 => copy_strided::<u64>(from, from_stride, to, to_stride, count),
            _ => copy_strided::<[u64; 2]>(from, from_stride, to, to_stride, count),
        }
    }
}

/// # Safety
/// `count` elements must lie at `from`, and `to` must have room for as many; they must not overlap.
unsafe fn copy_strided<T: Copy>(from: *mut u8, from_stride: i64, to: *mut u8, to_stride: i64, count: usize) {
    let size = std::mem::size_of::<T>() as i64;
    // SAFETY: the caller's promise.
    unsafe {
        if from_stride == size && to_stride == size {
            std::ptr::copy_nonoverlapping(from, to, count * size as usize);
            return;
        }
        for i in 0..count as isize {
            let value = from.offset(i * from_stride as isize).cast::<T>().read_unaligned();
            to.offset(i * to_stride as isize).cast::<T>().write_unaligned(value);
        }
    }
}

/// The two 16-bit formats.
trait Narrow: Copy + 'static {
    fn widen_slice(from: &[Self], to: &mut [f32]);
    fn round_slice(from: &[f32], to: &mut [Self]);
    fn zero() -> Self;
}

macro_rules! narrow {
    ($($T:ty: $round:expr),*) => {$(
        impl Narrow for $T {
            fn widen_slice(from: &[$T], to: &mut [f32]) {
                from.convert_to_f32_slice(to);
            }
            fn round_slice(from: &[f32], to: &mut [$T]) {
                let round: fn(&mut [$T], &[f32]) = $round;
                round(to, from);
            }
            fn zero() -> $T {
                <$T>::ZERO
            }
        }
    )*};
}

// `half` has instructions for float16, and branches for bfloat16.
narrow!(Half: |to, from| to.convert_from_f32_slice(from), BFloat16: round_bfloat16_slice);

/// # Safety
/// `count` elements must lie at `from`, and `to` must have room for as many.
unsafe fn widen<T: Narrow>(from: *mut u8, stride: i64, to: *mut f32, count: usize) {
    let mut values = [T::zero(); BLOCK];
    let values = &mut values[..count];
    // SAFETY: the caller's promise.
    unsafe {
        copy_strided::<T>(from, stride, values.as_mut_ptr().cast(), std::mem::size_of::<T>() as i64, count);
    }
    // SAFETY: the caller's promise; a plain number may be written to uninitialized memory before a reference to it is
    // made.
    let to = unsafe {
        std::ptr::write_bytes(to, 0, count);
        std::slice::from_raw_parts_mut(to, count)
    };
    T::widen_slice(values, to);
}

/// # Safety
/// As for [`widen`].
unsafe fn round<T: Narrow>(from: *mut f32, to: *mut u8, stride: i64, count: usize) {
    // SAFETY: the caller's promise.
    let from = unsafe { std::slice::from_raw_parts(from, count) };
    let mut values = [T::zero(); BLOCK];
    let values = &mut values[..count];
    T::round_slice(from, values);
    // SAFETY: the caller's promise.
    unsafe {
        copy_strided::<T>(values.as_mut_ptr().cast(), std::mem::size_of::<T>() as i64, to, stride, count);
    }
}
