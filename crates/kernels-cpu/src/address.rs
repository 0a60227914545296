//! Addresses that threads share.

/// An address of tensor memory. Kernels cut index ranges so that no two threads write to the same element.
#[derive(Clone, Copy)]
pub(crate) struct Address(pub(crate) *mut u8);

// SAFETY: an address is a number; whoever reads or writes behind it says why that is sound.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

/// A stride in bytes. The product may wrap: a dimension that nothing steps along may have any stride.
#[inline]
pub(crate) fn byte_stride(stride: i64, item_size: usize) -> i64 {
    stride.wrapping_mul(item_size as i64)
}

impl Address {
    /// The address some bytes further.
    #[inline(always)]
    pub(crate) fn offset(self, bytes: i64) -> Address {
        Address(self.0.wrapping_offset(bytes as isize))
    }

    /// # Safety
    /// A `T` must lie here, alive.
    #[inline(always)]
    pub(crate) unsafe fn read<T: Copy>(self) -> T {
        // SAFETY: the caller's promise.
        unsafe { self.0.cast::<T>().read_unaligned() }
    }

    /// # Safety
    /// Here must be room for a `T` that no other thread touches.
    #[inline(always)]
    pub(crate) unsafe fn write<T: Copy>(self, value: T) {
        // SAFETY: the caller's promise.
        unsafe { self.0.cast::<T>().write_unaligned(value) }
    }

    /// # Safety
    /// `n` elements must lie here, alive, aligned, and not written to for `'a`. Of none, any address will do.
    #[inline(always)]
    pub(crate) unsafe fn slice<'a, T>(self, n: usize) -> &'a [T] {
        if n == 0 {
            return &[];
        }
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.0.cast(), n) }
    }

    /// # Safety
    /// `n` elements must lie here, aligned, and not touched by anyone else for `'a`. Of none, any address will do.
    #[inline(always)]
    pub(crate) unsafe fn slice_mut<'a, T>(self, n: usize) -> &'a mut [T] {
        if n == 0 {
            return &mut [];
        }
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.0.cast(), n) }
    }
}
