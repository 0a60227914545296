//! [`BackwardCtx`]: what a derivative formula sees.

use std::cell::RefCell;

use c10::{Error, GradMode, Result, Tensor, TensorPins};
use dispatch::IValue;
use parking_lot::Mutex;
use smallvec::{smallvec, SmallVec};

use crate::derivative_entry::SavedArg;
use crate::edge::VariableList;
use crate::generated_node::{GeneratedNode, Slot};
use crate::node::Node;
use crate::saved_meta::{MetaKind, SavedMeta};
use crate::saved_variable::SavedVariable;

/// Access to incoming gradients and saved values, and the place for results. What it hands out lives as long as the
/// call (`'a`), not as long as a borrow of the context.
pub struct BackwardCtx<'a> {
    node: &'a Node,
    function: &'a GeneratedNode,
    grads: &'a [Option<Tensor>],
    outputs: VariableList,
    /// The backward pass runs without the interpreter's lock: what formulas compute from stays as it is (c10's Note [Pinned
    /// tensors]).
    pins: RefCell<TensorPins>,
}

/// The gradients for one argument: one, or one per tensor of a list.
pub struct ArgGrads(SmallVec<[Option<Tensor>; 1]>);

impl From<Tensor> for ArgGrads {
    fn from(grad: Tensor) -> Self {
        Self(smallvec![Some(grad)])
    }
}

impl From<Option<Tensor>> for ArgGrads {
    fn from(grad: Option<Tensor>) -> Self {
        Self(smallvec![grad])
    }
}

impl From<Vec<Tensor>> for ArgGrads {
    fn from(grads: Vec<Tensor>) -> Self {
        Self(grads.into_iter().map(Some).collect())
    }
}

impl From<Vec<Option<Tensor>>> for ArgGrads {
    fn from(grads: Vec<Option<Tensor>>) -> Self {
        Self(grads.into_iter().collect())
    }
}

impl<'a> BackwardCtx<'a> {
    pub(crate) fn new(
        node: &'a Node,
        function: &'a GeneratedNode,
        grads: &'a [Option<Tensor>],
        outputs: VariableList,
    ) -> Self {
        let ctx = Self { node, function, grads, outputs, pins: RefCell::default() };
        grads.iter().flatten().for_each(|grad| ctx.pin(grad));
        ctx
    }

    pub(crate) fn into_outputs(self) -> VariableList {
        self.outputs
    }

    /// The gradient of the `i`-th differentiable return; `None` stands for zeros.
    #[inline]
    pub fn grad(&self, i: usize) -> Option<&'a Tensor> {
        self.grads.get(i).and_then(Option::as_ref)
    }

    /// The gradients of all differentiable returns.
    #[inline]
    pub fn grads(&self) -> &'a [Option<Tensor>] {
        self.grads
    }

    /// The gradient of the `i`-th differentiable return, zeros if nobody made one.
    pub fn grad_or_zeros(&self, i: usize) -> Result<Tensor> {
        match (self.grad(i), self.node.input_metadata(i)) {
            (Some(grad), _) => Ok(grad.clone()),
            (None, Some(metadata)) => metadata.zeros_like(),
            (None, None) => Err(self.misuse("gradient", i)),
        }
    }

    /// How many differentiable arguments there are.
    pub fn num_differentiable(&self) -> usize {
        self.function.entry.differentiable.len()
    }

    /// Whether the gradient of the `k`-th differentiable argument (of any tensor of a list) is wanted.
    #[inline]
    pub fn needs(&self, k: usize) -> bool {
        self.function.edges_of(k).any(|edge| self.node.task_should_compute_output(edge))
    }

    /// Whether one of several gradients is wanted.
    pub fn needs_any(&self, ks: &[usize]) -> bool {
        ks.iter().any(|&k| self.needs(k))
    }

    /// Whether the gradient of the `j`-th tensor of a list argument is wanted.
    pub fn list_needs(&self, k: usize, j: usize) -> bool {
        let edges = self.function.edges_of(k);
        j < edges.len() && self.node.task_should_compute_output(edges.start + j)
    }

    /// How many tensors the `k`-th differentiable argument has.
    pub fn list_len(&self, k: usize) -> usize {
        self.function.edges_of(k).len()
    }

    fn slot(&self, slot: usize) -> Result<&'a Slot> {
        self.function.slots.get(slot).ok_or_else(|| self.misuse("slot", slot))
    }

    #[cold]
    pub(crate) fn misuse(&self, what: &str, i: usize) -> Error {
        let entry = self.function.entry;
        Error::internal(format!(
            "{} ({}): the formula uses {what} {i}, which does not hold what it expects",
            entry.node_name, entry.source
        ))
    }

    fn unpack(&self, cell: &Mutex<SavedVariable>) -> Result<Option<Tensor>> {
        let saved = cell.lock().clone();
        let tensor = if GradMode::is_enabled() {
            saved.unpack(Some(self.node))
        } else {
            // Nobody records, so nobody can see that an output's history is missing.
            saved.unpack_data(Some(self.node))
        }?;
        if let Some(tensor) = &tensor {
            self.pin(tensor);
        }
        Ok(tensor)
    }

    fn pin(&self, tensor: &Tensor) {
        self.pins.borrow_mut().add(tensor);
    }

    /// A saved tensor.
    pub fn tensor(&self, slot: usize) -> Result<Tensor> {
        self.opt_tensor(slot)?.ok_or_else(|| self.misuse("saved tensor", slot))
    }

    /// A saved tensor that may be undefined, or wasn't saved because no wanted gradient needs it.
    pub fn opt_tensor(&self, slot: usize) -> Result<Option<Tensor>> {
        match self.slot(slot)? {
            Slot::Variable(cell) => self.unpack(cell),
            Slot::Unneeded => Ok(None),
            _ => Err(self.misuse("saved tensor", slot)),
        }
    }

    /// A saved list of tensors.
    pub fn tensor_list(&self, slot: usize) -> Result<Vec<Tensor>> {
        let tensors = self.opt_tensor_list(slot)?;
        tensors.into_iter().map(|t| t.ok_or_else(|| self.misuse("saved list", slot))).collect()
    }

    /// A saved list with undefined tensors.
    pub fn opt_tensor_list(&self, slot: usize) -> Result<Vec<Option<Tensor>>> {
        match self.slot(slot)? {
            Slot::List(cells) => cells.iter().map(|cell| self.unpack(cell)).collect(),
            Slot::Unneeded => Ok(Vec::new()),
            _ => Err(self.misuse("saved list", slot)),
        }
    }

    /// A saved argument that isn't a tensor.
    #[inline]
    pub fn value(&self, slot: usize) -> Result<&'a IValue> {
        match self.slot(slot)? {
            Slot::Value(value) => Ok(value),
            _ => Err(self.misuse("saved value", slot)),
        }
    }

    /// A saved fact, if it is the one that the formula means. The accessors stand beside the table of facts.
    pub(crate) fn meta(&self, slot: usize, what: MetaKind) -> Result<&'a SavedMeta> {
        match (self.slot(slot)?, self.function.entry.saved.get(slot)) {
            (Slot::Meta(meta), Some(SavedArg::Meta { what: saved, .. })) if *saved == what => Ok(meta),
            _ => Err(self.misuse("saved fact", slot)),
        }
    }

    /// Stores the gradients of the `k`-th differentiable argument: as many as it has tensors, or none at all.
    pub fn set_grad(&mut self, k: usize, grads: impl Into<ArgGrads>) {
        let edges = self.function.edges_of(k);
        for (edge, grad) in edges.zip(grads.into().0) {
            self.outputs[edge] = grad;
        }
    }
}
