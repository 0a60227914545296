//! Stacking along the first dimensions, and cutting along them.

use c10::{check, MemoryFormat, Result, Scalar, ScalarType, SizeInt, SymDimVector, SymInt, Tensor};

use crate::at;
use crate::sym::sym_ints;
use crate::terms::at_least_1d;

/// `aten::atleast_1d` and its like: the fewest dimensions a part of a stack may have.
fn at_least(tensor: &Tensor, ndim: usize) -> Result<Tensor> {
    match (ndim, tensor.dim()) {
        (1, 0) => at::reshape(tensor, &sym_ints(&[1])),
        (2, 0) => at::reshape(tensor, &sym_ints(&[1, 1])),
        (2, 1) => at::unsqueeze(tensor, 0),
        (3, 0) => at::reshape(tensor, &sym_ints(&[1, 1, 1])),
        (3, 1) => at::unsqueeze(&at::unsqueeze(tensor, 0)?, -1),
        (3, 2) => at::unsqueeze(tensor, -1),
        _ => Ok(tensor.clone()),
    }
}

fn parts(name: &str, tensors: &[Tensor], ndim: usize) -> Result<Vec<Tensor>> {
    check!(!tensors.is_empty(), "{name} expects a non-empty TensorList");
    tensors.iter().map(|tensor| at_least(tensor, ndim)).collect()
}

/// `aten::hstack`
pub fn hstack(tensors: &[Tensor]) -> Result<Tensor> {
    let parts = parts("hstack", tensors, 1)?;
    at::cat(&parts, if parts[0].dim() == 1 { 0 } else { 1 })
}

/// `aten::vstack`
pub fn vstack(tensors: &[Tensor]) -> Result<Tensor> {
    at::cat(&parts("vstack", tensors, 2)?, 0)
}

/// `aten::dstack`
pub fn dstack(tensors: &[Tensor]) -> Result<Tensor> {
    at::cat(&parts("dstack", tensors, 3)?, 2)
}

/// `aten::column_stack`: vectors are columns.
pub fn column_stack(tensors: &[Tensor]) -> Result<Tensor> {
    check!(!tensors.is_empty(), "column_stack expects a non-empty TensorList");
    let column = |tensor: &Tensor| -> Result<Tensor> {
        if tensor.dim() > 1 {
            return Ok(tensor.clone());
        }
        at::reshape(tensor, &[tensor.sym_numel(), SymInt::ONE])
    };
    at::hstack(&tensors.iter().map(column).collect::<Result<Vec<_>>>()?)
}

/// Where `hsplit` and its like cut, and whether the tensor has the dimension.
fn split_dim(name: &str, self_: &Tensor, least: i64) -> Result<i64> {
    let plural = if least == 1 { "dimension" } else { "dimensions" };
    check!(
        self_.dim() >= least,
        "torch.{name} requires a tensor with at least {least} {plural}, but got a tensor with {} dimensions!",
        self_.dim()
    );
    Ok(match name {
        "hsplit" if self_.dim() == 1 => 0,
        "hsplit" => 1,
        "vsplit" => 0,
        _ => 2,
    })
}

fn split_int(name: &str, least: i64, self_: &Tensor, sections: i64) -> Result<Vec<Tensor>> {
    let dim = split_dim(name, self_, least)?;
    let size = self_.sym_size(dim)?;
    let sections = SymInt::from(sections);
    check!(
        sections != 0 && size.sym_mod(&sections)?.is_zero()?,
        "torch.{name} attempted to split along dimension {dim}, but the size of the dimension {size} is not divisible by \
         the split_size {sections}!"
    );
    at::tensor_split_sections(self_, &sections, dim)
}

macro_rules! splits {
    ($($name:literal $least:literal $int:ident $array:ident),*) => {$(
        #[doc = concat!("`aten::", $name, ".int`")]
        pub fn $int(self_: &Tensor, sections: i64) -> Result<Vec<Tensor>> {
            split_int($name, $least, self_, sections)
        }

        #[doc = concat!("`aten::", $name, ".array`")]
        pub fn $array(self_: &Tensor, indices: &[i64]) -> Result<Vec<Tensor>> {
            let dim = split_dim($name, self_, $least)?;
            at::tensor_split_indices(self_, &sym_ints(indices), dim)
        }
    )*};
}

splits!("hsplit" 1 hsplit_int hsplit_array, "vsplit" 2 vsplit_int vsplit_array, "dsplit" 3 dsplit_int dsplit_array);

/// `aten::unsafe_split.Tensor`: pieces that autograd does not know to be views.
pub fn unsafe_split_tensor(self_: &Tensor, split_size: &SymInt, dim: i64) -> Result<Vec<Tensor>> {
    at::split_tensor(self_, split_size, dim)
}

/// `aten::unsafe_split_with_sizes`
pub fn unsafe_split_with_sizes(self_: &Tensor, split_sizes: &[SymInt], dim: i64) -> Result<Vec<Tensor>> {
    at::split_with_sizes(self_, split_sizes, dim)
}

/// `aten::unsafe_chunk`
pub fn unsafe_chunk(self_: &Tensor, chunks: i64, dim: i64) -> Result<Vec<Tensor>> {
    check!(self_.dim() > 0, "chunk expects at least a 1-dimensional tensor");
    check!(chunks > 0, "chunk expects `chunks` to be greater than 0, got: {chunks}");
    let split_size = self_.sym_size(dim)?.sym_ceildiv(&SymInt::from(chunks))?;
    if split_size == 0 {
        let sizes = c10::try_filled(SymInt::ZERO, usize::try_from(chunks).unwrap_or(usize::MAX))?;
        return at::unsafe_split_with_sizes(self_, &sizes, dim);
    }
    at::unsafe_split_tensor(self_, &split_size, dim)
}

/// `aten::repeat_interleave.self_int`
pub fn repeat_interleave_self_int(
    self_: &Tensor,
    repeats: &SymInt,
    dim: Option<i64>,
    output_size: Option<&SymInt>,
) -> Result<Tensor> {
    let flat;
    let (input, dim) = match dim {
        Some(dim) => (self_, dim),
        None => {
            flat = at::flatten_using_ints(self_, 0, -1)?;
            (&flat, 0)
        }
    };
    check!(repeats.expect_nonnegative()?, "Repeats must be non-negative");
    let lifted = at_least_1d(input)?;
    let dim = c10::wrap_dim(dim, lifted.dim(), false)?;
    let mut sizes: SymDimVector = lifted.sym_sizes();
    let size = sizes[dim as usize].sym_mul(repeats)?;
    if let Some(stated) = output_size {
        check!(
            stated.expect_eq(&size)?,
            "repeat_interleave: Invalid output_size, expected {size} but got {stated}"
        );
    }
    sizes.insert(dim as usize + 1, repeats.clone());
    let expanded = at::expand(&at::unsqueeze(&lifted, dim + 1)?, &sizes, false)?;
    at::flatten_using_ints(&at::clone(&expanded, Some(MemoryFormat::Contiguous))?, dim, dim + 1)
}

/// `aten::repeat_interleave.self_Tensor`
pub fn repeat_interleave_self_tensor(
    self_: &Tensor,
    repeats: &Tensor,
    dim: Option<i64>,
    output_size: Option<&SymInt>,
) -> Result<Tensor> {
    let input = if dim.is_none() { at::flatten_using_ints(self_, 0, -1)? } else { self_.clone() };
    let input = at_least_1d(&input)?;
    let dim = dim.unwrap_or(0);
    check!(repeats.dim() <= 1, "repeats must be 0-dim or 1-dim tensor, but got {} dimensions", repeats.dim());
    let size = input.sym_size(dim)?;
    let count = repeats.sym_numel();
    let repeats = if repeats.dim() == 0 || count.is_one()? {
        at::expand(&at::reshape(repeats, &[SymInt::ONE])?, std::slice::from_ref(&size), false)?
    } else {
        check!(
            count.expect_eq(&size)?,
            "repeats must have the same size as input along dim, but got repeats.size(0) = {count} and input.size({dim}) = {size}"
        );
        repeats.clone()
    };
    at::index_select(&input, dim, &at::repeat_interleave_tensor(&repeats, output_size)?)
}

/// `aten::repeat_interleave.Tensor`: each position as often as it says.
pub fn repeat_interleave_tensor(repeats: &Tensor, output_size: Option<&SymInt>) -> Result<Tensor> {
    check!(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
    check!(
        matches!(repeats.dtype(), ScalarType::Int | ScalarType::Long),
        "repeats has to be Long or Int tensor"
    );
    if crate::sym::is_empty(repeats)? {
        return at::new_empty(repeats, &[SymInt::ZERO], None, None, None, None);
    }
    let ends = at::cumsum(repeats, 0, Some(ScalarType::Long))?;
    let total = match output_size {
        Some(size) if repeats.is_meta() => size.clone(),
        _ => {
            let least = at::item(&at::min(repeats)?)?.to_i64()?;
            check!(least >= 0, "repeats can not be negative");
            let last = at::item(&at::select_int(&ends, 0, &SymInt::from(-1))?)?.to_i64()?;
            SymInt::from(last)
        }
    };
    if let Some(stated) = output_size {
        check!(stated.expect_eq(&total)?, "allocated size does not match required size");
    }
    // The number of ends at or before a place is the position that the place repeats.
    let length = total.sym_add(&SymInt::ONE)?;
    let marks = at::new_zeros(&ends, &[length], None, None, None, None)?;
    let ones = at::ones_like(&ends, None, None, None, None, None)?;
    let positions = at::cumsum(&at::index_add(&marks, 0, &ends, &ones, &Scalar::Int(1))?, 0, None)?;
    let positions = at::narrow(&positions, 0, &SymInt::ZERO, &total)?;
    at::clone(&at::to_dtype(&positions, repeats.dtype(), false, false, None)?, None)
}
