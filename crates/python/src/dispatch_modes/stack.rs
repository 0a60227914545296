//! The stack of dispatch modes of a thread.

use crate::raw::objects::{NewError, Number};
use std::cell::RefCell;
use std::sync::Arc;

use c10::DispatchKey;
use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::prelude::*;

/// A mode. Shared, so that snapshots of a thread's state need no interpreter's lock.
pub(super) type Mode = Arc<Py<PyAny>>;

thread_local! {
    static MODES: RefCell<Vec<Mode>> = const { RefCell::new(Vec::new()) };
}

/// Lets calls come to the Python key exactly while there are modes.
fn refresh_keys() {
    let active = MODES.with_borrow(|modes| !modes.is_empty());
    c10::tls_set_dispatch_key_included(DispatchKey::Python, active);
    c10::tls_set_dispatch_key_included(DispatchKey::PythonTLSSnapshot, active);
}

pub(super) fn push(mode: Mode) {
    MODES.with_borrow_mut(|modes| modes.push(mode));
    refresh_keys();
}

pub(super) fn pop() -> Option<Mode> {
    let mode = MODES.with_borrow_mut(Vec::pop);
    refresh_keys();
    mode
}

/// The innermost mode, taken off the stack until the guard is dropped.
pub(super) struct Stashed(Option<Mode>);

impl Stashed {
    pub(super) fn innermost() -> Stashed {
        Stashed(pop())
    }

    pub(super) fn mode(&self) -> Option<&Mode> {
        self.0.as_ref()
    }
}

impl Drop for Stashed {
    fn drop(&mut self) {
        if let Some(mode) = self.0.take() {
            push(mode);
        }
    }
}

/// Pushes a mode.
#[pyfunction]
fn _push_on_torch_dispatch_stack(mode: Py<PyAny>) {
    push(Arc::new(mode));
}

/// Pops the innermost mode.
#[pyfunction]
#[pyo3(signature = (mode_key = None))]
fn _pop_torch_dispatch_stack(py: Python<'_>, mode_key: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
    if mode_key.is_some() {
        return Err(PyRuntimeError::error(
            "_pop_torch_dispatch_stack: there are no modes with a key of their own",
        ));
    }
    match pop() {
        Some(mode) => Ok(mode.clone_ref(py)),
        None => Err(PyIndexError::error("pop from an empty stack of torch dispatch modes")),
    }
}

/// The mode at a depth, counted from the outermost.
#[pyfunction]
fn _get_dispatch_stack_at(py: Python<'_>, index: usize) -> PyResult<Py<PyAny>> {
    MODES
        .with_borrow(|modes| modes.get(index).map(|mode| mode.clone_ref(py)))
        .ok_or_else(|| PyIndexError::error(format!("there is no torch dispatch mode at depth {index}")))
}

/// How many modes there are.
#[pyfunction]
fn _len_torch_dispatch_stack() -> Number<usize> {
    Number(MODES.with_borrow(Vec::len))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    c10::register_tls_extension(
        || {
            MODES.with_borrow(|modes| {
                (!modes.is_empty()).then(|| Box::new(modes.clone()) as c10::TlsExtensionState)
            })
        },
        |snapshot| {
            let modes = snapshot.and_then(|s| s.downcast_ref::<Vec<Mode>>()).cloned().unwrap_or_default();
            // Keys are part of every snapshot already.
            let old = MODES.replace(modes);
            drop(old);
        },
    );
    module.add_function(wrap_pyfunction!(_push_on_torch_dispatch_stack, module)?)?;
    module.add_function(wrap_pyfunction!(_pop_torch_dispatch_stack, module)?)?;
    module.add_function(wrap_pyfunction!(_get_dispatch_stack_at, module)?)?;
    module.add_function(wrap_pyfunction!(_len_torch_dispatch_stack, module)?)
}
