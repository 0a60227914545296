//! Views by arithmetic on sizes and strides.

use c10::{
    bail, check, check_in_bounds_for_symbolic_storage, check_sizes_nonnegative, compute_stride,
    contiguous_strides_of, infer_expand_geometry, infer_size, Result, ScalarType, SizeInt, SizeVector,
    SymInt, Tensor,
};

use super::alias::alias_as;
use super::alias_with_sizes_and_strides;

/// `aten::as_strided`
pub fn as_strided<I: SizeInt>(
    self_: &Tensor,
    size: &[SymInt],
    stride: &[SymInt],
    storage_offset: Option<&SymInt>,
) -> Result<Tensor> {
    let (size, stride) = (I::from_sym_slice(size)?, I::from_sym_slice(stride)?);
    let offset = match I::from_sym_opt(storage_offset)? {
        Some(offset) => offset,
        None => I::storage_offset_of(self_)?,
    };
    check_in_bounds_for_symbolic_storage(&size, &stride, &offset, self_.dtype(), self_.storage()?)?;
    alias_with_sizes_and_strides(self_, &size, &stride, &offset)
}

/// The strides of a view of another shape with the same number of elements, or `None` if a copy is needed.
pub fn view_strides<I: SizeInt>(self_: &Tensor, sizes: &[I], numel: &I) -> Result<Option<SizeVector<I>>> {
    // Row-major memory stays so; for plain sizes the general rule is as quick, and keeps strides of size 1.
    if I::SYMBOLIC && self_.is_contiguous() {
        return contiguous_strides_of(sizes).map(Some);
    }
    compute_stride(&I::sizes_of(self_)?, &I::strides_of(self_)?, numel, sizes)
}

/// `aten::view`
pub fn view<I: SizeInt>(self_: &Tensor, size: &[SymInt]) -> Result<Tensor> {
    let numel = I::numel_of(self_)?;
    let size = infer_size(&I::from_sym_slice(size)?, &numel)?;
    let Some(strides) = view_strides(self_, &size, &numel)? else {
        bail!(
            Runtime,
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two \
             contiguous subspaces). Use .reshape(...) instead."
        );
    };
    alias_with_sizes_and_strides(self_, &size, &strides, &I::storage_offset_of(self_)?)
}

/// `aten::_reshape_alias`: a view whose strides `reshape` has worked out.
pub fn _reshape_alias<I: SizeInt>(self_: &Tensor, size: &[SymInt], stride: &[SymInt]) -> Result<Tensor> {
    as_strided::<I>(self_, size, stride, None)
}

/// `aten::view.dtype`: the same bytes as elements of another dtype.
pub fn view_dtype<I: SizeInt>(self_: &Tensor, dtype: ScalarType) -> Result<Tensor> {
    if self_.dtype() == dtype {
        return super::alias::<I>(self_);
    }
    check!(
        !self_.is_conj(),
        "torch.Tensor.view is not supported for conjugate view tensors when converting to a different dtype."
    );
    check!(
        !self_.is_neg(),
        "torch.Tensor.view is not supported for tensors with negative bit set when converting to a different dtype."
    );
    let (from, to) = (self_.item_size() as i64, dtype.item_size() as i64);
    let mut sizes = I::to_vector(&I::sizes_of(self_)?);
    let mut strides = I::to_vector(&I::strides_of(self_)?);
    let mut offset = I::storage_offset_of(self_)?;
    if from != to {
        check!(
            !sizes.is_empty(),
            "self.dim() cannot be 0 to view {} as {dtype} (different element sizes)",
            self_.dtype()
        );
        let last = sizes.len() - 1;
        check!(
            strides[last].expect_eq(&I::ONE)?,
            "self.stride(-1) must be 1 to view {} as {dtype} (different element sizes), but got {}",
            self_.dtype(),
            strides[last]
        );
        if from > to {
            scale_to_smaller(&mut sizes, &mut strides, &mut offset, last, &I::from(from / to))?;
        } else {
            let ratio = I::from(to / from);
            scale_to_larger(self_, dtype, &mut sizes, &mut strides, &mut offset, last, &ratio)?;
        }
    }
    check_in_bounds_for_symbolic_storage(&sizes, &strides, &offset, dtype, self_.storage()?)?;
    alias_as(self_, dtype, &sizes, &strides, &offset)
}

fn scale_to_smaller<I: SizeInt>(
    sizes: &mut [I],
    strides: &mut [I],
    offset: &mut I,
    last: usize,
    ratio: &I,
) -> Result<()> {
    sizes[last] = sizes[last].sym_mul(ratio)?;
    *offset = offset.sym_mul(ratio)?;
    for stride in &mut strides[..last] {
        *stride = stride.stride_mul(ratio)?;
    }
    Ok(())
}

fn scale_to_larger<I: SizeInt>(
    self_: &Tensor,
    dtype: ScalarType,
    sizes: &mut [I],
    strides: &mut [I],
    offset: &mut I,
    last: usize,
    ratio: &I,
) -> Result<()> {
    let from = self_.dtype();
    let divides = |value: &I| value.sym_mod(ratio)?.expect_eq(&I::ZERO);
    check!(
        divides(&sizes[last])?,
        "self.size(-1) must be divisible by {ratio} to view {from} as {dtype} (different element sizes), but got {}",
        sizes[last]
    );
    check!(
        divides(offset)?,
        "self.storage_offset() must be divisible by {ratio} to view {from} as {dtype} (different element sizes), but got {offset}"
    );
    for (dim, stride) in strides[..last].iter_mut().enumerate() {
        check!(
            divides(stride)?,
            "self.stride({dim}) must be divisible by {ratio} to view {from} as {dtype} (different element sizes), but got {stride}"
        );
        *stride = stride.sym_floordiv(ratio)?;
    }
    sizes[last] = sizes[last].sym_floordiv(ratio)?;
    *offset = offset.sym_floordiv(ratio)?;
    Ok(())
}

/// `aten::expand`
pub fn expand<I: SizeInt>(self_: &Tensor, size: &[SymInt], _implicit: bool) -> Result<Tensor> {
    let size = I::from_sym_slice(size)?;
    let (sizes, strides) = infer_expand_geometry(&I::sizes_of(self_)?, &I::strides_of(self_)?, &size)?;
    check_sizes_nonnegative(&sizes)?;
    alias_with_sizes_and_strides(self_, &sizes, &strides, &I::storage_offset_of(self_)?)
}
