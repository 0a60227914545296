//! What attention reads and writes: rows of tensors, in the type that products are summed in.

use c10::{check, BFloat16, Element, Half, Result, Tensor};

use crate::address::mutable_data_ptr;
use crate::linalg::{pack, LinalgElement, Matrix, PlainNumber};
use crate::vec::math::Tables;

/// The type of scores: `f32` or `f64`.
pub(super) trait Score: LinalgElement<Sum = Self> + PlainNumber + Tables {}

impl Score for f32 {}
impl Score for f64 {}

/// An element of queries, keys and values.
pub(super) trait Attended: LinalgElement<Sum = Self::Score> {
    type Score: Score;
}

impl Attended for f32 {
    type Score = f32;
}
impl Attended for f64 {
    type Score = f64;
}
impl Attended for Half {
    type Score = f32;
}
impl Attended for BFloat16 {
    type Score = f32;
}

/// Queries of one register, which the softmax takes together.
pub(super) const LANES: usize = 16;
/// The most queries of a block: its scores stay in the second cache level, and the sums of what it attends to in the
/// first.
const QUERIES: usize = 96;
/// Keys of a block: no more than one block of a product's depth.
pub(super) const KEYS: usize = 256;
/// Multiplications that a piece of work has at least.
pub(super) const PIECE: usize = 1 << 18;

/// Queries of a block, for so many in all: blocks of equal size.
pub(super) fn query_block(queries: usize) -> usize {
    queries.div_ceil(queries.div_ceil(QUERIES).max(1)).next_multiple_of(LANES).min(queries).max(1)
}

/// Columns that the scores of so many queries take: whole registers, but for a single query.
pub(super) fn lanes_for(queries: usize) -> usize {
    if queries == 1 {
        1
    } else {
        queries.next_multiple_of(LANES)
    }
}

/// A tensor of sizes `[batch, heads, length, width]`.
#[derive(Clone, Copy)]
pub(super) struct Heads<T> {
    first: Matrix<T>,
    batch_stride: isize,
    head_stride: isize,
    pub(super) heads: usize,
}

impl<T: Element> Heads<T> {
    /// What a tensor of four dimensions holds. A size of one has stride 0, so that it goes with any other size.
    pub(super) fn of(tensor: &Tensor) -> Result<Heads<T>> {
        Heads::with_dims(tensor, [Some(0), Some(1), Some(2), Some(3)])
    }

    /// What a tensor holds whose dimensions are the given ones of these four; the others are of one element.
    pub(super) fn with_dims(tensor: &Tensor, dims: [Option<usize>; 4]) -> Result<Heads<T>> {
        let (all_sizes, all_strides) = (tensor.sizes()?, tensor.strides()?);
        let given = dims.iter().flatten().count();
        check!(given == all_sizes.len(), "attention: expected {given} dimensions, got sizes {all_sizes:?}");
        let sizes = dims.map(|dim| dim.map_or(1, |dim| all_sizes[dim]));
        let [batch_stride, head_stride, row_stride, col_stride] =
            dims.map(|dim| dim.map_or(0, |dim| all_strides[dim]));
        let [_, heads, length, width] = sizes;
        let stride = |i: usize, stride: i64| if sizes[i] == 1 { 0 } else { stride as isize };
        Ok(Heads {
            first: Matrix {
                data: mutable_data_ptr(tensor)?,
                rows: length as usize,
                cols: width as usize,
                row_stride: stride(2, row_stride),
                col_stride: stride(3, col_stride),
            },
            batch_stride: stride(0, batch_stride),
            head_stride: stride(1, head_stride),
            heads: heads as usize,
        })
    }

    /// The rows of one head.
    pub(super) fn head(&self, batch: usize, head: usize) -> Matrix<T> {
        let offset = batch as isize * self.batch_stride + head as isize * self.head_stride;
        Matrix { data: self.first.data.wrapping_offset(offset), ..self.first }
    }

    /// Rows of a head.
    pub(super) fn length(&self) -> usize {
        self.first.rows
    }

    /// Elements of a row.
    pub(super) fn width(&self) -> usize {
        self.first.cols
    }
}

/// The tensor if the elements of its rows lie side by side, else a copy of which that is true.
pub(super) fn with_dense_rows(tensor: &Tensor) -> Result<Tensor> {
    check!(tensor.dim() == 4, "attention: expected four dimensions, got {}", tensor.dim());
    if tensor.stride(3)? == 1 {
        return Ok(tensor.clone());
    }
    let copy = iter::empty(tensor.sizes()?, &tensor.options())?;
    iter::copy_into(&copy, tensor, false)?;
    Ok(copy)
}

/// A dense matrix in a buffer.
pub(super) fn dense<S>(buffer: &mut [S], rows: usize, cols: usize) -> Matrix<S> {
    assert!(buffer.len() >= rows * cols, "a matrix beyond its buffer");
    Matrix { data: buffer.as_mut_ptr(), rows, cols, row_stride: cols as isize, col_stride: 1 }
}

/// A row of a matrix.
///
/// # Safety
/// Its elements exist side by side for `'a`, and nobody writes to them.
pub(super) unsafe fn row<'a, T: Copy>(of: Matrix<T>, row: usize) -> &'a [T] {
    if of.cols == 0 {
        // Then there may be no address.
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(of.at(row, 0), of.cols) }
}

/// Elements of the buffer that [`widened`] takes.
pub(super) fn widened_len<T: Attended>(rows: usize, cols: usize) -> usize {
    if T::SUMS_IN_ITSELF {
        0
    } else {
        rows * cols
    }
}

/// Rows in the type of scores: where they lie, or widened into a buffer.
///
/// # Safety
/// The elements exist, those of a row side by side, and nobody writes to them.
pub(super) unsafe fn widened<T: Attended>(rows: Matrix<T>, buffer: &mut [T::Score]) -> Matrix<T::Score> {
    if T::SUMS_IN_ITSELF {
        return rows.cast();
    }
    for (i, line) in buffer.chunks_exact_mut(rows.cols.max(1)).enumerate().take(rows.rows) {
        // SAFETY: a row, as the caller promises.
        T::widen_slice(unsafe { row(rows, i) }, line);
    }
    dense(buffer, rows.rows, rows.cols)
}

/// The transpose of rows in the type of scores, in `lanes` columns of which those past the last row are zero. `panels`
/// has room for as many elements.
///
/// # Safety
/// The elements exist and nobody writes to them.
pub(super) unsafe fn transposed<T: Attended>(
    rows: Matrix<T>,
    lanes: usize,
    panels: &mut [T::Score],
    to: &mut [T::Score],
) {
    if rows.cols == 0 {
        return;
    }
    if lanes == 1 {
        for (col, to) in to.iter_mut().enumerate().take(rows.cols) {
            // SAFETY: an element, as the caller promises.
            *to = unsafe { rows.get(0, col) }.widen();
        }
        return;
    }
    let panels = &mut panels[..rows.cols * lanes];
    pack(rows, LANES, panels);
    for (i, panel) in panels.chunks_exact(rows.cols * LANES).enumerate() {
        for (to, from) in to.chunks_exact_mut(lanes).zip(panel.chunks_exact(LANES)) {
            to[i * LANES..(i + 1) * LANES].copy_from_slice(from);
        }
    }
}

/// Writes rows, rounded.
///
/// # Safety
/// The elements exist and nobody else uses them.
pub(super) unsafe fn write_rows<T: Attended>(from: &[T::Score], to: Matrix<T>) {
    for (i, line) in from.chunks_exact(to.cols.max(1)).enumerate().take(to.rows) {
        if to.col_stride == 1 {
            // SAFETY: a row of the output, as the caller promises.
            T::narrow_slice(line, unsafe { std::slice::from_raw_parts_mut(to.at(i, 0), to.cols) });
            continue;
        }
        for (j, &value) in line.iter().enumerate() {
            // SAFETY: an element of the output, likewise.
            unsafe { to.set(i, j, T::narrow(value)) };
        }
    }
}
