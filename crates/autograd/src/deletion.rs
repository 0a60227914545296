//! Deleting long graphs without recursion.
//!
//! A node owns its successors, through edges and through the `grad_fn` of saved tensors, so that dropping the last
//! handle of a chain of a million nodes the natural way would use a million stack frames. Instead the outermost deletion on
//! a thread keeps a list; nodes that die while it runs hand their contents to the list and return at once.
//! Every path from node to node passes through here, whatever objects lie between.

use std::cell::Cell;
use std::mem;
use std::ptr;

use crate::edge::EdgeList;
use crate::node::Body;

struct Contents {
    _body: Body,
    _edges: EdgeList,
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
    let contents = Contents { _body: mem::replace(body, Body::Released), _edges: mem::take(edges) };
    let pending = PENDING.get();
    if !pending.is_null() {
        // SAFETY: the list lives on the stack of a caller of this thread, which borrows it only between drops.
        unsafe { (*pending).push(contents) };
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
