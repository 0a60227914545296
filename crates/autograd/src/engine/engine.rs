//! Running a graph task.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::Ordering;
use std::sync::Arc;

use c10::{
    bail, check, check_memory, internal_assert, AutoGradMode, Error, Result, StreamGuard, Tensor,
    ThreadLocalState, ThreadLocalStateGuard,
};

use super::graph_task::{
    compute_dependencies, init_to_execute, min_topological_nr, GraphTask, GraphTaskArgs,
};
use super::input_buffer::InputBuffer;
use super::node_map::NodeKey;
use super::ready_queue::{NodeTask, ReadyQueue};
use super::stream_sync;
use super::thread_state::{
    local_ready_queue, GraphTaskGuard, NodeGuard, CPU_DEVICE, CURRENT_DEPTH, NO_DEVICE, TOTAL_DEPTH,
    WORKER_DEVICE,
};
use super::validate::validate_outputs;
use super::worker;
use crate::anomaly_mode;
use crate::basic_nodes::GraphRoot;
use crate::edge::{Edge, EdgeList, VariableList};
use crate::hooks::run_tensor_hook;
use crate::node::Node;
use crate::tensor_ops;

/// How many backward passes may lie on one stack.
pub const MAX_DEPTH: u32 = 60;

const CREATE_GRAPH_WARNING: &str = "Using backward() with create_graph=True will create a reference cycle between the \
parameter and its gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid \
this. If you have to use this function, make sure to reset the .grad fields of your parameters to None after use to break \
the cycle and avoid the leak.";

/// Runs backward from `roots` with gradients `inputs`. With `outputs`, runs only what is needed to reach
/// those edges: their gradients are returned, or accumulated if `accumulate_grad`.
pub fn execute(
    roots: Vec<Edge>,
    mut inputs: VariableList,
    keep_graph: bool,
    create_graph: bool,
    accumulate_grad: bool,
    outputs: Vec<Edge>,
) -> Result<Vec<Option<Tensor>>> {
    validate_outputs(&roots, &mut inputs, &String::new)?;
    if accumulate_grad && create_graph {
        warn_create_graph_once();
    }
    let is_reentrant = WORKER_DEVICE.get() != NO_DEVICE;

    let single =
        if roots.len() == 1 { roots[0].function.clone().map(|node| (node, roots[0].input_nr)) } else { None };
    let (root, buffer) = match single {
        Some((node, input_nr)) => {
            let mut buffer = InputBuffer::new(node.num_inputs());
            let grad = inputs.into_iter().next().flatten();
            let producer = grad.as_ref().and_then(stream_sync::stream_of);
            buffer.add(input_nr as usize, grad, producer, node.stream())?;
            (node, buffer)
        }
        None => {
            let edges: EdgeList = roots.iter().cloned().collect();
            (Node::with_edges(Box::new(GraphRoot::new(inputs)), edges, &[]), InputBuffer::default())
        }
    };

    let min_nr = min_topological_nr(&outputs);
    let dependencies = compute_dependencies(&root, min_nr)?;
    let exec_info = (!outputs.is_empty())
        .then(|| init_to_execute(&root, &outputs, accumulate_grad, min_nr))
        .transpose()?;
    let needs_hand_over = is_reentrant && CURRENT_DEPTH.get() >= MAX_DEPTH;
    let task = Arc::new(GraphTask::new(GraphTaskArgs {
        keep_graph,
        create_graph,
        reentrant_depth: if is_reentrant { TOTAL_DEPTH.get() + 1 } else { 0 },
        root: root.clone(),
        roots,
        cpu_ready_queue: local_ready_queue(),
        thread_locals: (dependencies.uses_streams || needs_hand_over)
            .then(|| ThreadLocalState::capture().with_grad_mode(create_graph)),
        pending: dependencies.pending,
        exec_info,
        num_captures: if accumulate_grad { 0 } else { outputs.len() },
    }));
    run(&task, root, buffer, is_reentrant, needs_hand_over)?;
    finish(&task)
}

fn warn_create_graph_once() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| crate::warning::warn(CREATE_GRAPH_WARNING));
}

/// Restores this thread's place in the engine, also when something panics.
struct WorkerGuard {
    device: i32,
    current_depth: u32,
    total_depth: u32,
}

impl WorkerGuard {
    fn saving() -> Self {
        Self {
            device: WORKER_DEVICE.get(),
            current_depth: CURRENT_DEPTH.get(),
            total_depth: TOTAL_DEPTH.get(),
        }
    }
}

impl Drop for WorkerGuard {
    fn drop(&mut self) {
        WORKER_DEVICE.set(self.device);
        CURRENT_DEPTH.set(self.current_depth);
        TOTAL_DEPTH.set(self.total_depth);
    }
}

/// Queues the root and works until the task is complete.
fn run(
    task: &Arc<GraphTask>,
    root: Node,
    buffer: InputBuffer,
    is_reentrant: bool,
    hand_over: bool,
) -> Result<()> {
    let _restore = WorkerGuard::saving();
    if !is_reentrant {
        WORKER_DEVICE.set(CPU_DEVICE);
    }
    task.owner.store(WORKER_DEVICE.get(), Ordering::Release);
    let own_queue = task.cpu_ready_queue.clone();
    let queue = worker::ready_queue(&own_queue, root.stream())?;
    push(task, &queue, root, buffer)?;
    if hand_over {
        worker::add_thread_pool_task(task)?;
        task.wait();
        return Ok(());
    }
    CURRENT_DEPTH.set(CURRENT_DEPTH.get() + 1);
    if is_reentrant {
        TOTAL_DEPTH.set(TOTAL_DEPTH.get() + 1);
    }
    thread_main(Some(task), &own_queue);
    if !is_reentrant && task.has_error.load(Ordering::Acquire) {
        // Nothing but this task's leftovers can be in the queue of a thread that ran a single outermost pass.
        own_queue.clear();
    }
    Ok(())
}

fn push(task: &Arc<GraphTask>, queue: &ReadyQueue, node: Node, inputs: InputBuffer) -> Result<()> {
    task.outstanding.fetch_add(1, Ordering::AcqRel);
    let queued = queue.push(NodeTask::new(task, node, inputs));
    if queued.is_err() {
        task.outstanding.fetch_sub(1, Ordering::AcqRel);
    }
    queued
}

/// What is left to do on the calling thread when all nodes have run.
fn finish(task: &Arc<GraphTask>) -> Result<Vec<Option<Tensor>>> {
    if let Some(error) = task.take_error() {
        return Err(error);
    }
    let unfinished = task.progress.lock().pending.values().any(|pending| pending.inputs.is_some());
    check!(!unfinished, "could not compute gradients for some functions");
    let streams = std::mem::take(&mut *task.leaf_streams.lock());
    for stream in streams {
        let current = c10::get_device_guard_impl(stream.device_type())?.get_stream(stream.device())?;
        stream_sync::wait_stream(current, stream)?;
    }
    let _current = GraphTaskGuard::new(task);
    // A callback may install more.
    let mut at = 0;
    loop {
        let callback = {
            let mut callbacks = task.final_callbacks.lock();
            if at == callbacks.len() {
                callbacks.clear();
                break;
            }
            std::mem::replace(&mut callbacks[at], Box::new(|| Ok(())))
        };
        at += 1;
        callback()?;
    }
    Ok(task.take_captured())
}

/// Runs tasks from `queue` until `task` is complete; forever without one (device threads).
pub(super) fn thread_main(task: Option<&Arc<GraphTask>>, queue: &Arc<ReadyQueue>) {
    while task.is_none_or(|task| !task.is_completed()) {
        let NodeTask { task: owner, node, inputs, .. } = queue.pop();
        // A task that failed and is gone needs nothing any more.
        let Some(current) = owner.upgrade() else { continue };
        if let Some(node) = node {
            if !current.has_error.load(Ordering::Acquire) {
                run_node(&current, &node, inputs);
            }
            // The node may be the last handle of a graph: let go of it before others are told that all is done.
            drop(node);
            current.outstanding.fetch_sub(1, Ordering::AcqRel);
        }
        if current.is_finished() && current.mark_completed() {
            let owner = current.owner.load(Ordering::Acquire);
            if owner != WORKER_DEVICE.get() {
                // The owner may be asleep.
                if let Ok(queue) = worker::ready_queue_of_worker(&current.cpu_ready_queue, owner) {
                    queue.push_wake(&current);
                }
            }
        }
    }
}

/// Runs a node and turns every failure into the task's.
fn run_node(task: &Arc<GraphTask>, node: &Node, inputs: InputBuffer) {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        check_memory()?;
        let _tls = task.thread_locals.as_ref().map(ThreadLocalStateGuard::new);
        let _grad_mode = AutoGradMode::new(task.create_graph);
        let _task = GraphTaskGuard::new(task);
        let _node = NodeGuard::new(node);
        let outcome = evaluate_function(task, node, inputs);
        if outcome.is_err() && anomaly_mode::is_enabled() {
            anomaly_mode::print_stack(node);
        }
        outcome
    }));
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(error)) => task.set_error(error),
        Err(panic) => task.set_error(panic_error(node, &*panic)),
    }
}

#[cold]
fn panic_error(node: &Node, panic: &(dyn std::any::Any + Send)) -> Error {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("unknown panic");
    Error::internal(format!("{} panicked: {message}. This is a bug in ptr, please report it.", node.name()))
}

fn evaluate_function(task: &Arc<GraphTask>, node: &Node, mut inputs: InputBuffer) -> Result<()> {
    let stream = node.stream();
    let _stream = stream.map(StreamGuard::new).transpose()?;
    if task.has_exec_info && capture(task, node, &mut inputs)? {
        return Ok(());
    }
    let grads = call_tensor_pre_hooks(node, inputs.into_variables())?;
    call_node(task, node, grads)
}

/// Stores gradients that are results. Returns whether the node need not run.
fn capture(task: &Arc<GraphTask>, node: &Node, inputs: &mut InputBuffer) -> Result<bool> {
    let (needed, captures) = {
        let exec_info = task.exec_info.read();
        match exec_info.get(&NodeKey::of(node)) {
            Some(info) => (info.needed, info.captures.clone()),
            None => bail!(Internal, "{} runs though no wanted gradient needs it", node.name()),
        }
    };
    if !captures.is_empty() {
        // Tensor hooks apply to results too. When the node runs as well, its call runs them (once).
        let grads = call_tensor_pre_hooks(node, std::mem::take(inputs).into_variables())?;
        {
            let mut progress = task.progress.lock();
            for capture in &captures {
                progress.captured[capture.output_idx] =
                    grads.get(capture.input_nr as usize).cloned().flatten();
            }
        }
        if let Some(stream) = node.stream() {
            task.leaf_streams.lock().push(stream);
        }
        if needed {
            call_node(task, node, grads)?;
            return Ok(true);
        }
    }
    Ok(!needed)
}

/// Calls the node with gradients that its tensor hooks have seen, and passes on what comes out.
fn call_node(task: &Arc<GraphTask>, node: &Node, grads: VariableList) -> Result<()> {
    let outputs = call_after_tensor_hooks(task, node, grads)?;
    if !task.keep_graph {
        node.release_variables();
    }
    let stream = node.stream();
    if outputs.is_empty() {
        if let Some(stream) = stream {
            task.leaf_streams.lock().push(stream);
        }
        return Ok(());
    }
    if anomaly_mode::is_enabled() && anomaly_mode::should_check_nan() {
        check_nan(node, &outputs)?;
    }
    for (edge, output) in node.next_edges().iter().zip(outputs) {
        if let Some(next) = &edge.function {
            deliver(task, next, edge.input_nr, output, stream)?;
        }
    }
    Ok(())
}

fn call_after_tensor_hooks(
    task: &Arc<GraphTask>,
    node: &Node,
    mut grads: VariableList,
) -> Result<VariableList> {
    let hooks = node.hooks();
    if let Some(hooks) = hooks {
        let pre = hooks.lock().pre.clone();
        for registered in pre {
            grads = registered.hook.call(grads)?;
        }
    }
    if !task.keep_graph {
        node.node_function().will_release_variables();
    }
    let post = hooks.map(|hooks| hooks.lock().post.clone()).unwrap_or_default();
    let kept = if post.is_empty() { None } else { Some(grads.clone()) };
    let mut outputs = node.apply(grads)?;
    if !(outputs.is_empty() && node.num_outputs() == 0) {
        validate_outputs(node.next_edges(), &mut outputs, &|| {
            format!("Function {} returned an ", node.name())
        })?;
    }
    if let Some(inputs) = kept {
        for registered in post {
            let expected = outputs.len();
            outputs = registered.hook.call(outputs, &inputs)?;
            check!(
                outputs.len() == expected,
                "hook on {} has returned an incorrect number of values (got {}, but expected {expected})",
                node.name(),
                outputs.len()
            );
        }
    }
    Ok(outputs)
}

fn call_tensor_pre_hooks(node: &Node, mut grads: VariableList) -> Result<VariableList> {
    for hook in node.node_function().leaf_hooks() {
        if let Some(grad) = grads.first_mut() {
            run_tensor_hook(&*hook, grad)?;
        }
    }
    if let Some(hooks) = node.hooks() {
        let (tensor_pre, retains_grad) = {
            let hooks = hooks.lock();
            (hooks.tensor_pre.clone(), hooks.retains_grad.clone())
        };
        for (output_nr, registered) in tensor_pre {
            if let Some(grad) = grads.get_mut(output_nr as usize) {
                run_tensor_hook(&*registered.hook, grad)?;
            }
        }
        for (output_nr, hook) in retains_grad {
            if let Some(grad) = grads.get_mut(output_nr as usize) {
                run_tensor_hook(&*hook, grad)?;
            }
        }
    }
    Ok(grads)
}

fn check_nan(node: &Node, outputs: &VariableList) -> Result<()> {
    let _no_grad = AutoGradMode::new(false);
    for (i, output) in outputs.iter().enumerate() {
        if let Some(output) = output {
            check!(
                !tensor_ops::has_nan(output)?,
                "Function '{}' returned nan values in its {i}th output.",
                node.name()
            );
        }
    }
    Ok(())
}

/// Adds a gradient to the buffer of the node it is for, and queues the node when it was the last.
fn deliver(
    task: &Arc<GraphTask>,
    next: &Node,
    input_nr: u32,
    output: Option<Tensor>,
    producer: Option<c10::Stream>,
) -> Result<()> {
    let consumer = next.stream();
    let key = NodeKey::of(next);
    let mut buffer = {
        let mut progress = task.progress.lock();
        let Some(pending) = progress.pending.get_mut(&key) else {
            bail!(Runtime, "dependency not found for {}", next.name())
        };
        internal_assert!(
            pending.dependencies > 0,
            "{} received more gradients than it has edges",
            next.name()
        );
        if pending.inputs.is_none() && !task.should_execute(next) {
            pending.dependencies -= 1;
            return Ok(());
        }
        pending.inputs.take().unwrap_or_else(|| InputBuffer::new(next.num_inputs()))
    };
    // Without the lock: a sum is an operator, which may run Python code.
    buffer.add(input_nr as usize, output, producer, consumer)?;
    loop {
        let mut progress = task.progress.lock();
        let Some(pending) = progress.pending.get_mut(&key) else {
            bail!(Internal, "{} is no longer among the nodes of its task", next.name())
        };
        let Some(others) = pending.inputs.take() else {
            pending.dependencies -= 1;
            if pending.dependencies != 0 {
                pending.inputs = Some(buffer);
                return Ok(());
            }
            break;
        };
        // Another thread has delivered meanwhile.
        drop(progress);
        buffer.merge(others, consumer)?;
    }
    let queue = worker::ready_queue(&task.cpu_ready_queue, consumer)?;
    push(task, &queue, next.clone(), buffer)
}
