//! What the core needs from Python, without knowing it.
//!
//! The crate that embeds the interpreter registers one [`PyInterpreter`]. Without it tensors have no PyObjects,
//! the Python dispatch key has no kernel, and nothing here is called.

use std::any::Any;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::OnceLock;

use crate::util::intrusive_ptr::RefCount;
use crate::{Error, Result, Tensor, TensorImpl};

/// The interpreter, seen from the core.
pub trait PyInterpreter: Send + Sync {
    /// Who this is, for messages.
    fn name(&self) -> &str;

    /// Increfs an object.
    ///
    /// # Safety
    ///
    /// `pyobj` is a live object of this interpreter. The interpreter's lock need not be held.
    unsafe fn incref(&self, pyobj: *mut c_void);

    /// Decrefs an object.
    ///
    /// # Safety
    ///
    /// The caller gives up a reference to `pyobj`. The interpreter's lock need not be held.
    unsafe fn decref(&self, pyobj: *mut c_void);

    /// Increfs the object in `slot` unless there is none any more or its deallocation has begun; says whether it did.
    ///
    /// Deallocation clears the slot ([`PyObjectSlot::clear`]) before the object's memory goes, both under the
    /// interpreter's lock (or the object's critical section); an implementation takes the same lock, reads the slot, and
    /// only then touches the object.
    fn try_incref(&self, slot: &PyObjectSlot) -> bool;

    /// Runs `body` with the interpreter's lock, which the thread may have already. If the interpreter is shutting down,
    /// `body` does not run.
    fn with_lock(&self, body: &mut dyn FnMut());

    /// Runs `body`, which waits for another thread, without the interpreter's lock.
    fn without_lock(&self, body: &mut dyn FnMut());

    /// Handles a call at the Python key. `op` is the dispatcher's operator handle and `stack` its stack: types that
    /// this crate does not know.
    fn dispatch(&self, op: &dyn Any, stack: &mut dyn Any) -> Result<()>;

    /// `detach()` of a tensor whose class has a `__torch_dispatch__`.
    fn detach(&self, tensor: &TensorImpl) -> Result<Tensor> {
        let _ = tensor;
        Err(Error::not_implemented(format!("detach(): not implemented by {}", self.name())))
    }
}

static INTERPRETER: OnceLock<&'static dyn PyInterpreter> = OnceLock::new();

/// Registers the interpreter of this process, once.
pub fn set_py_interpreter(interpreter: &'static dyn PyInterpreter) -> Result<()> {
    INTERPRETER.set(interpreter).map_err(|_| {
        Error::runtime(format!("a Python interpreter is already registered: {}", interpreter.name()))
    })
}

/// The registered interpreter.
#[inline]
pub fn py_interpreter() -> Option<&'static dyn PyInterpreter> {
    INTERPRETER.get().copied()
}

/// Where a tensor or storage keeps the address of the PyObject that owns it: see Note [The PyObject owns the target]
/// in `intrusive_ptr.rs`.
#[derive(Debug, Default)]
pub struct PyObjectSlot(AtomicPtr<c_void>);

impl PyObjectSlot {
    /// No PyObject.
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The address, or null.
    #[inline]
    pub fn get(&self) -> *mut c_void {
        self.0.load(Ordering::Acquire)
    }

    /// Attaches `pyobj`, which has taken one strong count of the target. If another PyObject was first, nothing
    /// changes and its address is the error.
    ///
    /// # Safety
    ///
    /// `refcount` is that of the slot's target; the caller owns a reference to `pyobj` during the call.
    pub unsafe fn init(&self, refcount: &RefCount, pyobj: *mut c_void) -> Result<(), *mut c_void> {
        self.0.compare_exchange(ptr::null_mut(), pyobj, Ordering::AcqRel, Ordering::Acquire)?;
        refcount.attach_pyobject(|| self.incref(), || self.decref());
        Ok(())
    }

    /// Forgets the PyObject: the first step of its deallocation, before it drops its strong count.
    pub fn clear(&self) {
        self.0.store(ptr::null_mut(), Ordering::Release);
    }

    /// Increfs the PyObject, which is known to be alive.
    pub fn incref(&self) {
        if let (Some(interpreter), false) = (py_interpreter(), self.get().is_null()) {
            // SAFETY: called by the reference count's protocol only while the object is alive.
            unsafe { interpreter.incref(self.get()) };
        }
    }

    /// Decrefs the PyObject, to which the target owns a reference.
    pub fn decref(&self) {
        if let (Some(interpreter), false) = (py_interpreter(), self.get().is_null()) {
            // SAFETY: called by the reference count's protocol for the reference the target owns.
            unsafe { interpreter.decref(self.get()) };
        }
    }

    /// Increfs the PyObject unless it is dying.
    pub fn try_incref(&self) -> bool {
        py_interpreter().is_some_and(|interpreter| interpreter.try_incref(self))
    }
}
