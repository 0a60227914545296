//! [`AutogradMeta`]: what autograd hangs on a tensor.
//!
//! A tensor without it needs no gradient and has no history. It is made when a tensor starts to require
//! gradients, comes out of a recorded operator, is a view, or gets a `.grad` or a hook.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use c10::{AutogradMetaInterface, Result, Tensor, TensorImpl};
use parking_lot::Mutex;

use crate::deletion::delete_gradient;
use crate::edge::Edge;
use crate::forward_ad;
use crate::hooks::LeafHooks;
use crate::node::{Node, WeakNode};
use crate::variable;
use crate::view_meta::DifferentiableViewMeta;

/// The part that changes, behind one lock.
#[derive(Default)]
pub(crate) struct GradState {
    pub(crate) grad_fn: Option<Node>,
    pub(crate) output_nr: u32,
    /// The output number under which the retain-grad hook is registered.
    pub(crate) retains_grad: Option<u32>,
    pub(crate) grad: Option<Tensor>,
    /// The tangent: see Note [Forward mode].
    pub(crate) fw_grad: Option<Tensor>,
    /// Weak: the graph owns it, and it owns the tensor.
    pub(crate) grad_accumulator: Option<WeakNode>,
}

impl Drop for GradState {
    fn drop(&mut self) {
        [self.grad.take(), self.fw_grad.take()].into_iter().flatten().for_each(delete_gradient);
    }
}

/// Autograd's state of one tensor.
#[derive(Default)]
pub struct AutogradMeta {
    requires_grad: AtomicBool,
    /// Whether `state.grad_fn` is set, readable without the lock.
    has_grad_fn: AtomicBool,
    pub(crate) state: Mutex<GradState>,
    view: Option<Box<DifferentiableViewMeta>>,
    leaf_hooks: OnceLock<Arc<Mutex<LeafHooks>>>,
}

impl AutogradMeta {
    /// A leaf's.
    pub fn leaf(requires_grad: bool) -> Self {
        Self { requires_grad: AtomicBool::new(requires_grad), ..Self::default() }
    }

    /// That of a recorded operator's output.
    pub fn with_edge(edge: Edge) -> Self {
        let mut state = GradState::default();
        let has_grad_fn = AtomicBool::new(edge.function.is_some());
        (state.grad_fn, state.output_nr) = (edge.function, edge.input_nr);
        Self { has_grad_fn, state: Mutex::new(state), ..Self::default() }
    }

    /// A view's.
    pub(crate) fn with_view(view: DifferentiableViewMeta) -> Self {
        Self { view: Some(Box::new(view)), ..Self::default() }
    }

    /// The meta of a tensor that has one.
    #[inline]
    pub fn of(tensor: &Tensor) -> Option<&Self> {
        tensor.autograd_meta()?.as_any().downcast_ref()
    }

    /// The meta of a tensor, made on demand.
    pub fn materialize(tensor: &Tensor) -> Result<&Self> {
        if let Some(meta) = Self::of(tensor) {
            return Ok(meta);
        }
        tensor.set_autograd_meta(Box::<Self>::default());
        Self::of(tensor).ok_or_else(|| c10::Error::internal("a tensor's autograd meta is of a foreign type"))
    }

    /// The view half, if the tensor is a differentiable view.
    #[inline]
    pub fn view(&self) -> Option<&DifferentiableViewMeta> {
        self.view.as_deref()
    }

    /// Whether a history is attached (one that may be out of date for views).
    #[inline]
    pub fn has_grad_fn(&self) -> bool {
        self.has_grad_fn.load(Ordering::Acquire)
    }

    /// The flag that users set on leaves.
    pub(crate) fn requires_grad_flag(&self) -> bool {
        self.requires_grad.load(Ordering::Relaxed)
    }

    pub(crate) fn set_requires_grad_flag(&self, value: bool) {
        self.requires_grad.store(value, Ordering::Relaxed);
    }

    /// The attached history and output number, without bringing a view's up to date.
    pub(crate) fn raw_edge(&self) -> Edge {
        if !self.has_grad_fn() {
            return Edge::default();
        }
        let state = self.state.lock();
        Edge { function: state.grad_fn.clone(), input_nr: state.output_nr }
    }

    /// Replaces the history.
    pub(crate) fn set_edge(&self, edge: Edge) {
        let old = self.replace_edge(&mut self.state.lock(), edge);
        // Outside the lock: this may delete a graph.
        drop(old);
    }

    /// Replaces the history of a view that was right at version `known` by one for version `current`, unless somebody
    /// else has replaced it meanwhile.
    pub(crate) fn set_view_edge(&self, view: &DifferentiableViewMeta, edge: Edge, known: u32, current: u32) {
        let unused = {
            let mut state = self.state.lock();
            if view.attr_version() == known {
                let old = self.replace_edge(&mut state, edge);
                // Last: who sees the version finds the history.
                view.set_attr_version(current);
                old
            } else {
                edge.function
            }
        };
        drop(unused);
    }

    fn replace_edge(&self, state: &mut GradState, edge: Edge) -> Option<Node> {
        self.has_grad_fn.store(edge.function.is_some(), Ordering::Release);
        state.output_nr = edge.input_nr;
        std::mem::replace(&mut state.grad_fn, edge.function)
    }

    /// The hooks of a leaf, if any were registered.
    pub(crate) fn leaf_hooks(&self) -> Option<&Arc<Mutex<LeafHooks>>> {
        self.leaf_hooks.get()
    }

    /// The hooks of a leaf, made on demand.
    pub(crate) fn leaf_hooks_or_init(&self) -> &Arc<Mutex<LeafHooks>> {
        self.leaf_hooks.get_or_init(Arc::default)
    }

    /// Shows the leaf's hooks, each as its own type, to a visitor (a garbage collector).
    pub fn visit_hooks(&self, visit: &mut dyn FnMut(&dyn Any)) {
        // Only tried: a collector may run while this very thread changes the list.
        let Some(hooks) = self.leaf_hooks().and_then(|hooks| hooks.try_lock()) else { return };
        hooks.tensor.iter().for_each(|r| visit(r.hook.as_any()));
        hooks.post_accumulate.iter().for_each(|r| visit(r.hook.as_any()));
    }
}

impl AutogradMetaInterface for AutogradMeta {
    #[inline]
    fn requires_grad(&self) -> bool {
        self.requires_grad_flag()
            || self.has_grad_fn()
            || self.view.as_ref().is_some_and(|view| variable::requires_grad(view.base()))
    }

    fn set_requires_grad(&self, requires_grad: bool, tensor: &TensorImpl) -> Result<()> {
        c10::check!(
            !requires_grad || variable::is_differentiable_type(tensor.dtype()),
            "only Tensors of floating point and complex dtype can require gradients"
        );
        self.set_requires_grad_flag(requires_grad);
        Ok(())
    }

    fn grad_fn_name(&self, tensor: &Tensor) -> Option<String> {
        match variable::grad_fn(tensor) {
            Ok(node) => node.map(|node| node.name()),
            // The graph of a view that was changed in place without a record cannot be rebuilt.
            Err(_) => Some("Invalid".to_owned()),
        }
    }

    fn grad(&self) -> Option<Tensor> {
        self.state.lock().grad.clone()
    }

    fn set_grad(&self, grad: Option<Tensor>) {
        let old = std::mem::replace(&mut self.state.lock().grad, grad);
        // Outside the lock: this may free memory or run Python code.
        drop(old);
    }

    fn fw_grad(&self, level: u64) -> Option<Tensor> {
        self.state.lock().fw_grad.clone().filter(|_| level == forward_ad::LEVEL)
    }

    fn set_fw_grad(&self, tangent: Option<Tensor>, level: u64) -> Result<()> {
        c10::check!(level == forward_ad::LEVEL, "Nested forward mode AD is not supported at the moment");
        if tangent.is_some() {
            forward_ad::set_used();
        }
        let old = std::mem::replace(&mut self.state.lock().fw_grad, tangent);
        // As for the gradient.
        drop(old);
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
