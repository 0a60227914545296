//! [`GraphTask`]: the state of one backward pass.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::Arc;

use c10::{Error, Result, Stream, Tensor, ThreadLocalState};
use parking_lot::{Condvar, Mutex, RwLock};
use smallvec::SmallVec;

use super::input_buffer::InputBuffer;
use super::node_map::{NodeKey, NodeMap, NodeSet};
use super::ready_queue::ReadyQueue;
use crate::edge::{Edge, VariableList};
use crate::node::Node;

/// Runs when a pass is complete.
pub(super) type FinalCallback = Box<dyn FnOnce() -> Result<()> + Send>;

/// What to do with a node when only some gradients are wanted.
#[derive(Default)]
pub(super) struct ExecInfo {
    /// Whether a wanted gradient lies behind the node.
    pub(super) needed: bool,
    /// Inputs of the node that are results of the pass, and their places there.
    pub(super) captures: SmallVec<[Capture; 1]>,
}

#[derive(Clone, Copy)]
pub(super) struct Capture {
    pub(super) input_nr: u32,
    pub(super) output_idx: usize,
}

impl ExecInfo {
    pub(super) fn should_execute(&self) -> bool {
        self.needed || !self.captures.is_empty()
    }
}

/// How far a node of the graph is.
#[derive(Default)]
pub(super) struct Pending {
    /// Gradients that haven't arrived yet.
    pub(super) dependencies: u32,
    /// Those that have.
    pub(super) inputs: Option<InputBuffer>,
}

/// What changes while the pass runs.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) pending: NodeMap<Pending>,
    pub(super) captured: VariableList,
}

/// One backward pass.
pub(super) struct GraphTask {
    // Immutable after construction.
    pub(super) id: i64,
    pub(super) keep_graph: bool,
    pub(super) create_graph: bool,
    pub(super) reentrant_depth: u32,
    pub(super) root: Node,
    /// Keeps the whole graph alive, so that node keys stay valid.
    pub(super) _roots: Vec<Edge>,
    /// The queue of the thread that called the engine: all CPU nodes go there.
    pub(super) cpu_ready_queue: Arc<ReadyQueue>,
    /// State for other threads; `None` when all work stays on the calling thread, which has it already.
    pub(super) thread_locals: Option<ThreadLocalState>,
    /// Whether `exec_info` restricts the pass.
    pub(super) has_exec_info: bool,

    /// The device of the thread that called the engine.
    pub(super) owner: AtomicI32,
    /// Tasks queued or running.
    pub(super) outstanding: AtomicU64,
    pub(super) has_error: AtomicBool,
    completed: AtomicBool,
    /// Grows only by [`CopySlices`](crate::copy_slices::CopySlices), whose inner node isn't part of the graph.
    pub(super) exec_info: RwLock<NodeMap<ExecInfo>>,
    pub(super) progress: Mutex<Progress>,
    pub(super) final_callbacks: Mutex<Vec<FinalCallback>>,
    /// Streams on which the pass ended somewhere.
    pub(super) leaf_streams: Mutex<Vec<Stream>>,
    error: Mutex<Option<Error>>,
    done: Condvar,
}

/// What a graph task is made from.
pub(super) struct GraphTaskArgs {
    pub(super) keep_graph: bool,
    pub(super) create_graph: bool,
    pub(super) reentrant_depth: u32,
    pub(super) root: Node,
    pub(super) roots: Vec<Edge>,
    pub(super) cpu_ready_queue: Arc<ReadyQueue>,
    pub(super) thread_locals: Option<ThreadLocalState>,
    pub(super) pending: NodeMap<Pending>,
    pub(super) exec_info: Option<NodeMap<ExecInfo>>,
    pub(super) num_captures: usize,
}

impl GraphTask {
    pub(super) fn new(args: GraphTaskArgs) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed) as i64,
            keep_graph: args.keep_graph,
            create_graph: args.create_graph,
            reentrant_depth: args.reentrant_depth,
            root: args.root,
            _roots: args.roots,
            cpu_ready_queue: args.cpu_ready_queue,
            thread_locals: args.thread_locals,
            has_exec_info: args.exec_info.is_some(),
            owner: AtomicI32::new(0),
            outstanding: AtomicU64::new(0),
            has_error: AtomicBool::new(false),
            completed: AtomicBool::new(false),
            exec_info: RwLock::new(args.exec_info.unwrap_or_default()),
            progress: Mutex::new(Progress {
                pending: args.pending,
                captured: SmallVec::from_elem(None, args.num_captures),
            }),
            final_callbacks: Mutex::default(),
            leaf_streams: Mutex::default(),
            error: Mutex::default(),
            done: Condvar::new(),
        }
    }

    /// Whether the pass, if restricted, has any use for a node.
    #[inline]
    pub(super) fn should_execute(&self, node: &Node) -> bool {
        !self.has_exec_info
            || self.exec_info.read().get(&NodeKey::of(node)).is_some_and(ExecInfo::should_execute)
    }

    /// Whether nothing is left to run.
    pub(super) fn is_finished(&self) -> bool {
        self.outstanding.load(Ordering::Acquire) == 0 || self.has_error.load(Ordering::Acquire)
    }

    /// Whether [`GraphTask::mark_completed`] has been called.
    #[inline]
    pub(super) fn is_completed(&self) -> bool {
        self.completed.load(Ordering::Acquire)
    }

    /// Lets the calling thread go on. Returns whether this was the first call.
    pub(super) fn mark_completed(&self) -> bool {
        if self.completed.swap(true, Ordering::AcqRel) {
            return false;
        }
        // Under the lock, so that a waiter is either before its check or already waiting.
        let _error = self.error.lock();
        self.done.notify_all();
        true
    }

    /// Waits for another thread to complete the pass.
    pub(super) fn wait(&self) {
        let mut error = self.error.lock();
        while !self.is_completed() {
            self.done.wait(&mut error);
        }
    }

    /// Fails the pass; the first error stays.
    pub(super) fn set_error(&self, error: Error) {
        let mut slot = self.error.lock();
        if slot.is_none() {
            *slot = Some(error);
        }
        self.has_error.store(true, Ordering::Release);
    }

    pub(super) fn take_error(&self) -> Option<Error> {
        self.error.lock().take()
    }

    pub(super) fn take_captured(&self) -> Vec<Option<Tensor>> {
        std::mem::take(&mut self.progress.lock().captured).into_vec()
    }
}

/// Counts, for every node that the root reaches, how many gradients it waits for.
pub(super) struct Dependencies {
    pub(super) pending: NodeMap<Pending>,
    pub(super) uses_streams: bool,
}

/// Nodes below `min_topological_nr` can't reach a wanted node and are not expanded.
///
/// # Errors
/// `OutOfMemory`: a graph may be of any size.
pub(super) fn compute_dependencies(root: &Node, min_topological_nr: u64) -> Result<Dependencies> {
    let mut pending: NodeMap<Pending> = NodeMap::default();
    let mut uses_streams = false;
    let mut stack: Vec<&Node> = vec![root];
    while let Some(node) = stack.pop() {
        if node.topological_nr() < min_topological_nr {
            continue;
        }
        uses_streams = uses_streams || node.stream().is_some();
        for edge in node.next_edges() {
            let Some(next) = &edge.function else { continue };
            reserve_entry(&mut pending)?;
            let entry = pending.entry(NodeKey::of(next)).or_default();
            if entry.dependencies == 0 {
                try_push(&mut stack, next)?;
            }
            entry.dependencies += 1;
        }
    }
    Ok(Dependencies { pending, uses_streams })
}

/// The smallest topological number of the wanted nodes.
pub(super) fn min_topological_nr(outputs: &[Edge]) -> u64 {
    outputs.iter().filter_map(|e| e.function.as_ref()).map(Node::topological_nr).min().unwrap_or(0)
}

/// Marks the nodes from which a wanted node can be reached, without recursion.
///
/// # Errors
/// `OutOfMemory`: a graph may be of any size.
pub(super) fn init_to_execute(
    root: &Node,
    outputs: &[Edge],
    accumulate_grad: bool,
    min_topological_nr: u64,
) -> Result<NodeMap<ExecInfo>> {
    struct Frame<'a> {
        node: &'a Node,
        next_edge: usize,
    }

    let mut exec_info: NodeMap<ExecInfo> = NodeMap::default();
    for (output_idx, output) in outputs.iter().enumerate() {
        let Some(node) = &output.function else { continue };
        reserve_entry(&mut exec_info)?;
        let info = exec_info.entry(NodeKey::of(node)).or_default();
        if accumulate_grad {
            info.needed = true;
        } else {
            info.captures.push(Capture { input_nr: output.input_nr, output_idx });
        }
    }
    exec_info.entry(NodeKey::of(root)).or_default();

    let mut seen = NodeSet::default();
    let mut stack = vec![Frame { node: root, next_edge: 0 }];
    while let Some(frame) = stack.last_mut() {
        let node: &Node = frame.node;
        let key = NodeKey::of(node);
        let mut child = None;
        while let Some(edge) = node.next_edges().get(frame.next_edge) {
            frame.next_edge += 1;
            let Some(next) = &edge.function else { continue };
            seen.try_reserve(1).map_err(|_| too_large_a_graph())?;
            if seen.insert(NodeKey::of(next)) {
                reserve_entry(&mut exec_info)?;
                exec_info.entry(NodeKey::of(next)).or_default();
                child = Some(next);
                break;
            }
            if exec_info.get(&NodeKey::of(next)).is_some_and(ExecInfo::should_execute) {
                exec_info.entry(key).or_default().needed = true;
            }
        }
        match child {
            // Made before the first wanted node: it can't reach any, unless it is one.
            Some(child) if child.topological_nr() < min_topological_nr => {}
            Some(child) => try_push(&mut stack, Frame { node: child, next_edge: 0 })?,
            None => {
                // All children are decided, so this node is.
                stack.pop();
                let should_execute = exec_info.get(&key).is_some_and(ExecInfo::should_execute);
                if let (true, Some(parent)) = (should_execute, stack.last()) {
                    exec_info.entry(NodeKey::of(parent.node)).or_default().needed = true;
                }
            }
        }
    }
    Ok(exec_info)
}

/// Makes room for one more node.
#[inline]
fn reserve_entry<V>(nodes: &mut NodeMap<V>) -> Result<()> {
    nodes.try_reserve(1).map_err(|_| too_large_a_graph())
}

#[inline]
fn try_push<T>(stack: &mut Vec<T>, value: T) -> Result<()> {
    stack.try_reserve(1).map_err(|_| too_large_a_graph())?;
    stack.push(value);
    Ok(())
}

#[cold]
pub(super) fn too_large_a_graph() -> Error {
    Error::out_of_memory("not enough memory to walk through the graph of the backward pass")
}

/// The order in which a pass from `root` runs its nodes, if it is run by one thread.
pub(super) fn execution_order(root: &Node, exec: &dyn Fn(&Node) -> bool) -> Result<Vec<Node>> {
    use std::collections::BinaryHeap;
    struct Entry(u64, Node);
    impl PartialEq for Entry {
        fn eq(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }
    impl Eq for Entry {}
    impl PartialOrd for Entry {
        fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
            Some(self.cmp(other))
        }
    }
    impl Ord for Entry {
        fn cmp(&self, other: &Self) -> std::cmp::Ordering {
            self.0.cmp(&other.0)
        }
    }

    let mut pending = compute_dependencies(root, 0)?.pending;
    let mut heap = BinaryHeap::from([Entry(root.sequence_nr(), root.clone())]);
    let mut order = Vec::new();
    while let Some(Entry(_, node)) = heap.pop() {
        for next in node.next_edges().iter().filter_map(|e| e.function.as_ref()) {
            let Some(entry) = pending.get_mut(&NodeKey::of(next)) else {
                continue;
            };
            entry.dependencies -= 1;
            if entry.dependencies == 0 && exec(next) {
                heap.try_reserve(1).map_err(|_| too_large_a_graph())?;
                heap.push(Entry(next.sequence_nr(), next.clone()));
            }
        }
        try_push(&mut order, node)?;
    }
    Ok(order)
}
