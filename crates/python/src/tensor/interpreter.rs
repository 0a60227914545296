//! The interpreter, as the core knows it.

use std::any::Any;
use std::ffi::c_void;
use std::sync::OnceLock;

use c10::{Error, PyInterpreter, PyObjectSlot, Result, Tensor, TensorImpl};
use dispatch::{OperatorHandle, Stack};
use pyo3::ffi;

/// How calls at the Python dispatch key are served: by `__torch_dispatch__` of modes and subclasses.
pub(crate) type PythonDispatch = fn(OperatorHandle, &mut Stack) -> Result<()>;

static PYTHON_DISPATCH: OnceLock<PythonDispatch> = OnceLock::new();

/// Says who serves the Python key; the first caller wins.
pub(crate) fn set_python_dispatch(dispatch: PythonDispatch) {
    let _ = PYTHON_DISPATCH.set(dispatch);
}

struct CPython;

/// Runs `body` with the interpreter's lock, taking it only if the thread does not have it.
///
/// # Safety
///
/// The interpreter is initialized.
#[inline]
unsafe fn with_lock<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: as the caller says; the state is released on the thread that got it.
    unsafe {
        if ffi::PyGILState_Check() != 0 {
            return body();
        }
        let state = ffi::PyGILState_Ensure();
        let result = body();
        ffi::PyGILState_Release(state);
        result
    }
}

impl PyInterpreter for CPython {
    fn name(&self) -> &str {
        "CPython"
    }

    unsafe fn incref(&self, pyobj: *mut c_void) {
        // SAFETY: the object is alive; a process that is shutting down leaks instead.
        unsafe {
            if ffi::Py_IsInitialized() != 0 {
                with_lock(|| ffi::Py_INCREF(pyobj.cast()));
            }
        }
    }

    unsafe fn decref(&self, pyobj: *mut c_void) {
        // SAFETY: the caller owns the reference; a process that is shutting down leaks instead.
        unsafe {
            if ffi::Py_IsInitialized() != 0 {
                with_lock(|| ffi::Py_DECREF(pyobj.cast()));
            }
        }
    }

    fn try_incref(&self, slot: &PyObjectSlot) -> bool {
        // SAFETY: under the lock an object in the slot is alive: deallocation clears the slot first.
        unsafe {
            if ffi::Py_IsInitialized() == 0 {
                return false;
            }
            with_lock(|| {
                let object = slot.get().cast::<ffi::PyObject>();
                if object.is_null() || ffi::Py_REFCNT(object) == 0 {
                    return false;
                }
                ffi::Py_INCREF(object);
                true
            })
        }
    }

    fn dispatch(&self, op: &dyn Any, stack: &mut dyn Any) -> Result<()> {
        let (Some(op), Some(stack)) = (op.downcast_ref::<OperatorHandle>(), stack.downcast_mut::<Stack>()) else {
            return Err(Error::internal("a call at the Python key came with an unknown kind of operator or stack"));
        };
        match PYTHON_DISPATCH.get() {
            Some(dispatch) => dispatch(*op, stack),
            None => Err(Error::not_implemented(format!("{}: __torch_dispatch__ is not available", op.name()))),
        }
    }

    fn detach(&self, tensor: &TensorImpl) -> Result<Tensor> {
        static DETACH: OnceLock<OperatorHandle> = OnceLock::new();
        let op = match DETACH.get() {
            Some(op) => *op,
            None => *DETACH.get_or_init({
                let op = dispatch::Dispatcher::find_schema_or_err("aten::detach", "")?;
                move || op
            }),
        };
        // SAFETY: the caller's borrow keeps the tensor alive.
        let tensor = unsafe { Tensor::clone_from_raw(tensor) };
        let mut stack = Stack::new();
        stack.push(tensor.into());
        self.dispatch(&op, &mut stack)?;
        match stack.pop() {
            Some(value) => value.to_tensor().cloned(),
            None => Err(Error::runtime("detach() returned nothing")),
        }
    }
}

/// Makes the core use this interpreter.
pub(super) fn register() -> Result<()> {
    static INTERPRETER: CPython = CPython;
    c10::set_py_interpreter(&INTERPRETER)
}
