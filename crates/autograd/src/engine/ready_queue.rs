//! [`ReadyQueue`]: nodes whose gradients are complete, in the order in which they should run.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::{Arc, Weak};

use c10::Result;
use parking_lot::{Condvar, Mutex};

use super::graph_task::{too_large_a_graph, GraphTask};
use super::input_buffer::InputBuffer;
use crate::node::Node;

/// A node to run, with its gradients.
pub(super) struct NodeTask {
    /// Weak: the task owns a queue, and a failed task leaves entries behind.
    pub(super) task: Weak<GraphTask>,
    /// `None` only wakes the owner of a task that others completed.
    pub(super) node: Option<Node>,
    pub(super) inputs: InputBuffer,
    reentrant_depth: u32,
    sequence_nr: u64,
}

impl NodeTask {
    pub(super) fn new(task: &Arc<GraphTask>, node: Node, inputs: InputBuffer) -> Self {
        Self {
            task: Arc::downgrade(task),
            reentrant_depth: task.reentrant_depth,
            sequence_nr: node.sequence_nr(),
            node: Some(node),
            inputs,
        }
    }

    pub(super) fn wake(task: &Arc<GraphTask>) -> Self {
        Self {
            task: Arc::downgrade(task),
            node: None,
            inputs: InputBuffer::default(),
            reentrant_depth: u32::MAX,
            sequence_nr: u64::MAX,
        }
    }

    /// Wake-ups first, then inner backward passes before the outer ones that wait for them, then the newest node.
    fn priority(&self) -> (bool, u32, u64) {
        (self.node.is_none(), self.reentrant_depth, self.sequence_nr)
    }
}

impl PartialEq for NodeTask {
    fn eq(&self, other: &Self) -> bool {
        self.priority() == other.priority()
    }
}

impl Eq for NodeTask {}

impl PartialOrd for NodeTask {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for NodeTask {
    fn cmp(&self, other: &Self) -> Ordering {
        self.priority().cmp(&other.priority())
    }
}

/// For how many wakes, of passes within passes, a queue keeps room.
const WAKES: usize = 8;

/// A priority queue that one thread pops and any thread pushes.
#[derive(Default)]
pub(super) struct ReadyQueue {
    heap: Mutex<BinaryHeap<NodeTask>>,
    not_empty: Condvar,
}

impl ReadyQueue {
    /// Queues a node that can run.
    ///
    /// # Errors
    /// `OutOfMemory`: a node may have any number of next nodes.
    pub(super) fn push(&self, task: NodeTask) -> Result<()> {
        {
            let mut heap = self.heap.lock();
            heap.try_reserve(1 + WAKES).map_err(|_| too_large_a_graph())?;
            heap.push(task);
        }
        self.not_empty.notify_one();
        Ok(())
    }

    /// Wakes the owner of a graph task, who would otherwise wait for ever: there is room for it.
    pub(super) fn push_wake(&self, task: &Arc<GraphTask>) {
        self.heap.lock().push(NodeTask::wake(task));
        self.not_empty.notify_one();
    }

    /// Waits for a task.
    pub(super) fn pop(&self) -> NodeTask {
        let mut heap = self.heap.lock();
        loop {
            if let Some(task) = heap.pop() {
                return task;
            }
            self.not_empty.wait(&mut heap);
        }
    }

    /// Takes everything out: what a failed task has left behind.
    pub(super) fn clear(&self) {
        let leftovers = std::mem::take(&mut *self.heap.lock());
        // Outside the lock: this may delete a graph.
        drop(leftovers);
    }

    #[cfg(test)]
    pub(super) fn try_pop(&self) -> Option<NodeTask> {
        self.heap.lock().pop()
    }
}
