//! Hooks on tensors and nodes, and the handles that remove them.
//!
//! A hook list is cloned (reference counts only) before its hooks run, so that a hook may add or remove hooks.

use std::any::Any;
use std::sync::{Arc, Weak};

use c10::{bail, Result, Tensor};
use parking_lot::Mutex;

use crate::edge::VariableList;
use crate::node::WeakNode;

/// Sees, and may replace, the gradient of one tensor.
pub trait TensorHook: Send + Sync {
    /// `None` keeps the gradient.
    fn call(&self, grad: &Tensor) -> Result<Option<Tensor>>;
    /// The name that error messages show.
    fn name(&self) -> String {
        "hook".into()
    }
    /// For the binding, whose garbage collector looks inside.
    fn as_any(&self) -> &dyn Any;
}

/// Sees, and may replace, the gradients that enter a node.
pub trait FunctionPreHook: Send + Sync {
    /// Returns the gradients to use, as many as came.
    fn call(&self, grads: VariableList) -> Result<VariableList>;
    /// For the binding, whose garbage collector looks inside.
    fn as_any(&self) -> &dyn Any;
}

/// Sees, and may replace, the gradients that leave a node.
pub trait FunctionPostHook: Send + Sync {
    /// `outputs` are what the node returned, `inputs` what it was given.
    fn call(&self, outputs: VariableList, inputs: &[Option<Tensor>]) -> Result<VariableList>;
    /// For the binding, whose garbage collector looks inside.
    fn as_any(&self) -> &dyn Any;
}

/// Runs after a leaf's `.grad` has been updated.
pub trait PostAccumulateGradHook: Send + Sync {
    /// `tensor` is the leaf.
    fn call(&self, tensor: &Tensor) -> Result<()>;
    /// For the binding, whose garbage collector looks inside.
    fn as_any(&self) -> &dyn Any;
}

/// Adapts a closure to [`TensorHook`].
pub struct TensorHookFn<F>(pub F);

impl<F: Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static> TensorHook for TensorHookFn<F> {
    fn call(&self, grad: &Tensor) -> Result<Option<Tensor>> {
        (self.0)(grad)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// One registered hook.
pub(crate) struct Registered<H: ?Sized> {
    pub(crate) id: u64,
    pub(crate) hook: Arc<H>,
}

impl<H: ?Sized> Clone for Registered<H> {
    fn clone(&self) -> Self {
        Self { id: self.id, hook: self.hook.clone() }
    }
}

/// The hooks of a node. Made when the first one is registered.
#[derive(Default)]
pub(crate) struct NodeHooks {
    next_id: u64,
    pub(crate) tensor_pre: Vec<(u32, Registered<dyn TensorHook>)>,
    /// At most one per output; runs after all other tensor hooks.
    pub(crate) retains_grad: Vec<(u32, Arc<dyn TensorHook>)>,
    pub(crate) pre: Vec<Registered<dyn FunctionPreHook>>,
    pub(crate) post: Vec<Registered<dyn FunctionPostHook>>,
}

impl NodeHooks {
    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    pub(crate) fn add_tensor_pre(&mut self, output_nr: u32, hook: Arc<dyn TensorHook>) -> u64 {
        let id = self.id();
        self.tensor_pre.push((output_nr, Registered { id, hook }));
        id
    }

    pub(crate) fn add_pre(&mut self, hook: Arc<dyn FunctionPreHook>) -> u64 {
        let id = self.id();
        self.pre.push(Registered { id, hook });
        id
    }

    pub(crate) fn add_post(&mut self, hook: Arc<dyn FunctionPostHook>) -> u64 {
        let id = self.id();
        self.post.push(Registered { id, hook });
        id
    }

    fn remove(&mut self, id: u64) {
        self.tensor_pre.retain(|(_, r)| r.id != id);
        self.pre.retain(|r| r.id != id);
        self.post.retain(|r| r.id != id);
    }
}

/// The hooks of a leaf, which live with the tensor because its AccumulateGrad node comes and goes.
#[derive(Default)]
pub(crate) struct LeafHooks {
    next_id: u64,
    pub(crate) tensor: Vec<Registered<dyn TensorHook>>,
    pub(crate) post_accumulate: Vec<Registered<dyn PostAccumulateGradHook>>,
}

impl LeafHooks {
    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    pub(crate) fn add_tensor(&mut self, hook: Arc<dyn TensorHook>) -> u64 {
        let id = self.id();
        self.tensor.push(Registered { id, hook });
        id
    }

    pub(crate) fn add_post_accumulate(&mut self, hook: Arc<dyn PostAccumulateGradHook>) -> u64 {
        let id = self.id();
        self.post_accumulate.push(Registered { id, hook });
        id
    }

    fn remove(&mut self, id: u64) {
        self.tensor.retain(|r| r.id != id);
        self.post_accumulate.retain(|r| r.id != id);
    }
}

enum Owner {
    Node(WeakNode),
    Leaf(Weak<Mutex<LeafHooks>>),
}

/// Names a registered hook; dropping the handle leaves the hook in place.
pub struct HookHandle {
    owner: Owner,
    id: u64,
}

impl HookHandle {
    pub(crate) fn on_node(node: WeakNode, id: u64) -> Self {
        Self { owner: Owner::Node(node), id }
    }

    pub(crate) fn on_leaf(leaf: Weak<Mutex<LeafHooks>>, id: u64) -> Self {
        Self { owner: Owner::Leaf(leaf), id }
    }

    /// Removes the hook. Removing it twice, or after its owner is gone, does nothing.
    pub fn remove(&self) {
        match &self.owner {
            Owner::Node(node) => {
                if let Some(node) = node.upgrade() {
                    node.with_hooks(|hooks| hooks.remove(self.id));
                }
            }
            Owner::Leaf(leaf) => {
                if let Some(leaf) = leaf.upgrade() {
                    leaf.lock().remove(self.id);
                }
            }
        }
    }
}

/// Runs one tensor hook on a gradient in place, checking that a replacement fits.
pub(crate) fn run_tensor_hook(hook: &dyn TensorHook, grad: &mut Option<Tensor>) -> Result<()> {
    let Some(current) = grad else { return Ok(()) };
    if let Some(replacement) = hook.call(current)? {
        check_replacement(hook, current, &replacement)?;
        *grad = Some(replacement);
    }
    Ok(())
}

fn check_replacement(hook: &dyn TensorHook, original: &Tensor, result: &Tensor) -> Result<()> {
    if original.scalar_type() != result.scalar_type() || original.device().type_ != result.device().type_ {
        bail!(
            Runtime,
            "hook '{}' has changed the type of value (was {} got {})",
            hook.name(),
            crate::saved_variable::type_string(original),
            crate::saved_variable::type_string(result)
        );
    }
    let same = match (original.sizes(), result.sizes()) {
        (Ok(a), Ok(b)) => a == b,
        _ => original.dim() == result.dim(),
    };
    if !same {
        bail!(Runtime, "hook '{}' has changed the size of value", hook.name());
    }
    Ok(())
}
