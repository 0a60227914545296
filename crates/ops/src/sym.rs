//! Sizes that may be symbolic, as the operators see them.
//!
//! Signatures carry `SymInt`. Shapes are computed by functions that are generic over [`SizeInt`], or here and there on
//! `SymInt`s alone where that costs nothing. What a kernel finally takes is a plain integer: for a symbolic value,
//! [`ints`] and its kin install a guard.

use c10::{DimVector, Result, Scalar, SizeInt, SymDimVector, SymInt, Tensor};
use iter::StructuredOutputs;

/// Concrete sizes.
pub fn ints(values: &[SymInt]) -> Result<DimVector> {
    i64::from_sym_slice(values)
}

/// Concrete sizes that may be missing.
pub fn optional_ints(values: Option<&[SymInt]>) -> Result<Option<DimVector>> {
    values.map(ints).transpose()
}

/// A concrete integer that may be missing.
pub fn optional_int(value: Option<&SymInt>) -> Result<Option<i64>> {
    value.map(SymInt::guard_int).transpose()
}

/// Plain integers as symbolic ones.
pub fn sym_ints(values: &[i64]) -> SymDimVector {
    values.iter().map(|&v| SymInt::from(v)).collect()
}

/// Decides whether a tensor has no elements.
pub fn is_empty(tensor: &Tensor) -> Result<bool> {
    if tensor.has_symbolic_sizes_strides() {
        return tensor.sym_numel().is_zero();
    }
    Ok(tensor.numel()? == 0)
}

/// Decides whether two tensors have the same sizes.
pub fn same_sizes(a: &Tensor, b: &Tensor) -> Result<bool> {
    if !a.has_symbolic_sizes_strides() && !b.has_symbolic_sizes_strides() {
        return Ok(a.sizes()? == b.sizes()?);
    }
    SymInt::guard_same(&a.sym_sizes(), &b.sym_sizes())
}

/// Whether two tensors are expected to have the same sizes.
pub fn expect_same_sizes(a: &Tensor, b: &Tensor) -> Result<bool> {
    if !a.has_symbolic_sizes_strides() && !b.has_symbolic_sizes_strides() {
        return Ok(a.sizes()? == b.sizes()?);
    }
    SymInt::expect_same(&a.sym_sizes(), &b.sym_sizes())
}

/// The number of elements as an operand: plain where it is known.
pub fn numel_scalar(tensor: &Tensor) -> Scalar {
    scalar(&tensor.sym_numel())
}

/// An integer as an operand: plain where it is known.
pub fn scalar(value: &SymInt) -> Scalar {
    match value.maybe_as_int() {
        Some(value) => Scalar::Int(value),
        None => Scalar::SymInt(value.clone()),
    }
}

/// An argument that may be symbolic. Where one is, shapes are computed on [`SymInt`], else on `i64`.
pub trait MaybeSymbolic {
    /// Whether sizes, strides or the value itself may be unknown.
    fn is_symbolic(&self) -> bool;
}

impl MaybeSymbolic for Tensor {
    #[inline]
    fn is_symbolic(&self) -> bool {
        self.has_symbolic_sizes_strides()
    }
}

impl MaybeSymbolic for SymInt {
    #[inline]
    fn is_symbolic(&self) -> bool {
        self.is_symbolic()
    }
}

impl MaybeSymbolic for Scalar {
    #[inline]
    fn is_symbolic(&self) -> bool {
        self.is_symbolic()
    }
}

impl MaybeSymbolic for StructuredOutputs {
    #[inline]
    fn is_symbolic(&self) -> bool {
        self.is_symbolic()
    }
}

impl<T: MaybeSymbolic> MaybeSymbolic for Option<T> {
    #[inline]
    fn is_symbolic(&self) -> bool {
        self.as_ref().is_some_and(T::is_symbolic)
    }
}

impl<T: MaybeSymbolic> MaybeSymbolic for [T] {
    #[inline]
    fn is_symbolic(&self) -> bool {
        self.iter().any(T::is_symbolic)
    }
}

impl<T: MaybeSymbolic + ?Sized> MaybeSymbolic for &T {
    #[inline]
    fn is_symbolic(&self) -> bool {
        T::is_symbolic(self)
    }
}

impl<T: MaybeSymbolic + ?Sized> MaybeSymbolic for &mut T {
    #[inline]
    fn is_symbolic(&self) -> bool {
        T::is_symbolic(self)
    }
}

/// Calls a function that is generic over [`SizeInt`] with `SymInt` if one of the listed arguments is symbolic, else with
/// `i64`.
macro_rules! with_sizes {
    ([$($maybe:expr),* $(,)?] $($path:ident)::+ ($($argument:expr),* $(,)?)) => {
        if $($crate::sym::MaybeSymbolic::is_symbolic(&$maybe) ||)* false {
            $($path)::+::<c10::SymInt>($($argument),*)
        } else {
            $($path)::+::<i64>($($argument),*)
        }
    };
}

pub(crate) use with_sizes;
