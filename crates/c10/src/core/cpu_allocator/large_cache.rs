//! Free large blocks, each a mapping of its own, kept for reuse.

use std::collections::BTreeMap;

use crate::core::os;

/// A mapping above the size classes. The address of the (boxed) description is a `DataPtr`'s context; its alignment
/// leaves the low bits for the tag that tells it from a small block.
#[repr(align(64))]
#[derive(Debug)]
pub(super) struct LargeBlock {
    /// Start of the mapping.
    pub(super) data: *mut u8,
    /// Bytes in the mapping.
    pub(super) capacity: usize,
}

// SAFETY: a block is owned by one holder at a time; the pointer is only used by that holder.
unsafe impl Send for LargeBlock {}

impl LargeBlock {
    /// Gives the memory back to the system; returns how many bytes.
    ///
    /// # Safety
    /// The block's memory must no longer be used.
    pub(super) unsafe fn unmap(self) -> usize {
        // SAFETY: data and capacity describe one mapping made by os::map; unused as the caller says.
        unsafe { os::unmap(self.data, self.capacity) };
        self.capacity
    }
}

/// The free blocks, by size; among equal sizes by age.
#[derive(Default, Debug)]
pub(super) struct LargeCache {
    /// Keyed by capacity and the time of the free.
    blocks: BTreeMap<(usize, u64), Box<LargeBlock>>,
    clock: u64,
}

/// The largest block that is used for a request: a quarter more, and half a megabyte so that small ones find partners.
fn largest_fit(nbytes: usize) -> usize {
    nbytes.saturating_add(nbytes / 4).saturating_add(512 << 10)
}

impl LargeCache {
    pub(super) const fn new() -> LargeCache {
        LargeCache { blocks: BTreeMap::new(), clock: 0 }
    }

    /// The smallest free block that holds a request without much waste.
    pub(super) fn take(&mut self, nbytes: usize) -> Option<Box<LargeBlock>> {
        let range = (nbytes, 0)..=(largest_fit(nbytes), u64::MAX);
        let key = self.blocks.range(range).next().map(|(key, _)| *key)?;
        self.blocks.remove(&key)
    }

    /// Keeps a free block.
    pub(super) fn put(&mut self, block: Box<LargeBlock>) {
        self.clock += 1;
        self.blocks.insert((block.capacity, self.clock), block);
    }

    /// The block that has been free for longest.
    pub(super) fn take_oldest(&mut self) -> Option<Box<LargeBlock>> {
        let key = *self.blocks.keys().min_by_key(|(_, freed_at)| *freed_at)?;
        self.blocks.remove(&key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(capacity: usize) -> Box<LargeBlock> {
        Box::new(LargeBlock { data: std::ptr::null_mut(), capacity })
    }

    #[test]
    fn best_fit_without_waste() {
        let mut cache = LargeCache::default();
        for mib in [64, 8, 10, 2] {
            cache.put(block(mib << 20));
        }
        assert_eq!(cache.take(9 << 20).unwrap().capacity, 10 << 20);
        assert!(cache.take(9 << 20).is_none(), "64 MiB would waste too much");
        assert_eq!(cache.take(8 << 20).unwrap().capacity, 8 << 20);
        assert!(cache.take(usize::MAX).is_none());
        assert_eq!(cache.take_oldest().unwrap().capacity, 64 << 20);
        assert_eq!(cache.take_oldest().unwrap().capacity, 2 << 20);
        assert!(cache.take_oldest().is_none());
    }
}
