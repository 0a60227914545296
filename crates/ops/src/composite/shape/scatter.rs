//! Copies of a tensor in which a view's part is replaced, and diagonals.

use c10::{check, wrap_dim, MemoryFormat, Result, SymDimVector, SymInt, Tensor};

use crate::{at, sym};

/// A copy with the same strides and offset, where the storage has places for all elements.
fn clone_preserve_strides(self_: &Tensor) -> Result<Tensor> {
    if self_.is_non_overlapping_and_dense() && self_.sym_storage_offset() == 0 {
        return at::clone(self_, Some(MemoryFormat::Preserve));
    }
    let item_size = SymInt::from(self_.item_size() as i64);
    let length = self_.storage()?.sym_nbytes().sym_floordiv(&item_size)?;
    let whole = at::as_strided(self_, &[length], &[SymInt::ONE], Some(&SymInt::ZERO))?;
    let copy = at::clone(&whole, Some(MemoryFormat::Contiguous))?;
    at::as_strided(&copy, &self_.sym_sizes(), &self_.sym_strides(), Some(&self_.sym_storage_offset()))
}

/// The copy, after `src` went to a view of it.
fn replaced(self_: &Tensor, src: &Tensor, view: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let output = clone_preserve_strides(self_)?;
    let slice = view(&output)?;
    check!(
        sym::expect_same_sizes(src, &slice)?,
        "expected src to have a size equal to the slice of self. src size = {:?}, slice size = {:?}",
        src.sym_sizes(),
        slice.sym_sizes()
    );
    at::copy_(&slice, src, false)?;
    Ok(output)
}

/// `aten::slice_scatter`
pub fn slice_scatter(
    self_: &Tensor,
    src: &Tensor,
    dim: i64,
    start: Option<&SymInt>,
    end: Option<&SymInt>,
    step: &SymInt,
) -> Result<Tensor> {
    replaced(self_, src, |output| at::slice_tensor(output, dim, start, end, step))
}

/// `aten::select_scatter`
pub fn select_scatter(self_: &Tensor, src: &Tensor, dim: i64, index: &SymInt) -> Result<Tensor> {
    replaced(self_, src, |output| at::select_int(output, dim, index))
}

/// `aten::diagonal_scatter`
pub fn diagonal_scatter(self_: &Tensor, src: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
    replaced(self_, src, |output| at::diagonal(output, offset, dim1, dim2))
}

/// `aten::as_strided_scatter`
pub fn as_strided_scatter(
    self_: &Tensor,
    src: &Tensor,
    size: &[SymInt],
    stride: &[SymInt],
    storage_offset: Option<&SymInt>,
) -> Result<Tensor> {
    replaced(self_, src, |output| at::as_strided(output, size, stride, storage_offset))
}

/// `aten::narrow_copy`
pub fn narrow_copy(self_: &Tensor, dim: i64, start: &SymInt, length: &SymInt) -> Result<Tensor> {
    check!(self_.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
    at::clone(&at::narrow(self_, dim, start, length)?, Some(MemoryFormat::Contiguous))
}

/// `aten::diag`: the diagonal of a matrix, or a matrix around one.
pub fn diag(self_: &Tensor, diagonal: i64) -> Result<Tensor> {
    match self_.dim() {
        1 => at::diag_embed(self_, diagonal, 0, 1),
        2 => at::diagonal_copy(self_, diagonal, 0, 1),
        ndim => c10::bail!(Runtime, "diag(): Supports 1D or 2D tensors. Got {ndim}D"),
    }
}

/// `aten::diag_embed`
pub fn diag_embed(self_: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
    let ndim = self_.dim() + 1;
    let (first, second) = (wrap_dim(dim1, ndim, false)?, wrap_dim(dim2, ndim, false)?);
    check!(first != second, "diagonal dimensions cannot be identical {dim1}, {dim2}");
    let mut sizes: SymDimVector = self_.sym_sizes();
    let Some(length) = sizes.pop() else {
        c10::bail!(Index, "Dimension specified as -1 but tensor has no dimensions");
    };
    let distance = i64::try_from(offset.unsigned_abs()).unwrap_or(i64::MAX);
    let length = length.sym_add(&SymInt::from(distance))?;
    sizes.insert(first.min(second) as usize, length.clone());
    sizes.insert(first.max(second) as usize, length);
    let result = at::new_zeros(self_, &sizes, None, None, None, None)?;
    at::copy_(&at::diagonal(&result, offset, first, second)?, self_, false)?;
    Ok(result)
}

/// `aten::diagflat`
pub fn diagflat(self_: &Tensor, offset: i64) -> Result<Tensor> {
    at::diag(&at::reshape(self_, &[SymInt::from(-1)])?, offset)
}

/// `aten::trace`
pub fn trace(self_: &Tensor) -> Result<Tensor> {
    check!(self_.dim() == 2, "trace: expected a matrix, but got tensor with dim {}", self_.dim());
    at::sum(&at::diagonal(self_, 0, 0, 1)?, None)
}

/// `aten::trace_backward`
pub fn trace_backward(grad: &Tensor, sizes: &[SymInt]) -> Result<Tensor> {
    check!(sizes.len() == 2, "expected matrix input");
    let result = at::new_zeros(grad, sizes, None, None, None, None)?;
    let diagonal = at::diagonal(&result, 0, 0, 1)?;
    at::copy_(&diagonal, &at::expand(grad, &diagonal.sym_sizes(), false)?, false)?;
    Ok(result)
}
