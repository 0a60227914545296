//! `TensorOptions`: what a factory call says, and does not say, about the tensor it wants.

use std::fmt;

use crate::core::default_dtype::get_default_dtype;
use crate::core::thread_local_state::get_default_device;
use crate::{
    BackendComponent, Device, DeviceType, DispatchKey, Error, Layout, MemoryFormat, Result, ScalarType,
};

/// The properties of a tensor to be made; `None` means "not given".
///
/// Setters return the changed options: `TensorOptions::new().dtype(ScalarType::Float).device(Device::CPU)`. They
/// also take an `Option`, so that `None` unsets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TensorOptions {
    /// The dtype.
    pub dtype: Option<ScalarType>,
    /// The layout.
    pub layout: Option<Layout>,
    /// The device.
    pub device: Option<Device>,
    /// Whether host memory is page-locked.
    pub pinned_memory: Option<bool>,
    /// Whether autograd records operations on the tensor.
    pub requires_grad: Option<bool>,
    /// The order of dimensions in memory.
    pub memory_format: Option<MemoryFormat>,
}

impl TensorOptions {
    /// Nothing given.
    pub const fn new() -> TensorOptions {
        TensorOptions {
            dtype: None,
            layout: None,
            device: None,
            pinned_memory: None,
            requires_grad: None,
            memory_format: None,
        }
    }

    /// Sets the dtype.
    #[must_use]
    pub fn dtype(mut self, dtype: impl Into<Option<ScalarType>>) -> TensorOptions {
        self.dtype = dtype.into();
        self
    }

    /// Sets the layout.
    #[must_use]
    pub fn layout(mut self, layout: impl Into<Option<Layout>>) -> TensorOptions {
        self.layout = layout.into();
        self
    }

    /// Sets the device.
    #[must_use]
    pub fn device(mut self, device: impl Into<Option<Device>>) -> TensorOptions {
        self.device = device.into();
        self
    }

    /// Sets whether host memory is page-locked.
    #[must_use]
    pub fn pinned_memory(mut self, pinned_memory: impl Into<Option<bool>>) -> TensorOptions {
        self.pinned_memory = pinned_memory.into();
        self
    }

    /// Sets whether autograd records operations on the tensor.
    #[must_use]
    pub fn requires_grad(mut self, requires_grad: impl Into<Option<bool>>) -> TensorOptions {
        self.requires_grad = requires_grad.into();
        self
    }

    /// Sets the order of dimensions in memory.
    #[must_use]
    pub fn memory_format(mut self, memory_format: impl Into<Option<MemoryFormat>>) -> TensorOptions {
        self.memory_format = memory_format.into();
        self
    }

    /// The dtype, or the process's default.
    pub fn dtype_or_default(&self) -> ScalarType {
        self.dtype.unwrap_or_else(get_default_dtype)
    }

    /// The layout, or strided.
    pub fn layout_or_default(&self) -> Layout {
        self.layout.unwrap_or(Layout::Strided)
    }

    /// The device, or the thread's default, or the host.
    pub fn device_or_default(&self) -> Device {
        self.device.or_else(get_default_device).unwrap_or(Device::CPU)
    }

    /// Whether to page-lock; false if not given.
    pub fn pinned_memory_or_default(&self) -> bool {
        self.pinned_memory.unwrap_or(false)
    }

    /// Whether autograd records; false if not given.
    pub fn requires_grad_or_default(&self) -> bool {
        self.requires_grad.unwrap_or(false)
    }

    /// These options, overridden by what `other` gives.
    #[must_use]
    pub fn merge_in(self, other: TensorOptions) -> TensorOptions {
        TensorOptions {
            dtype: other.dtype.or(self.dtype),
            layout: other.layout.or(self.layout),
            device: other.device.or(self.device),
            pinned_memory: other.pinned_memory.or(self.pinned_memory),
            requires_grad: other.requires_grad.or(self.requires_grad),
            memory_format: other.memory_format.or(self.memory_format),
        }
    }

    /// These options, overridden by a memory format if one is given.
    #[must_use]
    pub fn merge_memory_format(mut self, memory_format: Option<MemoryFormat>) -> TensorOptions {
        self.memory_format = memory_format.or(self.memory_format);
        self
    }

    /// The backend's key for a tensor with these options.
    pub fn compute_dispatch_key(&self) -> Result<DispatchKey> {
        compute_dispatch_key(self.dtype_or_default(), self.layout_or_default(), self.device_or_default())
    }
}

/// The backend's key for a tensor of a dtype and layout on a device.
pub fn compute_dispatch_key(dtype: ScalarType, layout: Layout, device: Device) -> Result<DispatchKey> {
    let unsupported = |layout: &str| {
        Error::not_implemented(format!("Unsupported device type for {layout} layout: {}", device.type_))
    };
    let on_backend = |functionality: DispatchKey, layout: &str| {
        backend_component(device.type_)
            .map(|backend| functionality.to_runtime_per_backend_functionality_key(backend))
            .ok_or_else(|| unsupported(layout))
    };
    match layout {
        Layout::Strided | Layout::Jagged => match device.type_ {
            DeviceType::FPGA => Ok(DispatchKey::FPGA),
            DeviceType::Vulkan => Ok(DispatchKey::Vulkan),
            DeviceType::Metal => Ok(DispatchKey::Metal),
            _ if dtype.is_quantized() => on_backend(DispatchKey::Quantized, "dense"),
            _ => on_backend(DispatchKey::Dense, "dense"),
        },
        Layout::Sparse => on_backend(DispatchKey::Sparse, "sparse"),
        Layout::SparseCsr | Layout::SparseCsc | Layout::SparseBsr | Layout::SparseBsc => {
            on_backend(DispatchKey::SparseCsr, layout.name())
        }
        Layout::Mkldnn if device.is_cpu() => Ok(DispatchKey::MkldnnCPU),
        Layout::Mkldnn => Err(unsupported("mkldnn")),
    }
}

/// The key-set bit of a device type; `None` for those that have a functionality key of their own or none at all.
pub fn backend_component(type_: DeviceType) -> Option<BackendComponent> {
    Some(match type_ {
        DeviceType::CPU => BackendComponent::CPUBit,
        DeviceType::CUDA => BackendComponent::CUDABit,
        DeviceType::HIP => BackendComponent::HIPBit,
        DeviceType::XLA => BackendComponent::XLABit,
        DeviceType::MPS => BackendComponent::MPSBit,
        DeviceType::IPU => BackendComponent::IPUBit,
        DeviceType::XPU => BackendComponent::XPUBit,
        DeviceType::HPU => BackendComponent::HPUBit,
        DeviceType::VE => BackendComponent::VEBit,
        DeviceType::Lazy => BackendComponent::LazyBit,
        DeviceType::Meta => BackendComponent::MetaBit,
        DeviceType::MTIA => BackendComponent::MTIABit,
        DeviceType::MAIA => BackendComponent::MAIABit,
        DeviceType::PrivateUse1 => BackendComponent::PrivateUse1Bit,
        DeviceType::MKLDNN
        | DeviceType::OPENGL
        | DeviceType::OPENCL
        | DeviceType::IDEEP
        | DeviceType::FPGA
        | DeviceType::Vulkan
        | DeviceType::Metal => return None,
    })
}

impl From<ScalarType> for TensorOptions {
    fn from(dtype: ScalarType) -> TensorOptions {
        TensorOptions::new().dtype(dtype)
    }
}

impl From<Device> for TensorOptions {
    fn from(device: Device) -> TensorOptions {
        TensorOptions::new().device(device)
    }
}

impl fmt::Display for TensorOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn or_default(given: bool) -> &'static str {
            if given {
                ""
            } else {
                " (default)"
            }
        }
        write!(
            f,
            "TensorOptions(dtype={}{}, device={}{}, layout={}{}, requires_grad={}{}, pinned_memory={}{}, memory_format=",
            self.dtype_or_default().name(),
            or_default(self.dtype.is_some()),
            self.device_or_default(),
            or_default(self.device.is_some()),
            self.layout_or_default(),
            or_default(self.layout.is_some()),
            self.requires_grad_or_default(),
            or_default(self.requires_grad.is_some()),
            self.pinned_memory_or_default(),
            or_default(self.pinned_memory.is_some()),
        )?;
        match self.memory_format {
            Some(format) => write!(f, "{format})"),
            None => f.write_str("(nullopt))"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_options_win() {
        let base = TensorOptions::from(ScalarType::Int).device(Device::META);
        let merged = base.merge_in(TensorOptions::new().dtype(ScalarType::Half).pinned_memory(true));
        assert_eq!(merged.dtype, Some(ScalarType::Half));
        assert_eq!(merged.device, Some(Device::META));
        assert!(merged.pinned_memory_or_default());
        assert_eq!(merged.dtype(None).dtype_or_default(), ScalarType::Float);
        assert_eq!(TensorOptions::new().device_or_default(), Device::CPU);
    }

    #[test]
    fn dispatch_keys_follow_layout_device_and_dtype() {
        let options = TensorOptions::new();
        let key = |o: TensorOptions| o.compute_dispatch_key().unwrap();
        assert_eq!(key(options), DispatchKey::CPU);
        assert_eq!(key(options.device(Device::META)), DispatchKey::Meta);
        assert_eq!(key(options.dtype(ScalarType::QInt8)), DispatchKey::QuantizedCPU);
        assert_eq!(key(options.layout(Layout::Sparse)), DispatchKey::SparseCPU);
        assert_eq!(key(options.layout(Layout::SparseBsr)), DispatchKey::SparseCsrCPU);
        assert_eq!(key(options.layout(Layout::Mkldnn)), DispatchKey::MkldnnCPU);
        let cuda = Device::new(DeviceType::CUDA, 0);
        assert_eq!(key(options.device(cuda)), DispatchKey::CUDA);
        let error = options.device(cuda).layout(Layout::Mkldnn).compute_dispatch_key().unwrap_err();
        assert_eq!(error.message(), "Unsupported device type for mkldnn layout: cuda");
    }
}
