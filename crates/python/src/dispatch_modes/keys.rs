//! Dispatch keys and their guards as Python objects.

#![expect(clippy::disallowed_methods, reason = "what `#[pyclass(eq)]` writes: a bool, which exists already")]

use c10::{
    DispatchKey, DispatchKeySet, ExcludeDispatchKeyGuard, ForceDispatchKeyGuard, IncludeDispatchKeyGuard,
    LocalDispatchKeySet,
};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::raw::objects::{self, intern, NewError, Number, Text};
use crate::raw::{Res, TextArgument};
use crate::tensor;

/// A dispatch key.
#[pyclass(name = "DispatchKey", module = "ptr._C", frozen, eq, hash, skip_from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PyDispatchKey {
    key: DispatchKey,
}

#[pymethods]
impl PyDispatchKey {
    #[getter]
    fn name(&self) -> Text<&'static str> {
        Text(self.key.name())
    }
    #[getter]
    fn value(&self) -> Number<u16> {
        Number(self.key as u16)
    }
    fn __int__(&self) -> Number<u16> {
        Number(self.key as u16)
    }
    fn __str__(&self) -> Text<String> {
        Text(format!("DispatchKey.{}", self.key.name()))
    }
    fn __repr__(&self) -> Text<String> {
        Text(format!("<DispatchKey.{}: {}>", self.key.name(), self.key as u16))
    }
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let parse = py.import(intern!(py, "ptr._C")?)?.getattr(intern!(py, "_dispatch_key_parse")?)?;
        let args = objects::tuple(py, [objects::interned(py, self.key.name())?])?;
        objects::tuple(py, [parse, args.into_any()])
    }
}

/// The key that an argument is or names.
pub(super) fn extract(object: &Bound<'_, PyAny>) -> Res<DispatchKey> {
    if let Ok(key) = object.cast::<PyDispatchKey>() {
        return Ok(key.get().key);
    }
    if let Ok(name) = object.cast::<PyString>() {
        return Ok(name.to_str()?.parse::<DispatchKey>()?);
    }
    let found = object.get_type().name()?;
    Err(PyTypeError::error(format!("expected a DispatchKey or the name of one, got {found}")).into())
}

/// A set of dispatch keys.
#[pyclass(name = "DispatchKeySet", module = "ptr._C", frozen, eq, hash, skip_from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PyDispatchKeySet {
    pub(super) keys: DispatchKeySet,
}

#[pymethods]
impl PyDispatchKeySet {
    #[new]
    fn new(key: &Bound<'_, PyAny>) -> Res<Self> {
        Ok(PyDispatchKeySet { keys: DispatchKeySet::from_key(extract(key)?) })
    }
    /// The set with the given representation.
    #[staticmethod]
    fn from_raw_repr(repr: u64) -> Self {
        PyDispatchKeySet { keys: DispatchKeySet::from_raw_repr(repr) }
    }
    fn raw_repr(&self) -> Number<u64> {
        Number(self.keys.raw_repr())
    }
    fn __or__(&self, other: &Self) -> Self {
        PyDispatchKeySet { keys: self.keys.union(other.keys) }
    }
    fn __and__(&self, other: &Self) -> Self {
        PyDispatchKeySet { keys: self.keys.intersection(other.keys) }
    }
    fn __sub__(&self, other: &Self) -> Self {
        PyDispatchKeySet { keys: self.keys.difference(other.keys) }
    }
    fn has(&self, key: &Bound<'_, PyAny>) -> Res<bool> {
        Ok(self.keys.has(extract(key)?))
    }
    fn add(&self, key: &Bound<'_, PyAny>) -> Res<Self> {
        Ok(PyDispatchKeySet { keys: self.keys.add(extract(key)?) })
    }
    fn remove(&self, key: &Bound<'_, PyAny>) -> Res<Self> {
        Ok(PyDispatchKeySet { keys: self.keys.remove(extract(key)?) })
    }
    #[pyo3(name = "highestPriorityTypeId")]
    fn highest_priority_type_id(&self) -> PyDispatchKey {
        PyDispatchKey { key: self.keys.highest_priority_type_id() }
    }
    fn __bool__(&self) -> bool {
        !self.keys.is_empty()
    }
    fn __repr__(&self) -> Text<String> {
        let names: Vec<_> = self.keys.iter().map(DispatchKey::name).collect();
        Text(format!("DispatchKeySet({})", names.join(", ")))
    }
}

/// The key of a name.
#[pyfunction]
fn _dispatch_key_parse(name: TextArgument<'_>) -> Res<PyDispatchKey> {
    Ok(PyDispatchKey { key: name.parse()? })
}

/// The keys of a tensor.
#[pyfunction]
fn _dispatch_keys(tensor: &Bound<'_, PyAny>) -> Res<PyDispatchKeySet> {
    match tensor::get(tensor) {
        Some(tensor) => Ok(PyDispatchKeySet { keys: tensor.key_set() }),
        None => {
            let found = tensor.get_type().name()?;
            Err(PyTypeError::error(format!("_dispatch_keys: expected a Tensor, got {found}")).into())
        }
    }
}

/// The keys that calls on this thread have in addition.
#[pyfunction]
fn _dispatch_tls_local_include_set() -> PyDispatchKeySet {
    PyDispatchKeySet { keys: c10::tls_local_dispatch_key_set().included }
}

/// The keys that calls on this thread do not have.
#[pyfunction]
fn _dispatch_tls_local_exclude_set() -> PyDispatchKeySet {
    PyDispatchKeySet { keys: c10::tls_local_dispatch_key_set().excluded }
}

/// Whether this thread leaves out a key.
#[pyfunction]
fn _dispatch_tls_is_dispatch_key_excluded(key: &Bound<'_, PyAny>) -> Res<bool> {
    Ok(c10::tls_is_dispatch_key_excluded(extract(key)?))
}

/// Whether this thread adds a key.
#[pyfunction]
fn _dispatch_tls_is_dispatch_key_included(key: &Bound<'_, PyAny>) -> Res<bool> {
    Ok(c10::tls_is_dispatch_key_included(extract(key)?))
}

/// Whether `key` is one of the keys that the alias `alias` stands for.
#[pyfunction]
fn _dispatch_is_included_in_alias(key: &Bound<'_, PyAny>, alias: &Bound<'_, PyAny>) -> Res<bool> {
    Ok(c10::is_included_in_alias(extract(key)?, extract(alias)?))
}

/// The keys behind an alias key.
#[pyfunction]
fn _dispatch_get_runtime_dispatch_key_set(key: &Bound<'_, PyAny>) -> Res<PyDispatchKeySet> {
    Ok(PyDispatchKeySet { keys: c10::get_runtime_dispatch_key_set(extract(key)?) })
}

/// What a guard object does when entered.
#[derive(Clone, Copy)]
enum Change {
    Include(DispatchKeySet),
    Exclude(DispatchKeySet),
    Force(LocalDispatchKeySet),
}

/// A guard of this thread's key sets. It must end on its thread, in reverse order, as `with` sees to.
enum Guard {
    Include(#[allow(dead_code)] IncludeDispatchKeyGuard),
    Exclude(#[allow(dead_code)] ExcludeDispatchKeyGuard),
    Force(#[allow(dead_code)] ForceDispatchKeyGuard),
}

/// A context that changes this thread's key sets.
#[pyclass(name = "_DispatchKeyGuard", module = "ptr._C", unsendable, skip_from_py_object)]
struct PyKeyGuard {
    change: Change,
    active: Vec<Guard>,
}

#[pymethods]
impl PyKeyGuard {
    fn __enter__(&mut self) {
        self.active.push(match self.change {
            Change::Include(keys) => Guard::Include(IncludeDispatchKeyGuard::new(keys)),
            Change::Exclude(keys) => Guard::Exclude(ExcludeDispatchKeyGuard::new(keys)),
            Change::Force(keys) => Guard::Force(ForceDispatchKeyGuard::new(keys)),
        });
    }

    #[pyo3(signature = (*_exc))]
    fn __exit__(&mut self, _exc: &Bound<'_, PyTuple>) -> PyResult<()> {
        match self.active.pop() {
            Some(guard) => {
                drop(guard);
                Ok(())
            }
            None => Err(PyRuntimeError::error("a dispatch key guard was left without being entered")),
        }
    }
}

fn guard(change: Change) -> PyKeyGuard {
    PyKeyGuard { change, active: Vec::new() }
}

fn keys_of(object: &Bound<'_, PyAny>) -> Res<DispatchKeySet> {
    match object.cast::<PyDispatchKeySet>() {
        Ok(keys) => Ok(keys.get().keys),
        Err(_) => Ok(DispatchKeySet::from_key(extract(object)?)),
    }
}

/// Context in which calls do not have the given keys.
#[pyfunction(name = "_ExcludeDispatchKeyGuard")]
fn exclude_guard(keys: &Bound<'_, PyAny>) -> Res<PyKeyGuard> {
    Ok(guard(Change::Exclude(keys_of(keys)?)))
}

/// Context in which calls have the given keys in addition.
#[pyfunction(name = "_IncludeDispatchKeyGuard")]
fn include_guard(keys: &Bound<'_, PyAny>) -> Res<PyKeyGuard> {
    Ok(guard(Change::Include(keys_of(keys)?)))
}

/// Context in which this thread's key sets are exactly the given ones.
#[pyfunction(name = "_ForceDispatchKeyGuard")]
fn force_guard(include: &Bound<'_, PyAny>, exclude: &Bound<'_, PyAny>) -> Res<PyKeyGuard> {
    Ok(guard(Change::Force(LocalDispatchKeySet { included: keys_of(include)?, excluded: keys_of(exclude)? })))
}

/// Context in which calls go past autograd.
#[pyfunction(name = "_AutoDispatchBelowAutograd")]
fn below_autograd_guard() -> PyKeyGuard {
    guard(Change::Exclude(c10::autograd_dispatch_keyset))
}

/// Context in which calls go past autograd and view tracking.
#[pyfunction(name = "_AutoDispatchBelowADInplaceOrView")]
fn below_ad_inplace_or_view_guard() -> PyKeyGuard {
    guard(Change::Exclude(c10::autograd_dispatch_keyset_with_ADInplaceOrView))
}

/// Context in which `__torch_dispatch__` of classes and modes is passed by.
#[pyfunction(name = "_DisableTorchDispatch")]
fn disable_torch_dispatch() -> PyKeyGuard {
    guard(Change::Exclude(c10::python_ks))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<PyDispatchKey>()?;
    module.add_class::<PyDispatchKeySet>()?;
    module.add_class::<PyKeyGuard>()?;
    module.add("_after_autograd_keyset", PyDispatchKeySet { keys: c10::after_autograd_keyset })?;
    let class = py.get_type::<PyDispatchKey>();
    for key in DispatchKey::all() {
        class.setattr(key.name(), PyDispatchKey { key })?;
    }
    module.add_function(wrap_pyfunction!(_dispatch_key_parse, module)?)?;
    module.add_function(wrap_pyfunction!(_dispatch_keys, module)?)?;
    module.add_function(wrap_pyfunction!(_dispatch_tls_local_include_set, module)?)?;
    module.add_function(wrap_pyfunction!(_dispatch_tls_local_exclude_set, module)?)?;
    module.add_function(wrap_pyfunction!(_dispatch_tls_is_dispatch_key_excluded, module)?)?;
    module.add_function(wrap_pyfunction!(_dispatch_tls_is_dispatch_key_included, module)?)?;
    module.add_function(wrap_pyfunction!(_dispatch_is_included_in_alias, module)?)?;
    module.add_function(wrap_pyfunction!(_dispatch_get_runtime_dispatch_key_set, module)?)?;
    module.add_function(wrap_pyfunction!(exclude_guard, module)?)?;
    module.add_function(wrap_pyfunction!(include_guard, module)?)?;
    module.add_function(wrap_pyfunction!(force_guard, module)?)?;
    module.add_function(wrap_pyfunction!(below_autograd_guard, module)?)?;
    module.add_function(wrap_pyfunction!(below_ad_inplace_or_view_guard, module)?)?;
    module.add_function(wrap_pyfunction!(disable_torch_dispatch, module)?)
}
