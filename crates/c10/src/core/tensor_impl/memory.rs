//! Reading where a tensor's elements are.

use crate::core::tensor_impl::TensorImpl;
use crate::{bail, Result, Storage};

/// Memory.
impl TensorImpl {
    /// The storage. Kinds without one give an error.
    #[inline]
    pub fn storage(&self) -> Result<&Storage> {
        if self.policy().storage() {
            if let Some(access) = self.vtable.storage_access {
                return access(self);
            }
        }
        match &self.metadata().storage {
            Some(storage) => Ok(storage),
            None => self.no_storage(),
        }
    }

    #[cold]
    fn no_storage<T>(&self) -> Result<T> {
        bail!(NotImplemented, "Cannot access storage of {}", self.vtable.name)
    }

    /// Whether the tensor has a storage.
    #[inline]
    pub fn has_storage(&self) -> bool {
        self.metadata().storage.is_some()
    }

    /// The storage where there is one, without asking the kind whether it may be seen.
    #[inline]
    pub fn unsafe_storage(&self) -> Option<&Storage> {
        self.metadata().storage.as_ref()
    }

    /// The address of the first element, to be written; null without memory. Copies a copy-on-write storage, see
    /// [`StorageImpl::data_ptr`](crate::StorageImpl::data_ptr).
    #[inline]
    pub fn data_ptr(&self) -> *mut u8 {
        match &self.metadata().storage {
            Some(storage) => self.element_zero(storage.data_ptr()),
            None => std::ptr::null_mut(),
        }
    }

    /// The address of the first element, to be read only; null without memory.
    #[inline]
    pub fn const_data_ptr(&self) -> *const u8 {
        match &self.metadata().storage {
            Some(storage) => self.element_zero(storage.const_data().cast_mut()),
            None => std::ptr::null(),
        }
    }

    #[inline]
    fn element_zero(&self, base: *mut u8) -> *mut u8 {
        if base.is_null() {
            return base;
        }
        // Wrapping: the offset of an empty tensor may point anywhere, and nothing is read there.
        base.wrapping_byte_offset(
            (self.metadata().storage_offset as isize).wrapping_mul(self.item_size() as isize),
        )
    }

    /// Whether both have the same storage (or shares of one copy-on-write block).
    pub fn is_alias_of(&self, other: &Self) -> bool {
        match (&self.metadata().storage, &other.metadata().storage) {
            (Some(a), Some(b)) => a.is_alias_of(b),
            _ => false,
        }
    }
}
