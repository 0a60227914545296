//! The handle everybody passes around.

use std::fmt;
use std::ops::Deref;

use crate::core::tensor_impl::TensorImpl;
use crate::util::intrusive_ptr::{IntrusivePtr, WeakIntrusivePtr};
use crate::{check_memory, Result};

/// A shared tensor: one pointer, and `Option<Tensor>` is one too. There are no undefined tensors.
///
/// The methods of [`TensorImpl`] are its methods.
#[derive(Clone)]
#[repr(transparent)]
pub struct Tensor(IntrusivePtr<TensorImpl>);

/// A tensor that is not kept alive.
#[derive(Clone)]
pub struct WeakTensor(WeakIntrusivePtr<TensorImpl>);

impl Tensor {
    /// Shares a finished tensor.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` if there is no memory for its record: see Note [Memory reserve] in `reserve_allocator.rs`.
    #[inline]
    pub fn new(tensor: TensorImpl) -> Result<Self> {
        let tensor = Self(IntrusivePtr::new(tensor));
        check_memory()?;
        Ok(tensor)
    }

    /// Whether both are the same tensor, as `is` in Python.
    #[inline]
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }

    /// How many hold this tensor.
    #[inline]
    pub fn use_count(&self) -> u32 {
        self.0.strong_count()
    }

    /// A weak pointer.
    pub fn weak(&self) -> WeakTensor {
        WeakTensor(self.0.downgrade())
    }

    /// The address of the tensor: its identity.
    #[inline]
    pub fn as_ptr(&self) -> *const TensorImpl {
        self.0.as_ptr()
    }

    /// The tensor itself.
    #[inline]
    pub fn impl_(&self) -> &TensorImpl {
        &self.0
    }

    /// The pointer.
    #[inline]
    pub const fn as_intrusive_ptr(&self) -> &IntrusivePtr<TensorImpl> {
        &self.0
    }

    /// The pointer.
    #[inline]
    pub fn into_intrusive_ptr(self) -> IntrusivePtr<TensorImpl> {
        self.0
    }

    /// Gives the strong count to the caller.
    #[inline]
    #[must_use = "the strong count leaks unless it is taken back"]
    pub fn into_raw(self) -> *const TensorImpl {
        self.0.into_raw()
    }

    /// Takes a strong count back.
    ///
    /// # Safety
    ///
    /// As for [`IntrusivePtr::from_raw`].
    #[inline]
    pub unsafe fn from_raw(tensor: *const TensorImpl) -> Self {
        // SAFETY: passed on to the caller.
        Self(unsafe { IntrusivePtr::from_raw(tensor) })
    }

    /// Another handle to a tensor known by address.
    ///
    /// # Safety
    ///
    /// Somebody holds the tensor during the call.
    #[inline]
    pub unsafe fn clone_from_raw(tensor: *const TensorImpl) -> Self {
        // SAFETY: passed on to the caller.
        Self(unsafe { IntrusivePtr::clone_from_raw(tensor) })
    }

    /// Borrows a handle from the address of a tensor, without touching the count.
    ///
    /// # Safety
    ///
    /// `*tensor` is the address of a tensor that somebody holds for as long as the borrow lasts.
    #[inline]
    pub unsafe fn borrow_raw(tensor: &*const TensorImpl) -> &Self {
        // SAFETY: a handle is a transparent pointer, and the caller promises that this one is valid.
        unsafe { &*std::ptr::from_ref(tensor).cast() }
    }
}

impl WeakTensor {
    /// The tensor, unless it is gone.
    pub fn upgrade(&self) -> Option<Tensor> {
        self.0.upgrade().map(Tensor)
    }

    /// Whether the tensor is gone.
    pub fn expired(&self) -> bool {
        self.0.expired()
    }

    /// The address of the tensor, which may be gone.
    pub fn as_ptr(&self) -> *const TensorImpl {
        self.0.as_ptr()
    }
}

impl Deref for Tensor {
    type Target = TensorImpl;

    #[inline]
    fn deref(&self) -> &TensorImpl {
        &self.0
    }
}

impl From<TensorImpl> for Tensor {
    #[inline]
    fn from(tensor: TensorImpl) -> Self {
        Self(IntrusivePtr::new(tensor))
    }
}

impl From<IntrusivePtr<TensorImpl>> for Tensor {
    fn from(tensor: IntrusivePtr<TensorImpl>) -> Self {
        Self(tensor)
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.vtable().name)
            .field("dtype", &self.dtype())
            .field("sizes", &self.sym_sizes())
            .field("strides", &self.sym_strides())
            .field("device", &self.device())
            .field("key_set", &self.key_set())
            .finish()
    }
}
