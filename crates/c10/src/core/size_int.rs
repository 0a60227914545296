//! `SizeInt`: shape arithmetic written once, for plain and for symbolic integers.
//!
//! Functions that compute shapes are generic: `fn f<I: SizeInt>(sizes: &[I])`. With `i64` they compile to plain checked
//! arithmetic; with `SymInt` they build expressions. Who calls them picks `SymInt` if any tensor or integer involved is
//! symbolic. There are three ways to compare:
//!
//! * `==` never guards. For symbolic integers, true means "certainly equal" and false means "different or not known";
//! * `guard_*` decides, and the trace depends on the answer: for what changes the result (`size == 1` in broadcasting);
//! * `expect_*` takes the answer for true, to be checked at run time: for what is an error otherwise.

use std::fmt::{Debug, Display};
use std::ops::Deref;

use smallvec::SmallVec;

use crate::core::sym_int::{as_int_array_ref_slow_opt, SymInt};
use crate::{DimVector, Error, Result, SymDimVector, TensorImpl};

/// Sizes or strides of a tensor of few dimensions.
pub type SizeVector<I> = SmallVec<[I; 5]>;

mod sealed {
    pub trait Sealed {}
    impl Sealed for i64 {}
    impl Sealed for crate::SymInt {}
}

/// An integer that sizes, strides and offsets are computed in: `i64` or [`SymInt`].
///
/// Arithmetic is checked: overflow is an error. See the module for the ways to compare.
pub trait SizeInt:
    Clone + PartialEq + PartialEq<i64> + From<i64> + Debug + Display + Send + Sync + 'static + sealed::Sealed
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Whether values may be unknown.
    const SYMBOLIC: bool;

    /// A tensor's sizes or strides, borrowed where they can be.
    type Slice<'a>: Deref<Target = [Self]>;

    /// The tensor's sizes. Symbolic ones are an error for `i64`.
    fn sizes_of(tensor: &TensorImpl) -> Result<Self::Slice<'_>>;
    /// The tensor's strides, in elements.
    fn strides_of(tensor: &TensorImpl) -> Result<Self::Slice<'_>>;
    /// The tensor's number of elements.
    fn numel_of(tensor: &TensorImpl) -> Result<Self>;
    /// The tensor's storage offset, in elements.
    fn storage_offset_of(tensor: &TensorImpl) -> Result<Self>;

    /// An argument. For `i64` a symbolic value is guarded on.
    fn from_sym(value: &SymInt) -> Result<Self>;
    /// An argument list.
    fn from_sym_slice(values: &[SymInt]) -> Result<SizeVector<Self>>;
    /// An optional argument.
    fn from_sym_opt(value: Option<&SymInt>) -> Result<Option<Self>> {
        value.map(Self::from_sym).transpose()
    }
    /// The values as plain integers, if they all are.
    fn as_ints(values: &[Self]) -> Option<&[i64]>;
    /// The value, if it is known without a guard.
    fn maybe_as_int(&self) -> Option<i64>;
    /// The value as an argument.
    fn to_sym(&self) -> SymInt;
    /// The values as an argument list.
    fn to_sym_slice(values: &[Self]) -> SymDimVector {
        values.iter().map(Self::to_sym).collect()
    }
    /// A copy of a slice.
    fn to_vector(values: &[Self]) -> SizeVector<Self>;

    /// `self + other`.
    fn sym_add(&self, other: &Self) -> Result<Self>;
    /// `self - other`.
    fn sym_sub(&self, other: &Self) -> Result<Self>;
    /// `self * other`.
    fn sym_mul(&self, other: &Self) -> Result<Self>;
    /// `self * other` for strides: a plain product too large for the type becomes the largest value. It belongs to a
    /// tensor that is refused where its number of elements or bytes is computed, or to one without elements.
    fn stride_mul(&self, other: &Self) -> Result<Self>;
    /// `self + other` for strides: likewise.
    fn stride_add(&self, other: &Self) -> Result<Self>;
    /// `self // other`, rounded down.
    fn sym_floordiv(&self, other: &Self) -> Result<Self>;
    /// `self % other`, with the sign of `other`.
    fn sym_mod(&self, other: &Self) -> Result<Self>;
    /// The smaller.
    fn sym_min(&self, other: &Self) -> Result<Self>;
    /// The larger.
    fn sym_max(&self, other: &Self) -> Result<Self>;
    /// `self // other` rounded up, for a positive `other`.
    fn sym_ceildiv(&self, other: &Self) -> Result<Self> {
        self.sym_sub(&Self::ONE)?.sym_floordiv(other)?.sym_add(&Self::ONE)
    }

    /// Decides the value: for what is counted out, such as the pieces of `split`.
    fn guard_int(&self) -> Result<i64>;
    /// Decides `self == other`.
    fn guard_eq(&self, other: &Self) -> Result<bool>;
    /// Decides `self < other`.
    fn guard_lt(&self, other: &Self) -> Result<bool>;
    /// Decides `self <= other`.
    fn guard_le(&self, other: &Self) -> Result<bool> {
        Ok(!other.guard_lt(self)?)
    }
    /// Decides whether this is 0. A value that cannot be known before there are data counts as different.
    fn is_zero(&self) -> Result<bool>;
    /// Decides whether this is 1. A value that cannot be known before there are data counts as different.
    fn is_one(&self) -> Result<bool>;

    /// Expects `self == other`; false if it certainly is not.
    fn expect_eq(&self, other: &Self) -> Result<bool>;
    /// Expects `self <= other`.
    fn expect_le(&self, other: &Self) -> Result<bool>;
    /// Expects `self < other`.
    fn expect_lt(&self, other: &Self) -> Result<bool>;
    /// Expects `self >= 0`.
    fn expect_nonnegative(&self) -> Result<bool> {
        Self::ZERO.expect_le(self)
    }
    /// Decides whether two shapes are the same.
    #[track_caller]
    fn guard_same(a: &[Self], b: &[Self]) -> Result<bool> {
        let mut same = a.len() == b.len();
        for (a, b) in a.iter().zip(b) {
            same = same && a.guard_eq(b)?;
        }
        Ok(same)
    }
    /// Expects two shapes to be the same.
    #[track_caller]
    fn expect_same(a: &[Self], b: &[Self]) -> Result<bool> {
        let mut same = a.len() == b.len();
        for (a, b) in a.iter().zip(b) {
            same = same && a.expect_eq(b)?;
        }
        Ok(same)
    }
}

#[cold]
#[inline(never)]
fn overflow(a: i64, symbol: &str, b: i64) -> Error {
    Error::runtime(format!("integer overflow: {a} {symbol} {b}"))
}

impl SizeInt for i64 {
    const ZERO: i64 = 0;
    const ONE: i64 = 1;
    const SYMBOLIC: bool = false;

    type Slice<'a> = &'a [i64];

    #[inline]
    fn sizes_of(tensor: &TensorImpl) -> Result<&[i64]> {
        tensor.sizes()
    }
    #[inline]
    fn strides_of(tensor: &TensorImpl) -> Result<&[i64]> {
        tensor.strides()
    }
    #[inline]
    fn numel_of(tensor: &TensorImpl) -> Result<i64> {
        tensor.numel()
    }
    #[inline]
    fn storage_offset_of(tensor: &TensorImpl) -> Result<i64> {
        tensor.storage_offset()
    }

    #[inline]
    fn from_sym(value: &SymInt) -> Result<i64> {
        value.guard_int()
    }
    #[inline]
    fn from_sym_slice(values: &[SymInt]) -> Result<DimVector> {
        match as_int_array_ref_slow_opt(values) {
            Some(values) => Ok(DimVector::from_slice(values)),
            None => crate::guard_int_array(values),
        }
    }
    #[inline]
    fn as_ints(values: &[i64]) -> Option<&[i64]> {
        Some(values)
    }
    #[inline]
    fn maybe_as_int(&self) -> Option<i64> {
        Some(*self)
    }
    #[inline]
    fn to_sym(&self) -> SymInt {
        SymInt::from(*self)
    }
    #[inline]
    fn to_vector(values: &[i64]) -> DimVector {
        DimVector::from_slice(values)
    }

    #[inline]
    fn sym_add(&self, other: &i64) -> Result<i64> {
        self.checked_add(*other).ok_or_else(|| overflow(*self, "+", *other))
    }
    #[inline]
    fn sym_sub(&self, other: &i64) -> Result<i64> {
        self.checked_sub(*other).ok_or_else(|| overflow(*self, "-", *other))
    }
    #[inline]
    fn sym_mul(&self, other: &i64) -> Result<i64> {
        self.checked_mul(*other).ok_or_else(|| overflow(*self, "*", *other))
    }
    #[inline]
    fn stride_mul(&self, other: &i64) -> Result<i64> {
        Ok(self.saturating_mul(*other))
    }
    #[inline]
    fn stride_add(&self, other: &i64) -> Result<i64> {
        Ok(self.saturating_add(*other))
    }
    #[inline]
    fn sym_floordiv(&self, other: &i64) -> Result<i64> {
        crate::core::sym_int::checked_floor_div(*self, *other).ok_or_else(|| overflow(*self, "//", *other))
    }
    #[inline]
    fn sym_mod(&self, other: &i64) -> Result<i64> {
        crate::core::sym_int::checked_floor_mod(*self, *other).ok_or_else(|| overflow(*self, "%", *other))
    }
    #[inline]
    fn sym_min(&self, other: &i64) -> Result<i64> {
        Ok(*self.min(other))
    }
    #[inline]
    fn sym_max(&self, other: &i64) -> Result<i64> {
        Ok(*self.max(other))
    }

    #[inline]
    fn guard_int(&self) -> Result<i64> {
        Ok(*self)
    }
    #[inline]
    fn guard_eq(&self, other: &i64) -> Result<bool> {
        Ok(self == other)
    }
    #[inline]
    fn guard_lt(&self, other: &i64) -> Result<bool> {
        Ok(self < other)
    }
    #[inline]
    fn is_zero(&self) -> Result<bool> {
        Ok(*self == 0)
    }
    #[inline]
    fn is_one(&self) -> Result<bool> {
        Ok(*self == 1)
    }
    #[inline]
    fn expect_eq(&self, other: &i64) -> Result<bool> {
        Ok(self == other)
    }
    #[inline]
    fn expect_le(&self, other: &i64) -> Result<bool> {
        Ok(self <= other)
    }
    #[inline]
    fn expect_lt(&self, other: &i64) -> Result<bool> {
        Ok(self < other)
    }
    #[inline]
    fn guard_same(a: &[i64], b: &[i64]) -> Result<bool> {
        Ok(a == b)
    }
    #[inline]
    fn expect_same(a: &[i64], b: &[i64]) -> Result<bool> {
        Ok(a == b)
    }
}

impl SizeInt for SymInt {
    const ZERO: SymInt = SymInt::ZERO;
    const ONE: SymInt = SymInt::ONE;
    const SYMBOLIC: bool = true;

    type Slice<'a> = SymDimVector;

    fn sizes_of(tensor: &TensorImpl) -> Result<SymDimVector> {
        Ok(tensor.sym_sizes())
    }
    fn strides_of(tensor: &TensorImpl) -> Result<SymDimVector> {
        Ok(tensor.sym_strides())
    }
    fn numel_of(tensor: &TensorImpl) -> Result<SymInt> {
        Ok(tensor.sym_numel())
    }
    fn storage_offset_of(tensor: &TensorImpl) -> Result<SymInt> {
        Ok(tensor.sym_storage_offset())
    }

    fn from_sym(value: &SymInt) -> Result<SymInt> {
        Ok(value.clone())
    }
    fn from_sym_slice(values: &[SymInt]) -> Result<SymDimVector> {
        Ok(SymDimVector::from(values))
    }
    fn as_ints(values: &[SymInt]) -> Option<&[i64]> {
        as_int_array_ref_slow_opt(values)
    }
    fn maybe_as_int(&self) -> Option<i64> {
        SymInt::maybe_as_int(self)
    }
    fn to_sym(&self) -> SymInt {
        self.clone()
    }
    fn to_vector(values: &[SymInt]) -> SymDimVector {
        SymDimVector::from(values)
    }

    fn sym_add(&self, other: &SymInt) -> Result<SymInt> {
        SymInt::sym_add(self, other)
    }
    fn sym_sub(&self, other: &SymInt) -> Result<SymInt> {
        SymInt::sym_sub(self, other)
    }
    fn sym_mul(&self, other: &SymInt) -> Result<SymInt> {
        SymInt::sym_mul(self, other)
    }
    fn stride_mul(&self, other: &SymInt) -> Result<SymInt> {
        match (self.maybe_as_int(), other.maybe_as_int()) {
            (Some(a), Some(b)) => Ok(SymInt::from(a.saturating_mul(b))),
            _ => SymInt::sym_mul(self, other),
        }
    }
    fn stride_add(&self, other: &SymInt) -> Result<SymInt> {
        match (self.maybe_as_int(), other.maybe_as_int()) {
            (Some(a), Some(b)) => Ok(SymInt::from(a.saturating_add(b))),
            _ => SymInt::sym_add(self, other),
        }
    }
    fn sym_floordiv(&self, other: &SymInt) -> Result<SymInt> {
        SymInt::sym_floordiv(self, other)
    }
    fn sym_mod(&self, other: &SymInt) -> Result<SymInt> {
        SymInt::sym_mod(self, other)
    }
    fn sym_min(&self, other: &SymInt) -> Result<SymInt> {
        SymInt::sym_min(self, other)
    }
    fn sym_max(&self, other: &SymInt) -> Result<SymInt> {
        SymInt::sym_max(self, other)
    }

    #[track_caller]
    fn guard_int(&self) -> Result<i64> {
        SymInt::guard_int(self)
    }
    #[track_caller]
    fn guard_eq(&self, other: &SymInt) -> Result<bool> {
        SymInt::guard_eq(self, other)
    }
    #[track_caller]
    fn guard_lt(&self, other: &SymInt) -> Result<bool> {
        SymInt::guard_lt(self, other)
    }
    #[track_caller]
    fn is_zero(&self) -> Result<bool> {
        self.sym_eq(&SymInt::ZERO)?.guard_or_false()
    }
    #[track_caller]
    fn is_one(&self) -> Result<bool> {
        self.sym_eq(&SymInt::ONE)?.guard_or_false()
    }
    #[track_caller]
    fn expect_eq(&self, other: &SymInt) -> Result<bool> {
        if self == other {
            return Ok(true);
        }
        self.sym_eq(other)?.expect_true()
    }
    #[track_caller]
    fn expect_le(&self, other: &SymInt) -> Result<bool> {
        self.sym_le(other)?.expect_true()
    }
    #[track_caller]
    fn expect_lt(&self, other: &SymInt) -> Result<bool> {
        self.sym_lt(other)?.expect_true()
    }
}
