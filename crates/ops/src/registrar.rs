//! What the generated registrations call.
//!
//! # Note [Kernels and keys]
//! No list of backends stands anywhere. An operator with a kernel waits for the kernel's name: when a backend registers
//! that name in `iter::kernel_registry` under a dispatch key, the operator's wrapper is registered under the same key. So a
//! backend's key is served by exactly the operators whose kernels it has; the others still reach what the backend gives for
//! all (a fallback) or fail as not implemented. Shape functions compute nothing, and serve the Meta key from the start.
//!
//! A wrapper runs the kernel of the key that it was called for, which is the backend of the call's key set
//! (`structured::backend_key`); that the tensors agree with it is what the checks of devices are for.
//!
//! On a backend with devices the wrapper is registered together with its device rules: a kernel finds its tensors on one
//! device, which is current.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use c10::{BackendComponent, DispatchKey, Error, Result};
use dispatch::{ArgTuple, DeviceRules, KernelFunction, Library, LibraryKind, RetType, TypedOp, Unboxed};
use iter::{kernel_registry, DispatchStub};

use crate::gen::NAMESPACES;

/// Shape functions.
pub(crate) const META: &[DispatchKey] = &[DispatchKey::Meta];
/// Views and composites with a derivative of their own.
pub(crate) const EXPLICIT: &[DispatchKey] = &[DispatchKey::CompositeExplicitAutograd];
/// Composites that are differentiated through what they call.
pub(crate) const IMPLICIT: &[DispatchKey] = &[DispatchKey::CompositeImplicitAutograd];
/// Factories without a tensor argument.
pub(crate) const BACKEND_SELECT: &[DispatchKey] = &[DispatchKey::BackendSelect];

/// The kernel that an operator's wrapper calls, and for which keys it does so.
#[derive(Clone, Copy)]
pub(crate) struct Serves {
    /// The kernel's name.
    pub(crate) kernel: &'static str,
    /// The keys it is for; empty for the strided tensors of every backend.
    pub(crate) only: &'static [DispatchKey],
    /// Backends whose kernels have other names.
    pub(crate) except: &'static [DispatchKey],
    /// What holds around the wrapper on backends that have devices to choose from.
    pub(crate) device: DeviceRules,
    /// Whether the shape function compares devices when it serves the Meta key. What it does not compute needs nothing
    /// that lies elsewhere, and the wrapper refuses results that would not be of the Meta device.
    pub(crate) compare_on_meta: bool,
}

impl Serves {
    /// Under this name any backend may register a kernel for its strided tensors.
    pub(crate) const fn dense(kernel: &'static str) -> Serves {
        let device = DeviceRules { check: true, guard: true };
        Serves { kernel, only: &[], except: &[], device, compare_on_meta: true }
    }

    /// As [`Serves::dense`], for an operator whose tensors may be on several devices: it takes them from anywhere, or its
    /// iterator looks itself, since numbers may stay on the CPU.
    pub(crate) const fn dense_of_mixed_devices(kernel: &'static str) -> Serves {
        Serves { device: DeviceRules { check: false, guard: true }, ..Serves::dense(kernel) }
    }

    /// Why the kernel, if it is meant for `key`, cannot be called.
    pub(crate) fn missing<F: Copy + Send + Sync + 'static>(
        &self,
        key: DispatchKey,
        stub: &DispatchStub<F>,
    ) -> Option<Error> {
        self.includes(key).then(|| stub.get(key).err()).flatten()
    }

    /// Whether the kernel is meant for `key`.
    fn includes(&self, key: DispatchKey) -> bool {
        if !self.only.is_empty() {
            return self.only.contains(&key);
        }
        let is_dense = key.to_functionality_key() == DispatchKey::Dense && key != DispatchKey::Meta;
        is_dense && !self.except.contains(&key)
    }
}

/// An operator that waits for its kernel.
struct Waiting {
    op: &'static str,
    serves: Serves,
    wrapper: Box<dyn Fn(DispatchKey) -> KernelFunction + Send + Sync>,
}

/// By the kernel's name.
type WaitingList = HashMap<&'static str, Vec<Waiting>>;

/// Complete before the kernel registry is first listened to, and unchanged afterwards.
static WAITING: OnceLock<WaitingList> = OnceLock::new();

/// Wrappers that could not be registered, because somebody has registered a kernel of another signature.
static FAILED: Mutex<Vec<(DispatchKey, Error)>> = Mutex::new(Vec::new());

/// The libraries of all namespaces while they are filled.
pub(crate) struct Registrar {
    libraries: HashMap<&'static str, Library>,
    waiting: WaitingList,
}

/// The namespace of a name as it is declared: `aten` unless stated.
fn namespace_of(name: &str) -> &str {
    name.split_once("::").map_or("aten", |(namespace, _)| namespace)
}

impl Registrar {
    /// Empty libraries.
    pub(crate) fn new() -> Registrar {
        let new = |&namespace: &&'static str| (namespace, Library::new(LibraryKind::Def, namespace));
        Registrar { libraries: NAMESPACES.iter().map(new).collect(), waiting: WaitingList::new() }
    }

    fn library(&mut self, name: &str) -> Result<&mut Library> {
        let namespace = namespace_of(name);
        self.libraries
            .get_mut(namespace)
            .ok_or_else(|| Error::internal(format!("{name}: the namespace {namespace} is not declared")))
    }

    /// Defines operators.
    pub(crate) fn define(&mut self, schemas: &[(&'static str, &[&'static str])]) -> Result<()> {
        for (schema, tags) in schemas {
            let name = schema.split('(').next().unwrap_or_default();
            self.library(name)?.def_static(schema, tags)?;
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
        let library = self.library(name)?;
        for &key in keys {
            library.impl_(name, key, KernelFunction::from_unboxed::<A, R>(function))?;
        }
        Ok(())
    }

    /// Makes an operator fall through keys, whatever their fallbacks do.
    pub(crate) fn fall_through(&mut self, name: &str, keys: &[DispatchKey]) -> Result<()> {
        let library = self.library(name)?;
        keys.iter().try_for_each(|&key| library.impl_(name, key, KernelFunction::fallthrough()))
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
        self.fall_through(name, &[DispatchKey::Conjugate, DispatchKey::Negative])
    }

    /// Registers a wrapper wherever the kernel that it calls is: see Note [Kernels and keys].
    pub(crate) fn kernel<A: ArgTuple, R: RetType>(
        &mut self,
        name: &'static str,
        op: &TypedOp<A, R>,
        serves: Serves,
        function: Unboxed<A, R>,
    ) {
        let _ = op;
        let wrapper = Box::new(move |key: DispatchKey| match key.to_backend_component() {
            BackendComponent::CPUBit => on_the_host::<A, R>(function, serves.device),
            _ => KernelFunction::from_unboxed_on_device::<A, R>(function, serves.device),
        });
        self.waiting.entry(serves.kernel).or_default().push(Waiting { op: name, serves, wrapper });
    }

    /// [`kernel`](Self::kernel) for a structured operator, whose wrapper is its shape function on the Meta key.
    pub(crate) fn structured<A: ArgTuple, R: RetType>(
        &mut self,
        name: &'static str,
        op: &TypedOp<A, R>,
        serves: Serves,
        function: Unboxed<A, R>,
    ) -> Result<()> {
        let library = self.library(name)?;
        let rules = DeviceRules { check: serves.device.check && serves.compare_on_meta, ..serves.device };
        for &key in META {
            library.impl_(name, key, on_the_host::<A, R>(function, rules))?;
        }
        self.kernel(name, op, serves, function);
        Ok(())
    }

    /// Keeps the registrations for the life of the process, and begins to listen for kernels.
    pub(crate) fn finish(self) {
        self.libraries.into_values().for_each(Library::leak);
        if WAITING.set(self.waiting).is_ok() {
            kernel_registry::on_registration(kernel_registered);
        }
    }
}

/// A wrapper for a backend without devices to choose from: tensors of others may be among its arguments all the same.
fn on_the_host<A: ArgTuple, R: RetType>(function: Unboxed<A, R>, rules: DeviceRules) -> KernelFunction {
    if !rules.check {
        return KernelFunction::from_unboxed::<A, R>(function);
    }
    KernelFunction::from_unboxed_on_device::<A, R>(function, DeviceRules { guard: false, ..rules })
}

/// Registers the wrappers that have waited for this kernel.
fn kernel_registered(kernel: &'static str, key: DispatchKey) {
    let Some(waiting) = WAITING.get().and_then(|list| list.get(kernel)) else { return };
    for Waiting { op, wrapper, .. } in waiting.iter().filter(|w| w.serves.includes(key)) {
        let mut library = Library::new(LibraryKind::Impl, namespace_of(op));
        if let Err(error) = library.impl_(op, key, wrapper(key)) {
            FAILED.lock().unwrap_or_else(PoisonError::into_inner).push((key, error));
        }
        library.leak();
    }
}

/// Why wrappers whose kernels are registered under `key` do not serve it.
pub(crate) fn failed(key: DispatchKey) -> Vec<Error> {
    let failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
    failed.iter().filter(|(k, _)| *k == key).map(|(_, e)| Error::new(e.kind(), e.message())).collect()
}
