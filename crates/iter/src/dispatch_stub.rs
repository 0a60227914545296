//! `DispatchStub`: a kernel that is chosen by device at run time.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use c10::{DeviceType, Result};

use crate::kernel_registry::{self, Entry};

/// Room for every device type, numbered from 0.
const MAX_DEVICE_TYPES: usize = 32;

/// A named kernel of type `F` (a function pointer), looked up once per device and then one load away.
///
/// ```ignore
/// pub static ADD: DispatchStub<fn(&TensorIterator, &Scalar) -> Result<()>> = DispatchStub::new("add_kernel");
/// ADD.get(iter.device_type())?(&iter, alpha)?;
/// ```
pub struct DispatchStub<F: Copy + Send + Sync + 'static> {
    name: &'static str,
    cache: [AtomicPtr<Entry<F>>; MAX_DEVICE_TYPES],
}

impl<F: Copy + Send + Sync + 'static> DispatchStub<F> {
    /// A stub for the kernels registered under `name`.
    pub const fn new(name: &'static str) -> Self {
        Self { name, cache: [const { AtomicPtr::new(ptr::null_mut()) }; MAX_DEVICE_TYPES] }
    }

    /// The name kernels are registered under.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The kernel for a device type; NotImplementedError if none is registered.
    #[inline]
    pub fn get(&self, device_type: DeviceType) -> Result<F> {
        let slot = &self.cache[device_type as usize % MAX_DEVICE_TYPES];
        let entry = slot.load(Ordering::Acquire);
        if entry.is_null() {
            return self.find(device_type, slot);
        }
        // SAFETY: not null, so `find` stored it from a `&'static Entry<F>`.
        Ok(unsafe { &*entry }.get())
    }

    #[cold]
    fn find(&self, device_type: DeviceType, slot: &AtomicPtr<Entry<F>>) -> Result<F> {
        let entry = kernel_registry::find_entry::<F>(self.name, device_type)?;
        slot.store(ptr::from_ref(entry).cast_mut(), Ordering::Release);
        Ok(entry.get())
    }
}

#[cfg(test)]
mod tests {
    use c10::ErrorKind;

    use super::*;

    type Kernel = fn(i32) -> i32;

    static STUB: DispatchStub<Kernel> = DispatchStub::new("stub_test_kernel");
    static MISTYPED: DispatchStub<fn(i64) -> i64> = DispatchStub::new("stub_test_kernel");

    #[test]
    fn finds_by_name_device_and_type() {
        let error = STUB.get(DeviceType::CUDA).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::NotImplemented);
        assert_eq!(error.message(), "stub_test: no kernel for device cuda");

        kernel_registry::register::<Kernel>("stub_test_kernel", DeviceType::CPU, |x| x + 1);
        assert_eq!(STUB.get(DeviceType::CPU).unwrap()(1), 2);
        assert!(STUB.get(DeviceType::CUDA).is_err());
        assert_eq!(MISTYPED.get(DeviceType::CPU).err().unwrap().kind(), ErrorKind::Internal);
        assert!(kernel_registry::list().contains(&("stub_test_kernel", DeviceType::CPU)));

        kernel_registry::register::<Kernel>("stub_test_kernel", DeviceType::CPU, |x| x + 10);
        assert_eq!(STUB.get(DeviceType::CPU).unwrap()(1), 11, "a replacement reaches stubs that have cached");
    }
}
