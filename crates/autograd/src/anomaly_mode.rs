//! Anomaly mode: every node remembers where its forward operator was called, and NaN gradients are errors.

use std::backtrace::Backtrace;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::node::{Node, WeakNode};

/// What a node keeps of the place that made it. The Python binding stores a Python traceback; without Python a Rust
/// backtrace is stored.
pub trait AnomalyMetadata: Send + Sync {
    /// Called in the forward pass, when the node is made.
    fn store_stack(&self);
    /// Shows the stored place as a warning; called when the node fails.
    fn print_stack(&self, node_name: &str);
    /// Remembers the node whose backward made this node (with `create_graph`).
    fn assign_parent(&self, parent: Option<Node>);
    /// The node given to [`AnomalyMetadata::assign_parent`], while it is alive.
    fn parent(&self) -> Option<Node>;
    /// For the binding, which shows its own kind to users.
    fn as_any(&self) -> Option<&dyn std::any::Any> {
        None
    }
}

/// Bit 0: enabled; bit 1: do not check for NaN. One for the process: work that other threads do for a backward pass
/// is in the mode too.
static STATE: AtomicU8 = AtomicU8::new(0);

/// Whether the process is in anomaly mode.
#[inline]
pub fn is_enabled() -> bool {
    STATE.load(Ordering::Relaxed) & 1 != 0
}

/// Whether NaN gradients are errors in anomaly mode.
#[inline]
pub fn should_check_nan() -> bool {
    STATE.load(Ordering::Relaxed) & 2 == 0
}

/// Sets the anomaly mode of the process.
pub fn set_enabled(enabled: bool, check_nan: bool) {
    STATE.store(u8::from(enabled) | (u8::from(!check_nan) << 1), Ordering::Relaxed);
}

type Factory = fn() -> Arc<dyn AnomalyMetadata>;

static FACTORY: OnceLock<Factory> = OnceLock::new();

/// Sets who stores forward tracebacks. The first caller wins.
pub fn set_metadata_factory(factory: Factory) {
    let _ = FACTORY.set(factory);
}

pub(crate) fn new_metadata() -> Arc<dyn AnomalyMetadata> {
    match FACTORY.get() {
        Some(factory) => factory(),
        None => Arc::new(RustAnomalyMetadata::default()),
    }
}

/// Prints the forward traceback of a failed node and of the nodes whose backward made it.
pub(crate) fn print_stack(node: &Node) {
    let Some(metadata) = node.metadata() else { return };
    metadata.print_stack(&node.name());
    let mut parent = metadata.parent();
    while let Some(node) = parent {
        let Some(metadata) = node.metadata() else { return };
        crate::warning::warn(&format!(
            "\n\nPrevious calculation was induced by {}. Traceback of forward call that induced the previous calculation:\n",
            node.name()
        ));
        metadata.print_stack(&node.name());
        parent = metadata.parent();
    }
}

#[derive(Default)]
struct RustAnomalyMetadata {
    stack: OnceLock<Backtrace>,
    parent: Mutex<Option<WeakNode>>,
}

impl AnomalyMetadata for RustAnomalyMetadata {
    fn store_stack(&self) {
        let _ = self.stack.set(Backtrace::force_capture());
    }

    fn print_stack(&self, node_name: &str) {
        let message = match self.stack.get() {
            Some(stack) => {
                format!("Error detected in {node_name}. Traceback of forward call that caused the error:\n{stack}")
            }
            None => format!(
                "Error detected in {node_name}. No forward pass information available. \
                 Enable detect anomaly during forward pass for more information."
            ),
        };
        crate::warning::warn(&message);
    }

    fn assign_parent(&self, parent: Option<Node>) {
        *self.parent.lock() = parent.map(|node| node.downgrade());
    }

    fn parent(&self) -> Option<Node> {
        self.parent.lock().as_ref().and_then(WeakNode::upgrade)
    }
}
