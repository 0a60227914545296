//! Tensors laid out in a stated order, and the indices of triangles.

use c10::{bail, check, Device, Layout, Result, Scalar, ScalarType, SymDimVector, SymInt, Tensor};

use crate::at;

/// `aten::empty_permuted`: dense, with the dimensions in memory in the order of `physical_layout`.
pub fn empty_permuted(
    size: &[SymInt],
    physical_layout: &[i64],
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    let ndim = size.len();
    check!(
        physical_layout.len() == ndim,
        "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = {ndim} is not \
         equal to len(physical_layout) = {}",
        physical_layout.len()
    );
    let mut strides = SymDimVector::from_elem(SymInt::ZERO, ndim);
    let mut next = SymInt::ONE;
    for (i, &dim) in physical_layout.iter().enumerate().rev() {
        check!(
            (0..ndim as i64).contains(&dim),
            "Dimension out of range (expected to be between 0 and {}, but got {dim} at index {i}).  NB: negative dims not \
             currently supported; file an issue if you want it.",
            ndim as i64 - 1
        );
        check!(!physical_layout[..i].contains(&dim), "Duplicate dim not allowed");
        strides[dim as usize] = next.clone();
        // A dimension of no elements does not take the others' strides away.
        next = next.sym_mul(&size[dim as usize].sym_max(&SymInt::ONE)?)?;
    }
    at::empty_strided(size, &strides, dtype, layout, device, pin_memory)
}

/// How many elements lie on and below a diagonal of a matrix, with `offset` from `-row` to `col`.
fn lower_count(row: i64, col: i64, offset: i64) -> i128 {
    let (row, col, offset) = (i128::from(row), i128::from(col), i128::from(offset));
    // Row r has r + offset + 1 elements, but not less than 0 and not more than there are columns.
    let first = (-offset - 1).clamp(0, row);
    let full = (col - offset - 1).clamp(first, row);
    let (shortest, longest) = (first + offset + 1, full + offset);
    (full - first) * (shortest + longest) / 2 + (row - full) * col
}

/// Row and column of each element of a triangle, row by row, in time and memory of the result's size.
#[allow(clippy::too_many_arguments)]
fn triangle_indices(
    upper: bool,
    row: i64,
    col: i64,
    offset: i64,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    check!(row >= 0, "row must be non-negative, got{row}");
    check!(col >= 0, "col must be non-negative, got{col}");
    check!(
        layout.is_none_or(|layout| layout == Layout::Strided),
        "only support layout=torch.strided, got {layout:?}"
    );
    // Diagonals further out leave the same triangle.
    let offset = offset.clamp(-row, col);
    let (rows, count) = if upper {
        let below = lower_count(row, col, (offset - 1).max(-row));
        (0..(col - offset).min(row), i128::from(row) * i128::from(col) - below)
    } else {
        ((-offset).max(0)..row, lower_count(row, col, offset))
    };
    let Ok(count) = i64::try_from(count) else {
        bail!(Runtime, "the triangle of {row} rows and {col} columns has more elements than fit in memory");
    };
    let long = Some(ScalarType::Long);
    let range = |start: i64, end: i64| {
        at::arange_start(&Scalar::from(start), &Scalar::from(end), long, layout, device, pin_memory)
    };
    let shifted = |tensor: &Tensor, by: i64| at::add_scalar(tensor, &Scalar::from(by), &Scalar::from(1i64));
    let places = range(0, count)?;
    let in_triangle = range(rows.start, rows.end)?;
    // The first column of each row, and how many there are.
    let (begins, lengths) = if upper {
        let begins = at::clamp_min(&shifted(&in_triangle, offset)?, &Scalar::from(0i64))?;
        let lengths = shifted(&at::neg(&begins)?, col)?;
        (begins, lengths)
    } else {
        (
            at::zeros_like(&in_triangle, None, None, None, None, None)?,
            at::clamp_max(&shifted(&in_triangle, offset + 1)?, &Scalar::from(col))?,
        )
    };
    let which = at::repeat_interleave_tensor(&lengths, Some(&SymInt::from(count)))?;
    let one = Scalar::from(1i64);
    let starts = at::sub_tensor(&at::cumsum(&lengths, 0, None)?, &lengths, &one)?;
    let shifts = at::sub_tensor(&begins, &starts, &one)?;
    let columns = at::add_tensor(&places, &at::index_select(&shifts, 0, &which)?, &one)?;
    let result = at::stack(&[shifted(&which, rows.start)?, columns], 0)?;
    at::to_dtype(&result, dtype.unwrap_or(ScalarType::Long), false, false, None)
}

macro_rules! indices {
    ($($name:ident $upper:literal),*) => {$(
        #[doc = concat!("`aten::", stringify!($name), "`: row and column of each element of the triangle, row by row.")]
        pub fn $name(
            row: i64,
            col: i64,
            offset: i64,
            dtype: Option<ScalarType>,
            layout: Option<Layout>,
            device: Option<Device>,
            pin_memory: Option<bool>,
        ) -> Result<Tensor> {
            triangle_indices($upper, row, col, offset, dtype, layout, device, pin_memory)
        }
    )*};
}

indices!(tril_indices false, triu_indices true);
