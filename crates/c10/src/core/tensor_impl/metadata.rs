//! Changing a tensor's metadata: see Note [Exclusive logical access] in `tensor_impl.rs`.
//!
//! A tensor that is still owned is changed through `&mut` and safely; one that is shared through `unsafe` functions of
//! the same names on `&self`.

use crate::core::tensor_impl::symbolic::SymbolicShapeMeta;
use crate::core::tensor_impl::{Metadata, TensorImpl};
use crate::{bail, checked_numel, fill_contiguous_strides, ContiguityFlags, DimVector, Result, Storage};

impl Metadata {
    /// Symbolic values replace plain ones.
    pub(super) fn set_symbolic(&mut self, meta: SymbolicShapeMeta) {
        // The plain geometry is that of no elements, of as many dimensions.
        let zeros = DimVector::from_elem(0, meta.sizes.len());
        self.sizes_and_strides.set(&zeros, &zeros);
        self.numel = 0;
        self.policy = meta.plain_policy.with_symbolic_shape();
        self.symbolic = Some(Box::new(meta));
    }

    /// Takes over sizes, strides, offset and what follows from them.
    pub(super) fn copy_geometry(&mut self, from: &Metadata) {
        match &from.symbolic {
            Some(meta) => self.set_symbolic(SymbolicShapeMeta::clone(meta)),
            None => {
                self.leave_symbolic();
                self.sizes_and_strides.set(from.sizes_and_strides.sizes(), from.sizes_and_strides.strides());
            }
        }
        self.storage_offset = from.storage_offset;
        self.numel = from.numel;
        self.contiguity = from.contiguity;
    }

    /// Plain values replace symbolic ones.
    #[inline]
    fn leave_symbolic(&mut self) {
        if let Some(meta) = self.symbolic.take() {
            self.policy = meta.plain_policy;
        }
    }

    #[inline]
    fn set_sizes_contiguous(&mut self, sizes: &[i64]) -> Result<()> {
        let numel = checked_numel(sizes, self.dtype.item_size())?;
        self.leave_symbolic();
        self.sizes_and_strides.set_sizes_with(sizes, fill_contiguous_strides);
        self.numel = numel;
        self.contiguity = match sizes.len() {
            4 | 5 => ContiguityFlags::compute(sizes, self.sizes_and_strides.strides(), numel),
            _ => ContiguityFlags::row_major(),
        };
        Ok(())
    }

    #[inline]
    fn set_sizes_and_strides(
        &mut self,
        sizes: &[i64],
        strides: &[i64],
        storage_offset: Option<i64>,
    ) -> Result<()> {
        if sizes.len() != strides.len() {
            return mismatch(sizes, strides);
        }
        let numel = checked_numel(sizes, self.dtype.item_size())?;
        self.leave_symbolic();
        self.sizes_and_strides.set(sizes, strides);
        self.numel = numel;
        self.contiguity = ContiguityFlags::compute(sizes, strides, numel);
        if let Some(storage_offset) = storage_offset {
            self.storage_offset = storage_offset;
        }
        Ok(())
    }
}

#[cold]
fn mismatch(sizes: &[i64], strides: &[i64]) -> Result<()> {
    bail!(
        Runtime,
        "dimensionality of sizes ({}) must match dimensionality of strides ({})",
        sizes.len(),
        strides.len()
    )
}

/// For tensors that are not shared yet.
impl TensorImpl {
    /// Sets the sizes, row-major.
    #[inline]
    pub fn with_sizes_contiguous(mut self, sizes: &[i64]) -> Result<Self> {
        self.metadata.get_mut().set_sizes_contiguous(sizes)?;
        Ok(self)
    }

    /// Sets sizes, strides and offset.
    #[inline]
    pub fn with_sizes_and_strides(
        mut self,
        sizes: &[i64],
        strides: &[i64],
        storage_offset: i64,
    ) -> Result<Self> {
        self.metadata.get_mut().set_sizes_and_strides(sizes, strides, Some(storage_offset))?;
        Ok(self)
    }
}

/// For tensors that may be shared.
impl TensorImpl {
    #[inline]
    #[allow(clippy::mut_from_ref)] // The cell's purpose; each caller states why it is exclusive.
    pub(super) unsafe fn metadata_mut(&self) -> &mut Metadata {
        // SAFETY: the caller has exclusive logical access.
        unsafe { &mut *self.metadata.get() }
    }

    /// Sets sizes, strides (in elements) and, where given, the storage offset. On error nothing has changed.
    ///
    /// # Safety
    ///
    /// Exclusive logical access. The caller has checked that the storage is large enough
    /// ([`check_in_bounds_for_storage`](crate::check_in_bounds_for_storage)), or sees to it before the elements are used.
    pub unsafe fn set_sizes_and_strides(
        &self,
        sizes: &[i64],
        strides: &[i64],
        storage_offset: Option<i64>,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { self.metadata_mut() }.set_sizes_and_strides(sizes, strides, storage_offset)
    }

    /// Sets the sizes, row-major. On error nothing has changed.
    ///
    /// # Safety
    ///
    /// As for [`set_sizes_and_strides`](Self::set_sizes_and_strides).
    pub unsafe fn set_sizes_contiguous(&self, sizes: &[i64]) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { self.metadata_mut() }.set_sizes_contiguous(sizes)
    }

    /// Replaces the storage, and returns the old one. The device follows.
    ///
    /// # Safety
    ///
    /// Exclusive logical access; sizes, strides and offset fit the new storage before the elements are used.
    pub unsafe fn set_storage(&self, storage: Option<Storage>) -> Option<Storage> {
        // SAFETY: passed on to the caller.
        let metadata = unsafe { self.metadata_mut() };
        if let Some(storage) = &storage {
            metadata.device = storage.device();
        }
        std::mem::replace(&mut metadata.storage, storage)
    }
}
