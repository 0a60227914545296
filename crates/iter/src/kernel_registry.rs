//! Kernels by name and dispatch key.
//!
//! Operators do not depend on the crates that implement them: a backend registers each kernel here under the name
//! that the operator's declaration gives, and a [`DispatchStub`](crate::DispatchStub) finds it at the first call. The
//! catalogue of operators listens ([`on_registration`]), so that an operator serves a key from the moment on that its
//! kernel for that key is here: nothing else lists the backends.

use std::any::{type_name, Any, TypeId};
use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use c10::{
    at_fork, compute_dispatch_key, Device, DeviceType, DispatchKey, Error, ForkSafeMutex, Layout, Result,
    ScalarType,
};

/// The place of one kernel. Never freed, so that stubs can keep a reference; the kernel in it can be replaced.
pub(crate) struct Entry<F> {
    key: DispatchKey,
    current: AtomicPtr<F>,
}

impl<F: Copy> Entry<F> {
    /// The key that the kernel serves.
    #[inline]
    pub(crate) fn key(&self) -> DispatchKey {
        self.key
    }

    #[inline]
    pub(crate) fn get(&self) -> F {
        // SAFETY: never null: made from a leaked box, and only replaced by others.
        unsafe { *self.current.load(Ordering::Acquire) }
    }
}

struct Registered {
    entry: &'static (dyn Any + Send + Sync),
    type_id: TypeId,
    type_name: &'static str,
}

/// Told of a kernel's name and key when there is a first one.
pub type Listener = fn(&'static str, DispatchKey);

#[derive(Default)]
struct Table {
    kernels: HashMap<(&'static str, DispatchKey), Registered>,
    listeners: Vec<Listener>,
}

/// A fork holds it, so that a child can look kernels up whatever other threads were doing.
static TABLE: ForkSafeMutex<Option<Table>> = ForkSafeMutex::new(None);

fn new_table() -> Table {
    // Without memory for the handlers, fork is safe only while other threads are idle.
    let _ = at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
    Table::default()
}

unsafe extern "C" fn before_fork() {
    TABLE.hold_for_fork();
}

unsafe extern "C" fn after_fork_in_parent() {
    // SAFETY: this thread has taken it in `before_fork`.
    unsafe { TABLE.release_in_parent() };
}

unsafe extern "C" fn after_fork_in_child() {
    // SAFETY: in the child, whose only thread this is; the lock is the one that `before_fork` took.
    unsafe { TABLE.unlock_after_fork() };
}

/// The key under which a device's kernels for strided tensors are registered.
#[inline]
pub fn dense_key(device_type: DeviceType) -> Result<DispatchKey> {
    if device_type == DeviceType::CPU {
        return Ok(DispatchKey::CPU);
    }
    compute_dispatch_key(ScalarType::Float, Layout::Strided, Device::new(device_type, -1))
}

/// Registers a kernel. `F` is the function-pointer type its stub names; a later registration under the same name, key
/// and type replaces an earlier one, also for stubs that have already called it.
pub fn register<F: Copy + Send + Sync + 'static>(name: &'static str, key: DispatchKey, f: F) {
    let f = ptr::from_mut(Box::leak(Box::new(f)));
    let listeners = {
        let mut guard = TABLE.lock();
        let table = guard.get_or_insert_with(new_table);
        let known = table.kernels.get(&(name, key));
        if let Some(entry) = known.and_then(|r| r.entry.downcast_ref::<Entry<F>>()) {
            // The old box stays: a call on another thread may be reading it.
            entry.current.store(f, Ordering::Release);
            return;
        }
        let entry: &'static Entry<F> = Box::leak(Box::new(Entry { key, current: AtomicPtr::new(f) }));
        let registered = Registered { entry, type_id: TypeId::of::<F>(), type_name: type_name::<F>() };
        // Of another type: stubs that have called the old one go on doing so. Those that come ask for their own type,
        // and find an error that names both.
        if table.kernels.insert((name, key), registered).is_some() {
            return;
        }
        table.listeners.clone()
    };
    for listener in listeners {
        listener(name, key);
    }
}

/// Calls `listener` for every kernel: at once for those that are registered, later for those that will be. It runs
/// without the registry's lock.
pub fn on_registration(listener: Listener) {
    let known: Vec<_> = {
        let mut guard = TABLE.lock();
        let table = guard.get_or_insert_with(new_table);
        table.listeners.push(listener);
        table.kernels.keys().copied().collect()
    };
    for (name, key) in known {
        listener(name, key);
    }
}

/// The kernel of that name for a dispatch key.
pub fn find<F: Copy + Send + Sync + 'static>(name: &str, key: DispatchKey) -> Result<F> {
    find_entry::<F>(name, key).map(Entry::get)
}

pub(crate) fn find_entry<F: Copy + Send + Sync + 'static>(
    name: &str,
    key: DispatchKey,
) -> Result<&'static Entry<F>> {
    let guard = TABLE.lock();
    let Some(registered) = guard.as_ref().and_then(|table| table.kernels.get(&(name, key))) else {
        return Err(no_kernel(name, key));
    };
    registered.entry.downcast_ref::<Entry<F>>().ok_or_else(|| {
        debug_assert_ne!(registered.type_id, TypeId::of::<F>());
        Error::internal(format!(
            "{name}: the kernel registered for {key} has the type {}, but its stub expects {}",
            registered.type_name,
            type_name::<F>()
        ))
    })
}

/// Every registered kernel, sorted.
pub fn list() -> Vec<(&'static str, DispatchKey)> {
    let mut names: Vec<_> = TABLE.lock().iter().flat_map(|table| table.kernels.keys().copied()).collect();
    names.sort_unstable();
    names
}

#[cold]
fn no_kernel(name: &str, key: DispatchKey) -> Error {
    let op = name.strip_suffix("_kernel").unwrap_or(name);
    Error::not_implemented(format!("{op}: no kernel for {key}"))
}
