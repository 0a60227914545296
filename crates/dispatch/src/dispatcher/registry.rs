//! The process-wide tables: all operators, what is registered for each, and the fallback kernels per key.
//!
//! # Note [One lock]
//! Everything that registration changes is behind one lock, which calls take only when they find an empty table. One lock
//! is one that a fork can hold: the child of a fork made while another thread registers or calls for the first time
//! finds the tables whole and the lock open. It is never held while a kernel, a destructor or anything else of
//! somebody else's runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use c10::{at_fork, DispatchKey, Error, ForkSafeMutex, ForkSafeMutexGuard, Result};

use super::observer;
use super::operator_entry::{OperatorEntry, OperatorState, RegistrationId};
use super::operator_handle::OperatorHandle;
use crate::boxing::KernelFunction;
use crate::schema::OperatorName;

/// Entry points to the operator table.
pub struct Dispatcher;

/// What the lock guards.
pub(crate) struct Registry {
    /// Overloads by base name. Entries are leaked: handles are `'static`.
    by_name: BTreeMap<String, Vec<&'static OperatorEntry>>,
    /// By operator id.
    states: Vec<OperatorState>,
    pub(crate) fallbacks: Fallbacks,
    fork_handled: bool,
}

static REGISTRY: ForkSafeMutex<Registry> = ForkSafeMutex::new(Registry {
    by_name: BTreeMap::new(),
    states: Vec::new(),
    fallbacks: Fallbacks(Vec::new()),
    fork_handled: false,
});

/// Takes the lock.
pub(crate) fn lock() -> ForkSafeMutexGuard<'static, Registry> {
    let mut registry = REGISTRY.lock();
    if !registry.fork_handled {
        registry.fork_handled = true;
        // Without memory for the handlers, fork is safe only while other threads are idle.
        let _ = at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
    }
    registry
}

unsafe extern "C" fn before_fork() {
    REGISTRY.hold_for_fork();
    observer::OBSERVERS.hold_for_fork();
}

unsafe extern "C" fn after_fork_in_parent() {
    // SAFETY: this thread has taken both in `before_fork`.
    unsafe {
        observer::OBSERVERS.release_in_parent();
        REGISTRY.release_in_parent();
    }
}

unsafe extern "C" fn after_fork_in_child() {
    // SAFETY: in the child, whose only thread this is; the locks are those that `before_fork` took.
    unsafe {
        observer::OBSERVERS.unlock_after_fork();
        REGISTRY.unlock_after_fork();
    }
}

impl Registry {
    /// What is registered for an operator.
    pub(crate) fn state(&self, id: u32) -> &OperatorState {
        &self.states[id as usize]
    }

    /// As [`Registry::state`], to be changed.
    pub(crate) fn state_mut(&mut self, id: u32) -> &mut OperatorState {
        &mut self.states[id as usize]
    }

    fn is_defined(&self, entry: &OperatorEntry) -> bool {
        self.state(entry.id).is_defined()
    }

    fn find(&self, name: &str, overload: &str) -> Option<&'static OperatorEntry> {
        self.by_name.get(name)?.iter().copied().find(|e| e.name.overload == overload)
    }

    fn entries(&self) -> impl Iterator<Item = &'static OperatorEntry> + '_ {
        self.by_name.values().flatten().copied()
    }

    /// Makes every operator compute its table anew.
    fn clear_tables(&self) {
        self.entries().for_each(OperatorEntry::clear_table);
    }
}

impl Dispatcher {
    /// The defined operator of this name (`"aten::add"`, `"Tensor"`), if there is one.
    pub fn find_schema(name: &str, overload: &str) -> Option<OperatorHandle> {
        let registry = lock();
        registry.find(name, overload).filter(|e| registry.is_defined(e)).map(OperatorEntry::handle)
    }

    /// As [`Dispatcher::find_schema`]; an error names what is missing.
    pub fn find_schema_or_err(name: &str, overload: &str) -> Result<OperatorHandle> {
        Self::find_schema(name, overload).ok_or_else(|| {
            let dot = if overload.is_empty() { "" } else { "." };
            Error::runtime(format!("Could not find schema for {name}{dot}{overload}."))
        })
    }

    /// The overloads of a base name (`"aten::add"`), in the order of their definition.
    pub fn overloads(name: &str) -> Vec<OperatorHandle> {
        let registry = lock();
        let entries = registry.by_name.get(name).map_or(&[][..], Vec::as_slice);
        entries.iter().copied().filter(|e| registry.is_defined(e)).map(OperatorEntry::handle).collect()
    }
}

/// Every defined operator.
pub fn list_operators() -> Vec<OperatorHandle> {
    let registry = lock();
    let mut all: Vec<_> = registry.entries().filter(|e| registry.is_defined(e)).collect();
    drop(registry);
    all.sort_by_key(|e| e.id);
    all.into_iter().map(OperatorEntry::handle).collect()
}

/// The entry of an operator, made if nobody named it before: kernels may come before the definition.
pub(crate) fn entry(name: &OperatorName) -> &'static OperatorEntry {
    let mut registry = lock();
    if let Some(entry) = registry.find(&name.name, &name.overload) {
        return entry;
    }
    let id = registry.states.len() as u32;
    registry.states.push(OperatorState::default());
    let entry: &'static OperatorEntry = Box::leak(Box::new(OperatorEntry::new(name.clone(), id)));
    registry.by_name.entry(name.name.to_string()).or_default().push(entry);
    entry
}

pub(crate) fn next_registration_id() -> RegistrationId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Keys that are in every call's set and matter to few operators: dispatch passes them by unless an operator or
/// a library says otherwise.
const PASSED_BY: [DispatchKey; 14] = [
    DispatchKey::BackendSelect,
    DispatchKey::ADInplaceOrView,
    DispatchKey::FuncTorchDynamicLayerBackMode,
    DispatchKey::FuncTorchDynamicLayerFrontMode,
    DispatchKey::PythonTLSSnapshot,
    DispatchKey::PreDispatch,
    DispatchKey::PythonDispatcher,
    DispatchKey::Functionalize,
    DispatchKey::Tracer,
    DispatchKey::AutocastCPU,
    DispatchKey::AutocastCUDA,
    DispatchKey::AutocastPrivateUse1,
    DispatchKey::FuncTorchVmapMode,
    DispatchKey::VmapMode,
];

static FALLTHROUGH: KernelFunction = KernelFunction::fallthrough();

static AMBIGUOUS: KernelFunction = KernelFunction::ambiguous();

/// The fallback kernels in force.
pub(crate) struct Fallbacks(Vec<(RegistrationId, DispatchKey, &'static KernelFunction)>);

impl Fallbacks {
    /// The newest fallback for a runtime key; one for a functionality (`Dense`) serves all its backends.
    pub(crate) fn get(&self, key: DispatchKey) -> Option<&'static KernelFunction> {
        let functionality = key.to_functionality_key();
        let serves = |k: DispatchKey| k == key || k == functionality;
        match self.0.iter().rev().find(|(_, k, _)| serves(*k)) {
            Some((_, _, kernel)) => Some(kernel),
            None => PASSED_BY.iter().any(|k| serves(*k)).then_some(&FALLTHROUGH),
        }
    }
}

pub(crate) fn add_fallback(id: RegistrationId, key: DispatchKey, kernel: KernelFunction) {
    let kernel: &'static KernelFunction = Box::leak(Box::new(kernel));
    let mut registry = lock();
    registry.fallbacks.0.push((id, key, kernel));
    registry.clear_tables();
}

pub(crate) fn remove_fallback(id: RegistrationId) {
    let mut registry = lock();
    registry.fallbacks.0.retain(|(owner, _, _)| *owner != id);
    registry.clear_tables();
}

pub(crate) fn ambiguous() -> &'static KernelFunction {
    &AMBIGUOUS
}
