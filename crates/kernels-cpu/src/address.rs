//! Addresses of elements, and those that threads share.
//!
//! # Note [Typed pointers]
//! That an access stays inside its storage is proved by the byte before a kernel runs (`check_in_storage`). That the bytes
//! are elements of the type which the kernel was compiled for is proved here: a pointer to `T` comes from a tensor
//! by [`const_data_ptr`] or [`mutable_data_ptr`], which compare the dtype, and elementwise kernels are compared with their
//! iterator in [`crate::loops::run`].

use c10::{check, Element, Result, Tensor};

fn check_dtype<T: Element>(tensor: &Tensor) -> Result<()> {
    check!(
        tensor.dtype() == T::SCALAR_TYPE,
        "expected scalar type {} but found {}",
        T::SCALAR_TYPE.short_name(),
        tensor.dtype().short_name()
    );
    Ok(())
}

/// The first element, to be read. A tensor of another dtype is an error.
pub(crate) fn const_data_ptr<T: Element>(tensor: &Tensor) -> Result<*const T> {
    check_dtype::<T>(tensor)?;
    Ok(tensor.const_data_ptr().cast())
}

/// The first element, to be written. A tensor of another dtype is an error.
pub(crate) fn mutable_data_ptr<T: Element>(tensor: &Tensor) -> Result<*mut T> {
    check_dtype::<T>(tensor)?;
    Ok(tensor.data_ptr().cast())
}

/// Two tensors whose elements are copied as bytes are of one dtype.
pub(crate) fn check_same_dtype(name: &str, a: &Tensor, b: &Tensor) -> Result<()> {
    check!(
        a.dtype() == b.dtype(),
        "{name}(): expected tensors of one dtype, got {} and {}",
        a.dtype().short_name(),
        b.dtype().short_name()
    );
    Ok(())
}

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
