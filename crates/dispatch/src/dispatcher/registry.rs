//! The process-wide tables: all operators, and the fallback kernels per key.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

use c10::{DispatchKey, Error, Result};
use parking_lot::{Mutex, RwLock};

use super::operator_entry::{OperatorEntry, RegistrationId};
use super::operator_handle::OperatorHandle;
use crate::boxing::KernelFunction;
use crate::schema::OperatorName;

/// Entry points to the operator table.
pub struct Dispatcher;

#[derive(Default)]
struct Operators {
    /// Overloads by base name. Entries are leaked: handles are `'static`.
    by_name: HashMap<String, Vec<&'static OperatorEntry>>,
    count: u32,
}

fn operators() -> &'static RwLock<Operators> {
    static OPERATORS: OnceLock<RwLock<Operators>> = OnceLock::new();
    OPERATORS.get_or_init(RwLock::default)
}

impl Dispatcher {
    /// The defined operator of this name (`"aten::add"`, `"Tensor"`), if there is one.
    pub fn find_schema(name: &str, overload: &str) -> Option<OperatorHandle> {
        find_entry(name, overload).filter(|e| e.is_defined()).map(OperatorEntry::handle)
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
        let table = operators().read();
        let entries = table.by_name.get(name).map_or(&[][..], Vec::as_slice);
        entries.iter().copied().filter(|e| e.is_defined()).map(OperatorEntry::handle).collect()
    }
}

/// Every defined operator.
pub fn list_operators() -> Vec<OperatorHandle> {
    let table = operators().read();
    let mut all: Vec<_> = table.by_name.values().flatten().copied().filter(|e| e.is_defined()).collect();
    all.sort_by_key(|e| e.id);
    all.into_iter().map(OperatorEntry::handle).collect()
}

fn find_entry(name: &str, overload: &str) -> Option<&'static OperatorEntry> {
    let table = operators().read();
    table.by_name.get(name)?.iter().copied().find(|e| e.name.overload == overload)
}

/// The entry of an operator, made if nobody named it before: kernels may come before the definition.
pub(crate) fn entry(name: &OperatorName) -> &'static OperatorEntry {
    if let Some(entry) = find_entry(&name.name, &name.overload) {
        return entry;
    }
    let mut table = operators().write();
    let known = table.by_name.get(name.name.as_str());
    if let Some(entry) = known.and_then(|v| v.iter().copied().find(|e| e.name.overload == name.overload)) {
        return entry;
    }
    let id = table.count;
    table.count += 1;
    let entry: &'static OperatorEntry = Box::leak(Box::new(OperatorEntry::new(name.clone(), id)));
    table.by_name.entry(name.name.to_string()).or_default().push(entry);
    entry
}

pub(crate) fn next_registration_id() -> RegistrationId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The fallback kernels in force.
#[derive(Clone, Default)]
pub(crate) struct Fallbacks(Vec<(RegistrationId, DispatchKey, &'static KernelFunction)>);

impl Fallbacks {
    /// The newest fallback for a runtime key; one for a functionality (`Dense`) serves all its backends.
    pub(crate) fn get(&self, key: DispatchKey) -> Option<&'static KernelFunction> {
        self.0
            .iter()
            .rev()
            .find(|(_, k, _)| *k == key || *k == key.to_functionality_key())
            .map(|(_, _, kernel)| *kernel)
    }
}

fn fallback_table() -> &'static Mutex<Fallbacks> {
    static FALLBACKS: OnceLock<Mutex<Fallbacks>> = OnceLock::new();
    FALLBACKS.get_or_init(|| {
        // Keys that are in every call's set and matter to few operators: dispatch passes them by unless an
        // operator or a library says otherwise.
        let passed_by = [
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
        Mutex::new(Fallbacks(
            passed_by.into_iter().map(|key| (0, key, leak(KernelFunction::fallthrough()))).collect(),
        ))
    })
}

pub(crate) fn fallbacks() -> Fallbacks {
    fallback_table().lock().clone()
}

pub(crate) fn add_fallback(id: RegistrationId, key: DispatchKey, kernel: KernelFunction) {
    fallback_table().lock().0.push((id, key, leak(kernel)));
    invalidate_all();
}

pub(crate) fn remove_fallback(id: RegistrationId) {
    fallback_table().lock().0.retain(|(owner, _, _)| *owner != id);
    invalidate_all();
}

fn invalidate_all() {
    let table = operators().read();
    table.by_name.values().flatten().for_each(|e| e.invalidate());
}

pub(crate) fn ambiguous() -> &'static KernelFunction {
    static AMBIGUOUS: OnceLock<KernelFunction> = OnceLock::new();
    AMBIGUOUS.get_or_init(KernelFunction::ambiguous)
}

fn leak(kernel: KernelFunction) -> &'static KernelFunction {
    Box::leak(Box::new(kernel))
}
