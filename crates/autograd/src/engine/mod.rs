//! The engine: runs backward graphs.
//!
//! A call of [`execute`] makes a [`GraphTask`], counts how many gradients each node waits for, and runs nodes as they become
//! ready, newest first. CPU nodes run on the calling thread; nodes of devices with streams run on one thread per
//! device. A node may itself call the engine (reentrant backward); past a depth the work moves to another thread so that
//! stacks stay bounded.

#[allow(clippy::module_inception)] // The engine proper, among what it is made of.
mod engine;
mod graph_task;
mod input_buffer;
mod node_map;
mod ready_queue;
mod stream_sync;
mod thread_state;
mod validate;
mod worker;

pub use engine::{execute, MAX_DEPTH};
pub use thread_state::{
    current_graph_task_execution_order, current_graph_task_id, current_graph_task_keep_graph, current_node,
    is_checkpoint_valid, queue_callback, will_engine_execute_node,
};
pub use worker::after_fork_in_child;

pub(crate) use thread_state::{add_successors_to_current_exec_info, task_should_execute};

/// Whether the engine may use threads of its own on behalf of this thread.
pub fn is_multithreading_enabled() -> bool {
    c10::AutogradState::get().multithreading_enabled()
}

/// Sets whether the engine may use threads of its own on behalf of this thread.
pub fn set_multithreading_enabled(enabled: bool) {
    c10::AutogradState::get().with_multithreading_enabled(enabled).set();
}

#[cfg(test)]
mod tests;
