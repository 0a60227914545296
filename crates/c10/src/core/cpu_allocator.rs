//! The host's allocator: 64-byte aligned, caching, with statistics and a limit.
//!
//! An allocation of up to 1 MiB is rounded up to a size class and usually served from the thread's own
//! `ThreadCache` without a lock; a block may be freed on any thread and then belongs to that thread's cache. Larger ones
//! come from a shared best-fit cache of mappings, huge pages from 2 MiB on. See Note `[CPU heap]`.
//!
//! Settings: `PTR_CPU_ALLOC_CONF=limit:8GiB,cache_max:512MiB,huge_pages:true`, read at the first allocation.

mod config;
mod heap;
mod large_cache;
mod size_class;
mod stats;
mod thread_cache;

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

use self::heap::{out_of_memory, Heap};
use self::large_cache::LargeBlock;
use self::size_class::{class_of, class_size, ALIGNMENT, MAX_SMALL};
use self::thread_cache::ThreadCache;
use crate::core::allocator::{default_copy_data, Allocator, MemoryStats};
use crate::core::data_ptr::{DataPtr, DeleterFnPtr};
use crate::{Device, Result};

/// The host's allocator. It has no state of its own: all of it is the process's.
#[derive(Clone, Copy, Debug)]
pub struct CpuAllocator;

/// The one instance.
pub static CPU_ALLOCATOR: CpuAllocator = CpuAllocator;

static HEAP: Heap = Heap::new();

/// A context's low bits say what it is: a size class, or this for the address of a `LargeBlock`.
const LARGE_TAG: usize = 63;
const TAG_MASK: usize = ALIGNMENT - 1;

thread_local! {
    /// Null before the thread's first allocation. Without a destructor, so that reading it is one instruction.
    static CACHE: Cell<*mut ThreadCache> = const { Cell::new(ptr::null_mut()) };
    /// True while and after the thread's cache is taken down: its other destructors may still allocate and free.
    static ENDED: Cell<bool> = const { Cell::new(false) };
    /// Takes the cache down when the thread ends.
    static OWNER: CacheOwner = const { CacheOwner };
}

struct CacheOwner;

impl Drop for CacheOwner {
    fn drop(&mut self) {
        ENDED.set(true);
        let cache = CACHE.replace(ptr::null_mut());
        if !cache.is_null() {
            // SAFETY: the pointer came from Box::into_raw in `start_cache`, and CACHE no longer holds it.
            let mut cache = unsafe { Box::from_raw(cache) };
            cache.flush(&HEAP);
            HEAP.stats().retire_thread(cache.counters());
        }
    }
}

/// Runs code with the thread's cache; with `None` while the thread ends.
#[inline(always)]
fn with_cache<R>(f: impl FnOnce(Option<&mut ThreadCache>) -> R) -> R {
    let mut cache = CACHE.get();
    if cache.is_null() {
        cache = start_cache();
    }
    // SAFETY: the pointer is null or a live ThreadCache of this thread. No reference outlives a call and nothing
    // called with one comes back here, so the reference is unique.
    f(unsafe { cache.as_mut() })
}

#[cold]
fn start_cache() -> *mut ThreadCache {
    // Touching OWNER registers its destructor; it fails if that has run.
    if ENDED.get() || OWNER.try_with(|_| ()).is_err() {
        return ptr::null_mut();
    }
    let cache = Box::into_raw(Box::new(ThreadCache::new(&HEAP)));
    CACHE.set(cache);
    cache
}

impl CpuAllocator {
    #[inline(always)]
    fn allocate_small(nbytes: usize) -> Result<DataPtr> {
        let class = class_of(nbytes);
        let block = with_cache(|cache| match cache {
            Some(cache) => cache.allocate(&HEAP, class),
            None => allocate_orphan(class),
        })?;
        let ctx = block.map_addr(|address| address | class).cast::<c_void>();
        // SAFETY: ctx names the block just allocated and its class, which free_block takes back once.
        Ok(unsafe { DataPtr::new(block, ctx, Some(free_block), Device::CPU) })
    }

    #[cold]
    fn allocate_large(nbytes: usize) -> Result<DataPtr> {
        let block = HEAP.take_large(nbytes).or_else(|_| {
            with_cache(|cache| cache.map(|cache| cache.flush(&HEAP)));
            HEAP.take_large_or_retry(nbytes)
        })?;
        with_cache(|cache| match cache {
            Some(cache) => cache.counters().record_alloc(block.capacity, HEAP.stats()),
            None => HEAP.stats().record_alloc_orphan(block.capacity),
        });
        let data = block.data;
        let ctx = Box::into_raw(block).map_addr(|address| address | LARGE_TAG).cast::<c_void>();
        // SAFETY: ctx owns the block, which free_block takes back once.
        Ok(unsafe { DataPtr::new(data, ctx, Some(free_block), Device::CPU) })
    }

    /// Makes the allocator usable in a child after `fork`, whatever threads of the parent were doing. Their cached
    /// blocks are lost to the child; blocks in use stay valid and can be freed.
    ///
    /// # Safety
    /// Only in a forked child, before it starts threads or allocates through this allocator.
    pub unsafe fn after_fork_in_child(&self) {
        // SAFETY: passed on.
        unsafe { HEAP.after_fork_in_child() };
        with_existing_cache(|cache| {
            let own = cache.map(|cache| cache.counters().clone());
            // SAFETY: passed on.
            unsafe { HEAP.stats().after_fork_in_child(own.as_ref()) };
        });
    }
}

fn with_existing_cache<R>(f: impl FnOnce(Option<&mut ThreadCache>) -> R) -> R {
    // SAFETY: as in `with_cache`.
    f(unsafe { CACHE.get().as_mut() })
}

/// Frees what a context of this allocator names.
///
/// # Safety
/// The context must be one that `allocate` made, whose memory is no longer used; once.
unsafe fn free_block(ctx: *mut c_void) {
    let tag = ctx.addr() & TAG_MASK;
    let untagged = ctx.map_addr(|address| address & !TAG_MASK);
    if tag == LARGE_TAG {
        // SAFETY: a context with this tag came from Box::into_raw in `allocate_large`; it is used once.
        unsafe { free_large(Box::from_raw(untagged.cast::<LargeBlock>())) };
        return;
    }
    let (class, block) = (tag, untagged.cast::<u8>());
    with_cache(|cache| match cache {
        // SAFETY: the context names a block of this heap and its class, no longer used.
        Some(cache) => unsafe { cache.free(&HEAP, class, block) },
        None => {
            HEAP.stats().record_free_orphan(class_size(class));
            // SAFETY: as above.
            let _ = unsafe { HEAP.give_blocks(class, &[block]) };
        }
    });
}

/// # Safety
/// The block's memory must no longer be used.
#[cold]
unsafe fn free_large(block: Box<LargeBlock>) {
    with_cache(|cache| match cache {
        Some(cache) => cache.counters().record_free(block.capacity, HEAP.stats()),
        None => HEAP.stats().record_free_orphan(block.capacity),
    });
    // SAFETY: passed on.
    unsafe { HEAP.give_large(block) };
}

/// A small block for a thread that has no cache any more.
#[cold]
fn allocate_orphan(class: usize) -> Result<*mut u8> {
    let mut block = [ptr::null_mut()];
    if HEAP.take_blocks(class, &mut block).is_err() {
        HEAP.release_cached_memory();
        HEAP.take_blocks(class, &mut block).inspect_err(|_| HEAP.count_oom())?;
    }
    HEAP.stats().record_alloc_orphan(class_size(class));
    Ok(block[0])
}

impl Allocator for CpuAllocator {
    #[inline]
    fn allocate(&self, nbytes: usize) -> Result<DataPtr> {
        if nbytes == 0 {
            Ok(DataPtr::null(Device::CPU))
        } else if nbytes <= MAX_SMALL {
            CpuAllocator::allocate_small(nbytes)
        } else if nbytes <= isize::MAX as usize {
            CpuAllocator::allocate_large(nbytes)
        } else {
            HEAP.count_oom();
            Err(out_of_memory(nbytes))
        }
    }

    fn device(&self) -> Device {
        Device::CPU
    }

    fn deleter(&self) -> Option<DeleterFnPtr> {
        Some(free_block)
    }

    unsafe fn copy_data(&self, dest: *mut u8, src: *const u8, nbytes: usize) -> Result<()> {
        // SAFETY: the same contract.
        unsafe { default_copy_data(dest, src, nbytes) };
        Ok(())
    }

    /// Gives back what the calling thread and the shared caches keep. Other threads keep their own small blocks.
    fn empty_cache(&self) {
        self.trim(0);
    }

    fn trim(&self, target_bytes: usize) -> usize {
        with_existing_cache(|cache| cache.map(|cache| cache.flush(&HEAP)));
        HEAP.trim(target_bytes)
    }

    fn memory_stats(&self) -> Option<MemoryStats> {
        Some(HEAP.memory_stats())
    }

    fn reset_peak_stats(&self) {
        HEAP.reset_peak_stats();
    }

    fn set_limit(&self, limit: Option<usize>) -> Result<()> {
        HEAP.set_limit(limit);
        Ok(())
    }
}

#[cfg(test)]
#[path = "cpu_allocator/allocator_tests.rs"]
mod tests;
