//! `__torch_function__`: classes and modes that take over calls.
//!
//! A call of plain tensors pays one comparison per argument and one thread-local read. Everything else is out of line.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use super::parser::Call;
use crate::raw::objects::{self, intern, NewError, Number};
use crate::raw::{borrow, immortal, intern_static, owned, Res};
use crate::tensor;

/// How much of the protocol is switched off on this thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Enabled,
    SubclassesDisabled,
    AllDisabled,
}

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State::Enabled) };
    /// How many modes are on the stack and not switched off.
    static ACTIVE_MODES: Cell<usize> = const { Cell::new(0) };
    static MODES: RefCell<Vec<Py<PyAny>>> = const { RefCell::new(Vec::new()) };
}

/// `_disabled_torch_function_impl` and `_disabled_torch_dispatch_impl`: classes with these do not override anything.
static DISABLED_FUNCTION: AtomicPtr<ffi::PyObject> = AtomicPtr::new(std::ptr::null_mut());
static DISABLED_DISPATCH: AtomicPtr<ffi::PyObject> = AtomicPtr::new(std::ptr::null_mut());
static NAME_FUNCTION: AtomicPtr<ffi::PyObject> = AtomicPtr::new(std::ptr::null_mut());
static NAME_DISPATCH: AtomicPtr<ffi::PyObject> = AtomicPtr::new(std::ptr::null_mut());

extern "C" {
    /// Looks a name up along the MRO, through the type's method cache; a borrowed reference or null without exception.
    fn _PyType_Lookup(type_: *mut ffi::PyTypeObject, name: *mut ffi::PyObject) -> *mut ffi::PyObject;
}

/// Whether modes see calls on this thread.
#[inline(always)]
pub(crate) fn modes_active() -> bool {
    ACTIVE_MODES.get() != 0
}

fn refresh_active_modes() {
    let active = if STATE.get() == State::AllDisabled { 0 } else { MODES.with_borrow(Vec::len) };
    ACTIVE_MODES.set(active);
}

/// Whether the class of `object`, which is not exactly `ptr.Tensor`, takes over the functions called with it.
#[inline]
pub(crate) fn overrides(object: &Bound<'_, PyAny>) -> bool {
    if tensor::is_exact(object) || STATE.get() != State::Enabled {
        return false;
    }
    // SAFETY: types and names are alive; the lookup raises nothing.
    unsafe {
        let found = _PyType_Lookup(ffi::Py_TYPE(object.as_ptr()), NAME_FUNCTION.load(Ordering::Relaxed));
        !found.is_null() && !std::ptr::eq(found, DISABLED_FUNCTION.load(Ordering::Relaxed))
    }
}

/// Whether a call with `object` is offered to anyone: to its class, or to a mode.
#[inline(always)]
pub(crate) fn is_offered(object: &Bound<'_, PyAny>) -> bool {
    modes_active() || overrides(object)
}

/// Whether instances of a tensor class have a `__torch_dispatch__`.
///
/// # Safety
///
/// `type_` is a live type.
pub(crate) unsafe fn has_torch_dispatch(type_: *mut ffi::PyTypeObject) -> bool {
    // SAFETY: as the caller says.
    unsafe {
        let found = _PyType_Lookup(type_, NAME_DISPATCH.load(Ordering::Relaxed));
        !found.is_null()
            && !std::ptr::eq(found, DISABLED_DISPATCH.load(Ordering::Relaxed))
            && ffi::Py_IsNone(found) == 0
    }
}

/// Inserts an argument into the list of those to ask: one per class, subclasses before their bases.
pub(super) fn insert_overloaded(list: &mut SmallVec<[*mut ffi::PyObject; 2]>, object: *mut ffi::PyObject) {
    // SAFETY: the list and the object are arguments of the call in progress.
    unsafe {
        let type_ = ffi::Py_TYPE(object);
        if list.iter().any(|&other| std::ptr::eq(ffi::Py_TYPE(other), type_)) {
            return;
        }
        let place = list
            .iter()
            .position(|&other| ffi::PyType_IsSubtype(type_, ffi::Py_TYPE(other)) != 0)
            .unwrap_or(list.len());
        list.insert(place, object);
    }
}

/// Offers a parsed call to modes and overriding arguments. `None` if nobody is to be asked.
#[cold]
pub(super) fn handle(call: &Call<'_, '_>) -> Res<Option<*mut ffi::PyObject>> {
    let py = call.py;
    let mut args = Vec::with_capacity(call.args.num_positional + 1);
    args.extend(call.self_.map(|s| s.to_owned()));
    // SAFETY: arguments live as long as the call.
    let at = |object| unsafe { borrow(py, object) }.to_owned();
    args.extend(call.args.values[..call.args.num_positional].iter().map(|&o| at(o)));
    let kwargs = objects::dict(py)?;
    for i in 0..call.args.num_keywords() {
        kwargs.set_item(at(call.args.keyword(i)), at(call.args.values[call.args.num_positional + i]))?;
    }
    let function = at(call.table.callable());
    let overloaded: Vec<_> = call.context.overloaded.iter().map(|&o| at(o)).collect();
    dispatch(py, &function, &objects::tuple(py, args)?, &kwargs, &overloaded)
}

/// Offers the read (`__get__`), assignment (`__set__`) or deletion (`__delete__`) of a tensor attribute to the tensor's
/// class and to modes.
#[cold]
pub(crate) fn handle_attribute(
    object: &Bound<'_, PyAny>,
    name: &str,
    accessor: &str,
    value: Option<&Bound<'_, PyAny>>,
) -> Res<Option<*mut ffi::PyObject>> {
    let py = object.py();
    let function = tensor::TENSOR
        .bound(py)
        .getattr(objects::string(py, name)?)?
        .getattr(objects::string(py, accessor)?)?;
    let args = objects::tuple(py, std::iter::once(object).chain(value).collect::<Vec<_>>())?;
    dispatch(py, &function, &args, &objects::dict(py)?, std::slice::from_ref(object))
}

/// Offers the call of a hand-written tensor method to the tensor's class and to modes.
///
/// # Safety
///
/// `args`, `nargs` and `keywords` are what CPython passed to a fast method.
#[cold]
pub(crate) unsafe fn handle_method(
    object: &Bound<'_, PyAny>,
    name: &str,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> Res<Option<*mut ffi::PyObject>> {
    let py = object.py();
    let function = tensor::TENSOR.bound(py).getattr(objects::string(py, name)?)?;
    // SAFETY: arguments live as long as the call.
    let at = |i: usize| unsafe { borrow(py, *args.add(i)) }.to_owned();
    let nargs = nargs as usize;
    let positional =
        objects::tuple(py, std::iter::once(object.clone()).chain((0..nargs).map(at)).collect::<Vec<_>>())?;
    let kwargs = objects::dict(py)?;
    if !keywords.is_null() {
        // SAFETY: a tuple of names, as above.
        let names = unsafe { borrow(py, keywords) }.to_owned();
        for (i, name) in names.cast::<PyTuple>()?.iter().enumerate() {
            kwargs.set_item(name, at(nargs + i))?;
        }
    }
    dispatch(py, &function, &positional, &kwargs, std::slice::from_ref(object))
}

/// Offers the call of a method, whose arguments are in a tuple and a dict, to the tensor's class and to modes.
#[cold]
pub(crate) fn handle_named(
    object: &Bound<'_, PyAny>,
    name: &str,
    args: &Bound<'_, PyTuple>,
    kwargs: &Bound<'_, PyDict>,
) -> Res<Option<*mut ffi::PyObject>> {
    let function = tensor::TENSOR.bound(object.py()).getattr(objects::string(object.py(), name)?)?;
    dispatch(object.py(), &function, args, kwargs, std::slice::from_ref(object))
}

/// Offers the call of a method that Python calls by itself (`__len__`, `__getitem__`) to the classes of `relevant` and to
/// modes.
#[cold]
pub(crate) fn handle_special_method(
    py: Python<'_>,
    name: &str,
    args: &[&Bound<'_, PyAny>],
    relevant: &[&Bound<'_, PyAny>],
) -> Res<Option<*mut ffi::PyObject>> {
    let function = tensor::TENSOR.bound(py).getattr(objects::string(py, name)?)?;
    dispatch(py, &function, &objects::tuple(py, args)?, &objects::dict(py)?, &overloaded(py, relevant))
}

/// Offers the call of a hand-written function of the package to the classes of `relevant` and to modes. `kwargs` are
/// those arguments that are passed by name, without those not given.
pub(crate) fn handle_function<'py>(
    py: Python<'py>,
    name: &str,
    args: &[&Bound<'py, PyAny>],
    kwargs: &[(&str, Option<&Bound<'py, PyAny>>)],
    relevant: &[&Bound<'py, PyAny>],
) -> Res<Option<Bound<'py, PyAny>>> {
    if !modes_active() && !relevant.iter().any(|object| overrides(object)) {
        return Ok(None);
    }
    let function = py.import(intern!(py, "ptr")?)?.getattr(objects::string(py, name)?)?;
    let named = objects::dict(py)?;
    for (name, value) in kwargs {
        if let Some(value) = value {
            named.set_item(objects::interned(py, name)?, value)?;
        }
    }
    let result = dispatch(py, &function, &objects::tuple(py, args)?, &named, &overloaded(py, relevant))?;
    // SAFETY: a new reference.
    result.map(|object| unsafe { owned(py, object) }).transpose()
}

/// Those of `relevant` that are to be asked: one per class, subclasses before their bases.
fn overloaded<'py>(py: Python<'py>, relevant: &[&Bound<'py, PyAny>]) -> Vec<Bound<'py, PyAny>> {
    let mut list = SmallVec::new();
    for object in relevant.iter().filter(|object| overrides(object)) {
        insert_overloaded(&mut list, object.as_ptr());
    }
    // SAFETY: `relevant` keeps them alive.
    list.iter().map(|&object| unsafe { borrow(py, object) }.to_owned()).collect()
}

/// The protocol proper: modes from the innermost, then the arguments, until one does not say `NotImplemented`. Plain tensors
/// among the arguments are named to modes, and not asked.
pub(super) fn dispatch(
    py: Python<'_>,
    function: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwargs: &Bound<'_, PyDict>,
    overloaded: &[Bound<'_, PyAny>],
) -> Res<Option<*mut ffi::PyObject>> {
    let not_implemented = py.NotImplemented();
    let types = objects::tuple(py, overloaded.iter().map(|o| o.get_type()))?;
    let mut refused_by = None;
    if modes_active() {
        if let Some(mode) = MODES.with_borrow_mut(Vec::pop) {
            refresh_active_modes();
            let result = mode
                .bind(py)
                .call_method1(intern!(py, "__torch_function__")?, (function, &types, args, kwargs));
            refused_by = Some(mode.clone_ref(py));
            MODES.with_borrow_mut(|modes| modes.push(mode));
            refresh_active_modes();
            let result = result?;
            if !result.is(&not_implemented) {
                return Ok(Some(result.into_ptr()));
            }
        }
    }
    let to_ask: Vec<_> = overloaded.iter().filter(|object| overrides(object)).collect();
    for object in &to_ask {
        let result =
            object.getattr(intern!(py, "__torch_function__")?)?.call1((function, &types, args, kwargs))?;
        if !result.is(&not_implemented) {
            return Ok(Some(result.into_ptr()));
        }
    }
    if to_ask.is_empty() && refused_by.is_none() {
        return Ok(None);
    }
    Err(all_refused(function, refused_by.as_ref().map(|mode| mode.bind(py)), &to_ask)?.into())
}

/// The error for a call that everyone who was asked left to the others.
#[cold]
fn all_refused(
    function: &Bound<'_, PyAny>,
    mode: Option<&Bound<'_, PyAny>>,
    asked: &[&Bound<'_, PyAny>],
) -> Res<PyErr> {
    let classes: Vec<String> =
        asked.iter().map(|object| Ok(object.get_type().repr()?.to_string())).collect::<Res<_>>()?;
    let mut text = format!(
        "no implementation found for 'torch.{}' on types that implement __torch_function__: [{}]",
        name_of(function)?,
        classes.join(", ")
    );
    if let Some(mode) = mode {
        text.push_str(&format!(" nor in mode {}", mode.repr()?));
    }
    Ok(PyTypeError::error(text))
}

/// The name of a function behind `torch.`.
fn name_of(function: &Bound<'_, PyAny>) -> Res<String> {
    if let Ok(name) = function.getattr(intern!(function.py(), "__qualname__")?) {
        let module = function
            .getattr(intern!(function.py(), "__module__")?)
            .and_then(|m| m.extract::<String>())
            .unwrap_or_default();
        // Methods have the class in their name.
        return Ok(match module.strip_prefix("ptr.").filter(|m| !m.starts_with('_')) {
            Some(module) => format!("{module}.{name}"),
            None => name.to_string(),
        });
    }
    Ok(function.repr()?.to_string())
}

/// Runs `body` with the protocol switched off to the given degree.
fn with_state<R>(state: State, body: impl FnOnce() -> R) -> R {
    struct Restore(State);
    impl Drop for Restore {
        fn drop(&mut self) {
            STATE.set(self.0);
            refresh_active_modes();
        }
    }
    let _restore = Restore(STATE.get());
    STATE.set(state.max(STATE.get()));
    refresh_active_modes();
    body()
}

/// Calls `func` with the `__torch_function__` of subclasses switched off. As a class's `__torch_function__` it makes the
/// class override nothing.
#[pyfunction]
#[pyo3(signature = (func, types, args = None, kwargs = None))]
fn _disabled_torch_function_impl<'py>(
    func: &Bound<'py, PyAny>,
    types: &Bound<'py, PyAny>,
    args: Option<&Bound<'py, PyTuple>>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let _ = types;
    let empty = PyTuple::empty(func.py());
    with_state(State::SubclassesDisabled, || func.call(args.unwrap_or(&empty), kwargs))
}

/// Calls `func`. As a class's `__torch_dispatch__` it makes the class handle no operators.
#[pyfunction]
#[pyo3(signature = (func, types, args = None, kwargs = None))]
fn _disabled_torch_dispatch_impl<'py>(
    func: &Bound<'py, PyAny>,
    types: &Bound<'py, PyAny>,
    args: Option<&Bound<'py, PyTuple>>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let _ = types;
    let _guard = c10::ExcludeDispatchKeyGuard::new(c10::DispatchKey::Python);
    let empty = PyTuple::empty(func.py());
    func.call(args.unwrap_or(&empty), kwargs)
}

/// Whether any of `args` takes over functions.
#[pyfunction]
fn _has_torch_function(args: &Bound<'_, PyAny>) -> PyResult<bool> {
    for item in args.try_iter()? {
        if overrides(&item?) {
            return Ok(true);
        }
    }
    Ok(modes_active())
}

/// Whether `obj` takes over functions.
#[pyfunction]
fn _has_torch_function_unary(obj: &Bound<'_, PyAny>) -> bool {
    overrides(obj) || modes_active()
}

/// Whether any of the arguments takes over functions.
#[pyfunction]
#[pyo3(signature = (*args))]
fn _has_torch_function_variadic(args: &Bound<'_, PyTuple>) -> bool {
    modes_active() || args.iter().any(|a| overrides(&a))
}

/// Offers a call of a Python function to modes and overriding arguments (`ptr.overrides.handle_torch_function`).
#[pyfunction]
#[pyo3(signature = (public_api, relevant_args, args, kwargs))]
fn _handle_torch_function<'py>(
    py: Python<'py>,
    public_api: &Bound<'py, PyAny>,
    relevant_args: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
) -> Res<Bound<'py, PyAny>> {
    let relevant = relevant_args.try_iter()?.collect::<PyResult<Vec<_>>>()?;
    let overloaded = overloaded(py, &relevant.iter().collect::<Vec<_>>());
    match dispatch(py, public_api, args, kwargs, &overloaded)? {
        // SAFETY: a new reference.
        Some(result) => unsafe { owned(py, result) },
        None => Ok(public_api.call(args, Some(kwargs))?),
    }
}

/// Pushes a mode.
#[pyfunction]
fn _push_on_torch_function_stack(mode: Py<PyAny>) {
    MODES.with_borrow_mut(|modes| modes.push(mode));
    refresh_active_modes();
}

/// Pops the innermost mode.
#[pyfunction]
fn _pop_torch_function_stack() -> PyResult<Py<PyAny>> {
    let mode = MODES.with_borrow_mut(Vec::pop);
    refresh_active_modes();
    mode.ok_or_else(|| PyIndexError::error("pop from an empty stack of torch function modes"))
}

/// How many modes there are.
#[pyfunction]
fn _len_torch_function_stack() -> Number<usize> {
    Number(MODES.with_borrow(Vec::len))
}

/// The mode at a depth.
#[pyfunction]
fn _get_function_stack_at(py: Python<'_>, index: usize) -> PyResult<Py<PyAny>> {
    MODES
        .with_borrow(|modes| modes.get(index).map(|m| m.clone_ref(py)))
        .ok_or_else(|| PyIndexError::error(format!("there is no torch function mode at depth {index}")))
}

/// Whether the protocol is on.
#[pyfunction]
fn _is_torch_function_enabled() -> bool {
    STATE.get() == State::Enabled
}

/// Whether nothing of the protocol is on.
#[pyfunction]
fn _is_torch_function_all_disabled() -> bool {
    STATE.get() == State::AllDisabled
}

macro_rules! disabling_context {
    ($(#[$doc:meta])* $name:ident, $state:expr) => {
        $(#[$doc])*
        #[pyclass(module = "ptr._C", skip_from_py_object)]
        struct $name {
            saved: Vec<State>,
        }

        #[pymethods]
        impl $name {
            #[new]
            fn new() -> Self {
                $name { saved: Vec::new() }
            }
            fn __enter__(&mut self) {
                self.saved.push(STATE.get());
                STATE.set($state.max(STATE.get()));
                refresh_active_modes();
            }
            #[pyo3(signature = (*_exc))]
            fn __exit__(&mut self, _exc: &Bound<'_, PyTuple>) {
                if let Some(saved) = self.saved.pop() {
                    STATE.set(saved);
                    refresh_active_modes();
                }
            }
        }
    };
}

disabling_context!(
    /// Context in which subclasses do not take over functions.
    DisableTorchFunctionSubclass,
    State::SubclassesDisabled
);
disabling_context!(
    /// Context in which neither subclasses nor modes take over functions.
    DisableTorchFunction,
    State::AllDisabled
);

/// Makes the names and functions of the protocol.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> Res<()> {
    let py = module.py();
    NAME_FUNCTION.store(intern_static(py, "__torch_function__")?, Ordering::Relaxed);
    NAME_DISPATCH.store(intern_static(py, "__torch_dispatch__")?, Ordering::Relaxed);
    module.add_function(wrap_pyfunction!(_disabled_torch_function_impl, module)?)?;
    module.add_function(wrap_pyfunction!(_disabled_torch_dispatch_impl, module)?)?;
    DISABLED_FUNCTION
        .store(immortal(module.getattr(intern!(py, "_disabled_torch_function_impl")?)?), Ordering::Relaxed);
    DISABLED_DISPATCH
        .store(immortal(module.getattr(intern!(py, "_disabled_torch_dispatch_impl")?)?), Ordering::Relaxed);
    module.add_function(wrap_pyfunction!(_has_torch_function, module)?)?;
    module.add_function(wrap_pyfunction!(_has_torch_function_unary, module)?)?;
    module.add_function(wrap_pyfunction!(_has_torch_function_variadic, module)?)?;
    module.add_function(wrap_pyfunction!(_handle_torch_function, module)?)?;
    module.add_function(wrap_pyfunction!(_push_on_torch_function_stack, module)?)?;
    module.add_function(wrap_pyfunction!(_pop_torch_function_stack, module)?)?;
    module.add_function(wrap_pyfunction!(_len_torch_function_stack, module)?)?;
    module.add_function(wrap_pyfunction!(_get_function_stack_at, module)?)?;
    module.add_function(wrap_pyfunction!(_is_torch_function_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_is_torch_function_all_disabled, module)?)?;
    module.add_class::<DisableTorchFunctionSubclass>()?;
    module.add_class::<DisableTorchFunction>()?;
    Ok(())
}
