//! Reading a tensor's sizes, strides and what follows from them.

use crate::core::tensor_impl::symbolic::SymbolicShapeMeta;
use crate::core::tensor_impl::TensorImpl;
use crate::{
    bail, check_aligned, check_in_bounds_for_storage, multiply_integers, wrap_dim, Layout, MemoryFormat,
    Result, SymDimVector, SymInt,
};

fn to_symbolic(values: &[i64]) -> SymDimVector {
    values.iter().map(|&value| SymInt::from(value)).collect()
}

/// Sizes, strides and what follows from them.
impl TensorImpl {
    /// The number of dimensions.
    #[inline]
    pub fn dim(&self) -> i64 {
        if self.policy().dim() {
            return self.dim_slow();
        }
        self.metadata().sizes_and_strides.len() as i64
    }

    #[cold]
    fn dim_slow(&self) -> i64 {
        if let Some(dim) = self.vtable.dim_custom {
            return dim(self);
        }
        match (self.vtable.sizes_custom, self.vtable.sym_sizes) {
            (Some(sizes), sym_sizes) => match (sizes(self), sym_sizes) {
                (Ok(sizes), _) => sizes.len() as i64,
                (Err(_), Some(sym_sizes)) => sym_sizes(self).len() as i64,
                (Err(_), None) => self.metadata().sizes_and_strides.len() as i64,
            },
            (None, Some(sym_sizes)) => sym_sizes(self).len() as i64,
            (None, None) => self.metadata().sizes_and_strides.len() as i64,
        }
    }

    /// The sizes. Symbolic ones are an error here: ask [`sym_sizes`](Self::sym_sizes).
    #[inline]
    pub fn sizes(&self) -> Result<&[i64]> {
        if self.policy().sizes() {
            return self.sizes_slow();
        }
        Ok(self.metadata().sizes_and_strides.sizes())
    }

    #[cold]
    fn sizes_slow(&self) -> Result<&[i64]> {
        match self.vtable.sizes_custom {
            Some(sizes) => sizes(self),
            None => self.symbolic("sizes"),
        }
    }

    /// The symbolic geometry of a strided tensor that has one.
    #[inline]
    fn symbolic_shape(&self) -> Option<&SymbolicShapeMeta> {
        self.metadata().symbolic.as_deref()
    }

    #[cold]
    fn symbolic<T>(&self, what: &str) -> Result<T> {
        bail!(Runtime, "Cannot call {what}() on tensor with symbolic sizes/strides ({})", self.vtable.name)
    }

    /// The strides, in elements.
    #[inline]
    pub fn strides(&self) -> Result<&[i64]> {
        if self.policy().strides() {
            return self.strides_slow();
        }
        Ok(self.metadata().sizes_and_strides.strides())
    }

    #[cold]
    fn strides_slow(&self) -> Result<&[i64]> {
        match (self.vtable.strides_custom, self.vtable.sym_strides, self.vtable.sym_sizes) {
            (Some(strides), ..) => strides(self),
            (None, None, None) if !self.policy().symbolic() => {
                Ok(self.metadata().sizes_and_strides.strides())
            }
            _ => self.symbolic("strides"),
        }
    }

    /// One size; negative dimensions count from the end.
    #[inline]
    pub fn size(&self, dim: i64) -> Result<i64> {
        let sizes = self.sizes()?;
        Ok(sizes[wrap_dim(dim, sizes.len() as i64, false)? as usize])
    }

    /// One stride; negative dimensions count from the end.
    #[inline]
    pub fn stride(&self, dim: i64) -> Result<i64> {
        let strides = self.strides()?;
        Ok(strides[wrap_dim(dim, strides.len() as i64, false)? as usize])
    }

    /// The number of elements.
    #[inline]
    pub fn numel(&self) -> Result<i64> {
        if self.policy().numel() {
            return self.numel_slow();
        }
        Ok(self.metadata().numel)
    }

    #[cold]
    fn numel_slow(&self) -> Result<i64> {
        if let Some(numel) = self.vtable.numel_custom {
            return numel(self);
        }
        match self.vtable.sizes_custom {
            Some(sizes) => multiply_integers(sizes(self)?),
            None => self.symbolic("numel"),
        }
    }

    /// Whether there are no elements; false for symbolic sizes that cannot say.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.numel().is_ok_and(|numel| numel == 0)
    }

    /// Where the first element is in the storage, in elements.
    #[inline]
    pub fn storage_offset(&self) -> Result<i64> {
        if self.policy().storage_offset() {
            return self.symbolic("storage_offset");
        }
        Ok(self.metadata().storage_offset)
    }

    /// The sizes, symbolic or not.
    pub fn sym_sizes(&self) -> SymDimVector {
        if let Some(shape) = self.symbolic_shape() {
            return shape.sizes.clone();
        }
        match (self.vtable.sym_sizes, self.sizes()) {
            (Some(sym_sizes), _) => sym_sizes(self),
            (None, Ok(sizes)) => to_symbolic(sizes),
            (None, Err(_)) => to_symbolic(self.metadata().sizes_and_strides.sizes()),
        }
    }

    /// The strides, symbolic or not.
    pub fn sym_strides(&self) -> SymDimVector {
        if let Some(shape) = self.symbolic_shape() {
            return shape.strides.clone();
        }
        match (self.vtable.sym_strides, self.strides()) {
            (Some(sym_strides), _) => sym_strides(self),
            (None, Ok(strides)) => to_symbolic(strides),
            (None, Err(_)) => to_symbolic(self.metadata().sizes_and_strides.strides()),
        }
    }

    /// The number of elements, symbolic or not.
    pub fn sym_numel(&self) -> SymInt {
        if let Some(shape) = self.symbolic_shape() {
            return shape.numel();
        }
        if let Some(sym_numel) = self.vtable.sym_numel {
            return sym_numel(self);
        }
        match self.numel() {
            Ok(numel) => SymInt::from(numel),
            Err(_) => self
                .sym_sizes()
                .iter()
                .try_fold(SymInt::from(1), |product, size| product.sym_mul(size))
                .unwrap_or_else(|_| SymInt::from(i64::MAX)),
        }
    }

    /// The storage offset, symbolic or not.
    pub fn sym_storage_offset(&self) -> SymInt {
        if let Some(shape) = self.symbolic_shape() {
            return shape.storage_offset.clone();
        }
        match self.vtable.sym_storage_offset {
            Some(sym_storage_offset) => sym_storage_offset(self),
            None => SymInt::from(self.metadata().storage_offset),
        }
    }

    /// One size, symbolic or not; negative dimensions count from the end.
    pub fn sym_size(&self, dim: i64) -> Result<SymInt> {
        if !self.policy().sizes() {
            return self.size(dim).map(SymInt::from);
        }
        let mut sizes = self.sym_sizes();
        let dim = wrap_dim(dim, sizes.len() as i64, false)?;
        Ok(sizes.swap_remove(dim as usize))
    }

    /// One stride, symbolic or not; negative dimensions count from the end.
    pub fn sym_stride(&self, dim: i64) -> Result<SymInt> {
        if !self.policy().strides() {
            return self.stride(dim).map(SymInt::from);
        }
        let mut strides = self.sym_strides();
        let dim = wrap_dim(dim, strides.len() as i64, false)?;
        Ok(strides.swap_remove(dim as usize))
    }

    /// Whether sizes, strides or offset are symbolic.
    #[inline]
    pub fn has_symbolic_sizes_strides(&self) -> bool {
        self.policy().symbolic()
    }

    /// Whether memory is row-major.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        if self.policy().strides() {
            return self.is_contiguous_slow(MemoryFormat::Contiguous);
        }
        self.metadata().contiguity.is_contiguous()
    }

    /// Whether memory is dense in the given format.
    #[inline]
    pub fn is_contiguous_in(&self, format: MemoryFormat) -> bool {
        if self.policy().strides() {
            return self.is_contiguous_slow(format);
        }
        let contiguity = self.metadata().contiguity;
        match format {
            MemoryFormat::ChannelsLast => contiguity.is_channels_last_contiguous(),
            MemoryFormat::ChannelsLast3d => contiguity.is_channels_last_3d_contiguous(),
            MemoryFormat::Contiguous | MemoryFormat::Preserve => contiguity.is_contiguous(),
        }
    }

    /// A symbolic tensor of which it cannot be decided now is not contiguous: the guard's error has no way out of a `bool`,
    /// and is not remembered.
    #[cold]
    fn is_contiguous_slow(&self, format: MemoryFormat) -> bool {
        if let Some(is_contiguous) = self.vtable.is_contiguous_custom {
            return is_contiguous(self, format);
        }
        if let Some(shape) = self.symbolic_shape() {
            return shape.is_contiguous_in(format).unwrap_or(false);
        }
        self.custom_contiguity().is_some_and(|contiguity| match format {
            MemoryFormat::ChannelsLast => contiguity.is_channels_last_contiguous(),
            MemoryFormat::ChannelsLast3d => contiguity.is_channels_last_3d_contiguous(),
            MemoryFormat::Contiguous | MemoryFormat::Preserve => contiguity.is_contiguous(),
        })
    }

    /// The flags of a kind that keeps sizes and strides of its own, where it has plain numbers.
    fn custom_contiguity(&self) -> Option<crate::ContiguityFlags> {
        let (sizes, strides, numel) = (self.sizes().ok()?, self.strides().ok()?, self.numel().ok()?);
        (sizes.len() == strides.len()).then(|| crate::ContiguityFlags::compute(sizes, strides, numel))
    }

    /// Whether the elements fill a block of memory, each once, in any order.
    #[inline]
    pub fn is_non_overlapping_and_dense(&self) -> bool {
        if !self.policy().strides() {
            return self.metadata().contiguity.is_non_overlapping_and_dense();
        }
        match (self.vtable.is_non_overlapping_and_dense_custom, self.symbolic_shape()) {
            (Some(is_dense), _) => is_dense(self),
            (None, Some(shape)) => shape.is_non_overlapping_and_dense().unwrap_or(false),
            (None, None) => {
                self.custom_contiguity().is_some_and(|contiguity| contiguity.is_non_overlapping_and_dense())
            }
        }
    }

    /// Fails unless every element lies inside the storage, at an address that is aligned for the dtype.
    ///
    /// Tensors are checked when they are made, but a storage can be shrunk afterwards while tensors still refer to
    /// it: whoever is about to read or write elements through a pointer asks here first.
    #[inline]
    pub fn check_in_storage(&self) -> Result<()> {
        let storage = self.storage()?;
        let offset = self.storage_offset()?;
        // The offset counts elements, so it keeps the alignment of the storage.
        check_aligned(storage.const_data(), self.dtype())?;
        if self.is_contiguous() {
            // A contiguous tensor fills its range: one comparison in place of a loop.
            let end = self.numel()?.checked_add(offset).and_then(|n| n.checked_mul(self.item_size() as i64));
            if offset >= 0 && end.is_some_and(|end| end as usize <= storage.nbytes()) {
                return Ok(());
            }
        }
        if self.numel()? == 0 {
            return Ok(());
        }
        check_in_bounds_for_storage(self.sizes()?, self.strides()?, offset, self.dtype(), storage)
    }

    /// Whether the strides are ordered as channels last.
    pub fn is_strides_like(&self, format: MemoryFormat) -> bool {
        if let Some(shape) = self.symbolic_shape() {
            return shape.is_strides_like(format).unwrap_or(false);
        }
        let contiguity =
            if self.policy().strides() { self.custom_contiguity() } else { Some(self.metadata().contiguity) };
        contiguity.is_some_and(|contiguity| match format {
            MemoryFormat::ChannelsLast => contiguity.is_strides_like_channels_last(),
            MemoryFormat::ChannelsLast3d => contiguity.is_strides_like_channels_last_3d(),
            MemoryFormat::Contiguous | MemoryFormat::Preserve => false,
        })
    }

    /// The format new tensors like this one should have.
    #[inline]
    pub fn suggest_memory_format(&self) -> MemoryFormat {
        // Only 4 and 5 dimensions have a second format.
        if self.layout() == Layout::Strided && matches!(self.dim(), 4 | 5) {
            for format in [MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d] {
                if self.is_strides_like(format) {
                    return format;
                }
            }
        }
        MemoryFormat::Contiguous
    }
}
