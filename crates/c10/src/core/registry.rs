//! The allocator of each device type.

use parking_lot::RwLock;

use crate::core::allocator::{Allocator, MetaAllocator};
use crate::core::cpu_allocator::CPU_ALLOCATOR;
use crate::core::device::NUM_DEVICE_TYPES;
use crate::{DeviceType, Error, Result};

#[derive(Clone, Copy)]
struct Entry {
    allocator: &'static dyn Allocator,
    priority: u8,
}

static META_ALLOCATOR: MetaAllocator = MetaAllocator;

static ALLOCATORS: RwLock<[Option<Entry>; NUM_DEVICE_TYPES]> = {
    let mut table: [Option<Entry>; NUM_DEVICE_TYPES] = [None; NUM_DEVICE_TYPES];
    table[DeviceType::CPU.as_index()] = Some(Entry { allocator: &CPU_ALLOCATOR, priority: 0 });
    table[DeviceType::Meta.as_index()] = Some(Entry { allocator: &META_ALLOCATOR, priority: 0 });
    RwLock::new(table)
};

/// Makes `allocator` the one of a device type, unless one of higher priority is there.
pub fn set_allocator(type_: DeviceType, allocator: &'static dyn Allocator, priority: u8) {
    let mut table = ALLOCATORS.write();
    let entry = &mut table[type_.as_index()];
    if entry.is_none_or(|e| priority >= e.priority) {
        *entry = Some(Entry { allocator, priority });
    }
}

/// The allocator of a device type.
pub fn get_allocator(type_: DeviceType) -> Result<&'static dyn Allocator> {
    match ALLOCATORS.read()[type_.as_index()] {
        Some(entry) => Ok(entry.allocator),
        None => Err(Error::runtime(format!(
            "Allocator for {type_} is not set: ptr was built or loaded without a {type_} backend"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DataPtr, Device};

    struct Fake;

    impl Allocator for Fake {
        fn allocate(&self, _nbytes: usize) -> Result<DataPtr> {
            Ok(DataPtr::null(self.device()))
        }
        fn device(&self) -> Device {
            Device::new(DeviceType::FPGA, 0)
        }
        unsafe fn copy_data(&self, _dest: *mut u8, _src: *const u8, _nbytes: usize) -> Result<()> {
            Ok(())
        }
    }

    static LOW: Fake = Fake;

    #[test]
    fn higher_priority_wins() {
        assert!(get_allocator(DeviceType::FPGA).is_err());
        set_allocator(DeviceType::FPGA, &LOW, 3);
        assert_eq!(get_allocator(DeviceType::FPGA).unwrap().device().index, 0);
        set_allocator(DeviceType::FPGA, &META_ALLOCATOR, 2);
        assert!(!get_allocator(DeviceType::FPGA).unwrap().device().is_meta());
        set_allocator(DeviceType::FPGA, &META_ALLOCATOR, 3);
        assert!(get_allocator(DeviceType::FPGA).unwrap().device().is_meta());
    }

    #[test]
    fn host_and_meta_are_there_from_the_start() {
        assert!(get_allocator(DeviceType::CPU).unwrap().device().is_cpu());
        let data = get_allocator(DeviceType::Meta).unwrap().allocate(usize::MAX).unwrap();
        assert!(data.is_null());
    }
}
