//! Tensors laid out in a stated order, and the indices of triangles.

use c10::{check, Device, Layout, Result, ScalarType, SymDimVector, SymInt, Tensor};

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

macro_rules! indices {
    ($($name:ident $part:ident),*) => {$(
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
            check!(row >= 0, "row must be non-negative, got{row}");
            check!(col >= 0, "col must be non-negative, got{col}");
            check!(
                layout.is_none_or(|layout| layout == Layout::Strided),
                "only support layout=torch.strided, got {layout:?}"
            );
            let sizes = [SymInt::from(row), SymInt::from(col)];
            let all = at::ones(&sizes, Some(ScalarType::Bool), layout, device, pin_memory)?;
            let places = at::t(&at::nonzero(&at::$part(&all, &SymInt::from(offset))?)?)?;
            let result = at::to_dtype(&places, dtype.unwrap_or(ScalarType::Long), false, false, None)?;
            at::contiguous(&result, c10::MemoryFormat::Contiguous)
        }
    )*};
}

indices!(tril_indices tril, triu_indices triu);
