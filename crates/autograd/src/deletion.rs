//! Deleting long graphs without recursion.
//!
//! A node owns its successors, through edges and through the `grad_fn` of saved tensors, so that dropping the last
//! handle of a chain of a million nodes the natural way would use a million stack frames. Instead the outermost deletion on
//! a thread keeps a list; nodes that die while it runs hand their contents to the list and return at once.
//! Every path from node to node passes through here, whatever objects lie between; so does the path from a tensor to its
//! gradient, which may have one too.

use std::cell::Cell;
use std::mem;
use std::ptr;

use c10::Tensor;

use crate::edge::EdgeList;
use crate::node::Body;

/// What a dying node or tensor owned: only to be dropped.
enum Contents {
    Node { _body: Body, _edges: EdgeList },
    Gradient { _grad: Tensor },
}

thread_local! {
    /// The list of the deletion running on this thread, or null.
    static PENDING: Cell<*mut Vec<Contents>> = const { Cell::new(ptr::null_mut()) };
}

/// Takes the contents of a dying node and drops them now, or soon if a deletion is running.
pub(crate) fn delete_contents(body: &mut Body, edges: &mut EdgeList) {
    if matches!(body, Body::Released) && edges.is_empty() {
        return;
    }
    delete(Contents::Node { _body: mem::replace(body, Body::Released), _edges: mem::take(edges) });
}

/// Drops the gradient of a dying tensor now, or soon if a deletion is running.
pub(crate) fn delete_gradient(grad: Tensor) {
    delete(Contents::Gradient { _grad: grad });
}

fn delete(contents: Contents) {
    let pending = PENDING.get();
    if !pending.is_null() {
        // SAFETY: the list lives on the stack of a caller of this thread, which borrows it only between drops.
        let pending = unsafe { &mut *pending };
        match pending.try_reserve(1) {
            Ok(()) => pending.push(contents),
            // There is no memory to remember it, and dropping it here may overflow the stack: it is lost.
            Err(_) => mem::forget(contents),
        }
        return;
    }
    let mut list = Vec::new();
    let list = &raw mut list;
    PENDING.set(list);
    let _reset = Reset;
    drop(contents);
    loop {
        // SAFETY: `list` is the local above; the borrow ends before the popped contents are dropped.
        let Some(contents) = (unsafe { (*list).pop() }) else { break };
        drop(contents);
    }
}

/// Ends the deletion, also when a drop panics.
struct Reset;

impl Drop for Reset {
    fn drop(&mut self) {
        PENDING.set(ptr::null_mut());
    }
}
