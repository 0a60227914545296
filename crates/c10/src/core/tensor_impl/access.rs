//! Reading a tensor.

use std::any::Any;
use std::sync::OnceLock;

use crate::core::tensor_impl::symbolic::SymbolicShapeMeta;
use crate::core::tensor_impl::{TensorImpl, VariableVersion};
use crate::{
    bail, check_aligned, check_in_bounds_for_storage, make_autograd_meta, multiply_integers, wrap_dim,
    AutogradMetaInterface, Device, DeviceType, DispatchKey, DispatchKeySet, Layout, MemoryFormat, Result,
    ScalarType, Storage, SymDimVector, SymInt, TensorOptions,
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

    #[cold]
    fn is_contiguous_slow(&self, format: MemoryFormat) -> bool {
        if let Some(is_contiguous) = self.vtable.is_contiguous_custom {
            return is_contiguous(self, format);
        }
        if let Some(shape) = self.symbolic_shape() {
            return shape.is_contiguous_in(format);
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
            (None, Some(shape)) => shape.is_non_overlapping_and_dense(),
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
            return shape.is_strides_like(format);
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

/// Type, device, layout.
impl TensorImpl {
    /// The element type.
    #[inline]
    pub fn dtype(&self) -> ScalarType {
        self.metadata().dtype
    }

    /// The element type.
    #[inline]
    pub fn scalar_type(&self) -> ScalarType {
        self.dtype()
    }

    /// The bytes of an element.
    #[inline]
    pub fn item_size(&self) -> usize {
        self.dtype().item_size()
    }

    /// The bytes of all elements, were they dense.
    pub fn nbytes(&self) -> Result<usize> {
        let numel = self.numel()?;
        match usize::try_from(numel).ok().and_then(|numel| numel.checked_mul(self.item_size())) {
            Some(nbytes) => Ok(nbytes),
            None => bail!(Runtime, "nbytes(): {numel} elements of {} overflow", self.dtype()),
        }
    }

    /// The device.
    #[inline]
    pub fn device(&self) -> Device {
        if self.policy().device() {
            if let Some(device) = self.vtable.device_custom {
                return device(self);
            }
        }
        self.metadata().device
    }

    /// The layout.
    #[inline]
    pub fn layout(&self) -> Layout {
        const NOT_STRIDED: DispatchKeySet =
            DispatchKeySet::from_keys(&[DispatchKey::Sparse, DispatchKey::SparseCsr, DispatchKey::MkldnnCPU]);
        if !self.policy().layout() && !self.key_set().has_any(NOT_STRIDED) {
            return Layout::Strided;
        }
        self.layout_slow()
    }

    #[cold]
    fn layout_slow(&self) -> Layout {
        if let Some(layout) = self.vtable.layout_custom {
            return layout(self);
        }
        let keys = self.key_set();
        if keys.has(DispatchKey::Sparse) {
            Layout::Sparse
        } else if keys.has(DispatchKey::MkldnnCPU) {
            Layout::Mkldnn
        } else if keys.has(DispatchKey::SparseCsr) {
            // CSC, BSR and BSC share the key; their kinds have a `layout_custom`.
            Layout::SparseCsr
        } else {
            Layout::Strided
        }
    }

    /// Dtype, device and layout, for factories of similar tensors.
    pub fn options(&self) -> TensorOptions {
        TensorOptions {
            dtype: Some(self.dtype()),
            device: Some(self.device()),
            layout: Some(self.layout()),
            ..TensorOptions::default()
        }
    }

    /// Whether elements are complex.
    pub fn is_complex(&self) -> bool {
        self.dtype().is_complex()
    }

    /// Whether elements are floating-point numbers.
    pub fn is_floating_point(&self) -> bool {
        self.dtype().is_floating_point()
    }

    /// Whether elements are signed numbers.
    pub fn is_signed(&self) -> bool {
        self.dtype().is_signed()
    }

    /// Whether the tensor is on the CPU.
    #[inline]
    pub fn is_cpu(&self) -> bool {
        self.device().type_ == DeviceType::CPU
    }

    /// Whether the tensor is on a CUDA device.
    #[inline]
    pub fn is_cuda(&self) -> bool {
        self.device().type_ == DeviceType::CUDA
    }

    /// Whether the tensor has metadata only.
    #[inline]
    pub fn is_meta(&self) -> bool {
        self.device().type_ == DeviceType::Meta
    }

    /// Whether the tensor is on the device type that third parties register.
    #[inline]
    pub fn is_privateuseone(&self) -> bool {
        self.device().type_ == DeviceType::PrivateUse1
    }

    /// Whether the layout is COO.
    #[inline]
    pub fn is_sparse(&self) -> bool {
        self.key_set().has(DispatchKey::Sparse)
    }

    /// Whether the layout is CSR, CSC, BSR or BSC.
    #[inline]
    pub fn is_sparse_compressed(&self) -> bool {
        self.key_set().has(DispatchKey::SparseCsr)
    }

    /// Whether elements are quantized.
    #[inline]
    pub fn is_quantized(&self) -> bool {
        self.key_set().has(DispatchKey::Quantized)
    }

    /// Whether the tensor is a strided nested one.
    #[inline]
    pub fn is_nested(&self) -> bool {
        self.key_set().has(DispatchKey::NestedTensor)
    }
}

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

/// Versions and gradients.
impl TensorImpl {
    /// The number of in-place changes so far. Inference tensors do not count: an error.
    #[inline]
    pub fn version(&self) -> Result<u32> {
        self.version.current_version()
    }

    /// Counts an in-place change. An error for inference tensors outside inference mode.
    #[inline]
    pub fn bump_version(&self) -> Result<()> {
        self.version.bump()
    }

    /// A share of the version counter, for views and saved tensors.
    pub fn version_counter(&self) -> VariableVersion {
        self.version.share()
    }

    /// Makes the tensor count with another's counter.
    ///
    /// # Safety
    ///
    /// No other thread uses the tensor during the call.
    pub unsafe fn set_version_counter(&self, counter: VariableVersion) {
        // SAFETY: passed on to the caller.
        unsafe { self.version.set(counter) };
    }

    #[inline]
    fn autograd_meta_cell(&self) -> &OnceLock<Box<dyn AutogradMetaInterface>> {
        // SAFETY: the cell is replaced only by `take_autograd_meta`, whose caller has exclusive access.
        unsafe { &*self.autograd_meta.get() }
    }

    /// The gradient state.
    #[inline]
    pub fn autograd_meta(&self) -> Option<&dyn AutogradMetaInterface> {
        self.autograd_meta_cell().get().map(Box::as_ref)
    }

    /// The gradient state, if it is the autograd crate's type `T`.
    #[inline]
    pub fn autograd_meta_as<T: Any>(&self) -> Option<&T> {
        self.autograd_meta()?.as_any().downcast_ref()
    }

    /// Attaches a gradient state. If another thread was first, its state stays and ours is dropped; the one that counts
    /// is returned.
    pub fn set_autograd_meta(&self, meta: Box<dyn AutogradMetaInterface>) -> &dyn AutogradMetaInterface {
        self.autograd_meta_cell().get_or_init(|| meta).as_ref()
    }

    /// The gradient state, made if there is none yet.
    pub fn materialize_autograd_meta(&self) -> Result<&dyn AutogradMetaInterface> {
        match self.autograd_meta() {
            Some(meta) => Ok(meta),
            None => Ok(self.set_autograd_meta(make_autograd_meta()?)),
        }
    }

    /// Takes the gradient state out (swapping tensors, detaching in place).
    ///
    /// # Safety
    ///
    /// Exclusive logical access: no other thread uses the tensor, and no borrow of the state is used afterwards.
    pub unsafe fn take_autograd_meta(&self) -> Option<Box<dyn AutogradMetaInterface>> {
        // SAFETY: promised by the caller.
        unsafe { (*self.autograd_meta.get()).take() }
    }

    /// Whether the tensor takes part in differentiation.
    #[inline]
    pub fn requires_grad(&self) -> bool {
        self.autograd_meta().is_some_and(|meta| meta.requires_grad())
    }

    /// Sets `requires_grad` of a leaf.
    pub fn set_requires_grad(&self, requires_grad: bool) -> Result<()> {
        if requires_grad && self.is_inference() && !crate::InferenceMode::is_enabled() {
            bail!(
                Runtime,
                "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
            );
        }
        match self.autograd_meta() {
            None if !requires_grad => Ok(()),
            None => self.materialize_autograd_meta()?.set_requires_grad(true, self),
            Some(meta) => meta.set_requires_grad(requires_grad, self),
        }
    }

    /// Whether no recorded operation made the tensor.
    #[inline]
    pub fn is_leaf(&self) -> bool {
        self.autograd_meta().is_none_or(|meta| meta.is_leaf())
    }
}
