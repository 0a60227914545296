//! `C = alpha·A·B + beta·C`, by the algorithm that suits the shape.

use std::any::TypeId;

use c10::{Element, Result};
use iter::parallel::{parallel_for, GRAIN_SIZE};
use num_complex::Complex;

use super::dot::gather;
use super::element::{Accumulator, LinalgElement};
use super::external::{self, External};
use super::gemv::gemv;
use super::matrix::Matrix;
use super::panel;
use super::small::{is_small, small};

/// Writes `alpha·sum + beta·c` to an element of `c`, which is read only if `beta` is given.
#[inline(always)]
pub(super) fn store<T: LinalgElement>(
    alpha: T::Sum,
    sum: T::Sum,
    beta: Option<T::Sum>,
    c: Matrix<T>,
    row: usize,
    col: usize,
) {
    let mut value = alpha.times(sum);
    if let Some(beta) = beta {
        // SAFETY: an index within the output.
        value = value.plus(beta.times(unsafe { c.get(row, col) }.widen()));
    }
    // SAFETY: as above; each element belongs to one caller.
    unsafe { c.set(row, col, T::narrow(value)) };
}

/// `c = alpha·a·b + beta·c`; without `beta`, `c` is written without being read, so it may hold anything.
///
/// `a` is `c.rows × k`, `b` is `k × c.cols`; `c` overlaps neither, nor itself.
pub(crate) fn gemm<T: LinalgElement>(
    alpha: T::Sum,
    a: Matrix<T>,
    b: Matrix<T>,
    beta: Option<T::Sum>,
    c: Matrix<T>,
) -> Result<()> {
    if c.rows == 0 || c.cols == 0 {
        return Ok(());
    }
    if a.cols == 0 || alpha == <T::Sum as Element>::ZERO {
        return scale(beta, c);
    }
    if is_small(c.rows, c.cols, a.cols) {
        small::<T, T::Sum>(alpha, a, b, beta, c);
        return Ok(());
    }
    if c.cols == 1 {
        return gemv(alpha, a, b.transposed(), beta, c.transposed());
    }
    if c.rows == 1 {
        return gemv(alpha, b.transposed(), a, beta, c);
    }
    let id = TypeId::of::<T>();
    if id == TypeId::of::<f32>() {
        as_external::<T, f32>(alpha, a, b, beta, c)
    } else if id == TypeId::of::<f64>() {
        as_external::<T, f64>(alpha, a, b, beta, c)
    } else if id == TypeId::of::<Complex<f32>>() {
        as_external::<T, Complex<f32>>(alpha, a, b, beta, c)
    } else if id == TypeId::of::<Complex<f64>>() {
        as_external::<T, Complex<f64>>(alpha, a, b, beta, c)
    } else if c.rows > c.cols {
        // The columns are what is cut into pieces.
        panels(alpha, b.transposed(), a.transposed(), beta, c.transposed())
    } else {
        panels(alpha, a, b, beta, c)
    }
}

/// The external product, for a `T` that is `E`.
fn as_external<T: LinalgElement, E: External>(
    alpha: T::Sum,
    a: Matrix<T>,
    b: Matrix<T>,
    beta: Option<T::Sum>,
    c: Matrix<T>,
) -> Result<()> {
    let cast = |m: Matrix<T>| Matrix::<E> {
        data: m.data.cast(),
        rows: m.rows,
        cols: m.cols,
        row_stride: m.row_stride,
        col_stride: m.col_stride,
    };
    // The same type under two names: this converts nothing.
    let same = |value: T::Sum| E::cast_from(value);
    external::multiply(same(alpha), cast(a), cast(b), beta.map(same), cast(c))
}

/// The product over packed panels.
fn panels<T: LinalgElement>(
    alpha: T::Sum,
    a: Matrix<T>,
    b: Matrix<T>,
    beta: Option<T::Sum>,
    c: Matrix<T>,
) -> Result<()> {
    panel::multiply::<T::Sum>(
        (c.rows, c.cols, a.cols),
        &|row, p, line| gather(a.block(row, 1, 0, a.cols), p, line),
        &|p, col, line| gather(b.block(p, 1, 0, b.cols), col, line),
        &|row, col, values| {
            if c.col_stride == 1 && beta.is_none() {
                for value in values.iter_mut() {
                    *value = alpha.times(*value);
                }
                // SAFETY: `values.len()` dense elements of the output that this call alone writes.
                T::narrow_slice(values, unsafe {
                    std::slice::from_raw_parts_mut(c.at(row, col), values.len())
                });
            } else {
                for (j, &value) in values.iter().enumerate() {
                    store(alpha, value, beta, c, row, col + j);
                }
            }
        },
    )
}

/// `c = beta·c`: what is left of a product without terms.
fn scale<T: LinalgElement>(beta: Option<T::Sum>, c: Matrix<T>) -> Result<()> {
    let zero = <T::Sum as Element>::ZERO;
    parallel_for(0, c.rows, (GRAIN_SIZE / c.cols).max(1), &|begin, end| {
        for row in begin..end {
            for col in 0..c.cols {
                store(zero, zero, beta, c, row, col);
            }
        }
    })
}
