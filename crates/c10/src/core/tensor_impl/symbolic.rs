//! Symbolic sizes, strides and offset of strided tensors.
//!
//! They stand beside the plain ones, which are then meaningless, and the tensor's `Policy` sends every getter here. Only
//! tensors without memory (the Meta device) have them, so no kernel ever does. What follows from them (the number of
//! elements, contiguity) is an expression or a guard, and computed when it is first asked for.

use std::sync::OnceLock;

use crate::core::geometry::{is_dense_in_order, is_dense_in_some_order, is_like_channels_last};
use crate::core::tensor_impl::vtable::{Policy, TensorImplVTable};
use crate::core::tensor_impl::TensorImpl;
use crate::{
    as_int_array_ref_slow_opt, bail, contiguous_strides_of, sym_multiply_integers, MemoryFormat, Result,
    SymDimVector, SymInt,
};

/// The symbolic geometry of one tensor.
#[derive(Clone)]
pub(in crate::core) struct SymbolicShapeMeta {
    pub(super) sizes: SymDimVector,
    pub(super) strides: SymDimVector,
    pub(super) storage_offset: SymInt,
    numel: OnceLock<SymInt>,
    contiguous: OnceLock<bool>,
    channels_last_contiguous: OnceLock<bool>,
    non_overlapping_and_dense: OnceLock<bool>,
    strides_like_channels_last: OnceLock<bool>,
    /// The tensor's policy without this.
    pub(super) plain_policy: Policy,
}

/// The answer, computed once; an error is no answer, and the next call asks again. Not under the cell's lock, since it may
/// run whoever traces: two threads may both compute.
fn cached<T: Clone>(cell: &OnceLock<T>, compute: impl FnOnce() -> Result<T>) -> Result<T> {
    match cell.get() {
        Some(value) => Ok(value.clone()),
        None => {
            let value = compute()?;
            Ok(cell.get_or_init(|| value).clone())
        }
    }
}

/// The dimensions of a channels-last layout, fastest first.
fn channels_last_order(format: MemoryFormat, ndim: usize) -> Option<&'static [usize]> {
    match (format, ndim) {
        (MemoryFormat::ChannelsLast, 4) => Some(&[1, 3, 2, 0]),
        (MemoryFormat::ChannelsLast3d, 5) => Some(&[1, 4, 3, 2, 0]),
        _ => None,
    }
}

impl SymbolicShapeMeta {
    fn new(sizes: &[SymInt], strides: &[SymInt], storage_offset: SymInt, kind: &TensorImplVTable) -> Self {
        Self {
            sizes: SymDimVector::from(sizes),
            strides: SymDimVector::from(strides),
            storage_offset,
            numel: OnceLock::new(),
            contiguous: OnceLock::new(),
            channels_last_contiguous: OnceLock::new(),
            non_overlapping_and_dense: OnceLock::new(),
            strides_like_channels_last: OnceLock::new(),
            plain_policy: Policy::of(kind),
        }
    }

    fn contiguous(sizes: &[SymInt], kind: &TensorImplVTable) -> Result<Self> {
        let meta = Self::new(sizes, &contiguous_strides_of(sizes)?, SymInt::ZERO, kind);
        let _ = meta.contiguous.set(true);
        let _ = meta.non_overlapping_and_dense.set(true);
        Ok(meta)
    }

    pub(super) fn numel(&self) -> SymInt {
        // A product that overflows belongs to no tensor that can exist; see `sym_numel`.
        cached(&self.numel, || sym_multiply_integers(&self.sizes)).unwrap_or_else(|_| SymInt::from(i64::MAX))
    }

    /// Dense in a format; an error where a guard fails.
    pub(super) fn is_contiguous_in(&self, format: MemoryFormat) -> Result<bool> {
        let (sizes, strides) = (&self.sizes, &self.strides);
        if let Some(order) = channels_last_order(format, sizes.len()) {
            return cached(&self.channels_last_contiguous, || {
                is_dense_in_order(sizes, strides, order.iter().copied())
            });
        }
        if matches!(format, MemoryFormat::ChannelsLast | MemoryFormat::ChannelsLast3d) {
            return Ok(false);
        }
        cached(&self.contiguous, || is_dense_in_order(sizes, strides, (0..sizes.len()).rev()))
    }

    pub(super) fn is_non_overlapping_and_dense(&self) -> Result<bool> {
        cached(&self.non_overlapping_and_dense, || {
            Ok(self.is_contiguous_in(MemoryFormat::Contiguous)?
                || is_dense_in_some_order(&self.sizes, &self.strides)?)
        })
    }

    pub(super) fn is_strides_like(&self, format: MemoryFormat) -> Result<bool> {
        let Some(order) = channels_last_order(format, self.sizes.len()) else { return Ok(false) };
        cached(&self.strides_like_channels_last, || is_like_channels_last(&self.sizes, &self.strides, order))
    }
}

fn check_dims(sizes: &[SymInt], strides: &[SymInt]) -> Result<()> {
    if sizes.len() != strides.len() {
        bail!(
            Runtime,
            "dimensionality of sizes ({}) must match dimensionality of strides ({})",
            sizes.len(),
            strides.len()
        );
    }
    Ok(())
}

/// Sizes, strides and offset as plain integers, if they all are.
fn plain<'a>(
    sizes: &'a [SymInt],
    strides: &'a [SymInt],
    storage_offset: &SymInt,
) -> Option<(&'a [i64], &'a [i64], i64)> {
    Some((
        as_int_array_ref_slow_opt(sizes)?,
        as_int_array_ref_slow_opt(strides)?,
        storage_offset.maybe_as_int()?,
    ))
}

/// Symbolic versions of the setters in `metadata`. Values that are all plain make a plain tensor.
impl TensorImpl {
    /// Sets the sizes of a tensor that is not shared yet, row-major.
    pub fn with_sym_sizes_contiguous(mut self, sizes: &[SymInt]) -> Result<Self> {
        if let Some(sizes) = as_int_array_ref_slow_opt(sizes) {
            return self.with_sizes_contiguous(sizes);
        }
        let meta = SymbolicShapeMeta::contiguous(sizes, self.vtable)?;
        self.metadata.get_mut().set_symbolic(meta);
        Ok(self)
    }

    /// Sets sizes, strides and offset of a tensor that is not shared yet.
    pub fn with_sym_sizes_and_strides(
        mut self,
        sizes: &[SymInt],
        strides: &[SymInt],
        storage_offset: &SymInt,
    ) -> Result<Self> {
        if let Some((sizes, strides, offset)) = plain(sizes, strides, storage_offset) {
            return self.with_sizes_and_strides(sizes, strides, offset);
        }
        check_dims(sizes, strides)?;
        let meta = SymbolicShapeMeta::new(sizes, strides, storage_offset.clone(), self.vtable);
        self.metadata.get_mut().set_symbolic(meta);
        Ok(self)
    }

    /// Sets sizes, strides and, where given, the storage offset of a tensor that may be shared.
    ///
    /// # Safety
    ///
    /// As for [`set_sizes_and_strides`](Self::set_sizes_and_strides).
    pub unsafe fn set_sym_sizes_and_strides(
        &self,
        sizes: &[SymInt],
        strides: &[SymInt],
        storage_offset: Option<&SymInt>,
    ) -> Result<()> {
        let storage_offset = storage_offset.cloned().unwrap_or_else(|| self.sym_storage_offset());
        if let Some((sizes, strides, offset)) = plain(sizes, strides, &storage_offset) {
            // SAFETY: passed on to the caller.
            return unsafe { self.set_sizes_and_strides(sizes, strides, Some(offset)) };
        }
        check_dims(sizes, strides)?;
        let meta = SymbolicShapeMeta::new(sizes, strides, storage_offset, self.vtable);
        // SAFETY: passed on to the caller.
        unsafe { self.metadata_mut() }.set_symbolic(meta);
        Ok(())
    }
}
