//! A thread's own free blocks: the path of most allocations, without locks.

use std::sync::Arc;

use super::heap::Heap;
use super::size_class::{class_size, magazine_capacity, MAX_MAGAZINE, NUM_CLASSES};
use super::stats::ThreadCounters;
use crate::Result;

/// The free blocks of one class, last in first out so that the warmest is used next.
struct Magazine {
    len: usize,
    blocks: [*mut u8; MAX_MAGAZINE],
}

/// A thread's free blocks by class, and its counts. Used by its thread only.
pub(super) struct ThreadCache {
    magazines: [Magazine; NUM_CLASSES],
    counters: Arc<ThreadCounters>,
}

impl ThreadCache {
    /// An empty cache, known to the heap's statistics.
    pub(super) fn new(heap: &Heap) -> ThreadCache {
        ThreadCache {
            magazines: [const { Magazine { len: 0, blocks: [std::ptr::null_mut(); MAX_MAGAZINE] } };
                NUM_CLASSES],
            counters: heap.stats().register_thread(),
        }
    }

    pub(super) fn counters(&self) -> &Arc<ThreadCounters> {
        &self.counters
    }

    /// A block of a class.
    #[inline(always)]
    pub(super) fn allocate(&mut self, heap: &Heap, class: usize) -> Result<*mut u8> {
        let magazine = &mut self.magazines[class];
        if magazine.len == 0 {
            self.refill(heap, class)?;
        }
        let magazine = &mut self.magazines[class];
        magazine.len -= 1;
        let block = magazine.blocks[magazine.len];
        self.counters.record_alloc(class_size(class), heap.stats());
        Ok(block)
    }

    /// Takes a block back.
    ///
    /// # Safety
    /// The block must be of this heap and class, and no longer be used.
    #[inline(always)]
    pub(super) unsafe fn free(&mut self, heap: &Heap, class: usize, block: *mut u8) {
        if self.magazines[class].len == magazine_capacity(class) {
            self.spill(heap, class);
        }
        let magazine = &mut self.magazines[class];
        magazine.blocks[magazine.len] = block;
        magazine.len += 1;
        self.counters.record_free(class_size(class), heap.stats());
    }

    /// Gets blocks from the heap: at least one, at most half a magazine (half so that a following series of frees
    /// does not spill at once).
    #[cold]
    fn refill(&mut self, heap: &Heap, class: usize) -> Result<()> {
        let want = magazine_capacity(class).div_ceil(2);
        let mut blocks = [std::ptr::null_mut(); MAX_MAGAZINE];
        let count = match heap.take_blocks(class, &mut blocks[..want]) {
            Ok(count) => count,
            Err(_) => {
                // What this thread keeps of other classes may be what is missing.
                self.flush(heap);
                heap.release_cached_memory();
                heap.take_blocks(class, &mut blocks[..want]).inspect_err(|_| heap.count_oom())?
            }
        };
        let magazine = &mut self.magazines[class];
        magazine.blocks[..count].copy_from_slice(&blocks[..count]);
        magazine.len = count;
        Ok(())
    }

    /// Gives the heap the older half of a full magazine.
    #[cold]
    fn spill(&mut self, heap: &Heap, class: usize) {
        let magazine = &mut self.magazines[class];
        let count = magazine.len.div_ceil(2);
        // SAFETY: the blocks came from this heap with this class and are free; they are forgotten below.
        // What the heap cannot list, as memory is exhausted, is lost: a free has to succeed.
        let _ = unsafe { heap.give_blocks(class, &magazine.blocks[..count]) };
        magazine.blocks.copy_within(count..magazine.len, 0);
        magazine.len -= count;
    }

    /// Gives the heap everything that it can list.
    pub(super) fn flush(&mut self, heap: &Heap) {
        for (class, magazine) in self.magazines.iter_mut().enumerate() {
            // SAFETY: as in `spill`.
            if magazine.len != 0 && unsafe { heap.give_blocks(class, &magazine.blocks[..magazine.len]) } {
                magazine.len = 0;
            }
        }
    }
}
