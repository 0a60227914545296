//! Every interleaving of the counts' protocol, with a model of the PyObject.
//!
//! Run with `RUSTFLAGS='--cfg loom' cargo test -p c10 --release loom`.

use loom::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize};
use loom::sync::Arc;
use loom::thread;

use super::*;

/// A Python object: its count, and whether it is gone. Touching it afterwards is the mistake that these tests look for.
struct PyObject {
    refs: AtomicI64,
    dead: AtomicBool,
}

struct World {
    pyobject: PyObject,
    /// The slot: whether the target still knows its PyObject.
    slot: AtomicBool,
    /// How often the target was destroyed.
    destroyed: AtomicUsize,
    /// The address of the target, for the PyObject's deallocation.
    target: AtomicUsize,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            pyobject: PyObject { refs: AtomicI64::new(1), dead: AtomicBool::new(false) },
            slot: AtomicBool::new(true),
            destroyed: AtomicUsize::new(0),
            target: AtomicUsize::new(0),
        })
    }

    fn incref(&self) {
        assert!(!self.pyobject.dead.load(Ordering::SeqCst), "incref of a dead PyObject");
        let old = self.pyobject.refs.fetch_add(1, Ordering::SeqCst);
        assert!(old > 0, "incref of a dying PyObject");
    }

    fn decref(&self) {
        assert!(!self.pyobject.dead.load(Ordering::SeqCst), "decref of a dead PyObject");
        let old = self.pyobject.refs.fetch_sub(1, Ordering::SeqCst);
        assert!(old > 0, "decref below zero");
        if old == 1 {
            self.dealloc();
        }
    }

    /// As `PyUnstable_TryIncRef`, under the protocol of the slot.
    fn try_incref(&self) -> bool {
        if !self.slot.load(Ordering::SeqCst) {
            return false;
        }
        let mut refs = self.pyobject.refs.load(Ordering::SeqCst);
        loop {
            if refs == 0 {
                return false;
            }
            match self.pyobject.refs.compare_exchange(refs, refs + 1, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(seen) => refs = seen,
            }
        }
    }

    /// `tp_dealloc`: clears the slot, drops the strong count, and is gone.
    fn dealloc(&self) {
        self.slot.store(false, Ordering::SeqCst);
        self.pyobject.dead.store(true, Ordering::SeqCst);
        let target = self.target.load(Ordering::SeqCst) as *const Node;
        // SAFETY: the PyObject gives up its strong count.
        drop(unsafe { IntrusivePtr::from_raw(target) });
    }
}

struct Node {
    refcount: RefCount,
    world: Arc<World>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.world.destroyed.fetch_add(1, Ordering::SeqCst);
    }
}

// SAFETY: the count is touched by the pointers only.
unsafe impl IntrusivePtrTarget for Node {
    fn refcount(&self) -> &RefCount {
        &self.refcount
    }

    fn incref_pyobject(&self) {
        self.world.incref();
    }

    fn decref_pyobject(&self) {
        self.world.decref();
    }

    fn try_incref_pyobject(&self) -> bool {
        self.world.try_incref()
    }
}

fn node(world: &Arc<World>) -> IntrusivePtr<Node> {
    let node = IntrusivePtr::new(Node { refcount: RefCount::new(), world: world.clone() });
    world.target.store(node.as_ptr() as usize, Ordering::SeqCst);
    node
}

/// Gives one strong count of `node` to the PyObject, and the PyObject's first reference to the caller.
fn attach(node: &IntrusivePtr<Node>) {
    let _owned_by_pyobject = node.clone().into_raw();
    node.refcount.attach_pyobject(|| node.incref_pyobject(), || node.decref_pyobject());
}

fn check_end(world: &World) {
    assert_eq!(world.destroyed.load(Ordering::SeqCst), 1);
}

#[test]
fn loom_plain_clone_and_drop() {
    loom::model(|| {
        let world = World::new();
        let a = node(&world);
        let b = a.clone();
        let t = thread::spawn(move || drop(b.clone()));
        drop(a);
        assert!(t.join().is_ok());
        check_end(&world);
    });
}

#[test]
fn loom_weak_upgrade_against_last_drop() {
    loom::model(|| {
        let world = World::new();
        let a = node(&world);
        let weak = a.downgrade();
        let t = thread::spawn(move || {
            if let Some(strong) = weak.upgrade() {
                assert_eq!(strong.world.destroyed.load(Ordering::SeqCst), 0);
            }
        });
        drop(a);
        assert!(t.join().is_ok());
        check_end(&world);
    });
}

/// Python holds the object and clones the tensor into the core, while the core drops its own pointer.
#[test]
fn loom_one_to_two_against_two_to_one() {
    loom::model(|| {
        let world = World::new();
        let core = node(&world);
        attach(&core);
        let python = world.clone();
        let t = thread::spawn(move || {
            // The thread owns a reference to the PyObject, so it may reach the tensor through it.
            let target = python.target.load(Ordering::SeqCst) as *const Node;
            // SAFETY: the PyObject is alive and holds a strong count.
            let cloned = unsafe { IntrusivePtr::clone_from_raw(target) };
            python.decref();
            drop(cloned);
        });
        drop(core);
        assert!(t.join().is_ok());
        check_end(&world);
    });
}

/// The last Python reference goes while a weak pointer is upgraded.
#[test]
fn loom_weak_upgrade_against_pyobject_dealloc() {
    loom::model(|| {
        let world = World::new();
        let core = node(&world);
        attach(&core);
        let weak = core.downgrade();
        drop(core);
        let t = thread::spawn(move || drop(weak.upgrade()));
        world.decref();
        assert!(t.join().is_ok());
        check_end(&world);
    });
}

/// A weak pointer is upgraded while the count moves between 1 and 2 for other reasons.
#[test]
fn loom_weak_upgrade_against_strong_traffic() {
    loom::model(|| {
        let world = World::new();
        let core = node(&world);
        attach(&core);
        let weak = core.downgrade();
        let t = thread::spawn(move || drop(weak.upgrade()));
        drop(core);
        world.decref();
        assert!(t.join().is_ok());
        check_end(&world);
    });
}

/// A strong pointer makes the step from 1 to 2 after a weak one has taken its reference for the same step: one is surplus.
#[test]
fn loom_weak_upgrade_against_one_to_two() {
    loom::model(|| {
        let world = World::new();
        let core = node(&world);
        attach(&core);
        let weak = core.downgrade();
        drop(core);
        let t = thread::spawn(move || drop(weak.upgrade()));
        let target = world.target.load(Ordering::SeqCst) as *const Node;
        // SAFETY: we own a reference to the PyObject, which holds a strong count.
        let cloned = unsafe { IntrusivePtr::clone_from_raw(target) };
        world.decref();
        drop(cloned);
        assert!(t.join().is_ok());
        check_end(&world);
    });
}

/// A PyObject is attached while another thread drops its pointer to the tensor.
#[test]
fn loom_attach_against_drop() {
    loom::model(|| {
        let world = World::new();
        let ours = node(&world);
        let theirs = ours.clone();
        let t = thread::spawn(move || drop(theirs));
        // Moves our own count into the PyObject: the count may be 1 or 2 when the bit is set.
        let target = ours.into_raw();
        // SAFETY: the PyObject holds a strong count.
        let borrowed = ManuallyDrop::new(unsafe { IntrusivePtr::from_raw(target) });
        borrowed.refcount.attach_pyobject(|| borrowed.incref_pyobject(), || borrowed.decref_pyobject());
        world.decref();
        assert!(t.join().is_ok());
        check_end(&world);
    });
}
