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

/// Runs `body` with the interpreter's lock, taking it only if the thread does not have it. In a process that is shutting
/// down nothing is run: what the engine still holds is leaked, which is harmless.
#[inline]
fn with_lock<R>(body: impl FnOnce() -> R) -> Option<R> {
    // SAFETY: asks about this thread; the lock is taken only while there is an interpreter, and given back on the
    // thread that got it.
    unsafe {
        if ffi::PyGILState_Check() != 0 {
            return Some(body());
        }
        if ffi::Py_IsInitialized() == 0 {
            return None;
        }
        let state = ffi::PyGILState_Ensure();
        let result = body();
        ffi::PyGILState_Release(state);
        Some(result)
    }
}

impl PyInterpreter for CPython {
    fn name(&self) -> &str {
        "CPython"
    }

    unsafe fn incref(&self, pyobj: *mut c_void) {
        // SAFETY: the caller says that the object is alive.
        with_lock(|| unsafe { ffi::Py_INCREF(pyobj.cast()) });
    }

    unsafe fn decref(&self, pyobj: *mut c_void) {
        let object = pyobj.cast::<ffi::PyObject>();
        // SAFETY: the caller gives up a reference that it owns, so the object is alive until then.
        with_lock(|| unsafe {
            // The last reference may run a finalizer, which is Python code: see `raw::call_python`.
            let _lifted = (ffi::Py_REFCNT(object) == 1).then(c10::WithoutHolds::new);
            ffi::Py_DECREF(object);
        });
    }

    fn try_incref(&self, slot: &PyObjectSlot) -> bool {
        with_lock(|| {
            let object = slot.get().cast::<ffi::PyObject>();
            // SAFETY: under the lock an object in the slot is alive: deallocation clears the slot first.
            unsafe {
                if object.is_null() || ffi::Py_REFCNT(object) == 0 {
                    return false;
                }
                ffi::Py_INCREF(object);
            }
            true
        })
        .unwrap_or(false)
    }

    fn with_lock(&self, body: &mut dyn FnMut()) {
        with_lock(body);
    }

    fn without_lock(&self, body: &mut dyn FnMut()) {
        // SAFETY: asks about this thread; a lock that it has is taken again on the same thread.
        unsafe {
            if ffi::PyGILState_Check() == 0 {
                return body();
            }
            let state = ffi::PyEval_SaveThread();
            body();
            ffi::PyEval_RestoreThread(state);
        }
    }

    fn dispatch(&self, op: &dyn Any, stack: &mut dyn Any) -> Result<()> {
        let (Some(op), Some(stack)) = (op.downcast_ref::<OperatorHandle>(), stack.downcast_mut::<Stack>())
        else {
            return Err(Error::internal(
                "a call at the Python key came with an unknown kind of operator or stack",
            ));
        };
        match PYTHON_DISPATCH.get() {
            Some(dispatch) => dispatch(*op, stack),
            None => {
                Err(Error::not_implemented(format!("{}: __torch_dispatch__ is not available", op.name())))
            }
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
