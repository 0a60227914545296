//! A value that is either borrowed or owned, for functions that usually return what they were given.

use std::ops::Deref;

/// Borrowed or owned; unlike `Cow` it needs no `Clone`.
///
/// `tensor.expect_contiguous()` and the like return one, so that the common case touches no reference count.
pub enum MaybeOwned<'a, T> {
    /// Somebody else keeps the value alive.
    Borrowed(&'a T),
    /// The value is ours.
    Owned(T),
}

impl<T> MaybeOwned<'_, T> {
    /// Whether the value is borrowed.
    pub fn is_borrowed(&self) -> bool {
        matches!(self, Self::Borrowed(_))
    }
}

impl<T: Clone> MaybeOwned<'_, T> {
    /// The value itself, cloned only if it was borrowed.
    pub fn into_owned(self) -> T {
        match self {
            Self::Borrowed(value) => value.clone(),
            Self::Owned(value) => value,
        }
    }
}

impl<T> Deref for MaybeOwned<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Borrowed(value) => value,
            Self::Owned(value) => value,
        }
    }
}

impl<T> AsRef<T> for MaybeOwned<'_, T> {
    fn as_ref(&self) -> &T {
        self
    }
}
