//! `DispatchStub`: a kernel that is chosen by dispatch key at run time.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use c10::{DispatchKey, Result};

use crate::kernel_registry::{self, Entry};

/// Room for the dense keys of all backends, which are numbered consecutively. Two keys that share a place (a dense
/// and a sparse one, if ever a stub serves both) take turns.
const CACHED_KEYS: usize = 32;

/// A named kernel of type `F` (a function pointer), looked up once per key and then one load away.
///
/// ```ignore
/// pub static ADD: DispatchStub<fn(&TensorIterator, &Scalar) -> Result<()>> = DispatchStub::new("add_kernel");
/// ADD.get(DispatchKey::CPU)?(&iter, alpha)?;
/// ```
pub struct DispatchStub<F: Copy + Send + Sync + 'static> {
    name: &'static str,
    cache: [AtomicPtr<Entry<F>>; CACHED_KEYS],
}

impl<F: Copy + Send + Sync + 'static> DispatchStub<F> {
    /// A stub for the kernels registered under `name`.
    pub const fn new(name: &'static str) -> Self {
        Self { name, cache: [const { AtomicPtr::new(ptr::null_mut()) }; CACHED_KEYS] }
    }

    /// The name kernels are registered under.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The kernel for a key; NotImplementedError if none is registered.
    #[inline]
    pub fn get(&self, key: DispatchKey) -> Result<F> {
        let slot = &self.cache[key as usize % CACHED_KEYS];
        // SAFETY: null, or stored by `find` from a `&'static Entry<F>`.
        match unsafe { slot.load(Ordering::Acquire).as_ref() } {
            Some(entry) if entry.key() == key => Ok(entry.get()),
            _ => self.find(key, slot),
        }
    }

    #[cold]
    fn find(&self, key: DispatchKey, slot: &AtomicPtr<Entry<F>>) -> Result<F> {
        let entry = kernel_registry::find_entry::<F>(self.name, key)?;
        slot.store(ptr::from_ref(entry).cast_mut(), Ordering::Release);
        Ok(entry.get())
    }
}

#[cfg(test)]
mod tests {
    use c10::ErrorKind;

    use super::*;

    type Kernel = fn(i32) -> i32;

    static STUB: DispatchStub<Kernel> = DispatchStub::new("stub_test_kernel");
    static MISTYPED: DispatchStub<fn(i64) -> i64> = DispatchStub::new("stub_test_kernel");

    #[test]
    fn finds_by_name_key_and_type() {
        let error = STUB.get(DispatchKey::CUDA).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::NotImplemented);
        assert_eq!(error.message(), "stub_test: no kernel for CUDA");

        kernel_registry::register::<Kernel>("stub_test_kernel", DispatchKey::CPU, |x| x + 1);
        assert_eq!(STUB.get(DispatchKey::CPU).unwrap()(1), 2);
        assert!(STUB.get(DispatchKey::CUDA).is_err());
        assert_eq!(MISTYPED.get(DispatchKey::CPU).err().unwrap().kind(), ErrorKind::Internal);
        assert!(kernel_registry::list().contains(&("stub_test_kernel", DispatchKey::CPU)));

        kernel_registry::register::<Kernel>("stub_test_kernel", DispatchKey::CPU, |x| x + 10);
        assert_eq!(
            STUB.get(DispatchKey::CPU).unwrap()(1),
            11,
            "a replacement reaches stubs that have cached"
        );
    }

    static PAIR: DispatchStub<Kernel> = DispatchStub::new("pair_test_kernel");

    #[test]
    fn keys_that_share_a_place_are_told_apart() {
        let dense = DispatchKey::MPS;
        let shares =
            |key: &DispatchKey| *key != dense && *key as usize % CACHED_KEYS == dense as usize % CACHED_KEYS;
        let other = DispatchKey::all().find(shares).unwrap();
        kernel_registry::register::<Kernel>("pair_test_kernel", dense, |x| x + 1);
        kernel_registry::register::<Kernel>("pair_test_kernel", other, |x| x + 2);
        for _ in 0..2 {
            assert_eq!(PAIR.get(dense).unwrap()(0), 1);
            assert_eq!(PAIR.get(other).unwrap()(0), 2);
        }
    }

    #[test]
    fn listeners_hear_of_each_kernel_once() {
        static HEARD: std::sync::Mutex<Vec<DispatchKey>> = std::sync::Mutex::new(Vec::new());
        let add = |key| kernel_registry::register::<Kernel>("heard_test_kernel", key, |x| x);
        add(DispatchKey::CPU);
        kernel_registry::on_registration(|name, key| {
            if name == "heard_test_kernel" {
                // Without the registry's lock: looking up is allowed.
                assert!(kernel_registry::find::<Kernel>(name, key).is_ok());
                HEARD.lock().unwrap().push(key);
            }
        });
        add(DispatchKey::CPU);
        add(DispatchKey::CUDA);
        assert_eq!(*HEARD.lock().unwrap(), [DispatchKey::CPU, DispatchKey::CUDA]);
    }
}
