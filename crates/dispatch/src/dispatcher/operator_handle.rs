//! `OperatorHandle`: an operator to call, inspect or hand on. Copying it is copying a pointer.

use c10::{tls_local_dispatch_key_set, DispatchKey, DispatchKeySet, Error, ErrorKind, Result};
use smallvec::SmallVec;

use super::observer;
use super::operator_entry::OperatorEntry;
use crate::boxing::{IValue, Stack};
use crate::schema::{FunctionSchema, OpInfo, OperatorName};

/// A registered operator.
#[derive(Clone, Copy)]
pub struct OperatorHandle {
    pub(crate) entry: &'static OperatorEntry,
}

impl OperatorHandle {
    pub(crate) fn new(entry: &'static OperatorEntry) -> OperatorHandle {
        OperatorHandle { entry }
    }

    /// The qualified name, `aten::add.Tensor`.
    #[inline]
    pub fn name(&self) -> &'static OperatorName {
        &self.entry.name
    }

    /// The schema. It is parsed when first asked for; after that this is one load.
    #[inline]
    pub fn schema(&self) -> Result<&'static FunctionSchema> {
        self.entry.schema()
    }

    /// The schema's digest, replaced together with it.
    #[inline]
    pub fn info(&self) -> Result<&'static OpInfo> {
        self.entry.info()
    }

    /// A small number that is unique among operators and stable for the life of the process.
    pub fn id(&self) -> u32 {
        self.entry.id
    }

    /// The tags of the definition.
    pub fn tags(&self) -> SmallVec<[&'static str; 4]> {
        self.entry.tags()
    }

    /// Whether a kernel is registered for exactly this key (a runtime or an alias key).
    pub fn has_kernel_for_dispatch_key(&self, key: DispatchKey) -> bool {
        self.entry.has_kernel_for(key)
    }

    /// Whether a call with this runtime key finds a kernel, through aliases and fallbacks too.
    pub fn has_computed_kernel_for_dispatch_key(&self, key: DispatchKey) -> bool {
        self.entry.has_computed_kernel_for(key)
    }

    /// The keys that kernels are registered for, oldest registration first.
    pub fn registered_keys(&self) -> Vec<DispatchKey> {
        self.entry.registered_keys()
    }

    /// The keys that a call dispatches on, given the union of its arguments' key sets.
    #[inline]
    pub fn dispatch_keyset(&self, arguments: DispatchKeySet) -> DispatchKeySet {
        let local = tls_local_dispatch_key_set();
        self.entry.without_fallthrough((arguments | local.included) - local.excluded)
    }

    /// The union of the key sets of the operator's arguments, the last values of `stack`.
    #[inline]
    pub fn argument_keyset(&self, stack: &[IValue]) -> Result<DispatchKeySet> {
        let count = self.info()?.num_args;
        let first = stack.len().checked_sub(count).ok_or_else(|| self.too_few(stack.len(), count))?;
        Ok(stack[first..].iter().fold(DispatchKeySet::default(), |keys, v| keys | v.key_set()))
    }

    #[cold]
    fn too_few(&self, found: usize, expected: usize) -> Error {
        Error::runtime(format!("{}: expected {expected} arguments on the stack, got {found}", self.name()))
    }

    /// Calls the operator with the last values of `stack` as its arguments; they are replaced by its returns.
    #[inline]
    pub fn call_boxed(&self, stack: &mut Stack) -> Result<()> {
        let keyset = self.dispatch_keyset(self.argument_keyset(stack)?);
        self.run_boxed(keyset, stack)
    }

    /// Goes on with a call, considering only the keys in `keyset` (thread-local sets do not count).
    #[inline]
    pub fn redispatch_boxed(&self, keyset: DispatchKeySet, stack: &mut Stack) -> Result<()> {
        let (kernel, keyset) = self.entry.lookup(self.entry.without_fallthrough(keyset))?;
        kernel.call_boxed(*self, keyset, stack)
    }

    /// Calls the kernel that serves one runtime key, whatever the arguments are.
    pub fn call_boxed_for_dispatch_key(&self, key: DispatchKey, stack: &mut Stack) -> Result<()> {
        let kernel = self.entry.kernel_for(key).filter(|k| !k.is_fallthrough()).ok_or_else(|| {
            Error::new(
                ErrorKind::NotImplemented,
                format!("{}: no kernel is registered for the dispatch key {key}", self.name()),
            )
        })?;
        kernel.call_boxed(*self, DispatchKeySet::from_key(key), stack)
    }

    #[inline]
    fn run_boxed(&self, keyset: DispatchKeySet, stack: &mut Stack) -> Result<()> {
        let (kernel, keyset) = self.entry.lookup(keyset)?;
        if observer::active() {
            return observer::observe_boxed(*self, keyset, kernel, stack);
        }
        kernel.call_boxed(*self, keyset, stack)
    }

    #[cold]
    pub(crate) fn fell_through<T>(&self) -> Result<T> {
        Err(Error::internal(format!("{}: a fallthrough kernel was called", self.name())))
    }

    #[cold]
    pub(crate) fn ambiguous<T>(&self, keyset: DispatchKeySet) -> Result<T> {
        Err(Error::runtime(format!(
            "{} has kernels registered to both CompositeImplicitAutograd and a backend mapped to {}. \
             This makes the backend kernel unreachable; register the composite as CompositeExplicitAutograd or \
             give the backend its own autograd kernel.",
            self.name(),
            keyset.highest_priority_type_id(),
        )))
    }
}

impl PartialEq for OperatorHandle {
    fn eq(&self, other: &OperatorHandle) -> bool {
        std::ptr::eq(self.entry, other.entry)
    }
}

impl Eq for OperatorHandle {}

impl std::hash::Hash for OperatorHandle {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.entry.id.hash(state);
    }
}

impl std::fmt::Debug for OperatorHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "<OperatorHandle {}>", self.name())
    }
}
