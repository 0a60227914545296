//! `OperatorEntry`: an operator's schema, its registered kernels, and the table that calls read.
//!
//! # Note [Lock-free calls, RAII registration]
//! A call reads one pointer from [`OperatorEntry::table`]. Registration, which may happen on any thread while
//! others call, changes the list of kernels under the registry's lock and then clears the table; the next call
//! finds a null pointer, takes the lock and computes the whole table anew. Kernels live in leaked boxes: a
//! deregistered kernel is retired, not freed, because a call that has just read its pointer may still run it.
//! Registrations are rare and kernels small, so the memory is bounded by what a process ever registers.

use std::any::TypeId;
use std::borrow::Cow;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use c10::{
    backend_bitset_mask, get_backend_key_set_from_autograd, is_backend_dispatch_key, is_included_in_alias,
    DispatchKey, DispatchKeySet, Error, ErrorKind, Result, NUM_RUNTIME_ENTRIES,
};
use smallvec::SmallVec;

use super::operator_handle::OperatorHandle;
use super::registry::{self, Registry};
use crate::boxing::KernelFunction;
use crate::schema::{FunctionSchema, OpInfo, OperatorName};

/// Identifies one registration, so that its owner can take it back.
pub(crate) type RegistrationId = u64;

struct Registered {
    id: RegistrationId,
    key: DispatchKey,
    kernel: &'static KernelFunction,
}

/// What is registered for an operator. It lives in the [`Registry`], behind its lock.
#[derive(Default)]
pub(crate) struct OperatorState {
    /// The text of the definition in force, and who made it.
    definition: Option<(RegistrationId, Cow<'static, str>)>,
    /// Oldest first: of several kernels for one key the newest serves.
    kernels: SmallVec<[Registered; 4]>,
    /// The signature that every unboxed kernel of this operator has.
    signature: Option<TypeId>,
    tags: SmallVec<[&'static str; 4]>,
}

/// A parsed definition.
struct Definition {
    schema: FunctionSchema,
    info: OpInfo,
}

/// Everything that calls need of one operator. Entries are never freed.
pub(crate) struct OperatorEntry {
    pub(crate) name: OperatorName,
    full_name: Box<str>,
    pub(crate) id: u32,
    /// Kernel per runtime key; null where none was computed yet, or none exists.
    table: [AtomicPtr<KernelFunction>; NUM_RUNTIME_ENTRIES],
    /// Functionality keys that do not fall through for every backend, as raw bits; all ones until computed.
    non_fallthrough: AtomicU64,
    /// The parsed definition; null until asked for. Replaced schemas are leaked (they may be in use).
    definition: AtomicPtr<Definition>,
    /// How often the table was computed.
    #[cfg(test)]
    tables_computed: std::sync::atomic::AtomicUsize,
}

impl OperatorEntry {
    pub(crate) fn new(name: OperatorName, id: u32) -> OperatorEntry {
        OperatorEntry {
            full_name: name.to_string().into(),
            name,
            id,
            table: [const { AtomicPtr::new(std::ptr::null_mut()) }; NUM_RUNTIME_ENTRIES],
            non_fallthrough: AtomicU64::new(u64::MAX),
            definition: AtomicPtr::new(std::ptr::null_mut()),
            #[cfg(test)]
            tables_computed: std::sync::atomic::AtomicUsize::new(0),
        }
    }

    /// The name with its overload, `aten::add.Tensor`.
    pub(crate) fn full_name(&self) -> &str {
        &self.full_name
    }

    /// The keys of a call without those that fall through for every backend.
    #[inline]
    pub(crate) fn without_fallthrough(&self, keyset: DispatchKeySet) -> DispatchKeySet {
        DispatchKeySet::from_raw_repr(keyset.raw_repr() & self.non_fallthrough.load(Ordering::Relaxed))
    }

    /// The kernel that serves `keyset`, and the key set with skipped keys taken out.
    #[inline]
    pub(crate) fn lookup(
        &'static self,
        keyset: DispatchKeySet,
    ) -> Result<(&'static KernelFunction, DispatchKeySet)> {
        let kernel = self.table[keyset.runtime_index()].load(Ordering::Acquire);
        // SAFETY: table pointers come from leaked boxes (see the note above), so they are never dangling.
        match unsafe { kernel.as_ref() } {
            Some(kernel) if !kernel.is_fallthrough() => Ok((kernel, keyset)),
            _ => self.lookup_slow(keyset),
        }
    }

    /// The kernel for a key set whose first key falls through, or whose table is not computed.
    #[cold]
    fn lookup_slow(
        &'static self,
        keyset: DispatchKeySet,
    ) -> Result<(&'static KernelFunction, DispatchKeySet)> {
        let found = match self.walk(keyset) {
            Some(found) => Some(found),
            None => {
                // Under the lock: a registration in between would clear the table again.
                let registry = registry::lock();
                self.compute_table(&registry);
                self.walk(keyset)
            }
        };
        // The caller's key set may stem from before the table was known: the key to name is one that does not fall through.
        found.ok_or_else(|| self.missing_kernel(self.without_fallthrough(keyset)))
    }

    /// Looks through the table, key by key. `None` where it has no kernel (yet).
    fn walk(&'static self, mut keyset: DispatchKeySet) -> Option<(&'static KernelFunction, DispatchKeySet)> {
        loop {
            keyset = self.without_fallthrough(keyset);
            let pointer = self.table[keyset.runtime_index()].load(Ordering::Acquire);
            // SAFETY: as in `lookup`.
            let kernel = unsafe { pointer.as_ref() }?;
            if !kernel.is_fallthrough() {
                return Some((kernel, keyset));
            }
            // This backend falls through where another does not.
            let rest = keyset.remove(keyset.highest_priority_type_id());
            if rest == keyset {
                return None;
            }
            keyset = rest;
        }
    }

    /// Fills the table from the registered kernels and the fallbacks.
    fn compute_table(&self, registry: &Registry) {
        #[cfg(test)]
        self.tables_computed.fetch_add(1, Ordering::Relaxed);
        let state = registry.state(self.id);
        let mut non_fallthrough = backend_bitset_mask;
        for key in std::iter::once(DispatchKey::Undefined).chain(DispatchKeySet::FULL.iter()) {
            let kernel = state.kernel_for(key, &registry.fallbacks);
            if !kernel.is_some_and(KernelFunction::is_fallthrough) {
                non_fallthrough |= DispatchKeySet::from_key(key.to_functionality_key());
            }
            let pointer = kernel.map_or(std::ptr::null_mut(), |k| std::ptr::from_ref(k).cast_mut());
            self.table[DispatchKeySet::from_key(key).runtime_index()].store(pointer, Ordering::Release);
        }
        self.non_fallthrough.store(non_fallthrough.raw_repr(), Ordering::Release);
    }

    /// Makes the next call compute the table anew. Called with the registry's lock held.
    pub(crate) fn clear_table(&self) {
        self.non_fallthrough.store(u64::MAX, Ordering::Release);
        for slot in &self.table {
            slot.store(std::ptr::null_mut(), Ordering::Release);
        }
    }

    // ---- registration

    pub(crate) fn define(
        &self,
        id: RegistrationId,
        definition: Cow<'static, str>,
        tags: &[&'static str],
    ) -> Result<()> {
        let mut registry = registry::lock();
        let state = registry.state_mut(self.id);
        if let Some((_, known)) = &state.definition {
            return Err(Error::runtime(format!(
                "Tried to register an operator ({definition}) with the same name and overload name multiple times. \
                 Each overload's schema should only be registered with a single call to def(). \
                 The first registration was {known}"
            )));
        }
        state.definition = Some((id, definition));
        state.tags = SmallVec::from_slice(tags);
        self.definition.store(std::ptr::null_mut(), Ordering::Release);
        Ok(())
    }

    pub(crate) fn register(
        &self,
        id: RegistrationId,
        key: DispatchKey,
        kernel: KernelFunction,
    ) -> Result<()> {
        let mut registry = registry::lock();
        let state = registry.state_mut(self.id);
        if let Some(signature) = kernel.signature() {
            if *state.signature.get_or_insert(signature) != signature {
                return Err(Error::runtime(format!(
                    "{}: the kernel registered for {key} has another signature than the kernels before it",
                    self.name
                )));
            }
        }
        state.kernels.push(Registered { id, key, kernel: Box::leak(Box::new(kernel)) });
        self.clear_table();
        Ok(())
    }

    pub(crate) fn deregister(&self, id: RegistrationId) {
        let mut registry = registry::lock();
        let state = registry.state_mut(self.id);
        state.kernels.retain(|r| r.id != id);
        if state.kernels.iter().all(|r| r.kernel.signature().is_none()) {
            state.signature = None;
        }
        if state.definition.as_ref().is_some_and(|(owner, _)| *owner == id) {
            state.definition = None;
            self.definition.store(std::ptr::null_mut(), Ordering::Release);
        }
        self.clear_table();
    }

    // ---- questions

    pub(crate) fn tags(&self) -> SmallVec<[&'static str; 4]> {
        registry::lock().state(self.id).tags.clone()
    }

    pub(crate) fn has_kernel_for(&self, key: DispatchKey) -> bool {
        registry::lock().state(self.id).direct(key).is_some()
    }

    pub(crate) fn has_computed_kernel_for(&self, key: DispatchKey) -> bool {
        self.kernel_for(key).is_some_and(|k| !k.is_fallthrough())
    }

    pub(crate) fn registered_keys(&self) -> Vec<DispatchKey> {
        registry::lock().state(self.id).kernels.iter().map(|r| r.key).collect()
    }

    /// The kernel that serves a runtime key, leaked and so valid for ever.
    pub(crate) fn kernel_for(&self, key: DispatchKey) -> Option<&'static KernelFunction> {
        let registry = registry::lock();
        registry.state(self.id).kernel_for(key, &registry.fallbacks)
    }

    /// The schema, parsed at the first call.
    #[inline]
    pub(crate) fn schema(&'static self) -> Result<&'static FunctionSchema> {
        self.definition().map(|definition| &definition.schema)
    }

    /// The schema's digest.
    #[inline]
    pub(crate) fn info(&'static self) -> Result<&'static OpInfo> {
        self.definition().map(|definition| &definition.info)
    }

    #[inline]
    fn definition(&'static self) -> Result<&'static Definition> {
        // SAFETY: the pointer is null or from a leaked box.
        match unsafe { self.definition.load(Ordering::Acquire).as_ref() } {
            Some(definition) => Ok(definition),
            None => self.parse_definition(),
        }
    }

    #[cold]
    fn parse_definition(&'static self) -> Result<&'static Definition> {
        let registry = registry::lock();
        let state = registry.state(self.id);
        let Some((_, text)) = &state.definition else {
            return Err(Error::runtime(format!(
                "Tried to access the schema for {} which doesn't have a schema registered yet",
                self.name
            )));
        };
        let schema: FunctionSchema = FunctionSchema::parse(text).map_err(|e| {
            Error::runtime(e.to_string()).context(format!("in the definition of {}", self.name))
        })?;
        let info = OpInfo::new(&schema, &state.tags);
        let definition: &'static Definition = Box::leak(Box::new(Definition { schema, info }));
        self.definition.store(std::ptr::from_ref(definition).cast_mut(), Ordering::Release);
        Ok(definition)
    }

    #[cold]
    fn missing_kernel(&self, keyset: DispatchKeySet) -> Error {
        let key = keyset.highest_priority_type_id();
        let available: Vec<String> = self.registered_keys().iter().map(|k| k.to_string()).collect();
        let text = if key == DispatchKey::Undefined {
            format!(
                "There were no tensor arguments to this function (e.g., you passed an empty list of Tensors), \
                 but no fallback function is registered for schema {}. \
                 This usually means that this function requires a non-empty list of Tensors. \
                 Available functions are [{}].",
                self.name,
                available.join(", ")
            )
        } else {
            format!(
                "Could not run '{0}' with arguments from the '{key}' backend. This could be because the operator \
                 doesn't exist for this backend. '{0}' is only available for these backends: [{1}].",
                self.name,
                available.join(", ")
            )
        };
        Error::new(ErrorKind::NotImplemented, text)
    }

    pub(crate) fn handle(&'static self) -> OperatorHandle {
        OperatorHandle::new(self)
    }
}

impl OperatorState {
    pub(crate) fn is_defined(&self) -> bool {
        self.definition.is_some()
    }

    fn direct(&self, key: DispatchKey) -> Option<&'static KernelFunction> {
        self.kernels.iter().rev().find(|r| r.key == key).map(|r| r.kernel)
    }

    fn alias(&self, alias: DispatchKey, key: DispatchKey) -> Option<&'static KernelFunction> {
        let kernel = self.direct(alias)?;
        is_included_in_alias(key, alias).then_some(kernel)
    }

    /// As [`State::alias`]; a composite also serves calls without tensors.
    fn alias_or_undefined(&self, alias: DispatchKey, key: DispatchKey) -> Option<&'static KernelFunction> {
        match key {
            DispatchKey::Undefined => self.direct(alias),
            key => self.alias(alias, key),
        }
    }

    fn has_any(&self, keys: DispatchKeySet) -> bool {
        self.kernels.iter().any(|r| !r.key.is_alias_key() && keys.has(r.key))
    }

    /// The kernel for one runtime key. The order of the steps is part of the system's semantics and is
    /// PyTorch's: direct registration, explicit composites, implicit composite, `Autograd` alias, fallback.
    fn kernel_for(
        &self,
        key: DispatchKey,
        fallbacks: &registry::Fallbacks,
    ) -> Option<&'static KernelFunction> {
        if let Some(kernel) = self.direct(key) {
            return Some(kernel);
        }
        if key == DispatchKey::Undefined || is_backend_dispatch_key(key) {
            for alias in
                [DispatchKey::CompositeExplicitAutogradNonFunctional, DispatchKey::CompositeExplicitAutograd]
            {
                if let Some(kernel) = self.alias_or_undefined(alias, key) {
                    return Some(kernel);
                }
            }
        }
        // An implicit composite serves an autograd key only if nothing serves the backend beneath it: else
        // the backend's kernel and the derivative formula (or the autograd fallback) are meant.
        let backends = get_backend_key_set_from_autograd(key);
        let has_backend_kernel = self.has_any(backends)
            || self.direct(DispatchKey::CompositeExplicitAutograd).is_some()
            || self.direct(DispatchKey::CompositeExplicitAutogradNonFunctional).is_some();
        if !has_backend_kernel {
            let alias = DispatchKey::CompositeImplicitAutogradNestedTensor;
            if let Some(kernel) = self.alias_or_undefined(alias, key) {
                return Some(kernel);
            }
        }
        if let Some(kernel) = self.alias_or_undefined(DispatchKey::CompositeImplicitAutograd, key) {
            if key == DispatchKey::AutogradOther && self.has_any(backends) {
                return Some(registry::ambiguous());
            }
            if !has_backend_kernel {
                return Some(kernel);
            }
        }
        if let Some(kernel) = self.alias(DispatchKey::Autograd, key) {
            return Some(kernel);
        }
        if let Some(kernel) = self.alias(DispatchKey::FuncTorchBatchedDecomposition, key) {
            return Some(kernel);
        }
        fallbacks.get(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boxing::Stack;
    use crate::dispatcher::{Library, LibraryKind};

    fn kernel(_: OperatorHandle, keyset: DispatchKeySet, stack: &mut Stack) -> Result<()> {
        stack.clear();
        stack.push((keyset.highest_priority_type_id() as i64).into());
        Ok(())
    }

    #[test]
    fn a_key_that_falls_through_for_one_backend_costs_no_second_table() {
        let mut library = Library::new(LibraryKind::Def, "entry_tests");
        let op = library.def("f(int x) -> int", &[]).unwrap();
        library.impl_("f", DispatchKey::CPU, KernelFunction::from_boxed(kernel)).unwrap();
        library.impl_("f", DispatchKey::AutogradCPU, KernelFunction::fallthrough()).unwrap();
        library.impl_("f", DispatchKey::AutogradCUDA, KernelFunction::from_boxed(kernel)).unwrap();
        let keyset =
            DispatchKeySet::from_key(DispatchKey::AutogradCPU) | DispatchKeySet::from_key(DispatchKey::CPU);
        let call = || {
            let mut stack: Stack = smallvec::smallvec![1.into()];
            op.redispatch_boxed(keyset, &mut stack).unwrap();
            stack[0].to_int().unwrap()
        };
        let cpu = DispatchKey::CPU as i64;
        assert_eq!([call(), call(), call()], [cpu; 3]);
        assert_eq!(op.entry.tables_computed.load(Ordering::Relaxed), 1);
        library.impl_("f", DispatchKey::CPU, KernelFunction::from_boxed(kernel)).unwrap();
        assert_eq!([call(), call()], [cpu; 2]);
        assert_eq!(op.entry.tables_computed.load(Ordering::Relaxed), 2, "a registration clears the table");
    }

    #[test]
    fn a_missing_kernel_is_named_by_the_backend_at_the_first_call_too() {
        let mut library = Library::new(LibraryKind::Def, "entry_tests");
        let op = library.def("h(int x) -> int", &[]).unwrap();
        library.impl_("h", DispatchKey::CPU, KernelFunction::from_boxed(kernel)).unwrap();
        library.impl_("h", DispatchKey::BackendSelect, KernelFunction::fallthrough()).unwrap();
        let keys = DispatchKeySet::from_key(DispatchKey::BackendSelect)
            | DispatchKeySet::from_key(DispatchKey::CUDA);
        for _ in 0..2 {
            let error = op.redispatch_boxed(keys, &mut Stack::new()).unwrap_err();
            assert!(error.message().contains("from the 'CUDA' backend"), "{error}");
        }
    }

    #[test]
    fn a_new_definition_brings_a_new_digest() {
        let mut first = Library::new(LibraryKind::Def, "entry_tests");
        let op = first.def("g(Tensor x) -> Tensor", &[]).unwrap();
        assert_eq!((op.info().unwrap().num_args, op.info().unwrap().is_mutable()), (1, false));
        drop(first);
        assert!(op.info().is_err());
        let mut second = Library::new(LibraryKind::Def, "entry_tests");
        second.def("g(Tensor(a!) x, int n) -> ()", &[]).unwrap();
        assert_eq!((op.info().unwrap().num_args, op.info().unwrap().mutated_unreturned.len()), (2, 1));
    }
}
