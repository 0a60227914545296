//! A strided matrix in memory.

use c10::{check, Element, Result, Tensor};

use crate::address::mutable_data_ptr;

/// Elements of type `T` at `data + row * row_stride + col * col_stride`, strides in elements.
///
/// Only an address: whoever makes one vouches that the elements exist while it is used, and that writers are alone.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<T> {
    pub(crate) data: *mut T,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) row_stride: isize,
    pub(crate) col_stride: isize,
}

// SAFETY: an address; what is done with it is justified where it is done.
unsafe impl<T> Send for Matrix<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Matrix<T> {}

impl<T: Element> Matrix<T> {
    /// The matrix in the last two dimensions of a tensor, at the start of the others.
    pub(crate) fn of(tensor: &Tensor) -> Result<Matrix<T>> {
        let (sizes, strides) = (tensor.sizes()?, tensor.strides()?);
        let n = sizes.len();
        check!(n >= 2, "matrix product: expected at least two dimensions, got sizes {sizes:?}");
        Ok(Matrix {
            data: mutable_data_ptr(tensor)?,
            rows: sizes[n - 2] as usize,
            cols: sizes[n - 1] as usize,
            row_stride: strides[n - 2] as isize,
            col_stride: strides[n - 1] as isize,
        })
    }
}

impl<T: Copy> Matrix<T> {
    /// The transpose, as a view.
    pub(crate) fn transposed(self) -> Matrix<T> {
        Matrix {
            data: self.data,
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
        }
    }

    /// The same elements under another name of their type.
    pub(crate) fn cast<U>(self) -> Matrix<U> {
        Matrix {
            data: self.data.cast(),
            rows: self.rows,
            cols: self.cols,
            row_stride: self.row_stride,
            col_stride: self.col_stride,
        }
    }

    /// A block of it.
    pub(crate) fn block(self, row: usize, rows: usize, col: usize, cols: usize) -> Matrix<T> {
        debug_assert!(row + rows <= self.rows && col + cols <= self.cols);
        Matrix { data: self.at(row, col), rows, cols, ..self }
    }

    /// The address of an element.
    #[inline(always)]
    pub(crate) fn at(self, row: usize, col: usize) -> *mut T {
        self.data.wrapping_offset(row as isize * self.row_stride + col as isize * self.col_stride)
    }

    /// # Safety
    /// The element exists and nobody writes to it.
    #[inline(always)]
    pub(crate) unsafe fn get(self, row: usize, col: usize) -> T {
        // SAFETY: the caller's promise.
        unsafe { *self.at(row, col) }
    }

    /// # Safety
    /// The element exists and nobody else uses it.
    #[inline(always)]
    pub(crate) unsafe fn set(self, row: usize, col: usize, value: T) {
        // SAFETY: the caller's promise.
        unsafe { *self.at(row, col) = value }
    }
}
