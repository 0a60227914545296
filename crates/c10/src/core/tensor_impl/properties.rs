//! Reading a tensor's type, device and layout.

use crate::core::tensor_impl::TensorImpl;
use crate::{
    bail, Device, DeviceType, DispatchKey, DispatchKeySet, Layout, Result, ScalarType, TensorOptions,
};

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
