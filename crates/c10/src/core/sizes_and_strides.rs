//! The sizes and strides of a tensor, without an allocation up to five dimensions.

use std::ptr::NonNull;

/// Up to this many dimensions live inside the tensor.
pub const MAX_INLINE_DIMS: usize = 5;

/// Two arrays of equal length. Inline, the strides start at a fixed place; on the heap, the sizes are followed directly by
/// the strides.
pub struct SizesAndStrides {
    len: usize,
    data: Data,
}

union Data {
    inline: [i64; 2 * MAX_INLINE_DIMS],
    heap: NonNull<i64>,
}

// SAFETY: the heap block is owned, plain integers.
unsafe impl Send for SizesAndStrides {}
// SAFETY: shared access only reads.
unsafe impl Sync for SizesAndStrides {}

impl SizesAndStrides {
    /// One dimension of size 0 and stride 1, as PyTorch's.
    pub const fn new() -> Self {
        let mut inline = [0; 2 * MAX_INLINE_DIMS];
        inline[MAX_INLINE_DIMS] = 1;
        Self { len: 1, data: Data { inline } }
    }

    /// How many dimensions there are.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no dimensions.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    const fn is_inline(&self) -> bool {
        self.len <= MAX_INLINE_DIMS
    }

    /// The start of the sizes and of the strides.
    #[inline]
    fn pointers(&self) -> (*const i64, *const i64) {
        if self.is_inline() {
            // SAFETY: `len` says which field is active; both starts are inside the array.
            unsafe {
                let start = (&raw const self.data.inline).cast::<i64>();
                (start, start.add(MAX_INLINE_DIMS))
            }
        } else {
            // SAFETY: `len` says which field is active, and the block holds 2 * len integers.
            unsafe {
                let start = self.data.heap.as_ptr().cast_const();
                (start, start.add(self.len))
            }
        }
    }

    /// The sizes.
    #[inline]
    pub fn sizes(&self) -> &[i64] {
        // SAFETY: `pointers` gives the start of `len` initialised integers that live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.pointers().0, self.len) }
    }

    /// The strides, in elements.
    #[inline]
    pub fn strides(&self) -> &[i64] {
        // SAFETY: as in `sizes`.
        unsafe { std::slice::from_raw_parts(self.pointers().1, self.len) }
    }

    /// The sizes and the strides, to be written.
    #[inline]
    pub fn as_mut(&mut self) -> (&mut [i64], &mut [i64]) {
        let len = self.len;
        let (sizes, strides) = if self.is_inline() {
            let start = (&raw mut self.data).cast::<i64>();
            // SAFETY: the inline array is active; the strides start inside it.
            (start, unsafe { start.add(MAX_INLINE_DIMS) })
        } else {
            // SAFETY: the heap block is active and holds 2 * len integers.
            unsafe {
                let start = self.data.heap.as_ptr();
                (start, start.add(len))
            }
        };
        // SAFETY: two disjoint runs of `len` initialised integers, borrowed mutably with `self`.
        unsafe { (std::slice::from_raw_parts_mut(sizes, len), std::slice::from_raw_parts_mut(strides, len)) }
    }

    /// Changes the number of dimensions; everything becomes zero.
    fn reset(&mut self, len: usize) {
        if len == self.len {
            return;
        }
        self.free();
        // `free` leaves an inline state, so a panic in the allocation would drop nothing twice.
        if len > MAX_INLINE_DIMS {
            let block = Box::leak(vec![0_i64; 2 * len].into_boxed_slice());
            self.data.heap = NonNull::from(block).cast();
        }
        self.len = len;
    }

    fn free(&mut self) {
        if !self.is_inline() {
            // SAFETY: the heap block is active, and was made from a boxed slice of 2 * len integers in `reset`.
            drop(unsafe {
                Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.data.heap.as_ptr(), 2 * self.len))
            });
        }
        self.len = 0;
        self.data.inline = [0; 2 * MAX_INLINE_DIMS];
    }

    /// Replaces both. The two slices have the same length: of a longer one the rest is ignored.
    #[inline]
    pub fn set(&mut self, sizes: &[i64], strides: &[i64]) {
        let len = sizes.len().min(strides.len());
        self.reset(len);
        let (to_sizes, to_strides) = self.as_mut();
        to_sizes.copy_from_slice(&sizes[..len]);
        to_strides.copy_from_slice(&strides[..len]);
    }

    /// Replaces the sizes, and lets `fill` write the strides.
    #[inline]
    pub fn set_sizes_with(&mut self, sizes: &[i64], fill: impl FnOnce(&[i64], &mut [i64])) {
        self.reset(sizes.len());
        let (to_sizes, to_strides) = self.as_mut();
        to_sizes.copy_from_slice(sizes);
        fill(to_sizes, to_strides);
    }
}

impl Default for SizesAndStrides {
    fn default() -> Self {
        Self::new()
    }
}

impl Clone for SizesAndStrides {
    fn clone(&self) -> Self {
        let mut copy = Self::new();
        copy.set(self.sizes(), self.strides());
        copy
    }
}

impl Drop for SizesAndStrides {
    #[inline]
    fn drop(&mut self) {
        if !self.is_inline() {
            self.free();
        }
    }
}

impl std::fmt::Debug for SizesAndStrides {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SizesAndStrides")
            .field("sizes", &self.sizes())
            .field("strides", &self.strides())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_as_an_empty_vector() {
        let s = SizesAndStrides::default();
        assert_eq!((s.sizes(), s.strides()), ([0].as_slice(), [1].as_slice()));
    }

    #[test]
    fn moves_between_inline_and_heap() {
        let mut s = SizesAndStrides::new();
        for len in [0, 5, 6, 9, 9, 3, 12, 0, 1, 64, 5] {
            let sizes: Vec<i64> = (0..len).collect();
            let strides: Vec<i64> = (0..len).map(|i| 100 + i).collect();
            s.set(&sizes, &strides);
            let copy = s.clone();
            for each in [&s, &copy] {
                assert_eq!(each.sizes(), sizes);
                assert_eq!(each.strides(), strides);
            }
        }
    }
}
