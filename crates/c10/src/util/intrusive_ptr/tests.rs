//! What one thread can see. Races are in `loom_tests`.

use std::cell::Cell;
use std::rc::Rc;

use super::*;

#[derive(Default)]
struct Log {
    released: Cell<u32>,
    dropped: Cell<u32>,
    py_refs: Cell<i32>,
}

struct Node {
    refcount: RefCount,
    log: Rc<Log>,
}

impl Node {
    fn new(log: &Rc<Log>) -> IntrusivePtr<Self> {
        IntrusivePtr::new(Self { refcount: RefCount::new(), log: Rc::clone(log) })
    }
}

// SAFETY: the field is touched by the pointers only.
unsafe impl IntrusivePtrTarget for Node {
    fn refcount(&self) -> &RefCount {
        &self.refcount
    }

    unsafe fn release_resources(&self) {
        self.log.released.set(self.log.released.get() + 1);
    }

    fn incref_pyobject(&self) {
        self.log.py_refs.set(self.log.py_refs.get() + 1);
    }

    fn decref_pyobject(&self) {
        self.log.py_refs.set(self.log.py_refs.get() - 1);
    }

    fn try_incref_pyobject(&self) -> bool {
        if self.log.py_refs.get() == 0 {
            return false;
        }
        self.incref_pyobject();
        true
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.log.dropped.set(self.log.dropped.get() + 1);
    }
}

#[test]
fn option_is_one_word() {
    assert_eq!(size_of::<Option<IntrusivePtr<Node>>>(), size_of::<usize>());
}

#[test]
fn counts_and_drop() {
    let log = Rc::default();
    let a = Node::new(&log);
    let b = a.clone();
    assert_eq!((a.strong_count(), a.weak_count()), (2, 1));
    assert!(a.ptr_eq(&b));
    drop(a);
    assert_eq!(log.dropped.get(), 0);
    drop(b);
    assert_eq!((log.released.get(), log.dropped.get()), (0, 1));
}

#[test]
fn weak_pointers_keep_memory_only() {
    let log = Rc::default();
    let a = Node::new(&log);
    let weak = a.downgrade();
    let other = weak.clone();
    assert!(weak.upgrade().is_some_and(|p| p.ptr_eq(&a)));
    drop(a);
    assert_eq!((log.released.get(), log.dropped.get()), (1, 0));
    assert!(weak.expired() && weak.upgrade().is_none());
    drop(weak);
    assert_eq!(log.dropped.get(), 0);
    drop(other);
    assert_eq!(log.dropped.get(), 1);
}

#[test]
fn raw_round_trip() {
    let log = Rc::default();
    let mut a = Node::new(&log);
    // SAFETY: `a` holds the target.
    let b = unsafe { IntrusivePtr::clone_from_raw(a.as_ptr()) };
    assert!(IntrusivePtr::get_mut(&mut a).is_none());
    let raw = b.into_raw();
    assert_eq!(a.strong_count(), 2);
    // SAFETY: takes back what `into_raw` gave.
    drop(unsafe { IntrusivePtr::from_raw(raw) });
    assert!(IntrusivePtr::get_mut(&mut a).is_some());
}

#[test]
fn pyobject_is_referenced_exactly_while_shared() {
    let log: Rc<Log> = Rc::default();
    log.py_refs.set(1); // The reference Python holds.
    let python = Node::new(&log);
    let attach =
        |p: &IntrusivePtr<Node>| p.refcount.attach_pyobject(|| p.incref_pyobject(), || p.decref_pyobject());
    attach(&python);
    assert_eq!(log.py_refs.get(), 1);
    let a = python.clone();
    let b = python.clone();
    assert_eq!(log.py_refs.get(), 2);
    log.py_refs.set(log.py_refs.get() - 1); // Python lets go; the core keeps the PyObject.
    drop(a);
    assert_eq!(log.py_refs.get(), 1);
    drop(b);
    assert_eq!(log.py_refs.get(), 0);
    // Now the PyObject is dying: a weak pointer must not reach the target.
    let weak = python.downgrade();
    assert!(weak.upgrade().is_none());
    drop(python);
    assert_eq!((log.released.get(), log.dropped.get()), (1, 0));
}

#[test]
fn attaching_to_a_shared_target_takes_a_reference() {
    let log: Rc<Log> = Rc::default();
    log.py_refs.set(1);
    let python = Node::new(&log);
    let core = python.clone();
    python.refcount.attach_pyobject(|| python.incref_pyobject(), || python.decref_pyobject());
    assert_eq!(log.py_refs.get(), 2);
    drop(core);
    assert_eq!(log.py_refs.get(), 1);
}
