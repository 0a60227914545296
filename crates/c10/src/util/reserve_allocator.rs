//! The program's allocator, with a reserve for small records when the system's memory is exhausted.
//!
//! # Note [Memory reserve]
//!
//! What an operator's caller can make large is allocated fallibly: tensors' bytes, vectors whose length somebody chose.
//! The many small records (a tensor, a graph node, the text of an error, a list of gradients) are not: Rust ends the
//! process when one of them cannot be had. A program that installs [`ReserveAllocator`] gets them from a reserve instead,
//! and the thread remembers it. Where tensors are made and where the engine runs a node, [`check_memory`] turns that
//! memory of it into an `OutOfMemory` error, unless giving back the tensor allocator's cached blocks has helped. So the
//! operator fails, frees what it had made, and the reserve is whole again.
//!
//! The reserve is 35 MiB of zeroed program data, which takes address space, and memory only when it is written. Its
//! slots are claimed by single atomic operations: no lock, so it works in a forked child, and under any lock.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::core::allocator::Allocator;
use crate::core::cpu_allocator::CPU_ALLOCATOR;
use crate::core::os;
use crate::{Error, Result};

/// The system's allocator, with a reserve: see Note [Memory reserve] in `c10/src/util/reserve_allocator.rs`.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: c10::ReserveAllocator = c10::ReserveAllocator;
///
/// assert_eq!(vec![1, 2, 3].len(), 3);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ReserveAllocator;

/// A slot is aligned to its size, up to this.
const ALIGNMENT: usize = 4096;

/// `WORDS` times `COUNT` slots of one size.
#[repr(C, align(4096))]
struct Slots<const SIZE: usize, const COUNT: usize, const WORDS: usize> {
    bytes: UnsafeCell<[[[MaybeUninit<u8>; SIZE]; COUNT]; WORDS]>,
    /// A bit for each slot in use: `COUNT` in each word.
    used: [AtomicU64; WORDS],
}

// SAFETY: a slot's bytes belong to whoever has set its bit.
unsafe impl<const SIZE: usize, const COUNT: usize, const WORDS: usize> Sync for Slots<SIZE, COUNT, WORDS> {}

impl<const SIZE: usize, const COUNT: usize, const WORDS: usize> Slots<SIZE, COUNT, WORDS> {
    /// The bits that stand for slots.
    const SLOTS: u64 = u64::MAX >> (64 - COUNT);

    const fn new() -> Self {
        Self {
            bytes: UnsafeCell::new([[[MaybeUninit::uninit(); SIZE]; COUNT]; WORDS]),
            used: [const { AtomicU64::new(0) }; WORDS],
        }
    }

    fn start(&self) -> *mut u8 {
        self.bytes.get().cast()
    }

    /// A free slot for `layout`, or null.
    fn claim(&self, layout: Layout) -> *mut u8 {
        if layout.size() > SIZE || layout.align() > SIZE.min(ALIGNMENT) {
            return ptr::null_mut();
        }
        for (word, used) in self.used.iter().enumerate() {
            let mut free = !used.load(Ordering::Relaxed) & Self::SLOTS;
            while free != 0 {
                let bit = free & free.wrapping_neg();
                // Acquire: what the slot's last owner did to it is over.
                let before = used.fetch_or(bit, Ordering::Acquire);
                if before & bit == 0 {
                    let slot = word * COUNT + bit.trailing_zeros() as usize;
                    // SAFETY: there are COUNT slots for each word.
                    return unsafe { self.start().add(slot * SIZE) };
                }
                free = !before & Self::SLOTS;
            }
        }
        ptr::null_mut()
    }

    /// Frees a slot; false if the pointer is none of them.
    fn release(&self, pointer: *mut u8) -> bool {
        let offset = (pointer as usize).wrapping_sub(self.start() as usize);
        if offset >= SIZE * COUNT * WORDS {
            return false;
        }
        let slot = offset / SIZE;
        self.used[slot / COUNT].fetch_and(!(1 << (slot % COUNT)), Ordering::Release);
        true
    }

    fn is_mostly_used(&self) -> bool {
        let used: u32 = self.used.iter().map(|word| word.load(Ordering::Relaxed).count_ones()).sum();
        used as usize * 4 > COUNT * WORDS * 3
    }
}

#[repr(C)]
struct Reserve {
    /// Tensors, nodes, texts.
    records: Slots<256, 64, 32>,
    /// Stacks, short lists.
    medium: Slots<2048, 64, 4>,
    buffers: Slots<{ 64 << 10 }, 32, 1>,
    /// Lists of as many values as an operator has tensors.
    lists: Slots<{ 4 << 20 }, 8, 1>,
}

static RESERVE: Reserve =
    Reserve { records: Slots::new(), medium: Slots::new(), buffers: Slots::new(), lists: Slots::new() };

/// How many threads have used the reserve and not yet heard of it.
static FAILURES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Whether this thread is one of [`FAILURES`]. Without a destructor, so that it can be read at any time. (The first
    /// touch of a thread's data may allocate in the C library; by the time memory is exhausted a thread has touched it.)
    static FAILED: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread's allocations may fail: what can be told so does not take from the reserve.
    static FALLIBLE: Cell<bool> = const { Cell::new(false) };
}

/// Runs an allocation whose failure is an error already, without the reserve.
pub(crate) fn without_reserve<R>(allocate: impl FnOnce() -> R) -> R {
    let before = FALLIBLE.replace(true);
    let result = allocate();
    FALLIBLE.set(before);
    result
}

impl Reserve {
    #[cold]
    fn claim(&self, layout: Layout) -> *mut u8 {
        if FALLIBLE.get() {
            return ptr::null_mut();
        }
        let mut slot = self.records.claim(layout);
        if slot.is_null() {
            slot = self.medium.claim(layout);
        }
        if slot.is_null() {
            slot = self.buffers.claim(layout);
        }
        if slot.is_null() {
            slot = self.lists.claim(layout);
        }
        if !slot.is_null() && !FAILED.replace(true) {
            FAILURES.fetch_add(1, Ordering::Relaxed);
        }
        slot
    }

    #[inline]
    fn contains(&self, pointer: *mut u8) -> bool {
        (pointer as usize).wrapping_sub(ptr::from_ref(self) as usize) < size_of::<Self>()
    }

    #[cold]
    fn release(&self, pointer: *mut u8) {
        let known = self.records.release(pointer)
            || self.medium.release(pointer)
            || self.buffers.release(pointer)
            || self.lists.release(pointer);
        debug_assert!(known, "a pointer into the reserve is one of its slots");
    }

    fn is_mostly_used(&self) -> bool {
        self.records.is_mostly_used()
            || self.medium.is_mostly_used()
            || self.buffers.is_mostly_used()
            || self.lists.is_mostly_used()
    }
}

// SAFETY: memory comes from `System` or is a slot of the reserve that nobody else has, large and aligned enough; each
// goes back to where it came from, which its address tells.
unsafe impl GlobalAlloc for ReserveAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: passed on to the caller.
        let pointer = unsafe { System.alloc(layout) };
        if pointer.is_null() {
            return RESERVE.claim(layout);
        }
        pointer
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: passed on to the caller.
        let mut pointer = unsafe { System.alloc_zeroed(layout) };
        if pointer.is_null() {
            pointer = RESERVE.claim(layout);
            if !pointer.is_null() {
                // SAFETY: the slot is at least as large as the layout.
                unsafe { pointer.write_bytes(0, layout.size()) };
            }
        }
        pointer
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if RESERVE.contains(pointer) {
            return RESERVE.release(pointer);
        }
        // SAFETY: not from the reserve, so from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !RESERVE.contains(pointer) {
            // SAFETY: not from the reserve, so from `System`.
            let moved = unsafe { System.realloc(pointer, layout, new_size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller promises that the size, rounded up to the alignment, does not overflow.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        // SAFETY: the new size is not zero, as the caller promises.
        let moved = unsafe { self.alloc(new_layout) };
        if !moved.is_null() {
            // SAFETY: both are valid for the smaller size, and the new block is of its own.
            unsafe { ptr::copy_nonoverlapping(pointer, moved, layout.size().min(new_size)) };
            // SAFETY: allocated by this allocator with this layout, and not used any more.
            unsafe { self.dealloc(pointer, layout) };
        }
        moved
    }
}

/// An `OutOfMemory` error if this thread has had to use the reserve since it last asked, and memory is still exhausted
/// after the host allocator's cached blocks are given back.
///
/// Asked wherever tensors and storages are made, where the engine runs a node and a worker a piece of a kernel; a loop
/// that makes many other small records asks too. (In a forked child, and after the end of a thread that never asked, it is
/// out of line once and for all: a little slower.)
#[inline]
pub fn check_memory() -> Result<()> {
    if FAILURES.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    check_own_memory()
}

#[cold]
fn check_own_memory() -> Result<()> {
    if !FAILED.replace(false) {
        return Ok(());
    }
    FAILURES.fetch_sub(1, Ordering::Relaxed);
    CPU_ALLOCATOR.trim(0);
    os::trim_heap();
    if !RESERVE.is_mostly_used() && has_memory() {
        return Ok(());
    }
    Err(Error::out_of_memory(
        "not enough memory: the system has none left for the records of tensors and gradients",
    ))
}

/// Whether the system has memory for some more records.
fn has_memory() -> bool {
    let layout = const { Layout::new::<[u8; 1 << 16]>() };
    // SAFETY: the layout is not empty.
    let probe = unsafe { System.alloc(layout) };
    if probe.is_null() {
        return false;
    }
    // SAFETY: just allocated with this layout.
    unsafe { System.dealloc(probe, layout) };
    true
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn slots_are_distinct_aligned_and_come_back() {
        static SLOTS: Slots<256, 64, 2> = Slots::new();
        let layout = Layout::from_size_align(200, 64).unwrap();
        let taken: Vec<_> = (0..128).map(|_| SLOTS.claim(layout)).collect();
        assert!(taken.iter().all(|slot| !slot.is_null() && (*slot as usize).is_multiple_of(256)));
        assert_eq!(taken.iter().collect::<HashSet<_>>().len(), 128);
        assert!(SLOTS.claim(layout).is_null() && SLOTS.is_mostly_used());
        assert!(SLOTS.release(taken[77]) && SLOTS.claim(layout) == taken[77]);
        assert!(taken.iter().all(|&slot| SLOTS.release(slot)) && !SLOTS.is_mostly_used());
        assert!(!SLOTS.release(ptr::dangling_mut()));
    }

    #[test]
    fn a_slot_is_large_and_aligned_enough() {
        static SLOTS: Slots<256, 3, 1> = Slots::new();
        assert!(SLOTS.claim(Layout::from_size_align(257, 8).unwrap()).is_null());
        assert!(SLOTS.claim(Layout::from_size_align(8, 512).unwrap()).is_null());
        assert!(!SLOTS.claim(Layout::from_size_align(256, 256).unwrap()).is_null());
    }

    #[test]
    fn slots_under_contention_have_one_owner() {
        static SLOTS: Slots<256, 3, 1> = Slots::new();
        std::thread::scope(|scope| {
            for id in 0..4_u8 {
                scope.spawn(move || {
                    for _ in 0..20_000 {
                        let slot = SLOTS.claim(Layout::new::<[u8; 16]>());
                        // SAFETY: a slot of 256 bytes that is this thread's until it is released.
                        unsafe { slot.write_bytes(id, 16) };
                        // SAFETY: as above, and written.
                        assert_eq!(unsafe { slot.cast::<[u8; 16]>().read() }, [id; 16]);
                        SLOTS.release(slot);
                    }
                });
            }
        });
    }

    #[test]
    fn a_block_moves_between_the_system_and_the_reserve() {
        let layout = Layout::new::<[u8; 64]>();
        let slot = RESERVE.claim(layout);
        assert!(RESERVE.contains(slot) && FAILED.get());
        // SAFETY: a slot of at least 64 bytes, given to realloc with its layout and then freed with the new one.
        unsafe {
            slot.write_bytes(7, 64);
            let moved = ReserveAllocator.realloc(slot, layout, 4096);
            assert!(!RESERVE.contains(moved) && (0..64).all(|i| *moved.add(i) == 7));
            ReserveAllocator.dealloc(moved, Layout::new::<[u8; 4096]>());
        }
        // There is memory: the thread hears nothing of it.
        assert!(check_memory().is_ok() && !FAILED.get());
    }
}
