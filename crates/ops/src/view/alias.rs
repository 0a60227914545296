//! Another tensor over the same storage.

use c10::{Result, Tensor, TensorImpl};

/// A view of `self` with other sizes, strides (in elements) and offset.
///
/// The caller knows that the view stays inside the storage: it only leaves out, repeats or reorders elements of
/// `self`, or has checked with `check_in_bounds_for_storage`.
pub fn alias_with_sizes_and_strides(
    self_: &Tensor,
    sizes: &[i64],
    strides: &[i64],
    offset: i64,
) -> Result<Tensor> {
    let view =
        TensorImpl::new_view(Some(self_.storage()?.clone()), self_.key_set(), self_.dtype(), self_.device())
            .with_sizes_and_strides(sizes, strides, offset)?;
    view.set_wrapped_number(self_.is_wrapped_number());
    Ok(view.into())
}

/// `aten::alias`: the same tensor as a new one.
pub fn alias(self_: &Tensor) -> Result<Tensor> {
    alias_with_sizes_and_strides(self_, self_.sizes()?, self_.strides()?, self_.storage_offset()?)
}

/// `aten::detach`: as [`alias`]; what it means for autograd is autograd's.
pub fn detach(self_: &Tensor) -> Result<Tensor> {
    if self_.has_symbolic_sizes_strides() || !self_.has_storage() {
        return self_.shallow_copy_and_detach(c10::VariableVersion::new(0), false);
    }
    alias(self_)
}
