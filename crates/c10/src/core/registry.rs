//! Tables by device type, and the allocator of each.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use parking_lot::Mutex;

use crate::core::allocator::{Allocator, MetaAllocator};
use crate::core::cpu_allocator::CPU_ALLOCATOR;
use crate::core::device::NUM_DEVICE_TYPES;
use crate::{DeviceType, Error, Result};

/// A value per device type. Looking one up is one load, as it happens in every operator call; setting one leaks
/// it, as it happens once per backend.
pub(crate) struct DeviceTypeTable<T: 'static> {
    /// Each null or a `&'static T`.
    slots: [AtomicPtr<T>; NUM_DEVICE_TYPES],
}

impl<T: Send + Sync + 'static> DeviceTypeTable<T> {
    /// No values.
    pub(crate) const fn new() -> DeviceTypeTable<T> {
        DeviceTypeTable { slots: [const { AtomicPtr::new(ptr::null_mut()) }; NUM_DEVICE_TYPES] }
    }

    /// The table with one more initial value.
    pub(crate) const fn with(mut self, type_: DeviceType, value: &'static T) -> DeviceTypeTable<T> {
        self.slots[type_.as_index()] = AtomicPtr::new(ptr::from_ref(value).cast_mut());
        self
    }

    /// The value of a device type.
    #[inline]
    pub(crate) fn get(&self, type_: DeviceType) -> Option<&'static T> {
        let value = self.slots[type_.as_index()].load(Ordering::Acquire);
        // SAFETY: a slot is null or came from a `&'static T`; Acquire pairs with the Release of `set`.
        unsafe { value.as_ref() }
    }

    /// Sets the value of a device type.
    pub(crate) fn set(&self, type_: DeviceType, value: T) {
        let value: &'static T = Box::leak(Box::new(value));
        self.slots[type_.as_index()].store(ptr::from_ref(value).cast_mut(), Ordering::Release);
    }

    /// The values there are, in the order of device types.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static T> + '_ {
        DeviceType::ALL.into_iter().filter_map(|type_| self.get(type_))
    }
}

struct Entry {
    allocator: &'static dyn Allocator,
    priority: u8,
}

static META_ALLOCATOR: MetaAllocator = MetaAllocator;
static CPU_ENTRY: Entry = Entry { allocator: &CPU_ALLOCATOR, priority: 0 };
static META_ENTRY: Entry = Entry { allocator: &META_ALLOCATOR, priority: 0 };

static ALLOCATORS: DeviceTypeTable<Entry> =
    DeviceTypeTable::new().with(DeviceType::CPU, &CPU_ENTRY).with(DeviceType::Meta, &META_ENTRY);

/// Held while a priority is compared and the entry replaced.
static ALLOCATORS_LOCK: Mutex<()> = Mutex::new(());

/// Makes `allocator` the one of a device type, unless one of higher priority is there.
pub fn set_allocator(type_: DeviceType, allocator: &'static dyn Allocator, priority: u8) {
    let _guard = ALLOCATORS_LOCK.lock();
    if ALLOCATORS.get(type_).is_none_or(|entry| priority >= entry.priority) {
        ALLOCATORS.set(type_, Entry { allocator, priority });
    }
}

/// The allocator of a device type.
#[inline]
pub fn get_allocator(type_: DeviceType) -> Result<&'static dyn Allocator> {
    match ALLOCATORS.get(type_) {
        Some(entry) => Ok(entry.allocator),
        None => Err(no_allocator(type_)),
    }
}

#[cold]
fn no_allocator(type_: DeviceType) -> Error {
    Error::runtime(format!(
        "Allocator for {type_} is not set: ptr was built or loaded without a {type_} backend"
    ))
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
