//! `AcceleratorHooksInterface`: what else the core asks of a backend (availability, pinned memory, generators).

use crate::core::allocator::Allocator;
use crate::core::device::NUM_DEVICE_TYPES;
use crate::core::generator::Generator;
use crate::core::registry::DeviceTypeTable;
use crate::{Device, DeviceIndex, DeviceType, Error, Result};

/// What a backend offers beyond kernels. Everything has a default: absent.
pub trait AcceleratorHooksInterface: Send + Sync {
    /// The device type.
    fn device_type(&self) -> DeviceType;

    /// True if the backend was built.
    fn is_built(&self) -> bool {
        false
    }
    /// True if a device can be used.
    fn is_available(&self) -> bool {
        false
    }
    /// Makes the backend ready; called before its first use, possibly often.
    fn init(&self) -> Result<()> {
        Err(self.unsupported("init()"))
    }
    /// How many devices there are.
    fn device_count(&self) -> usize {
        0
    }
    /// True if the device has been used by this process.
    fn has_primary_context(&self, _device_index: DeviceIndex) -> bool {
        false
    }
    /// True if host memory at this address is page-locked.
    fn is_pinned_ptr(&self, _data: *const u8) -> bool {
        false
    }
    /// The allocator of page-locked host memory.
    fn get_pinned_memory_allocator(&self) -> Result<&'static dyn Allocator> {
        Err(self.unsupported("getPinnedMemoryAllocator()"))
    }
    /// The device that owns an address.
    fn get_device_from_ptr(&self, _data: *mut u8) -> Result<Device> {
        Err(self.unsupported("getDeviceFromPtr()"))
    }
    /// The default generator of a device.
    fn get_default_generator(&self, _device_index: DeviceIndex) -> Result<Generator> {
        Err(self.unsupported("getDefaultGenerator()"))
    }
    /// A new generator for a device.
    fn get_new_generator(&self, _device_index: DeviceIndex) -> Result<Generator> {
        Err(self.unsupported("getNewGenerator()"))
    }

    /// The error of something a backend lacks.
    #[doc(hidden)]
    fn unsupported(&self, what: &str) -> Error {
        Error::runtime(format!("{} backend doesn't support {what}", self.device_type()))
    }
}

/// The hooks of a device type nobody registered hooks for.
struct NoHooks(DeviceType);

impl AcceleratorHooksInterface for NoHooks {
    fn device_type(&self) -> DeviceType {
        self.0
    }
    fn init(&self) -> Result<()> {
        Err(Error::runtime(format!("ptr was built without {} support", self.0.name())))
    }
}

static NO_HOOKS: [NoHooks; NUM_DEVICE_TYPES] = {
    let mut hooks = [const { NoHooks(DeviceType::CPU) }; NUM_DEVICE_TYPES];
    let mut i = 0;
    while i < NUM_DEVICE_TYPES {
        hooks[i] = NoHooks(DeviceType::ALL[i]);
        i += 1;
    }
    hooks
};

type Hooks = &'static dyn AcceleratorHooksInterface;

static HOOKS: DeviceTypeTable<Hooks> = DeviceTypeTable::new();

/// Makes `hooks` the ones of their device type.
pub fn register_accelerator_hooks(hooks: Hooks) {
    HOOKS.set(hooks.device_type(), hooks);
}

/// The hooks of a device type; where none are registered, hooks that have nothing.
pub fn get_accelerator_hooks(type_: DeviceType) -> Hooks {
    HOOKS.get(type_).copied().unwrap_or(&NO_HOOKS[type_.as_index()])
}

/// The accelerator this process has: the first built device type with hooks. With `check_available`, only one that
/// has a usable device.
pub fn get_accelerator(check_available: bool) -> Option<DeviceType> {
    HOOKS
        .iter()
        .find(|hooks| hooks.is_built() && (!check_available || hooks.is_available()))
        .map(|hooks| hooks.device_type())
}

/// True if host memory at this address is page-locked by any backend.
pub fn is_pinned_ptr(data: *const u8) -> bool {
    HOOKS.iter().any(|hooks| hooks.is_pinned_ptr(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fake;

    impl AcceleratorHooksInterface for Fake {
        fn device_type(&self) -> DeviceType {
            DeviceType::HPU
        }
        fn is_built(&self) -> bool {
            true
        }
        fn device_count(&self) -> usize {
            2
        }
    }

    #[test]
    fn absent_backends_answer_politely() {
        let hooks = get_accelerator_hooks(DeviceType::XLA);
        assert!(!hooks.is_built() && !hooks.is_available());
        assert_eq!(hooks.device_count(), 0);
        assert_eq!(hooks.device_type(), DeviceType::XLA);
        assert!(hooks.init().unwrap_err().to_string().contains("built without XLA support"));
        assert!(hooks.get_pinned_memory_allocator().is_err());
    }

    #[test]
    fn registered_backends_are_found() {
        static FAKE: Fake = Fake;
        register_accelerator_hooks(&FAKE);
        assert_eq!(get_accelerator_hooks(DeviceType::HPU).device_count(), 2);
        assert_eq!(get_accelerator(false), Some(DeviceType::HPU));
        assert_eq!(get_accelerator(true), None);
        assert!(!is_pinned_ptr(std::ptr::null()));
    }
}
