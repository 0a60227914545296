//! [`Node`]: one step of the backward graph.
//!
//! A node is the backward of one forward operator. Its *inputs* are the gradients with respect to the operator's
//! outputs, its outputs go along `next_edges` to the nodes that made the operator's inputs.
//!
//! # Note [Freezing of nodes]
//!
//! A node is assembled by one thread and becomes visible to others when it is attached to an output tensor. Edges and
//! input metadata change only before that moment, so they are read without a lock; the functions that change them on a
//! shared handle are `unsafe` and repeat the condition. What changes later (hooks, saved variables, the sequence number) has
//! its own synchronization.

use std::any::Any;
use std::borrow::Cow;
use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use c10::{
    IntrusivePtr, IntrusivePtrTarget, PyObjectSlot, RefCount, Result, Stream, Tensor, WeakIntrusivePtr,
};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::anomaly_mode::{self, AnomalyMetadata};
use crate::deletion;
use crate::edge::{Edge, EdgeList, VariableList};
use crate::generated_node::GeneratedNode;
use crate::hooks::{FunctionPostHook, FunctionPreHook, HookHandle, NodeHooks, TensorHook};
use crate::input_metadata::InputMetadata;
use crate::saved_variable::{SavedValue, SavedVariableRef};

/// What a node computes. Generated nodes, AccumulateGrad, and functions written in Python implement it.
pub trait NodeFunction: Send + Sync + 'static {
    /// The name that users and error messages see: `MulBackward0`.
    fn name(&self) -> Cow<'_, str>;

    /// Maps gradients of the forward outputs to gradients of the forward inputs, one for each next edge.
    fn apply(&self, node: &Node, grads: VariableList) -> Result<VariableList>;

    /// Drops saved variables after the node's only run.
    fn release_variables(&self) {}

    /// Announces, before [`NodeFunction::apply`], that [`NodeFunction::release_variables`] will follow.
    fn will_release_variables(&self) {}

    /// Names of the saved values, as the suffixes of `_saved_*`.
    fn saved_attributes(&self) -> Vec<String> {
        Vec::new()
    }

    /// The saved value of that name; `None` when there is none.
    fn saved_attribute(&self, _node: &Node, _name: &str) -> Option<Result<SavedValue>> {
        None
    }

    /// The saved variable of that name before unpacking; `None` when there is none.
    fn raw_saved(&self, _node: &Node, _name: &str) -> Option<Vec<SavedVariableRef>> {
        None
    }

    /// Shows every saved tensor to a visitor (a garbage collector).
    fn visit_saved(&self, _visit: &mut dyn FnMut(&Tensor)) {}

    /// Tensor hooks that live elsewhere than on the node: those of a leaf.
    fn leaf_hooks(&self) -> SmallVec<[Arc<dyn TensorHook>; 1]> {
        SmallVec::new()
    }

    /// For downcasts.
    fn as_any(&self) -> &dyn Any;
}

/// The function of a node, inline for the common kind.
pub(crate) enum Body {
    Generated(GeneratedNode),
    Other(Box<dyn NodeFunction>),
    /// What is left in a node whose contents are being deleted; nobody can call it.
    Released,
}

struct ReleasedFunction;

impl NodeFunction for ReleasedFunction {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed("ReleasedNode")
    }
    fn apply(&self, _: &Node, _: VariableList) -> Result<VariableList> {
        Err(c10::Error::internal("a deleted node was called"))
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Body {
    #[inline]
    fn function(&self) -> &dyn NodeFunction {
        match self {
            Body::Generated(generated) => generated,
            Body::Other(other) => &**other,
            Body::Released => &ReleasedFunction,
        }
    }
}

pub(crate) type MetadataList = SmallVec<[InputMetadata; 1]>;

/// The contents of a [`Node`].
pub struct NodeImpl {
    refcount: RefCount,
    pyobj: PyObjectSlot,
    sequence_nr: AtomicU64,
    topological_nr: AtomicU64,
    thread_id: u64,
    /// See Note [Freezing of nodes].
    next_edges: UnsafeCell<EdgeList>,
    /// See Note [Freezing of nodes].
    input_metadata: UnsafeCell<MetadataList>,
    /// Replaced only when the last strong pointer goes.
    body: UnsafeCell<Body>,
    hooks: OnceLock<Box<Mutex<NodeHooks>>>,
    anomaly: OnceLock<Arc<dyn AnomalyMetadata>>,
}

// SAFETY: every part is Send; the cells are read-shared only, see Note [Freezing of nodes].
unsafe impl Send for NodeImpl {}
// SAFETY: as above: the cells change only while one thread can reach the node.
unsafe impl Sync for NodeImpl {}

// SAFETY: `refcount` is a plain field, touched by the pointers alone.
unsafe impl IntrusivePtrTarget for NodeImpl {
    #[inline]
    fn refcount(&self) -> &RefCount {
        &self.refcount
    }

    unsafe fn release_resources(&self) {
        // SAFETY: no strong pointer is left, and weak ones never reach the contents.
        let (body, edges) = unsafe { (&mut *self.body.get(), &mut *self.next_edges.get()) };
        deletion::delete_contents(body, edges);
    }

    fn incref_pyobject(&self) {
        self.pyobj.incref();
    }

    fn decref_pyobject(&self) {
        self.pyobj.decref();
    }

    fn try_incref_pyobject(&self) -> bool {
        self.pyobj.try_incref()
    }
}

impl Drop for NodeImpl {
    fn drop(&mut self) {
        deletion::delete_contents(self.body.get_mut(), self.next_edges.get_mut());
    }
}

thread_local! {
    static SEQUENCE_NR: Cell<u64> = const { Cell::new(0) };
    static THREAD_ID: Cell<u64> = const { Cell::new(0) };
}

static NEXT_THREAD_ID: AtomicU64 = AtomicU64::new(1);

/// The sequence number that this thread's next node will get.
pub fn peek_sequence_nr() -> u64 {
    SEQUENCE_NR.get()
}

fn next_sequence_nr() -> u64 {
    let nr = SEQUENCE_NR.get();
    SEQUENCE_NR.set(nr + 1);
    nr
}

fn current_thread_id() -> u64 {
    let id = THREAD_ID.get();
    if id != 0 {
        return id;
    }
    let id = NEXT_THREAD_ID.fetch_add(1, Ordering::Relaxed);
    THREAD_ID.set(id);
    id
}

fn topological_nr_above(edges: &[Edge]) -> u64 {
    edges.iter().filter_map(|e| e.function.as_ref()).map(|n| n.topological_nr() + 1).max().unwrap_or(0)
}

/// A handle to a node; clones share it.
#[derive(Clone)]
#[repr(transparent)]
pub struct Node(IntrusivePtr<NodeImpl>);

/// A handle that doesn't keep the node alive.
#[derive(Clone)]
pub struct WeakNode(WeakIntrusivePtr<NodeImpl>);

impl WeakNode {
    /// The node, if it still exists.
    pub fn upgrade(&self) -> Option<Node> {
        self.0.upgrade().map(Node)
    }

    /// The node's address, which may be gone.
    pub fn as_ptr(&self) -> *const NodeImpl {
        self.0.as_ptr()
    }
}

impl Node {
    /// A node with the given function and neither edges nor inputs yet.
    pub fn new(function: Box<dyn NodeFunction>) -> Self {
        Self::assemble(Body::Other(function), EdgeList::new(), MetadataList::new(), next_sequence_nr())
    }

    /// A node that is complete from the start.
    pub fn with_edges(function: Box<dyn NodeFunction>, edges: EdgeList, inputs: &[InputMetadata]) -> Self {
        Self::assemble(Body::Other(function), edges, inputs.iter().cloned().collect(), next_sequence_nr())
    }

    /// A node with a sequence number of its own choice: AccumulateGrad runs before everything else.
    pub(crate) fn with_sequence_nr(
        function: Box<dyn NodeFunction>,
        input: InputMetadata,
        sequence_nr: u64,
    ) -> Self {
        let mut inputs = MetadataList::new();
        inputs.push(input);
        Self::assemble(Body::Other(function), EdgeList::new(), inputs, sequence_nr)
    }

    pub(crate) fn generated(body: GeneratedNode, edges: EdgeList, inputs: MetadataList) -> Self {
        Self::assemble(Body::Generated(body), edges, inputs, next_sequence_nr())
    }

    fn assemble(body: Body, edges: EdgeList, inputs: MetadataList, sequence_nr: u64) -> Self {
        let node = Self(IntrusivePtr::new(NodeImpl {
            refcount: RefCount::new(),
            pyobj: PyObjectSlot::new(),
            sequence_nr: AtomicU64::new(sequence_nr),
            topological_nr: AtomicU64::new(topological_nr_above(&edges)),
            thread_id: current_thread_id(),
            next_edges: UnsafeCell::new(edges),
            input_metadata: UnsafeCell::new(inputs),
            body: UnsafeCell::new(body),
            hooks: OnceLock::new(),
            anomaly: OnceLock::new(),
        }));
        if anomaly_mode::is_enabled() {
            node.store_anomaly_metadata();
        }
        node
    }

    #[cold]
    fn store_anomaly_metadata(&self) {
        let metadata = self.0.anomaly.get_or_init(anomaly_mode::new_metadata);
        metadata.store_stack();
        metadata.assign_parent(crate::engine::current_node());
    }

    /// Whether both handles are of one node.
    #[inline]
    pub fn ptr_eq(&self, other: &Node) -> bool {
        self.0.ptr_eq(&other.0)
    }

    /// The node's address: its identity.
    #[inline]
    pub fn as_ptr(&self) -> *const NodeImpl {
        self.0.as_ptr()
    }

    /// Gives the handle's reference to the caller.
    #[must_use = "the reference leaks unless it is taken back"]
    pub fn into_raw(self) -> *const NodeImpl {
        self.0.into_raw()
    }

    /// Takes a reference back.
    ///
    /// # Safety
    ///
    /// `node` comes from [`Node::into_raw`], and its reference passes to the result.
    pub unsafe fn from_raw(node: *const NodeImpl) -> Self {
        // SAFETY: by contract.
        Self(unsafe { IntrusivePtr::from_raw(node) })
    }

    /// Another handle to a node known by address.
    ///
    /// # Safety
    ///
    /// Somebody holds a handle to `node` during the call.
    pub unsafe fn clone_from_raw(node: *const NodeImpl) -> Self {
        // SAFETY: by contract.
        Self(unsafe { IntrusivePtr::clone_from_raw(node) })
    }

    /// A handle that doesn't keep the node alive.
    pub fn downgrade(&self) -> WeakNode {
        WeakNode(self.0.downgrade())
    }

    /// How many handles exist.
    pub fn use_count(&self) -> u32 {
        self.0.strong_count()
    }

    /// The Python object that stands for this node, or null.
    pub fn pyobj(&self) -> *mut c_void {
        self.0.pyobj.get()
    }

    /// The slot of the Python object, whose deallocation clears it.
    pub fn pyobj_slot(&self) -> &PyObjectSlot {
        &self.0.pyobj
    }

    /// Attaches the Python object that stands for the node for the rest of its life (c10's Note [The PyObject
    /// owns the target]). If another object was first, nothing changes and its address is the error.
    ///
    /// # Safety
    ///
    /// The caller owns a reference to `object` during the call, and `object` has taken one of the node's strong counts.
    pub unsafe fn init_pyobj(&self, object: *mut c_void) -> Result<(), *mut c_void> {
        // SAFETY: by contract.
        unsafe { self.0.pyobj.init(&self.0.refcount, object) }
    }

    #[inline]
    fn body(&self) -> &Body {
        // SAFETY: replaced only when no strong pointer is left, and this is one.
        unsafe { &*self.0.body.get() }
    }

    /// What the node computes.
    #[inline]
    pub fn node_function(&self) -> &dyn NodeFunction {
        self.body().function()
    }

    /// The node's function if it is a `T`.
    pub fn function<T: NodeFunction>(&self) -> Option<&T> {
        self.node_function().as_any().downcast_ref()
    }

    #[inline]
    pub(crate) fn as_generated(&self) -> Option<&GeneratedNode> {
        match self.body() {
            Body::Generated(generated) => Some(generated),
            _ => None,
        }
    }

    /// The name that users see.
    pub fn name(&self) -> String {
        self.node_function().name().into_owned()
    }

    /// Runs the node on gradients of its inputs. Hooks are the engine's affair and don't run.
    pub fn apply(&self, grads: VariableList) -> Result<VariableList> {
        self.node_function().apply(self, grads)
    }

    /// Where the outputs go.
    #[inline]
    pub fn next_edges(&self) -> &[Edge] {
        // SAFETY: see Note [Freezing of nodes].
        unsafe { &*self.0.next_edges.get() }
    }

    /// The `i`-th edge.
    #[inline]
    pub fn next_edge(&self, i: usize) -> Option<&Edge> {
        self.next_edges().get(i)
    }

    /// How many gradients the node makes.
    #[inline]
    pub fn num_outputs(&self) -> usize {
        self.next_edges().len()
    }

    /// How many gradients the node takes.
    #[inline]
    pub fn num_inputs(&self) -> usize {
        self.inputs().len()
    }

    /// What is known of each input.
    #[inline]
    pub fn inputs(&self) -> &[InputMetadata] {
        // SAFETY: see Note [Freezing of nodes].
        unsafe { &*self.0.input_metadata.get() }
    }

    /// What is known of one input.
    #[inline]
    pub fn input_metadata(&self, i: usize) -> Option<&InputMetadata> {
        self.inputs().get(i)
    }

    /// Replaces the edges.
    ///
    /// # Safety
    ///
    /// Only the calling thread can reach the node, and no borrow of its edges is alive.
    pub unsafe fn set_next_edges(&self, edges: EdgeList) {
        self.0.topological_nr.store(topological_nr_above(&edges), Ordering::Relaxed);
        // SAFETY: by contract nobody else reads or writes the cell.
        unsafe { *self.0.next_edges.get() = edges };
    }

    /// Adds an input and returns its number.
    ///
    /// # Safety
    ///
    /// Only the calling thread can reach the node, and no borrow of its inputs is alive.
    pub unsafe fn add_input_metadata(&self, metadata: InputMetadata) -> u32 {
        // SAFETY: by contract nobody else reads or writes the cell.
        let inputs = unsafe { &mut *self.0.input_metadata.get() };
        inputs.push(metadata);
        (inputs.len() - 1) as u32
    }

    /// Forgets all inputs, for a function object that runs forward again.
    ///
    /// # Safety
    ///
    /// As for [`Node::add_input_metadata`].
    pub unsafe fn clear_input_metadata(&self) {
        // SAFETY: by contract nobody else reads or writes the cell.
        unsafe { (*self.0.input_metadata.get()).clear() };
    }

    /// Nodes made later run first.
    #[inline]
    pub fn sequence_nr(&self) -> u64 {
        self.0.sequence_nr.load(Ordering::Relaxed)
    }

    /// Overrides the sequence number.
    pub fn set_sequence_nr(&self, nr: u64) {
        self.0.sequence_nr.store(nr, Ordering::Relaxed);
    }

    /// The longest path from this node to a leaf. A node can only reach nodes of smaller numbers, so a search for some
    /// node may stop at smaller ones.
    #[inline]
    pub fn topological_nr(&self) -> u64 {
        self.0.topological_nr.load(Ordering::Relaxed)
    }

    /// The thread that made the node, for profilers.
    pub fn thread_id(&self) -> u64 {
        self.0.thread_id
    }

    /// The stream on which the node runs: that of its forward operator, on devices that have streams.
    #[inline]
    pub fn stream(&self) -> Option<Stream> {
        self.inputs().iter().find_map(InputMetadata::stream)
    }

    /// Whether the gradient for edge `i` is of use to the running graph task.
    #[inline]
    pub fn task_should_compute_output(&self, i: usize) -> bool {
        match self.next_edges().get(i).and_then(|e| e.function.as_ref()) {
            Some(next) => crate::engine::task_should_execute(next),
            None => false,
        }
    }

    /// Drops what the node saved.
    pub fn release_variables(&self) {
        self.node_function().release_variables();
    }

    /// Names of the saved values.
    pub fn saved_attributes(&self) -> Vec<String> {
        self.node_function().saved_attributes()
    }

    /// A saved value; an AttributeError when the node has none of that name.
    pub fn saved_attribute(&self, name: &str) -> Result<SavedValue> {
        match self.node_function().saved_attribute(self, name) {
            Some(value) => value,
            None => Err(c10::Error::attribute(format!(
                "'{}' object has no attribute '_saved_{name}'",
                self.name()
            ))),
        }
    }

    /// A saved variable before unpacking (one entry, or one per tensor of a list).
    pub fn raw_saved(&self, name: &str) -> Option<Vec<SavedVariableRef>> {
        self.node_function().raw_saved(self, name)
    }

    /// What anomaly mode stored when the node was made.
    pub fn metadata(&self) -> Option<Arc<dyn AnomalyMetadata>> {
        self.0.anomaly.get().cloned()
    }

    /// What anomaly mode stores, made on demand.
    pub fn metadata_or_init(&self) -> Arc<dyn AnomalyMetadata> {
        self.0.anomaly.get_or_init(anomaly_mode::new_metadata).clone()
    }

    #[inline]
    pub(crate) fn hooks(&self) -> Option<&Mutex<NodeHooks>> {
        self.0.hooks.get().map(|hooks| &**hooks)
    }

    /// Runs `f` on the hooks, which are made on demand.
    pub(crate) fn with_hooks<R>(&self, f: impl FnOnce(&mut NodeHooks) -> R) -> R {
        f(&mut self.0.hooks.get_or_init(Box::default).lock())
    }

    /// Adds a hook on the gradient of output `output_nr` of the forward operator.
    pub fn add_tensor_pre_hook(&self, output_nr: u32, hook: Arc<dyn TensorHook>) -> HookHandle {
        let id = self.with_hooks(|hooks| hooks.add_tensor_pre(output_nr, hook));
        HookHandle::on_node(self.downgrade(), id)
    }

    /// Adds a hook that runs before the node.
    pub fn register_prehook(&self, hook: Arc<dyn FunctionPreHook>) -> HookHandle {
        let id = self.with_hooks(|hooks| hooks.add_pre(hook));
        HookHandle::on_node(self.downgrade(), id)
    }

    /// Adds a hook that runs after the node.
    pub fn register_hook(&self, hook: Arc<dyn FunctionPostHook>) -> HookHandle {
        let id = self.with_hooks(|hooks| hooks.add_post(hook));
        HookHandle::on_node(self.downgrade(), id)
    }

    /// Whether hooks run after the node.
    pub(crate) fn has_post_hooks(&self) -> bool {
        self.hooks().is_some_and(|hooks| !hooks.lock().post.is_empty())
    }

    pub(crate) fn add_retains_grad_hook(&self, output_nr: u32, hook: Arc<dyn TensorHook>) {
        self.with_hooks(|hooks| {
            hooks.retains_grad.retain(|(nr, _)| *nr != output_nr);
            hooks.retains_grad.push((output_nr, hook));
        });
    }

    pub(crate) fn pop_retains_grad_hook(&self, output_nr: u32) -> Option<Arc<dyn TensorHook>> {
        let mut hooks = self.hooks()?.lock();
        let at = hooks.retains_grad.iter().position(|(nr, _)| *nr == output_nr)?;
        Some(hooks.retains_grad.swap_remove(at).1)
    }

    /// Shows the hooks on the gradient of one output to a visitor.
    pub fn visit_tensor_hooks(&self, output_nr: u32, visit: &mut dyn FnMut(&dyn Any)) {
        let Some(hooks) = self.hooks() else { return };
        let on_output: Vec<_> = {
            let hooks = hooks.lock();
            hooks.tensor_pre.iter().filter(|(nr, _)| *nr == output_nr).map(|(_, r)| r.hook.clone()).collect()
        };
        on_output.iter().for_each(|hook| visit(hook.as_any()));
    }

    /// Shows the hooks of a node, each as its own type, to a visitor (a garbage collector).
    pub fn visit_hooks(&self, visit: &mut dyn FnMut(&dyn Any)) {
        // Only tried: a collector may run while this very thread changes the list.
        let Some(hooks) = self.hooks().and_then(Mutex::try_lock) else { return };
        hooks.tensor_pre.iter().for_each(|(_, r)| visit(r.hook.as_any()));
        hooks.retains_grad.iter().for_each(|(_, h)| visit(h.as_any()));
        hooks.pre.iter().for_each(|r| visit(r.hook.as_any()));
        hooks.post.iter().for_each(|r| visit(r.hook.as_any()));
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "<{} at {:p}>", self.name(), self.as_ptr())
    }
}
