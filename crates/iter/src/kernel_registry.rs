//! Kernels by name and device.
//!
//! Operators do not depend on the crates that implement them: a backend registers each kernel here under the name
//! that the operator's declaration gives, and a [`DispatchStub`](crate::DispatchStub) finds it at the first call.

use std::any::{type_name, Any, TypeId};
use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use c10::{at_fork, Device, DeviceType, Error, ForkSafeMutex, Result};

/// The place of one kernel. Never freed, so that stubs can keep a reference; the kernel in it can be replaced.
pub(crate) struct Entry<F> {
    current: AtomicPtr<F>,
}

impl<F: Copy> Entry<F> {
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

type Table = HashMap<(&'static str, DeviceType), Registered>;

/// A fork holds it, so that a child can look kernels up whatever other threads were doing.
static TABLE: ForkSafeMutex<Option<Table>> = ForkSafeMutex::new(None);

fn new_table() -> Table {
    // Without memory for the handlers, fork is safe only while other threads are idle.
    let _ = at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
    Table::new()
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

/// Registers a kernel. `F` is the function-pointer type its stub names; a later registration under the same name
/// and device replaces an earlier one, also for stubs that have already called it.
pub fn register<F: Copy + Send + Sync + 'static>(name: &'static str, device_type: DeviceType, f: F) {
    let f = ptr::from_mut(Box::leak(Box::new(f)));
    let mut guard = TABLE.lock();
    let table = guard.get_or_insert_with(new_table);
    if let Some(entry) = table.get(&(name, device_type)).and_then(|r| r.entry.downcast_ref::<Entry<F>>()) {
        // The old box stays: a call on another thread may be reading it.
        entry.current.store(f, Ordering::Release);
        return;
    }
    let entry: &'static Entry<F> = Box::leak(Box::new(Entry { current: AtomicPtr::new(f) }));
    let registered = Registered { entry, type_id: TypeId::of::<F>(), type_name: type_name::<F>() };
    table.insert((name, device_type), registered);
}

/// The kernel of that name for a device.
pub fn find<F: Copy + Send + Sync + 'static>(name: &str, device_type: DeviceType) -> Result<F> {
    find_entry::<F>(name, device_type).map(Entry::get)
}

pub(crate) fn find_entry<F: Copy + Send + Sync + 'static>(
    name: &str,
    device_type: DeviceType,
) -> Result<&'static Entry<F>> {
    let guard = TABLE.lock();
    let Some(registered) = guard.as_ref().and_then(|table| table.get(&(name, device_type))) else {
        return Err(no_kernel(name, device_type));
    };
    registered.entry.downcast_ref::<Entry<F>>().ok_or_else(|| {
        debug_assert_ne!(registered.type_id, TypeId::of::<F>());
        Error::internal(format!(
            "{name}: the kernel registered for {} has the type {}, but its stub expects {}",
            Device::from(device_type),
            registered.type_name,
            type_name::<F>()
        ))
    })
}

/// Every registered kernel, sorted.
pub fn list() -> Vec<(&'static str, DeviceType)> {
    let mut names: Vec<_> = TABLE.lock().iter().flat_map(|table| table.keys().copied()).collect();
    names.sort_by_key(|&(name, device_type)| (name, device_type as i8));
    names
}

#[cold]
fn no_kernel(name: &str, device_type: DeviceType) -> Error {
    let op = name.strip_suffix("_kernel").unwrap_or(name);
    Error::not_implemented(format!("{op}: no kernel for device {}", Device::from(device_type)))
}
