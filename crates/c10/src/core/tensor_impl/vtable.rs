//! How tensor kinds outside this crate differ from strided ones.
//!
//! A kind of tensor (sparse, nested, batched, functional, a Python subclass) is a static table of functions plus optional state
//! in [`TensorImpl::extra`]. An entry that is `None` means what a strided tensor does.

use crate::core::tensor_impl::{TensorImpl, VariableVersion};
use crate::{Device, Layout, MemoryFormat, Result, Storage, SymDimVector, SymInt, Tensor};

/// Reads sizes or strides of a tensor of some kind.
pub type ReadDims = fn(&TensorImpl) -> Result<&[i64]>;

/// Copies a tensor of some kind: see [`TensorImpl::shallow_copy_and_detach`].
pub type ShallowCopyAndDetach = fn(&TensorImpl, VariableVersion) -> Result<Tensor>;

/// The table of one kind. Make it a `static`, with [`TensorImplVTable::strided`] for the entries that do not differ.
#[derive(Clone, Copy)]
pub struct TensorImplVTable {
    /// The kind's name, for messages.
    pub name: &'static str,
    /// `dim()`. Without it, the number of `sizes_custom`, or else of `sym_sizes`.
    pub dim_custom: Option<fn(&TensorImpl) -> i64>,
    /// `sizes()`.
    pub sizes_custom: Option<ReadDims>,
    /// `strides()`.
    pub strides_custom: Option<ReadDims>,
    /// `numel()`. Without it, the product of `sizes_custom`.
    pub numel_custom: Option<fn(&TensorImpl) -> Result<i64>>,
    /// `sym_sizes()`. A table with this and no `sizes_custom` has symbolic sizes: `sizes()` is an error.
    pub sym_sizes: Option<fn(&TensorImpl) -> SymDimVector>,
    /// `sym_strides()`, likewise.
    pub sym_strides: Option<fn(&TensorImpl) -> SymDimVector>,
    /// `sym_numel()`. Without it, `numel` where that is known, or else the product of `sym_sizes`.
    pub sym_numel: Option<fn(&TensorImpl) -> SymInt>,
    /// `sym_storage_offset()`. A table with this one makes `storage_offset()` an error.
    pub sym_storage_offset: Option<fn(&TensorImpl) -> SymInt>,
    /// `is_contiguous_in()`.
    pub is_contiguous_custom: Option<fn(&TensorImpl, MemoryFormat) -> bool>,
    /// `is_non_overlapping_and_dense()`.
    pub is_non_overlapping_and_dense_custom: Option<fn(&TensorImpl) -> bool>,
    /// `device()`.
    pub device_custom: Option<fn(&TensorImpl) -> Device>,
    /// `layout()`.
    pub layout_custom: Option<fn(&TensorImpl) -> Layout>,
    /// `storage()`: for kinds without one, an error that says why.
    pub storage_access: Option<fn(&TensorImpl) -> Result<&Storage>>,
    /// `detach()`'s copy: the same data with metadata of its own. Required of kinds with extra state.
    pub shallow_copy_and_detach: Option<ShallowCopyAndDetach>,
    /// `x.data = y`: makes the first the same as the second.
    pub shallow_copy_from: Option<fn(&TensorImpl, &TensorImpl) -> Result<()>>,
    /// Lets go of what the kind holds, when the last strong pointer goes. What is in `extra` is dropped anyway.
    pub release_resources: Option<fn(&TensorImpl)>,
}

impl TensorImplVTable {
    /// A table in which nothing differs.
    pub const fn strided(name: &'static str) -> Self {
        Self {
            name,
            dim_custom: None,
            sizes_custom: None,
            strides_custom: None,
            numel_custom: None,
            sym_sizes: None,
            sym_strides: None,
            sym_numel: None,
            sym_storage_offset: None,
            is_contiguous_custom: None,
            is_non_overlapping_and_dense_custom: None,
            device_custom: None,
            layout_custom: None,
            storage_access: None,
            shallow_copy_and_detach: None,
            shallow_copy_from: None,
            release_resources: None,
        }
    }
}

/// Strided tensors.
pub static STRIDED_VTABLE: TensorImplVTable = TensorImplVTable::strided("TensorImpl");

/// Which getters must ask the table or the symbolic geometry, precomputed so that a strided tensor's getter tests one bit.
#[derive(Clone, Copy)]
pub(in crate::core) struct Policy(u16);

impl Policy {
    const SIZES: u16 = 1;
    const STRIDES: u16 = 2;
    const STORAGE_OFFSET: u16 = 4;
    const DEVICE: u16 = 8;
    const LAYOUT: u16 = 16;
    const STORAGE: u16 = 32;
    const NUMEL: u16 = 64;
    const DIM: u16 = 128;
    /// Sizes, strides or offset are symbolic, by the table or by the tensor.
    const SYMBOLIC: u16 = 256;
    /// What a tensor with symbolic geometry answers from it.
    const OF_SYMBOLIC_SHAPE: u16 =
        Self::SIZES | Self::STRIDES | Self::STORAGE_OFFSET | Self::NUMEL | Self::SYMBOLIC;

    pub(super) const fn of(table: &TensorImplVTable) -> Self {
        const fn bit(on: bool, bit: u16) -> u16 {
            if on {
                bit
            } else {
                0
            }
        }
        let sizes = table.sizes_custom.is_some() || table.sym_sizes.is_some();
        let symbolic = (table.sym_sizes.is_some() && table.sizes_custom.is_none())
            || (table.sym_strides.is_some() && table.strides_custom.is_none())
            || table.sym_storage_offset.is_some();
        let contiguity =
            table.is_contiguous_custom.is_some() || table.is_non_overlapping_and_dense_custom.is_some();
        Self(
            bit(sizes, Self::SIZES)
                | bit(
                    sizes || contiguity || table.strides_custom.is_some() || table.sym_strides.is_some(),
                    Self::STRIDES,
                )
                | bit(table.sym_storage_offset.is_some(), Self::STORAGE_OFFSET)
                | bit(table.device_custom.is_some(), Self::DEVICE)
                | bit(table.layout_custom.is_some(), Self::LAYOUT)
                | bit(table.storage_access.is_some(), Self::STORAGE)
                | bit(sizes || table.numel_custom.is_some(), Self::NUMEL)
                | bit(sizes || table.dim_custom.is_some(), Self::DIM)
                | bit(symbolic, Self::SYMBOLIC),
        )
    }

    /// The policy of a strided tensor whose geometry became symbolic.
    pub(super) const fn with_symbolic_shape(self) -> Self {
        Self(self.0 | Self::OF_SYMBOLIC_SHAPE)
    }

    #[inline]
    pub(super) const fn symbolic(self) -> bool {
        self.0 & Self::SYMBOLIC != 0
    }

    #[inline]
    pub(super) const fn sizes(self) -> bool {
        self.0 & Self::SIZES != 0
    }

    #[inline]
    pub(super) const fn strides(self) -> bool {
        self.0 & Self::STRIDES != 0
    }

    #[inline]
    pub(super) const fn storage_offset(self) -> bool {
        self.0 & Self::STORAGE_OFFSET != 0
    }

    #[inline]
    pub(super) const fn device(self) -> bool {
        self.0 & Self::DEVICE != 0
    }

    #[inline]
    pub(super) const fn layout(self) -> bool {
        self.0 & Self::LAYOUT != 0
    }

    #[inline]
    pub(super) const fn storage(self) -> bool {
        self.0 & Self::STORAGE != 0
    }

    #[inline]
    pub(super) const fn numel(self) -> bool {
        self.0 & Self::NUMEL != 0
    }

    #[inline]
    pub(super) const fn dim(self) -> bool {
        self.0 & Self::DIM != 0
    }
}
