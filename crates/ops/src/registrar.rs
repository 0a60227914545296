//! What the generated registrations call.

use c10::{DispatchKey, Result};
use dispatch::{ArgTuple, KernelFunction, Library, LibraryKind, RetType, TypedOp, Unboxed};

/// The keys of a structured operator's wrapper: its kernel is looked up by device when it runs.
pub(crate) const BACKENDS: &[DispatchKey] = &[DispatchKey::CPU, DispatchKey::Meta];
/// The keys of an operator whose kernel allocates its own outputs: nothing is known without data, so no Meta.
pub(crate) const KERNEL_BACKENDS: &[DispatchKey] = &[DispatchKey::CPU];
/// Views and composites with a derivative of their own.
pub(crate) const EXPLICIT: &[DispatchKey] = &[DispatchKey::CompositeExplicitAutograd];
/// Composites that are differentiated through what they call.
pub(crate) const IMPLICIT: &[DispatchKey] = &[DispatchKey::CompositeImplicitAutograd];
/// Factories without a tensor argument.
pub(crate) const BACKEND_SELECT: &[DispatchKey] = &[DispatchKey::BackendSelect];

/// The `aten` library while it is filled.
pub(crate) struct Registrar {
    library: Library,
}

impl Registrar {
    /// An empty `aten`.
    pub(crate) fn new() -> Registrar {
        Registrar { library: Library::new(LibraryKind::Def, "aten") }
    }

    /// Defines operators.
    pub(crate) fn define(&mut self, schemas: &[(&'static str, &[&'static str])]) -> Result<()> {
        for (schema, tags) in schemas {
            self.library.def_static(schema, tags)?;
        }
        Ok(())
    }

    /// Registers one function under several keys. `op` is there for its type alone: it fixes the signature.
    pub(crate) fn implement<A: ArgTuple, R: RetType>(
        &mut self,
        name: &str,
        op: &TypedOp<A, R>,
        keys: &[DispatchKey],
        function: Unboxed<A, R>,
    ) -> Result<()> {
        let _ = op;
        for &key in keys {
            self.library.impl_(name, key, KernelFunction::from_unboxed::<A, R>(function))?;
        }
        Ok(())
    }

    /// [`implement`](Self::implement) for an operator that does not care about lazy conjugation and negation: a view,
    /// which keeps them, or an implicit composite, which leaves them to its parts.
    pub(crate) fn implement_transparent<A: ArgTuple, R: RetType>(
        &mut self,
        name: &str,
        op: &TypedOp<A, R>,
        keys: &[DispatchKey],
        function: Unboxed<A, R>,
    ) -> Result<()> {
        self.implement(name, op, keys, function)?;
        self.library.impl_(name, DispatchKey::Conjugate, KernelFunction::fallthrough())?;
        self.library.impl_(name, DispatchKey::Negative, KernelFunction::fallthrough())
    }

    /// Keeps the registrations for the life of the process.
    pub(crate) fn leak(self) {
        self.library.leak();
    }
}
