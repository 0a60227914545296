//! `Allocator`: what every device's memory manager can do.

use std::ptr;

use crate::core::data_ptr::{DataPtr, DeleterFnPtr};
use crate::{Device, Result};

/// A quantity that goes up and down, with its history.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stat {
    /// Its value now.
    pub current: u64,
    /// The largest value since the start or the last `reset_peak_stats`.
    pub peak: u64,
    /// The sum of all increases.
    pub allocated: u64,
    /// The sum of all decreases.
    pub freed: u64,
}

/// What an allocator has handed out and holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryStats {
    /// Blocks in use.
    pub allocation: Stat,
    /// Bytes in blocks in use, counted by the size of the blocks.
    pub allocated_bytes: Stat,
    /// Bytes obtained from the system: in use or cached.
    pub reserved_bytes: Stat,
    /// Bytes of reserved memory that are cached for reuse.
    pub inactive_bytes: u64,
    /// Requests to the system for memory.
    pub num_device_alloc: u64,
    /// Returns of memory to the system.
    pub num_device_free: u64,
    /// Allocations that failed at first and were tried again after the cache was emptied.
    pub num_alloc_retries: u64,
    /// Allocations that failed.
    pub num_ooms: u64,
    /// The limit on reserved bytes, if one is set.
    pub limit: Option<u64>,
}

/// Gives out memory on a device.
pub trait Allocator: Send + Sync {
    /// `nbytes` of uninitialised memory. Zero bytes give a pointer that is null and safe to drop.
    fn allocate(&self, nbytes: usize) -> Result<DataPtr>;

    /// The device `allocate` allocates on now.
    fn device(&self) -> Device;

    /// The deleter of every `DataPtr` this allocator makes, if they share one. Storages use it to tell
    /// whether a pointer came from here unchanged. It takes the pointer's context, not its data.
    fn deleter(&self) -> Option<DeleterFnPtr> {
        None
    }

    /// Copies bytes between two blocks of this allocator.
    ///
    /// # Safety
    /// Both ranges must be valid for `nbytes` and must not overlap.
    unsafe fn copy_data(&self, dest: *mut u8, src: *const u8, nbytes: usize) -> Result<()>;

    /// A new block with a copy of `nbytes` bytes.
    ///
    /// # Safety
    /// `src` must be valid for reads of `nbytes` on the allocator's device.
    unsafe fn clone_data(&self, src: *const u8, nbytes: usize) -> Result<DataPtr> {
        let copy = self.allocate(nbytes)?;
        if nbytes != 0 {
            // SAFETY: src is promised by the caller, copy was just allocated with nbytes and is disjoint.
            unsafe { self.copy_data(copy.get(), src, nbytes)? };
        }
        Ok(copy)
    }

    /// Gives cached memory back to the system.
    fn empty_cache(&self) {}

    /// Gives cached memory back until at most `target_bytes` are cached; returns how many bytes it gave back.
    fn trim(&self, _target_bytes: usize) -> usize {
        0
    }

    /// Statistics, if the allocator keeps them.
    fn memory_stats(&self) -> Option<MemoryStats> {
        None
    }

    /// Makes the present values the peaks.
    fn reset_peak_stats(&self) {}

    /// Sets or removes a limit on reserved bytes.
    fn set_limit(&self, _limit: Option<usize>) -> Result<()> {
        Err(crate::Error::not_implemented(format!(
            "set_limit(): the {} allocator has no limit",
            self.device().type_
        )))
    }
}

/// Copies bytes on the host; the `copy_data` of allocators of host memory.
///
/// # Safety
/// Both ranges must be valid for `nbytes` and must not overlap.
pub unsafe fn default_copy_data(dest: *mut u8, src: *const u8, nbytes: usize) {
    // SAFETY: the same contract.
    unsafe { ptr::copy_nonoverlapping(src, dest, nbytes) };
}

/// The meta device's allocator: every pointer is null, whatever its size.
#[derive(Debug)]
pub struct MetaAllocator;

impl Allocator for MetaAllocator {
    fn allocate(&self, _nbytes: usize) -> Result<DataPtr> {
        Ok(DataPtr::null(Device::META))
    }

    fn device(&self) -> Device {
        Device::META
    }

    unsafe fn copy_data(&self, _dest: *mut u8, _src: *const u8, _nbytes: usize) -> Result<()> {
        Ok(())
    }
}
