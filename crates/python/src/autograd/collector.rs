//! How the garbage collector sees through tensors and nodes. See autograd's Note [Ownership and the garbage collector].

use std::any::Any;
use std::ffi::{c_int, c_void};

use autograd::ownership::{self, OwnershipVisitor};
use autograd::Node;
use c10::Tensor;
use pyo3::ffi;

use super::hooks;

struct Visit {
    visit: ffi::visitproc,
    arg: *mut c_void,
    /// What `visit` returned; anything but zero ends the traversal.
    stop: c_int,
}

impl Visit {
    fn object(&mut self, object: *mut ffi::PyObject) {
        if self.stop == 0 && !object.is_null() {
            // SAFETY: the collector passed both, and the object is alive: somebody who is being visited holds it.
            self.stop = unsafe { (self.visit)(object, self.arg) };
        }
    }
}

impl OwnershipVisitor for Visit {
    fn pyobject(&mut self, object: *mut c_void) {
        self.object(object.cast());
    }

    fn hook(&mut self, hook: &dyn Any) {
        if let Some(dict) = hooks::dict_of(hook) {
            self.object(dict);
        }
    }
}

/// The part of a tensor's `tp_traverse` that concerns autograd: history, gradient and hooks, as far as nobody else
/// holds them.
///
/// # Safety
///
/// Called from `tp_traverse` of the tensor's object, with what the collector passed.
pub(crate) unsafe fn traverse_tensor(tensor: &Tensor, visit: ffi::visitproc, arg: *mut c_void) -> c_int {
    if tensor.autograd_meta().is_none() {
        return 0;
    }
    let mut visit = Visit { visit, arg, stop: 0 };
    ownership::visit_tensor(tensor, &mut visit);
    visit.stop
}

/// The same for a node: hooks, saved tensors and following nodes.
///
/// # Safety
///
/// Called from `tp_traverse` of the node's object, with what the collector passed.
pub(super) unsafe fn traverse_node(node: &Node, visit: ffi::visitproc, arg: *mut c_void) -> c_int {
    let mut visit = Visit { visit, arg, stop: 0 };
    ownership::visit_node(node, &mut visit);
    visit.stop
}
