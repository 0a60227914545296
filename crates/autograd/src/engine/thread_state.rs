//! What a thread knows of the backward pass that it is running.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;

use c10::{bail, check, Result};

use super::graph_task::{execution_order, FinalCallback, GraphTask};
use super::node_map::NodeKey;
use super::ready_queue::ReadyQueue;
use crate::accumulate_grad::AccumulateGrad;
use crate::node::{Node, NodeImpl};

/// This thread doesn't run backward work.
pub(super) const NO_DEVICE: i32 = -2;
/// This thread runs CPU nodes.
pub(super) const CPU_DEVICE: i32 = -1;

thread_local! {
    pub(super) static WORKER_DEVICE: Cell<i32> = const { Cell::new(NO_DEVICE) };
    /// Backward passes on this thread's stack.
    pub(super) static CURRENT_DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Backward passes nested in one another, over all threads they have moved to.
    pub(super) static TOTAL_DEPTH: Cell<u32> = const { Cell::new(0) };
    static READY_QUEUE: RefCell<Option<Arc<ReadyQueue>>> = const { RefCell::new(None) };
    /// Valid while the [`GraphTaskGuard`] that set it lives.
    static GRAPH_TASK: Cell<*const GraphTask> = const { Cell::new(ptr::null()) };
    /// Valid while the [`NodeGuard`] that set it lives.
    static NODE: Cell<*const NodeImpl> = const { Cell::new(ptr::null()) };
    static CHECKPOINT_INVALID: Cell<bool> = const { Cell::new(false) };
}

/// This thread's queue of CPU nodes, made on demand.
pub(super) fn local_ready_queue() -> Arc<ReadyQueue> {
    READY_QUEUE.with_borrow_mut(|queue| queue.get_or_insert_with(Arc::default).clone())
}

/// Gives this thread another queue and returns the one it had.
pub(super) fn set_local_ready_queue(queue: Option<Arc<ReadyQueue>>) -> Option<Arc<ReadyQueue>> {
    READY_QUEUE.replace(queue)
}

/// Makes a graph task current while it lives.
pub(super) struct GraphTaskGuard<'a> {
    saved: *const GraphTask,
    saved_checkpoint_invalid: bool,
    _task: &'a Arc<GraphTask>,
}

impl<'a> GraphTaskGuard<'a> {
    pub(super) fn new(task: &'a Arc<GraphTask>) -> Self {
        let saved = GRAPH_TASK.replace(Arc::as_ptr(task));
        let saved_checkpoint_invalid = CHECKPOINT_INVALID.get();
        CHECKPOINT_INVALID.set(saved_checkpoint_invalid || task.has_exec_info);
        Self { saved, saved_checkpoint_invalid, _task: task }
    }
}

impl Drop for GraphTaskGuard<'_> {
    fn drop(&mut self) {
        GRAPH_TASK.set(self.saved);
        CHECKPOINT_INVALID.set(self.saved_checkpoint_invalid);
    }
}

/// Makes a node current while it lives.
pub(super) struct NodeGuard<'a> {
    saved: *const NodeImpl,
    _node: &'a Node,
}

impl<'a> NodeGuard<'a> {
    pub(super) fn new(node: &'a Node) -> Self {
        Self { saved: NODE.replace(node.as_ptr()), _node: node }
    }
}

impl Drop for NodeGuard<'_> {
    fn drop(&mut self) {
        NODE.set(self.saved);
    }
}

/// Runs `f` on this thread's current graph task.
#[inline]
fn with_graph_task<R>(f: impl FnOnce(Option<&GraphTask>) -> R) -> R {
    // SAFETY: not null only while a guard on this thread's stack keeps the task alive.
    f(unsafe { GRAPH_TASK.get().as_ref() })
}

/// The node that this thread is running.
pub fn current_node() -> Option<Node> {
    let node = NODE.get();
    // SAFETY: not null only while a guard on this thread's stack keeps the node alive.
    (!node.is_null()).then(|| unsafe { Node::clone_from_raw(node) })
}

/// The number of the backward pass that this thread is running, or -1.
pub fn current_graph_task_id() -> i64 {
    with_graph_task(|task| task.map_or(-1, |task| task.id))
}

/// Whether the backward pass that this thread is running keeps its graph; `true` outside of any.
pub fn current_graph_task_keep_graph() -> bool {
    with_graph_task(|task| task.is_none_or(|task| task.keep_graph))
}

/// The nodes that the backward pass of this thread runs, in order.
pub fn current_graph_task_execution_order() -> Result<Vec<Node>> {
    with_graph_task(|task| {
        let Some(task) = task else {
            bail!(
                Runtime,
                "_current_graph_task_execution_order should only be called during the backward pass"
            )
        };
        execution_order(&task.root, &|node| task.should_execute(node))
    })
}

/// Whether the backward pass of this thread has run or will run a node.
pub fn will_engine_execute_node(node: &Node) -> Result<bool> {
    with_graph_task(|task| {
        let Some(task) = task else {
            bail!(Runtime, "_will_engine_execute_node should only be called during the backward pass")
        };
        if !task.has_exec_info {
            let reached = task.progress.lock().pending.contains_key(&NodeKey::of(node));
            return Ok(reached || node.ptr_eq(&task.root));
        }
        let exec_info = task.exec_info.read();
        let Some(info) = exec_info.get(&NodeKey::of(node)) else { return Ok(false) };
        check!(
            info.captures.is_empty() || node.function::<AccumulateGrad>().is_none(),
            "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). This is \
             currently not supported."
        );
        Ok(info.should_execute())
    })
}

/// Whether reentrant checkpointing works here: not under `inputs=`, whose inner pass would reach other leaves.
pub fn is_checkpoint_valid() -> bool {
    !CHECKPOINT_INVALID.get()
}

/// Runs `callback` when the backward pass of this thread is complete.
pub fn queue_callback(callback: FinalCallback) -> Result<()> {
    with_graph_task(|task| {
        let Some(task) = task else {
            bail!(Runtime, "Final callbacks can only be installed during backward pass.")
        };
        task.final_callbacks.lock().push(callback);
        Ok(())
    })
}

/// Whether the running pass has any use for what goes into `node`; outside of any pass it has.
#[inline]
pub(crate) fn task_should_execute(node: &Node) -> bool {
    with_graph_task(|task| task.is_none_or(|task| task.should_execute(node)))
}

/// Says of nodes behind `node`, which isn't part of the graph itself, that their gradients may be computed.
pub(crate) fn add_successors_to_current_exec_info(node: &Node) {
    with_graph_task(|task| {
        let Some(task) = task.filter(|task| task.has_exec_info) else { return };
        let mut exec_info = task.exec_info.write();
        for next in node.next_edges().iter().filter_map(|edge| edge.function.as_ref()) {
            exec_info.entry(NodeKey::of(next)).or_default().needed = true;
        }
    });
}
