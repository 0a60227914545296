//! Note [The PyObject owns the target], with a stand-in for Python.

use std::any::Any;
use std::ffi::c_void;
use std::sync::Mutex;

use c10::{
    empty_cpu, py_interpreter, set_py_interpreter, PyInterpreter, PyObjectSlot, Result, ScalarType, Tensor,
};

/// The stand-in's objects: a count and the tensor they hold. The mutex is its global lock.
struct Objects(Vec<Object>);

struct Object {
    refs: i64,
    tensor: Option<Tensor>,
}

static OBJECTS: Mutex<Objects> = Mutex::new(Objects(Vec::new()));

struct StandIn;

fn change(pyobj: *mut c_void, by: i64) -> Option<Tensor> {
    let mut objects = OBJECTS.lock().ok()?;
    let object = objects.0.get_mut(pyobj as usize - 1)?;
    assert!(object.refs > 0, "touched a dead object");
    object.refs += by;
    if object.refs > 0 {
        return None;
    }
    let tensor = object.tensor.take()?;
    tensor.pyobj_slot().clear();
    // Dropped by the caller, outside the lock.
    Some(tensor)
}

impl PyInterpreter for StandIn {
    fn name(&self) -> &str {
        "stand-in"
    }

    unsafe fn incref(&self, pyobj: *mut c_void) {
        drop(change(pyobj, 1));
    }

    unsafe fn decref(&self, pyobj: *mut c_void) {
        drop(change(pyobj, -1));
    }

    fn try_incref(&self, slot: &PyObjectSlot) -> bool {
        let Ok(mut objects) = OBJECTS.lock() else { return false };
        let Some(index) = (slot.get() as usize).checked_sub(1) else { return false };
        match objects.0.get_mut(index) {
            Some(object) if object.refs > 0 => {
                object.refs += 1;
                true
            }
            _ => false,
        }
    }

    fn with_lock(&self, body: &mut dyn FnMut()) {
        body();
    }

    fn without_lock(&self, body: &mut dyn FnMut()) {
        body();
    }

    fn dispatch(&self, _op: &dyn Any, _stack: &mut dyn Any) -> Result<()> {
        Ok(())
    }
}

/// Wraps a tensor; the object takes the handle, the caller gets one reference.
fn wrap(tensor: Tensor) -> *mut c_void {
    let borrowed = std::mem::ManuallyDrop::new(
        // SAFETY: the object that takes `tensor` below holds it for as long as this is used.
        unsafe { Tensor::from_raw(tensor.as_ptr()) },
    );
    let pyobj = {
        let Ok(mut objects) = OBJECTS.lock() else { return std::ptr::null_mut() };
        objects.0.push(Object { refs: 1, tensor: Some(tensor) });
        std::ptr::without_provenance_mut(objects.0.len())
    };
    // SAFETY: the object holds a strong count, and we hold a reference to it.
    assert!(unsafe { borrowed.init_pyobj(pyobj) }.is_ok());
    pyobj
}

fn refs(pyobj: *mut c_void) -> i64 {
    OBJECTS.lock().map_or(-1, |objects| objects.0[pyobj as usize - 1].refs)
}

#[test]
fn identity_lives_as_long_as_either_side() -> Result<()> {
    set_py_interpreter(&StandIn)?;
    assert!(set_py_interpreter(&StandIn).is_err());
    assert_eq!(py_interpreter().map(PyInterpreter::name), Some("stand-in"));

    // A result goes straight to Python: one reference, one count.
    let t = empty_cpu(&[2], ScalarType::Float)?;
    let weak = t.weak();
    let pyobj = wrap(t);
    assert_eq!(refs(pyobj), 1);

    // The core saves it: the object cannot die while the core holds the tensor.
    let saved = weak.upgrade();
    assert_eq!(refs(pyobj), 2);
    drop(change(pyobj, -1));
    assert_eq!(refs(pyobj), 1);
    assert_eq!(saved.as_ref().map(|t| t.pyobj()), Some(pyobj), "the same object comes back");

    // The second attempt to wrap loses and learns the winner.
    if let Some(t) = &saved {
        // SAFETY: nothing is attached.
        assert_eq!(unsafe { t.init_pyobj(std::ptr::without_provenance_mut(99)) }, Err(pyobj));
    }

    // The core lets go: the object is deallocated and takes the tensor with it.
    drop(saved);
    assert_eq!(refs(pyobj), 0);
    assert!(weak.expired() && weak.upgrade().is_none());

    // Attaching while others hold the tensor takes their reference at once.
    let t = empty_cpu(&[2], ScalarType::Float)?;
    let pyobj = wrap(t.clone());
    assert_eq!(refs(pyobj), 2);
    drop(change(pyobj, -1));
    drop(t);
    assert_eq!(refs(pyobj), 0);

    // Many threads clone, drop and upgrade; the object dies exactly once, at the end.
    let t = empty_cpu(&[2], ScalarType::Float)?;
    let weak = t.weak();
    let pyobj = wrap(t);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..500 {
                    if let Some(strong) = weak.upgrade() {
                        drop(strong.clone());
                    }
                }
            });
        }
    });
    assert_eq!(refs(pyobj), 1);
    drop(change(pyobj, -1));
    assert!(weak.expired());
    Ok(())
}
