use std::sync::Arc;

use crate::basic_nodes::UndefinedGrad;
use crate::edge::{Edge, EdgeList};
use crate::node::Node;

use super::graph_task::{
    compute_dependencies, init_to_execute, min_topological_nr, ExecInfo, GraphTask, GraphTaskArgs,
};
use super::input_buffer::InputBuffer;
use super::node_map::NodeKey;
use super::ready_queue::{NodeTask, ReadyQueue};

fn node(next: &[&Node]) -> Node {
    let edges: EdgeList = next.iter().map(|n| Edge::new((*n).clone(), 0)).collect();
    Node::with_edges(Box::new(UndefinedGrad), edges, &[])
}

fn task(root: &Node, reentrant_depth: u32) -> Arc<GraphTask> {
    Arc::new(GraphTask::new(GraphTaskArgs {
        keep_graph: false,
        create_graph: false,
        reentrant_depth,
        root: root.clone(),
        roots: Vec::new(),
        cpu_ready_queue: Arc::default(),
        thread_locals: None,
        pending: Default::default(),
        exec_info: None,
        num_captures: 0,
    }))
}

#[test]
fn newest_node_first_within_the_deepest_pass() {
    let (a, b, c) = (node(&[]), node(&[]), node(&[]));
    let (outer, inner) = (task(&a, 0), task(&a, 1));
    let queue = ReadyQueue::default();
    queue.push(NodeTask::new(&outer, a.clone(), InputBuffer::default())).unwrap();
    queue.push(NodeTask::new(&outer, c.clone(), InputBuffer::default())).unwrap();
    queue.push(NodeTask::new(&inner, b.clone(), InputBuffer::default())).unwrap();
    queue.push(NodeTask::new(&inner, a.clone(), InputBuffer::default())).unwrap();
    queue.push_wake(&outer);
    let order: Vec<Option<Node>> = std::iter::from_fn(|| queue.try_pop()).map(|t| t.node).collect();
    let is = |i: usize, n: &Node| order[i].as_ref().is_some_and(|x| x.ptr_eq(n));
    assert!(order[0].is_none(), "a wake-up comes first");
    assert!(is(1, &b) && is(2, &a), "then the inner pass, newest first");
    assert!(is(3, &c) && is(4, &a), "then the outer one");
}

#[test]
fn topological_numbers_are_longest_paths() {
    let leaf = node(&[]);
    let middle = node(&[&leaf]);
    let top = node(&[&leaf, &middle]);
    assert_eq!((leaf.topological_nr(), middle.topological_nr(), top.topological_nr()), (0, 1, 2));
}

#[test]
fn dependencies_count_edges() {
    let leaf = node(&[]);
    let (left, right) = (node(&[&leaf]), node(&[&leaf, &leaf]));
    let root = node(&[&left, &right]);
    let pending = compute_dependencies(&root, 0).unwrap().pending;
    let count = |n: &Node| pending.get(&NodeKey::of(n)).map(|p| p.dependencies);
    assert_eq!(count(&leaf), Some(3));
    assert_eq!((count(&left), count(&right)), (Some(1), Some(1)));
    assert_eq!(count(&root), None);
}

#[test]
fn dependencies_stop_below_the_wanted_nodes() {
    let leaf = node(&[]);
    let middle = node(&[&leaf]);
    let wanted = node(&[&middle]);
    let root = node(&[&wanted]);
    let edges = [Edge::new(wanted.clone(), 0)];
    assert_eq!(min_topological_nr(&edges), 2);
    let pending = compute_dependencies(&root, 2).unwrap().pending;
    assert!(pending.contains_key(&NodeKey::of(&wanted)));
    assert!(!pending.contains_key(&NodeKey::of(&leaf)), "nothing below a wanted node is expanded");
}

#[test]
fn pruning_keeps_paths_to_wanted_nodes_only() {
    let (wanted, other) = (node(&[]), node(&[]));
    let (to_wanted, to_other) = (node(&[&wanted]), node(&[&other]));
    let root = node(&[&to_other, &to_wanted]);
    let edges = [Edge::new(wanted.clone(), 0)];
    let info = init_to_execute(&root, &edges, false, 0).unwrap();
    let runs = |n: &Node| info.get(&NodeKey::of(n)).is_some_and(ExecInfo::should_execute);
    assert!(runs(&root) && runs(&to_wanted) && runs(&wanted));
    assert!(!runs(&to_other) && !runs(&other));
}

#[test]
fn a_wanted_node_may_lie_behind_another() {
    let far = node(&[]);
    let near = node(&[&far]);
    let root = node(&[&near]);
    let edges = [Edge::new(near.clone(), 0), Edge::new(far.clone(), 0)];
    let info = init_to_execute(&root, &edges, false, 0).unwrap();
    let near = info.get(&NodeKey::of(&near)).expect("visited");
    assert!(near.needed && !near.captures.is_empty());
}
