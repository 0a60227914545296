//! The heap all threads share: free blocks that no thread keeps, and the traffic with the system.
//!
//! Note `[CPU heap]`: small blocks (up to 16 KiB) are cut out of 64 KiB spans, each of one class; middle ones (up to
//! 1 MiB) and large ones are mappings of their own. Freed memory is kept, so that reuse costs no page faults. The
//! shared caches hold at most `cache_cap` bytes: the peak of bytes in use or 256 MiB, whichever is more, and never
//! above half of the machine's memory, unless `cache_max` says otherwise. Beyond that the longest unused large
//! blocks go first, then middle blocks, then spans without a used block. Each lock guards one container and no lock
//! is held while another is taken, so their order does not matter.

use std::mem;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::OnceLock;

use super::config::Config;
use super::large_cache::{LargeBlock, LargeCache};
use super::size_class::{class_size, is_span_class, NUM_CLASSES, SPAN_SIZE};
use super::stats::HeapStats;
use crate::core::allocator::{MemoryStats, Stat};
use crate::core::fork_safe_mutex::ForkSafeMutex;
use crate::core::os;
use crate::{Error, Result};

/// Mappings of at least this size are aligned to it and ask for huge pages.
const HUGE_PAGE: usize = 2 << 20;

/// How many spans are mapped at a time.
const SPANS_PER_REGION: usize = 16;

/// The cache keeps at least this much.
const MIN_CACHE_CAP: usize = 256 << 20;

/// Addresses of free memory. A list owns what it lists.
#[derive(Default, Debug)]
struct FreeList(Vec<*mut u8>);

// SAFETY: the pointers stand for memory that the list owns alone.
unsafe impl Send for FreeList {}

impl FreeList {
    /// Lists more. False if there is no memory for the list itself: then nothing is listed.
    #[must_use = "what is not listed is lost unless somebody keeps it"]
    fn add(&mut self, addresses: impl ExactSizeIterator<Item = *mut u8>) -> bool {
        let listed = self.0.try_reserve(addresses.len()).is_ok();
        if listed {
            self.0.extend(addresses);
        }
        listed
    }

    /// Takes over what another list has; says how many addresses are lost because there is no memory for the list.
    fn absorb(&mut self, mut other: FreeList) -> usize {
        if self.0.len() < other.0.len() {
            mem::swap(self, &mut other);
        }
        let count = other.0.len();
        if self.add(other.0.into_iter()) {
            0
        } else {
            count
        }
    }
}

/// The shared state. One exists per process (and more in tests).
pub(super) struct Heap {
    config: OnceLock<Result<Config, String>>,
    /// Free small and middle blocks by class.
    classes: [ForkSafeMutex<FreeList>; NUM_CLASSES],
    /// Spans without blocks and without memory: addresses only.
    empty_spans: ForkSafeMutex<FreeList>,
    large: ForkSafeMutex<LargeCache>,
    stats: HeapStats,
    /// Bytes obtained from the system.
    reserved: AtomicUsize,
    reserved_peak: AtomicUsize,
    reserved_total: AtomicU64,
    released_total: AtomicU64,
    /// Bytes in `classes` and `large`.
    cached: AtomicUsize,
    /// The most bytes to reserve; usize::MAX for no limit.
    limit: AtomicUsize,
    num_os_allocs: AtomicU64,
    num_os_frees: AtomicU64,
    num_retries: AtomicU64,
    num_ooms: AtomicU64,
}

impl Heap {
    /// A heap that reads its settings from the environment at the first allocation.
    pub(super) const fn new() -> Heap {
        Heap {
            config: OnceLock::new(),
            classes: [const { ForkSafeMutex::new(FreeList(Vec::new())) }; NUM_CLASSES],
            empty_spans: ForkSafeMutex::new(FreeList(Vec::new())),
            large: ForkSafeMutex::new(LargeCache::new()),
            stats: HeapStats::new(),
            reserved: AtomicUsize::new(0),
            reserved_peak: AtomicUsize::new(0),
            reserved_total: AtomicU64::new(0),
            released_total: AtomicU64::new(0),
            cached: AtomicUsize::new(0),
            limit: AtomicUsize::new(usize::MAX),
            num_os_allocs: AtomicU64::new(0),
            num_os_frees: AtomicU64::new(0),
            num_retries: AtomicU64::new(0),
            num_ooms: AtomicU64::new(0),
        }
    }

    /// A heap with given settings.
    #[cfg(test)]
    pub(super) fn with_config(config: Config) -> Heap {
        let heap = Heap::new();
        heap.limit.store(config.limit.unwrap_or(usize::MAX), Relaxed);
        heap.config.get_or_init(|| Ok(config));
        heap
    }

    pub(super) fn stats(&self) -> &HeapStats {
        &self.stats
    }

    fn config(&self) -> Result<&Config> {
        let config = self.config.get_or_init(|| {
            let config = Config::from_env().map_err(|e| e.to_string())?;
            if let Some(limit) = config.limit {
                // A limit set by a call before the first allocation stays.
                let _ = self.limit.compare_exchange(usize::MAX, limit, Relaxed, Relaxed);
            }
            Ok(config)
        });
        config.as_ref().map_err(|message| Error::value(message.clone()))
    }

    /// Fills a prefix of `out` with free blocks of a class; says how many, at least one.
    pub(super) fn take_blocks(&self, class: usize, out: &mut [*mut u8]) -> Result<usize> {
        self.config()?;
        let size = class_size(class);
        {
            let mut list = self.classes[class].lock();
            let count = list.0.len().min(out.len());
            if count != 0 {
                let rest = list.0.len() - count;
                out[..count].copy_from_slice(&list.0[rest..]);
                list.0.truncate(rest);
                self.cached.fetch_sub(count * size, Relaxed);
                return Ok(count);
            }
        }
        if !is_span_class(class) {
            let nbytes = size.next_multiple_of(os::page_size());
            out[0] = self.map(nbytes, os::page_size(), size)?;
            return Ok(1);
        }
        let span = self.take_span(size)?;
        let total = SPAN_SIZE / size;
        let count = total.min(out.len());
        let block = |i: usize| span.wrapping_add(i * size);
        for (i, slot) in out[..count].iter_mut().enumerate() {
            *slot = block(i);
        }
        if total > count {
            // Not listed, they are lost until the process ends.
            let _ = self.list_blocks(class, (count..total).rev().map(block));
        }
        Ok(count)
    }

    /// Takes free blocks of a class back. False if there is no memory to list them: the caller still has them.
    ///
    /// # Safety
    /// The blocks must come from `take_blocks` of the same class and no longer be used.
    #[must_use = "what the heap does not take is the caller's"]
    pub(super) unsafe fn give_blocks(&self, class: usize, blocks: &[*mut u8]) -> bool {
        let listed = self.list_blocks(class, blocks.iter().copied());
        self.enforce_cache_cap();
        listed
    }

    fn list_blocks(&self, class: usize, blocks: impl ExactSizeIterator<Item = *mut u8>) -> bool {
        let nbytes = blocks.len() * class_size(class);
        // Counted first, as others may take them at once.
        self.cached.fetch_add(nbytes, Relaxed);
        let listed = self.classes[class].lock().add(blocks);
        if !listed {
            self.cached.fetch_sub(nbytes, Relaxed);
        }
        listed
    }

    /// A large block of at least `nbytes`.
    pub(super) fn take_large(&self, nbytes: usize) -> Result<Box<LargeBlock>> {
        let config = self.config()?;
        let cached = self.large.lock().take(nbytes);
        if let Some(block) = cached {
            self.cached.fetch_sub(block.capacity, Relaxed);
            return Ok(block);
        }
        // Rounded so that blocks of similar requests fit each other; only pages that are touched cost memory.
        let granule = if nbytes < 8 * HUGE_PAGE { 128 << 10 } else { HUGE_PAGE };
        let capacity = nbytes.checked_next_multiple_of(granule).filter(|c| *c <= isize::MAX as usize);
        let capacity = capacity.ok_or_else(|| out_of_memory(nbytes))?;
        let align = if nbytes >= HUGE_PAGE { HUGE_PAGE } else { os::page_size() };
        let data = self.map(capacity, align, nbytes)?;
        if nbytes >= HUGE_PAGE && config.huge_pages {
            // SAFETY: the mapping was just made.
            unsafe { os::advise_huge_pages(data, capacity) };
        }
        Ok(Box::new(LargeBlock { data, capacity }))
    }

    /// As `take_large`, and if that fails once more with the caches emptied.
    pub(super) fn take_large_or_retry(&self, nbytes: usize) -> Result<Box<LargeBlock>> {
        self.take_large(nbytes).or_else(|_| {
            self.release_cached_memory();
            self.take_large(nbytes).inspect_err(|_| self.count_oom())
        })
    }

    /// Takes a large block back.
    ///
    /// # Safety
    /// The block must come from `take_large` and its memory no longer be used.
    pub(super) unsafe fn give_large(&self, block: Box<LargeBlock>) {
        self.cached.fetch_add(block.capacity, Relaxed);
        self.large.lock().put(block);
        self.enforce_cache_cap();
    }

    /// The memory of a span: addresses that were used before, or new ones.
    fn take_span(&self, requested: usize) -> Result<*mut u8> {
        self.reserve(SPAN_SIZE, requested)?;
        if let Some(span) = self.empty_spans.lock().0.pop() {
            return Ok(span);
        }
        match os::map(SPAN_SIZE * SPANS_PER_REGION, SPAN_SIZE) {
            Some(region) => {
                self.num_os_allocs.fetch_add(1, Relaxed);
                let others = (1..SPANS_PER_REGION).rev().map(|i| region.wrapping_add(i * SPAN_SIZE));
                // Not listed, they stay unused: addresses without memory.
                let _ = self.empty_spans.lock().add(others);
                Ok(region)
            }
            None => {
                self.unreserve(SPAN_SIZE);
                Err(out_of_memory(requested))
            }
        }
    }

    /// A mapping, counted.
    fn map(&self, nbytes: usize, align: usize, requested: usize) -> Result<*mut u8> {
        self.reserve(nbytes, requested)?;
        match os::map(nbytes, align) {
            Some(data) => {
                self.num_os_allocs.fetch_add(1, Relaxed);
                Ok(data)
            }
            None => {
                self.unreserve(nbytes);
                Err(out_of_memory(requested))
            }
        }
    }

    fn reserve(&self, nbytes: usize, requested: usize) -> Result<()> {
        let limit = self.limit.load(Relaxed);
        let reserved = self
            .reserved
            .fetch_update(Relaxed, Relaxed, |now| now.checked_add(nbytes).filter(|sum| *sum <= limit));
        match reserved {
            Ok(before) => {
                self.reserved_peak.fetch_max(before + nbytes, Relaxed);
                self.reserved_total.fetch_add(nbytes as u64, Relaxed);
                Ok(())
            }
            Err(now) => Err(out_of_memory(requested)
                .context(format!("The limit of {limit} bytes is in the way: {now} bytes are reserved."))),
        }
    }

    fn unreserve(&self, nbytes: usize) {
        self.reserved.fetch_sub(nbytes, Relaxed);
        self.released_total.fetch_add(nbytes as u64, Relaxed);
    }

    fn cache_cap(&self) -> usize {
        match self.config() {
            Ok(Config { cache_max: Some(bytes), .. }) => *bytes,
            Ok(config) => self.stats.peak_bytes_known().max(MIN_CACHE_CAP).min(config.cache_ceiling),
            Err(_) => 0,
        }
    }

    #[inline]
    fn enforce_cache_cap(&self) {
        let cap = self.cache_cap();
        if self.cached.load(Relaxed) > cap {
            // Somewhat below, so that the next free does not trim again.
            self.trim(cap - cap / 8);
        }
    }

    /// Gives shared cached memory back until at most `target` bytes are cached; returns how many it gave back.
    #[cold]
    pub(super) fn trim(&self, target: usize) -> usize {
        let mut released = 0;
        while self.cached.load(Relaxed) > target {
            let Some(block) = self.large.lock().take_oldest() else { break };
            self.cached.fetch_sub(block.capacity, Relaxed);
            // SAFETY: a block in the cache is free.
            let nbytes = unsafe { block.unmap() };
            self.note_release(nbytes);
            released += nbytes;
        }
        for class in (0..NUM_CLASSES).rev() {
            if self.cached.load(Relaxed) <= target {
                break;
            }
            released += if is_span_class(class) {
                self.release_free_spans(class)
            } else {
                self.release_middle_blocks(class, target)
            };
        }
        released
    }

    fn note_release(&self, nbytes: usize) {
        self.num_os_frees.fetch_add(1, Relaxed);
        self.unreserve(nbytes);
    }

    fn release_middle_blocks(&self, class: usize, target: usize) -> usize {
        let nbytes = class_size(class).next_multiple_of(os::page_size());
        let mut released = 0;
        while self.cached.load(Relaxed) > target {
            let Some(block) = self.classes[class].lock().0.pop() else { break };
            self.cached.fetch_sub(class_size(class), Relaxed);
            // SAFETY: a listed block is free, and of these classes each block is a mapping of its own.
            unsafe { os::unmap(block, nbytes) };
            self.note_release(nbytes);
            released += nbytes;
        }
        released
    }

    /// Gives back the memory of spans of a class whose blocks are all listed.
    fn release_free_spans(&self, class: usize) -> usize {
        let size = class_size(class);
        let per_span = SPAN_SIZE / size;
        let span_of = |block: *mut u8| block.map_addr(|address| address & !(SPAN_SIZE - 1));
        let mut list = mem::take(&mut *self.classes[class].lock());
        let blocks = &mut list.0;
        blocks.sort_unstable();
        // What stays moves to the front of the list: there may be no memory for another.
        let (mut kept, mut begin, mut released) = (0, 0, 0);
        while let Some(&first) = blocks.get(begin) {
            let span = span_of(first);
            let count = blocks[begin..].iter().take_while(|block| span_of(**block) == span).count();
            if count < per_span {
                blocks.copy_within(begin..begin + count, kept);
                kept += count;
            } else {
                // SAFETY: all blocks of the span were in the list, which is ours now, so nobody uses its memory.
                unsafe { os::decommit(span, SPAN_SIZE) };
                self.cached.fetch_sub(per_span * size, Relaxed);
                self.note_release(SPAN_SIZE);
                let _ = self.empty_spans.lock().add(std::iter::once(span));
                released += SPAN_SIZE;
            }
            begin += count;
        }
        blocks.truncate(kept);
        let lost = self.classes[class].lock().absorb(list);
        self.cached.fetch_sub(lost * size, Relaxed);
        released
    }

    /// Empties the shared caches because an allocation failed.
    #[cold]
    pub(super) fn release_cached_memory(&self) {
        self.num_retries.fetch_add(1, Relaxed);
        self.trim(0);
        os::trim_heap();
    }

    pub(super) fn count_oom(&self) {
        self.num_ooms.fetch_add(1, Relaxed);
    }

    pub(super) fn set_limit(&self, limit: Option<usize>) {
        self.limit.store(limit.unwrap_or(usize::MAX), Relaxed);
    }

    pub(super) fn memory_stats(&self) -> MemoryStats {
        let (allocation, allocated_bytes) = self.stats.snapshot();
        let reserved = self.reserved.load(Relaxed) as u64;
        let limit = self.limit.load(Relaxed);
        MemoryStats {
            allocation,
            allocated_bytes,
            reserved_bytes: Stat {
                current: reserved,
                peak: self.reserved_peak.load(Relaxed) as u64,
                allocated: self.reserved_total.load(Relaxed),
                freed: self.released_total.load(Relaxed),
            },
            inactive_bytes: reserved.saturating_sub(allocated_bytes.current),
            num_device_alloc: self.num_os_allocs.load(Relaxed),
            num_device_free: self.num_os_frees.load(Relaxed),
            num_alloc_retries: self.num_retries.load(Relaxed),
            num_ooms: self.num_ooms.load(Relaxed),
            limit: (limit != usize::MAX).then_some(limit as u64),
        }
    }

    pub(super) fn reset_peak_stats(&self) {
        self.stats.reset_peak();
        self.reserved_peak.store(self.reserved.load(Relaxed), Relaxed);
    }

    /// Makes the locks usable in a forked child. What a lock guarded while a thread of the parent held it may be
    /// inconsistent, so that container is forgotten: its memory stays mapped and is not reused.
    ///
    /// # Safety
    /// Only in a forked child, before it starts threads.
    pub(super) unsafe fn after_fork_in_child(&self) {
        // SAFETY: passed on, for each lock.
        unsafe {
            self.classes.iter().for_each(|list| list.reset_after_fork());
            self.empty_spans.reset_after_fork();
            self.large.reset_after_fork();
        }
    }
}

/// The error of an allocation that failed.
#[cold]
pub(super) fn out_of_memory(nbytes: usize) -> Error {
    Error::out_of_memory(format!(
        "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate {nbytes} bytes. Error code 12 (Cannot allocate memory)"
    ))
}

#[cfg(test)]
#[path = "heap_tests.rs"]
mod tests;
