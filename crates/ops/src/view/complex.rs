//! Complex numbers as pairs of reals, and lazy conjugation and negation.

use c10::{check, Result, SizeInt, SizeVector, Tensor};

use super::alias;
use super::alias::alias_as;

/// `aten::view_as_real`
pub fn view_as_real<I: SizeInt>(self_: &Tensor) -> Result<Tensor> {
    check!(
        !self_.is_conj(),
        "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can view it \
         as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the original."
    );
    check!(self_.is_complex(), "view_as_real is only supported for complex tensors");
    let two = I::from(2);
    let mut sizes = I::to_vector(&I::sizes_of(self_)?);
    let mut strides = I::strides_of(self_)?
        .iter()
        .map(|stride| stride.stride_mul(&two))
        .collect::<Result<SizeVector<I>>>()?;
    let offset = I::storage_offset_of(self_)?.sym_mul(&two)?;
    sizes.push(two);
    strides.push(I::ONE);
    alias_as(self_, self_.dtype().to_real_value_type(), &sizes, &strides, &offset)
}

/// `aten::view_as_complex`
pub fn view_as_complex<I: SizeInt>(self_: &Tensor) -> Result<Tensor> {
    let dtype = self_.dtype();
    check!(
        dtype.is_floating_point() && dtype.to_complex().is_ok(),
        "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: {}",
        dtype.short_name()
    );
    let (old_sizes, old_strides) = (I::sizes_of(self_)?, I::strides_of(self_)?);
    let offset = I::storage_offset_of(self_)?;
    check!(!old_sizes.is_empty(), "Input tensor must have one or more dimensions");
    let two = I::from(2);
    let is_even = |value: &I| value.sym_mod(&two)?.expect_eq(&I::ZERO);
    let last = old_sizes.len() - 1;
    check!(old_sizes[last].expect_eq(&two)?, "Tensor must have a last dimension of size 2");
    check!(old_strides[last].expect_eq(&I::ONE)?, "Tensor must have a last dimension with stride 1");
    check!(is_even(&offset)?, "Tensor must have a storage_offset divisible by 2");
    let mut strides = SizeVector::new();
    for stride in &old_strides[..last] {
        check!(is_even(stride)?, "Tensor must have a stride divisible by 2 for all but last dimension");
        strides.push(stride.sym_floordiv(&two)?);
    }
    alias_as(self_, dtype.to_complex()?, &old_sizes[..last], &strides, &offset.sym_floordiv(&two)?)
}

/// `aten::_conj`: the conjugate, left to whoever reads the elements.
pub fn _conj<I: SizeInt>(self_: &Tensor) -> Result<Tensor> {
    check!(self_.is_complex(), "_conj(): expected a complex tensor, got {}", self_.dtype());
    let view = alias::<I>(self_)?;
    view.set_conj(!self_.is_conj());
    Ok(view)
}

/// `aten::_neg_view`: the negative, left to whoever reads the elements.
pub fn _neg_view<I: SizeInt>(self_: &Tensor) -> Result<Tensor> {
    let view = alias::<I>(self_)?;
    view.set_neg(!self_.is_neg());
    Ok(view)
}
