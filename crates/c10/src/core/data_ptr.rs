//! `DataPtr`: an owned pointer to a tensor's bytes, with the function that frees them.

use std::ffi::c_void;
use std::fmt;
use std::ptr;

use crate::Device;

/// Frees what a `DataPtr` owns; called once with the pointer's context, on whatever thread drops it.
pub type DeleterFnPtr = unsafe fn(*mut c_void);

/// An owned pointer to bytes on a device.
///
/// `data` is where the bytes are; `ctx` is what the deleter needs to give them back. Dropping the `DataPtr` calls the
/// deleter with the context, unless the context is null.
pub struct DataPtr {
    data: *mut u8,
    ctx: *mut c_void,
    deleter: Option<DeleterFnPtr>,
    device: Device,
}

// SAFETY: a DataPtr owns its bytes alone and deleters may run on any thread (documented on DeleterFnPtr).
unsafe impl Send for DataPtr {}
// SAFETY: a shared DataPtr only hands out its raw pointers; using those is the caller's unsafe business.
unsafe impl Sync for DataPtr {}

impl DataPtr {
    /// A pointer that owns `ctx`.
    ///
    /// # Safety
    /// `deleter(ctx)` must be valid to call once, from any thread, when the result is dropped, and `data` must stay
    /// valid until then.
    pub const unsafe fn new(
        data: *mut u8,
        ctx: *mut c_void,
        deleter: Option<DeleterFnPtr>,
        device: Device,
    ) -> DataPtr {
        DataPtr { data, ctx, deleter, device }
    }

    /// A pointer that owns nothing: memory that lives elsewhere (or null).
    pub const fn borrowed(data: *mut u8, device: Device) -> DataPtr {
        DataPtr { data, ctx: ptr::null_mut(), deleter: None, device }
    }

    /// The null pointer: no bytes.
    pub const fn null(device: Device) -> DataPtr {
        DataPtr::borrowed(ptr::null_mut(), device)
    }

    /// Owns any value that keeps `data` alive; it is dropped with the pointer.
    pub fn from_owner<T: Send + 'static>(data: *mut u8, owner: T, device: Device) -> DataPtr {
        unsafe fn drop_owner<T>(ctx: *mut c_void) {
            // SAFETY: ctx is the pointer Box::into_raw gave below, and deleters run once.
            drop(unsafe { Box::from_raw(ctx.cast::<T>()) });
        }
        let ctx = Box::into_raw(Box::new(owner)).cast::<c_void>();
        DataPtr { data, ctx, deleter: Some(drop_owner::<T>), device }
    }

    /// Where the bytes are.
    #[inline]
    pub const fn get(&self) -> *mut u8 {
        self.data
    }

    /// Where the bytes are (the same as `get`).
    #[inline]
    pub const fn data(&self) -> *mut u8 {
        self.data
    }

    /// What the deleter is called with.
    #[inline]
    pub const fn context(&self) -> *mut c_void {
        self.ctx
    }

    /// The function that frees the context.
    #[inline]
    pub const fn deleter(&self) -> Option<DeleterFnPtr> {
        self.deleter
    }

    /// The device the bytes are on.
    #[inline]
    pub const fn device(&self) -> Device {
        self.device
    }

    /// True if there are no bytes.
    #[inline]
    pub const fn is_null(&self) -> bool {
        self.data.is_null()
    }

    /// Changes the device the pointer claims to be on.
    ///
    /// # Safety
    /// The bytes must be accessible on that device.
    pub unsafe fn set_device(&mut self, device: Device) {
        self.device = device;
    }

    /// Gives up ownership: the caller must call the deleter with the context. The data pointer stays.
    pub fn release_context(&mut self) -> *mut c_void {
        self.deleter = None;
        std::mem::replace(&mut self.ctx, ptr::null_mut())
    }

    /// Replaces the deleter if it is the expected one; says whether it did.
    ///
    /// # Safety
    /// As for `new`, with the context the pointer has.
    pub unsafe fn compare_exchange_deleter(
        &mut self,
        expected: DeleterFnPtr,
        new_deleter: DeleterFnPtr,
    ) -> bool {
        match self.deleter {
            Some(current) if ptr::fn_addr_eq(current, expected) => {
                self.deleter = Some(new_deleter);
                true
            }
            _ => false,
        }
    }

    /// Frees now; the pointer is null afterwards.
    pub fn clear(&mut self) {
        let device = self.device;
        *self = DataPtr::null(device);
    }
}

impl Drop for DataPtr {
    #[inline]
    fn drop(&mut self) {
        if let Some(deleter) = self.deleter {
            if !self.ctx.is_null() {
                // SAFETY: promised by the caller of `new`; drop runs once.
                unsafe { deleter(self.ctx) };
            }
        }
    }
}

impl fmt::Debug for DataPtr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataPtr")
            .field("data", &self.data)
            .field("ctx", &self.ctx)
            .field("owned", &self.deleter.is_some())
            .field("device", &self.device)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::Arc;

    struct CountDrops(Arc<AtomicUsize>);

    impl Drop for CountDrops {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn owner_is_dropped_exactly_once() {
        let drops = Arc::new(AtomicUsize::new(0));
        let mut byte = 0u8;
        let mut data = DataPtr::from_owner(&mut byte, CountDrops(drops.clone()), Device::CPU);
        assert!(!data.is_null());
        data.clear();
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        assert!(data.is_null());
        drop(data);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn released_context_is_the_callers() {
        let drops = Arc::new(AtomicUsize::new(0));
        let mut byte = 0u8;
        let mut data = DataPtr::from_owner(&mut byte, CountDrops(drops.clone()), Device::CPU);
        let deleter = data.deleter().unwrap();
        let ctx = data.release_context();
        drop(data);
        assert_eq!(drops.load(Ordering::Relaxed), 0);
        // SAFETY: ownership of ctx was just released to us.
        unsafe { deleter(ctx) };
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    }
}
