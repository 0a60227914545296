//! Complex numbers as pairs of reals, and lazy conjugation and negation.

use c10::{check, DimVector, Result, Tensor, TensorImpl};

use super::alias;

/// `aten::view_as_real`
pub fn view_as_real(self_: &Tensor) -> Result<Tensor> {
    check!(
        !self_.is_conj(),
        "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can view it \
         as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the original."
    );
    check!(self_.is_complex(), "view_as_real is only supported for complex tensors");
    let mut sizes = DimVector::from_slice(self_.sizes()?);
    let mut strides: DimVector = self_.strides()?.iter().map(|&stride| stride.saturating_mul(2)).collect();
    sizes.push(2);
    strides.push(1);
    let dtype = self_.dtype().to_real_value_type();
    let view = TensorImpl::new_view(Some(self_.storage()?.clone()), self_.key_set(), dtype, self_.device())
        .with_sizes_and_strides(&sizes, &strides, self_.storage_offset()? * 2)?;
    Ok(view.into())
}

/// `aten::view_as_complex`
pub fn view_as_complex(self_: &Tensor) -> Result<Tensor> {
    let dtype = self_.dtype();
    check!(
        dtype.is_floating_point() && dtype.to_complex().is_ok(),
        "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: {}",
        dtype.short_name()
    );
    let (old_sizes, old_strides) = (self_.sizes()?, self_.strides()?);
    let offset = self_.storage_offset()?;
    check!(!old_sizes.is_empty(), "Input tensor must have one or more dimensions");
    let last = old_sizes.len() - 1;
    check!(old_sizes[last] == 2, "Tensor must have a last dimension of size 2");
    check!(old_strides[last] == 1, "Tensor must have a last dimension with stride 1");
    check!(offset % 2 == 0, "Tensor must have a storage_offset divisible by 2");
    check!(
        old_strides[..last].iter().all(|stride| stride % 2 == 0),
        "Tensor must have a stride divisible by 2 for all but last dimension"
    );
    let strides: DimVector = old_strides[..last].iter().map(|stride| stride / 2).collect();
    let storage = self_.storage()?.clone();
    let view = TensorImpl::new_view(Some(storage), self_.key_set(), dtype.to_complex()?, self_.device())
        .with_sizes_and_strides(&old_sizes[..last], &strides, offset / 2)?;
    Ok(view.into())
}

/// `aten::_conj`: the conjugate, left to whoever reads the elements.
pub fn _conj(self_: &Tensor) -> Result<Tensor> {
    let view = alias(self_)?;
    view.set_conj(!self_.is_conj());
    Ok(view)
}

/// `aten::_neg_view`: the negative, left to whoever reads the elements.
pub fn _neg_view(self_: &Tensor) -> Result<Tensor> {
    let view = alias(self_)?;
    view.set_neg(!self_.is_neg());
    Ok(view)
}
