//! Another tensor over the same storage.

use c10::{guard_int_array, Result, ScalarType, SizeInt, Tensor, TensorImpl};

/// A view of `self` with other sizes, strides (in elements) and offset.
///
/// The caller knows that the view stays inside the storage: it only leaves out, repeats or reorders elements of
/// `self`, or has checked with `check_in_bounds_for_storage`.
#[inline]
pub fn alias_with_sizes_and_strides<I: SizeInt>(
    self_: &Tensor,
    sizes: &[I],
    strides: &[I],
    offset: &I,
) -> Result<Tensor> {
    let view = alias_as(self_, self_.dtype(), sizes, strides, offset)?;
    view.set_wrapped_number(self_.is_wrapped_number());
    Ok(view)
}

/// [`alias_with_sizes_and_strides`] that reads the memory as another dtype.
pub(super) fn alias_as<I: SizeInt>(
    self_: &Tensor,
    dtype: ScalarType,
    sizes: &[I],
    strides: &[I],
    offset: &I,
) -> Result<Tensor> {
    let view = TensorImpl::new_view(Some(self_.storage()?.clone()), self_.key_set(), dtype, self_.device());
    if let (Some(sizes), Some(strides), Some(offset)) =
        (I::as_ints(sizes), I::as_ints(strides), offset.maybe_as_int())
    {
        return Tensor::new(view.with_sizes_and_strides(sizes, strides, offset)?);
    }
    let (sizes, strides) = (I::to_sym_slice(sizes), I::to_sym_slice(strides));
    let offset = offset.to_sym();
    if self_.is_meta() {
        return Tensor::new(view.with_sym_sizes_and_strides(&sizes, &strides, &offset)?);
    }
    // Memory has a place and a size: its views are decided.
    let view = view.with_sizes_and_strides(
        &guard_int_array(&sizes)?,
        &guard_int_array(&strides)?,
        offset.guard_int()?,
    )?;
    Tensor::new(view)
}

/// The in-place form of a view's operator: `self` itself shows its memory as `view` does.
pub fn in_place(op: &str, self_: &Tensor, view: &Tensor) -> Result<Tensor> {
    let (sizes, strides) = (view.sym_sizes(), view.sym_strides());
    let offset = view.sym_storage_offset();
    self_.with_exclusive_metadata(op, || {
        // SAFETY: no other thread uses the metadata here, and nothing borrowed from it is used afterwards. The view lies
        // inside the storage that `self` had; kernels ask again (`check_in_storage`).
        unsafe { self_.set_sym_sizes_and_strides(&sizes, &strides, Some(&offset)) }
    })?;
    Ok(self_.clone())
}

/// `aten::alias`: the same tensor as a new one.
pub fn alias<I: SizeInt>(self_: &Tensor) -> Result<Tensor> {
    let (sizes, strides) = (I::sizes_of(self_)?, I::strides_of(self_)?);
    alias_with_sizes_and_strides(self_, &sizes, &strides, &I::storage_offset_of(self_)?)
}

/// `aten::detach`: as [`alias`]; what it means for autograd is autograd's.
pub fn detach<I: SizeInt>(self_: &Tensor) -> Result<Tensor> {
    if I::SYMBOLIC || !self_.has_storage() {
        return self_.shallow_copy_and_detach(c10::VariableVersion::new(0));
    }
    alias::<I>(self_)
}
