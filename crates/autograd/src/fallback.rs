//! The autograd kernel of operators that have no derivative.

use c10::{DispatchKeySet, GradMode, Result, Tensor};
use dispatch::{IValue, OpInfo, OperatorHandle, Stack};
use std::any::Any;
use std::borrow::Cow;

use smallvec::SmallVec;

use crate::basic_nodes::NotImplemented;
use crate::edge::{Edge, EdgeList, VariableList};
use crate::input_metadata::InputMetadata;
use crate::kernel::{
    check_inplace, first_argument, is_mutated, out_requires_grad, redispatch, value_requires_grad,
};
use crate::node::{Node, NodeFunction};
use crate::variable;

/// Runs an operator without derivative; a gradient asked of its outputs is an error (a warning for
/// operators of third parties, whose kernels may be made of differentiable operators).
pub(crate) fn autograd_fallback(op: OperatorHandle, ks: DispatchKeySet, stack: &mut Stack) -> Result<()> {
    let info = op.info()?;
    let is_ours = ops::is_built_in(op);
    let first = first_argument(op, info, stack)?;
    if !GradMode::is_enabled()
        || !info.tensor_args.iter().any(|&arg| value_requires_grad(&stack[first + arg]))
    {
        return forward(is_ours, info, op, ks, stack);
    }
    if info.is_out && is_ours {
        return Err(out_requires_grad(op));
    }
    for &arg in &info.mutated {
        check_inplace(&stack[first + arg])?;
    }
    let mut edges = EdgeList::new();
    for &arg in &info.tensor_args {
        let mut result = Ok(());
        stack[first + arg].for_each_tensor(&mut |tensor| match variable::gradient_edge(tensor) {
            Ok(edge) => edges.push(edge),
            Err(error) => result = Err(error),
        });
        result?;
    }
    // What is written and not returned depends on the inputs as much as what is returned does.
    let written: SmallVec<[IValue; 1]> =
        info.mutated_unreturned.iter().map(|&arg| stack[first + arg].clone()).collect();
    forward(is_ours, info, op, ks, stack)?;
    attach(is_ours, info, op, edges, &stack[first..], &written)
}

/// Kernels of third parties may rely on autograd beneath them, so nothing is excluded for them.
fn forward(
    is_ours: bool,
    info: &OpInfo,
    op: OperatorHandle,
    ks: DispatchKeySet,
    stack: &mut Stack,
) -> Result<()> {
    if is_ours {
        redispatch(info, op, ks, stack)
    } else {
        op.redispatch_boxed(ks & c10::after_autograd_keyset, stack)
    }
}

fn attach(
    is_ours: bool,
    info: &OpInfo,
    op: OperatorHandle,
    edges: EdgeList,
    returns: &[IValue],
    written: &[IValue],
) -> Result<()> {
    let mut outputs: SmallVec<[(Tensor, bool); 2]> = SmallVec::new();
    let returned = returns.iter().enumerate().map(|(ret, value)| (is_mutated(info, ret), value));
    for (mutated, value) in returned.chain(written.iter().map(|value| (true, value))) {
        value.for_each_tensor(&mut |tensor| {
            let differentiable = variable::is_differentiable_type(tensor.scalar_type());
            // What a third party's kernel has recorded itself stays, and so does what it modifies.
            if differentiable && (is_ours || !(mutated || variable::requires_grad(tensor))) {
                outputs.push((tensor.clone(), mutated));
            }
        });
    }
    if outputs.is_empty() {
        return Ok(());
    }
    let name = op.name().to_string();
    let function: Box<dyn NodeFunction> = if is_ours {
        Box::new(NotImplemented::new(&name))
    } else {
        Box::new(WarnNotImplemented { op: name })
    };
    let inputs: Vec<InputMetadata> = outputs.iter().map(|(tensor, _)| InputMetadata::new(tensor)).collect();
    let node = Node::with_edges(function, edges, &inputs);
    for (nr, (tensor, mutated)) in outputs.iter().enumerate() {
        let edge = Edge::new(node.clone(), nr as u32);
        if *mutated {
            variable::rebase_history(tensor, edge)?;
        } else {
            variable::set_gradient_edge(tensor, edge)?;
        }
    }
    Ok(())
}

/// Warns when a gradient passes an operator whose author gave it no derivative, and stops the gradient.
struct WarnNotImplemented {
    op: String,
}

impl NodeFunction for WarnNotImplemented {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed("WarnNotImplemented")
    }

    fn apply(&self, node: &Node, _: VariableList) -> Result<VariableList> {
        crate::warning::warn(&format!(
            "{}: an autograd kernel was not registered to the Autograd key(s) but we are trying to backprop through it. \
             This may lead to silently incorrect behavior. This behavior is deprecated and will be removed in a future \
             version of PyTorch. If your operator is differentiable, please ensure you have registered an autograd \
             kernel to the correct Autograd key (e.g. DispatchKey::Autograd). If your operator is not differentiable, or \
             to squash this warning and use the previous behavior, please register torch::CppFunction::makeFallthrough() \
             to DispatchKey::Autograd.",
            self.op
        ));
        Ok(SmallVec::from_elem(None, node.num_outputs()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
