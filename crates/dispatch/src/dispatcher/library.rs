//! `Library`: definitions and kernels that live as long as it does.

use std::borrow::Cow;

use c10::{DispatchKey, Error, Result};

use super::operator_entry::{OperatorEntry, RegistrationId};
use super::operator_handle::OperatorHandle;
use super::registry;
use crate::boxing::KernelFunction;
use crate::schema::{FunctionSchema, OperatorName};

/// What a library may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LibraryKind {
    /// Owns a namespace: defines operators and registers kernels.
    Def,
    /// Registers kernels for operators of a namespace.
    Impl,
    /// Adds definitions and kernels to a namespace that another library owns.
    Fragment,
}

/// A set of registrations that are taken back when it is dropped (PyTorch's `torch::Library`).
///
/// Libraries may be made, used and dropped on any thread while others call operators.
pub struct Library {
    kind: LibraryKind,
    namespace: Cow<'static, str>,
    id: RegistrationId,
    entries: Vec<&'static OperatorEntry>,
    has_fallback: bool,
}

impl Library {
    /// A library for a namespace (`"aten"`). `"_"` is for fallbacks, which belong to no namespace.
    pub fn new(kind: LibraryKind, namespace: impl Into<Cow<'static, str>>) -> Library {
        Library {
            kind,
            namespace: namespace.into(),
            id: registry::next_registration_id(),
            entries: Vec::new(),
            has_fallback: false,
        }
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// What this library may do.
    pub fn kind(&self) -> LibraryKind {
        self.kind
    }

    /// Defines an operator from its schema, `"add.Tensor(Tensor self, …) -> Tensor"`.
    ///
    /// The schema is checked at once; `tags` are kept with it.
    pub fn def(&mut self, schema: &str, tags: &[&'static str]) -> Result<OperatorHandle> {
        if self.kind == LibraryKind::Impl {
            return Err(Error::runtime(format!(
                "def(\"{schema}\"): cannot define an operator inside an IMPL library of namespace {}",
                self.namespace
            )));
        }
        FunctionSchema::parse(schema).map_err(|e| Error::runtime(e.to_string()))?;
        self.define(Cow::Owned(schema.to_owned()), tags)
    }

    /// As [`Library::def`] for a schema in the program's text, which is parsed when first needed.
    pub fn def_static(&mut self, schema: &'static str, tags: &[&'static str]) -> Result<OperatorHandle> {
        self.define(Cow::Borrowed(schema), tags)
    }

    fn define(&mut self, schema: Cow<'static, str>, tags: &[&'static str]) -> Result<OperatorHandle> {
        let name = schema.split('(').next().unwrap_or_default();
        let name = self.qualify(name)?;
        let entry = registry::entry(&name);
        let schema = if schema.split('(').next().is_some_and(|n| n.contains("::")) {
            schema
        } else {
            qualified_text(&self.namespace, schema)
        };
        entry.define(self.id, schema, tags)?;
        self.remember(entry);
        Ok(entry.handle())
    }

    /// Registers a kernel for an operator, which may be defined before or after.
    pub fn impl_(&mut self, name: &str, key: DispatchKey, kernel: KernelFunction) -> Result<()> {
        let entry = registry::entry(&self.qualify(name)?);
        entry.register(self.id, key, kernel)?;
        self.remember(entry);
        Ok(())
    }

    /// Registers the kernel of all operators that have none for `key`.
    pub fn fallback(&mut self, key: DispatchKey, kernel: KernelFunction) -> Result<()> {
        if key.is_alias_key() {
            return Err(Error::runtime(format!(
                "fallback(): expected a runtime dispatch key, got the alias key {key}"
            )));
        }
        registry::add_fallback(self.id, key, kernel);
        self.has_fallback = true;
        Ok(())
    }

    /// Keeps the registrations for the life of the process.
    pub fn leak(self) {
        std::mem::forget(self);
    }

    fn remember(&mut self, entry: &'static OperatorEntry) {
        if !self.entries.last().is_some_and(|e| std::ptr::eq(*e, entry)) {
            self.entries.push(entry);
        }
    }

    fn qualify(&self, name: &str) -> Result<OperatorName> {
        let (base, overload) = name.trim().split_once('.').unwrap_or((name.trim(), ""));
        let base = match base.split_once("::") {
            Some((namespace, _)) if namespace != self.namespace && self.namespace != "_" => {
                return Err(Error::runtime(format!(
                    "{name}: the namespace {namespace} is not the library's, which is {}",
                    self.namespace
                )));
            }
            Some(_) => base.to_owned(),
            None => format!("{}::{base}", self.namespace),
        };
        Ok(OperatorName { name: base, overload: overload.to_owned() })
    }
}

/// Built-in definitions carry their namespace already; others are rare enough to copy.
fn qualified_text(namespace: &str, schema: Cow<'static, str>) -> Cow<'static, str> {
    Cow::Owned(format!("{namespace}::{schema}"))
}

impl Drop for Library {
    fn drop(&mut self) {
        for entry in &self.entries {
            entry.deregister(self.id);
        }
        if self.has_fallback {
            registry::remove_fallback(self.id);
        }
    }
}
