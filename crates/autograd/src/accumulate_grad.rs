//! [`AccumulateGrad`]: the end of the backward graph, which sums gradients into a leaf's `.grad`.
//!
//! # Note [Turns]
//! Several backward passes may reach one leaf at once, and sums in place must not overlap. A sum is an operator, so it may
//! run Python code, take the interpreter's lock, or start a backward pass that reaches this very leaf: no lock can be
//! held meanwhile. Instead one thread at a time has the *turn*, a flag behind a lock that is held for a few instructions.
//! Threads without it sleep until it is free. The thread that has it, coming again from inside its own sum, leaves its
//! gradient in `pending`, to be summed before the turn ends.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;
use std::thread::ThreadId;

use c10::{check, AutogradMetaInterface, GradMode, Result, Tensor, TensorPin};
use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;

use crate::autograd_meta::AutogradMeta;
use crate::edge::VariableList;
use crate::hooks::TensorHook;
use crate::input_metadata::InputMetadata;
use crate::node::{Node, NodeFunction};
use crate::tensor_ops;
use crate::variable;

/// Who sums now: see Note [Turns].
#[derive(Default)]
struct Turn {
    owner: Option<ThreadId>,
    pending: Vec<Tensor>,
}

/// The accumulator of one leaf.
pub struct AccumulateGrad {
    /// The leaf.
    pub variable: Tensor,
    turn: Mutex<Turn>,
    turn_ended: Condvar,
}

impl AccumulateGrad {
    /// A node that accumulates into `variable`. Its sequence number makes it run as soon as it is ready.
    pub(crate) fn new_node(variable: &Tensor) -> Node {
        let function =
            Self { variable: variable.clone(), turn: Mutex::default(), turn_ended: Condvar::new() };
        Node::with_sequence_nr(Box::new(function), InputMetadata::new(variable), u64::MAX)
    }

    fn accumulate(&self, node: &Node, new_grad: Tensor) -> Result<()> {
        let Some(mut new_grad) = self.take_turn(new_grad) else { return Ok(()) };
        // Also ends the turn when a kernel panics.
        let turn = TurnGuard(self);
        // A post hook's caller holds the gradients as well.
        let mut expected_owners = 1 + u32::from(node.has_post_hooks());
        loop {
            self.sum(new_grad, expected_owners)?;
            match turn.next_pending() {
                Some(pending) => new_grad = pending,
                None => return Ok(()),
            }
            expected_owners = 1;
        }
    }

    fn sum(&self, new_grad: Tensor, expected_owners: u32) -> Result<()> {
        let meta = AutogradMeta::materialize(&self.variable)?;
        let _pins = [&new_grad, &self.variable].map(TensorPin::new);
        match meta.grad() {
            None => {
                let grad = if self.may_steal(&new_grad, expected_owners) {
                    variable::detach(&new_grad)?
                } else {
                    self.clone_obeying_contract(&new_grad)?
                };
                meta.set_grad(Some(grad));
            }
            Some(grad) if !GradMode::is_enabled() => {
                let _pin = TensorPin::new(&grad);
                // In place: whoever holds `.grad` sees the sum.
                tensor_ops::add_(&grad, &new_grad)?;
            }
            Some(grad) => {
                let _pin = TensorPin::new(&grad);
                meta.set_grad(Some(tensor_ops::add(&grad, &new_grad)?));
            }
        }
        Ok(())
    }

    /// Waits for the turn. `None` if this thread has it already, and will sum the gradient before the turn ends.
    fn take_turn(&self, grad: Tensor) -> Option<Tensor> {
        let me = std::thread::current().id();
        let mut turn = self.turn.lock();
        loop {
            match turn.owner {
                None => {
                    turn.owner = Some(me);
                    return Some(grad);
                }
                Some(owner) if owner == me => {
                    turn.pending.push(grad);
                    return None;
                }
                Some(_) => self.turn_ended.wait(&mut turn),
            }
        }
    }

    /// Whether the gradient itself may become `.grad`: nobody else has it, no graph is being recorded, and it is laid out
    /// as the leaf is.
    fn may_steal(&self, grad: &Tensor, expected_owners: u32) -> bool {
        !GradMode::is_enabled() && grad.use_count() <= expected_owners && self.obeys_layout_contract(grad)
    }

    /// `.grad` of a dense leaf has the leaf's strides; of any other, it is contiguous.
    fn obeys_layout_contract(&self, grad: &Tensor) -> bool {
        if grad.layout() != self.variable.layout() {
            return false;
        }
        if !self.variable.is_non_overlapping_and_dense() {
            return grad.is_contiguous();
        }
        // Sizes aren't compared: `.data` may have been replaced since the forward pass.
        match (grad.sizes(), grad.strides(), self.variable.strides()) {
            (Ok(sizes), Ok(strides), Ok(leaf_strides)) if strides.len() == leaf_strides.len() => {
                (0..sizes.len()).all(|i| match sizes[i] {
                    // Expanded: it may be a view of what others hold.
                    1 => strides[i] != 0,
                    _ => strides[i] == leaf_strides[i],
                })
            }
            _ => false,
        }
    }

    fn clone_obeying_contract(&self, grad: &Tensor) -> Result<Tensor> {
        if self.variable.is_non_overlapping_and_dense() && self.variable.sizes().is_ok() {
            let copy = tensor_ops::new_empty_strided(
                grad,
                &self.variable.sym_sizes(),
                &self.variable.sym_strides(),
            )?;
            tensor_ops::copy_(&copy, grad)
        } else {
            tensor_ops::clone_contiguous(grad)
        }
    }
}

/// Ends the turn when dropped.
struct TurnGuard<'a>(&'a AccumulateGrad);

impl TurnGuard<'_> {
    fn next_pending(&self) -> Option<Tensor> {
        self.0.turn.lock().pending.pop()
    }
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        let left = {
            let mut turn = self.0.turn.lock();
            turn.owner = None;
            std::mem::take(&mut turn.pending)
        };
        self.0.turn_ended.notify_one();
        // Only after an error; outside the lock, as this may free memory or run Python code.
        drop(left);
    }
}

impl NodeFunction for AccumulateGrad {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed("AccumulateGrad")
    }

    fn apply(&self, node: &Node, mut grads: VariableList) -> Result<VariableList> {
        let Some(grad) = grads.first_mut().and_then(Option::take) else { return Ok(VariableList::new()) };
        check!(variable::is_leaf(&self.variable)?, "leaf variable has been moved into the graph interior");
        if !variable::requires_grad(&self.variable) {
            return Ok(VariableList::new());
        }
        self.accumulate(node, grad)?;
        let hooks = AutogradMeta::of(&self.variable).and_then(AutogradMeta::leaf_hooks);
        if let Some(hooks) = hooks {
            let hooks: Vec<_> = hooks.lock().post_accumulate.clone();
            for registered in hooks {
                registered.hook.call(&self.variable)?;
            }
        }
        Ok(VariableList::new())
    }

    fn leaf_hooks(&self) -> SmallVec<[Arc<dyn TensorHook>; 1]> {
        match AutogradMeta::of(&self.variable).and_then(AutogradMeta::leaf_hooks) {
            Some(hooks) => hooks.lock().tensor.iter().map(|registered| registered.hook.clone()).collect(),
            None => SmallVec::new(),
        }
    }

    fn visit_saved(&self, visit: &mut dyn FnMut(&Tensor)) {
        visit(&self.variable);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
