//! What tensors and nodes own alone, shown to a tracing garbage collector.
//!
//! # Note [Ownership and the garbage collector]
//!
//! Python's collector frees cycles of Python objects when each object can name the references it owns. Between two
//! Python objects there may be tensors, nodes and saved variables that Python does not see. The first Python
//! object on such a path answers for them: it follows every handle that is the only one, down to the next Python object or the
//! next thing that somebody else holds too. Something held twice ends the search, so the references behind it
//! seem to come from outside and nothing is freed too early.
//!
//! A target with a Python object counts one handle for that object and owns one reference to it (c10's Note [The PyObject
//! owns the target]). That reference belongs to the visitor alone when just one more handle exists.
//!
//! Other threads may run parts of the graph meanwhile. Locks are therefore only tried, and what is being
//! changed at this moment counts as shared.

use std::any::Any;
use std::ffi::c_void;

use c10::Tensor;
use parking_lot::Mutex;

use crate::autograd_meta::AutogradMeta;
use crate::node::Node;

/// Receives what is found.
pub trait OwnershipVisitor {
    /// An object to which the visited thing owns one reference, alone.
    fn pyobject(&mut self, object: *mut c_void);
    /// A registered hook, as its own type.
    fn hook(&mut self, hook: &dyn Any);
}

/// Something without a Python object whose only owner is being visited.
enum Item {
    Tensor(Tensor),
    Node(Node),
}

/// Handles that became the last of their kind during a visit. They must not be dropped inside the collector, where
/// destructors may not run.
static LEFT_OVER: Mutex<Vec<Item>> = Mutex::new(Vec::new());

/// Shows what autograd's state of `tensor` owns. For the tensor's Python object.
pub fn visit_tensor(tensor: &Tensor, visitor: &mut dyn OwnershipVisitor) {
    let mut search = Search { work: Vec::new(), visitor };
    search.contents_of_tensor(tensor);
    search.run();
}

/// Shows what `node` owns. For the node's Python object.
pub fn visit_node(node: &Node, visitor: &mut dyn OwnershipVisitor) {
    let mut search = Search { work: Vec::new(), visitor };
    search.contents_of_node(node);
    search.run();
}

/// Drops what visits could not drop. To be called outside of the collector, now and then.
pub fn drop_left_over() {
    let left_over = match LEFT_OVER.try_lock() {
        Some(mut list) if !list.is_empty() => std::mem::take(&mut *list),
        _ => return,
    };
    drop(left_over);
}

struct Search<'a> {
    work: Vec<Item>,
    visitor: &'a mut dyn OwnershipVisitor,
}

impl Search<'_> {
    fn run(&mut self) {
        while let Some(item) = self.work.pop() {
            let is_last = match &item {
                Item::Tensor(tensor) => {
                    self.contents_of_tensor(tensor);
                    tensor.use_count() == 1
                }
                Item::Node(node) => {
                    self.contents_of_node(node);
                    node.use_count() == 1
                }
            };
            if is_last {
                LEFT_OVER.lock().push(item);
            }
        }
    }

    fn contents_of_tensor(&mut self, tensor: &Tensor) {
        let Some(meta) = AutogradMeta::of(tensor) else { return };
        meta.visit_hooks(&mut |hook| self.visitor.hook(hook));
        if let Some(state) = meta.state.try_lock() {
            if let Some(node) = &state.grad_fn {
                self.meet_node(node);
            }
            if let Some(grad) = &state.grad {
                self.meet_tensor(grad);
            }
        }
        if let Some(view) = meta.view() {
            self.meet_tensor(view.base());
        }
    }

    fn contents_of_node(&mut self, node: &Node) {
        node.visit_hooks(&mut |hook| self.visitor.hook(hook));
        node.node_function().visit_saved(&mut |tensor| self.meet_tensor(tensor));
        for next in node.next_edges().iter().filter_map(|edge| edge.function.as_ref()) {
            self.meet_node(next);
        }
    }

    fn meet_tensor(&mut self, tensor: &Tensor) {
        match (tensor.pyobj(), tensor.use_count()) {
            (object, 1) if object.is_null() => self.work.push(Item::Tensor(tensor.clone())),
            (object, 2) if !object.is_null() => self.visitor.pyobject(object),
            _ => {}
        }
    }

    fn meet_node(&mut self, node: &Node) {
        match (node.pyobj(), node.use_count()) {
            (object, 1) if object.is_null() => self.work.push(Item::Node(node.clone())),
            (object, 2) if !object.is_null() => self.visitor.pyobject(object),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basic_nodes::Identity;
    use crate::edge::Edge;
    use crate::hooks::TensorHookFn;
    use std::sync::Arc;

    #[derive(Default)]
    struct Count {
        hooks: usize,
    }

    impl OwnershipVisitor for Count {
        fn pyobject(&mut self, _: *mut c_void) {}
        fn hook(&mut self, _: &dyn Any) {
            self.hooks += 1;
        }
    }

    fn node_with_hook() -> Node {
        let node = Node::new(Box::new(Identity));
        node.add_tensor_pre_hook(0, Arc::new(TensorHookFn(|_: &Tensor| Ok(None))));
        node
    }

    fn chain(end: Node) -> Node {
        let node = Node::new(Box::new(Identity));
        // SAFETY: the node was just made.
        unsafe { node.set_next_edges([Edge::new(end, 0)].into_iter().collect()) };
        node
    }

    #[test]
    fn what_is_owned_alone_is_shown_through_nodes_without_objects() {
        let start = chain(chain(node_with_hook()));
        let mut count = Count::default();
        visit_node(&start, &mut count);
        assert_eq!(count.hooks, 1);
    }

    #[test]
    fn what_somebody_else_holds_is_not_shown() {
        let end = node_with_hook();
        let start = chain(chain(end.clone()));
        let mut count = Count::default();
        visit_node(&start, &mut count);
        assert_eq!(count.hooks, 0);
        drop(end);
        visit_node(&start, &mut count);
        assert_eq!(count.hooks, 1);
    }

    #[test]
    fn a_long_chain_is_searched_without_recursion() {
        let mut start = node_with_hook();
        for _ in 0..100_000 {
            start = chain(start);
        }
        let mut count = Count::default();
        visit_node(&start, &mut count);
        assert_eq!(count.hooks, 1);
    }
}
