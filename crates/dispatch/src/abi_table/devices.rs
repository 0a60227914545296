//! Devices across the interface.

use std::ffi::c_void;

use abi::{AbiAllocator, AbiError, AbiStr};
use c10::{
    default_copy_data, register_device_guard, register_privateuse1_backend, set_allocator, Allocator,
    DataPtr, Device, DeviceType, Error, NoOpDeviceGuardImpl, Result,
};

use super::errors::catch;

/// An extension's allocator as one of ours. The memory must be reachable from the host.
struct Foreign {
    functions: AbiAllocator,
    device: Device,
}

// SAFETY: the interface asks that the functions and the context work from any thread.
unsafe impl Send for Foreign {}
// SAFETY: as above.
unsafe impl Sync for Foreign {}

/// What a block's deleter needs.
struct Block {
    functions: AbiAllocator,
    data: *mut c_void,
    nbytes: usize,
}

// SAFETY: as for `Foreign`; a block has one owner.
unsafe impl Send for Block {}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the block came from `allocate` with this size, and is freed once.
        unsafe { (self.functions.free)(self.functions.context, self.data, self.nbytes) }
    }
}

impl Allocator for Foreign {
    fn allocate(&self, nbytes: usize) -> Result<DataPtr> {
        if nbytes == 0 {
            return Ok(DataPtr::null(self.device));
        }
        // SAFETY: the extension's promise.
        let data = unsafe { (self.functions.allocate)(self.functions.context, nbytes) };
        if data.is_null() {
            return Err(Error::out_of_memory(format!(
                "the {} allocator could not allocate {nbytes} bytes",
                self.device.type_
            )));
        }
        let block = Block { functions: self.functions, data, nbytes };
        Ok(DataPtr::from_owner(data.cast(), block, self.device))
    }

    fn device(&self) -> Device {
        self.device
    }

    unsafe fn copy_data(&self, dest: *mut u8, src: *const u8, nbytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { default_copy_data(dest, src, nbytes) };
        Ok(())
    }
}

pub(super) unsafe extern "C" fn device_register(
    device_type: i32,
    devices: u32,
    allocator: AbiAllocator,
) -> *mut AbiError {
    catch(|| {
        let type_ = i8::try_from(device_type)
            .ok()
            .and_then(|t| DeviceType::try_from(t).ok())
            .filter(|t| !matches!(t, DeviceType::CPU | DeviceType::Meta))
            .ok_or_else(|| {
                Error::value(format!(
                    "device_register: {device_type} is not a device type that an extension may bring"
                ))
            })?;
        if devices != 1 {
            return Err(Error::value(format!(
                "device_register: expected one device of host memory, got {devices}"
            )));
        }
        let device = Device::new(type_, 0);
        // Registries hold references for the life of the process.
        set_allocator(type_, Box::leak(Box::new(Foreign { functions: allocator, device })), 1);
        register_device_guard(type_, Box::leak(Box::new(NoOpDeviceGuardImpl(type_))));
        Ok(())
    })
}

pub(super) unsafe extern "C" fn device_rename(name: AbiStr) -> *mut AbiError {
    // SAFETY: the string lives through the call.
    catch(|| register_privateuse1_backend(unsafe { name.get() }))
}
