//! The one autograd kernel: records any operator that has a [`DerivativeEntry`].
//!
//! # Note [Keys below autograd]
//!
//! The kernel continues the call with the keys below autograd, `ks & after_autograd_keyset`, computed from the arguments
//! and not from thread-local state. Operators that the backend's kernel calls in turn do consult thread-local
//! state, so the autograd keys are excluded there as well: what happens inside an operator is covered by the operator's own
//! derivative. Views and in-place operators must still reach ADInplaceOrView, which tracks views and versions; all
//! others skip it too.

use std::sync::OnceLock;

use c10::{
    after_autograd_keyset, bail, AutoDispatchBelowADInplaceOrView, AutoDispatchBelowAutograd, DispatchKeySet,
    Error, GradMode, Result, Tensor,
};
use dispatch::{IValue, KernelFunction, OperatorHandle, Stack};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::derivative_entry::{DerivativeEntry, SavedArg};
use crate::edge::{Edge, EdgeList};
use crate::generated_node::{GeneratedNode, Slot, Slots};
use crate::input_metadata::InputMetadata;
use crate::node::{MetadataList, Node};
use crate::op_info::{OpInfo, ReturnAlias};
use crate::saved_meta::SavedMeta;
use crate::saved_variable::SavedVariable;
use crate::tensor_ops;
use crate::variable;

/// The kernel of one operator.
pub fn autograd_kernel(entry: &'static DerivativeEntry) -> KernelFunction {
    let info: OnceLock<OpInfo> = OnceLock::new();
    KernelFunction::from_boxed_closure(move |op, ks, stack| {
        let info = match info.get() {
            Some(info) => info,
            None => {
                let computed = OpInfo::of(op)?;
                info.get_or_init(|| computed)
            }
        };
        let first = first_argument(op, info, stack)?;
        if GradMode::is_enabled()
            && entry.differentiable.iter().any(|&arg| value_requires_grad(&stack[first + arg]))
        {
            record(entry, info, op, ks, stack, first)
        } else {
            redispatch(info, op, ks, stack)
        }
    })
}

/// Where the arguments begin on the stack.
#[inline]
pub(crate) fn first_argument(op: OperatorHandle, info: &OpInfo, stack: &Stack) -> Result<usize> {
    stack.len().checked_sub(info.num_args).ok_or_else(|| too_few(op, info, stack))
}

#[cold]
fn too_few(op: OperatorHandle, info: &OpInfo, stack: &Stack) -> Error {
    Error::runtime(format!(
        "{}: expected {} arguments on the stack, got {}",
        op.name(),
        info.num_args,
        stack.len()
    ))
}

/// Whether a value is or contains a tensor that needs a gradient.
#[inline]
pub(crate) fn value_requires_grad(value: &IValue) -> bool {
    match value {
        IValue::Tensor(tensor) => variable::requires_grad(tensor),
        IValue::None | IValue::Int(_) | IValue::Double(_) | IValue::Bool(_) => false,
        other => {
            let mut any = false;
            other.for_each_tensor(&mut |tensor| any = any || variable::requires_grad(tensor));
            any
        }
    }
}

/// Continues a call below autograd: see Note [Keys below autograd].
#[inline]
pub(crate) fn redispatch(
    info: &OpInfo,
    op: OperatorHandle,
    ks: DispatchKeySet,
    stack: &mut Stack,
) -> Result<()> {
    if info.is_view || !info.mutated.is_empty() {
        let _below = AutoDispatchBelowAutograd::new();
        op.redispatch_boxed(ks & after_autograd_keyset, stack)
    } else {
        let _below = AutoDispatchBelowADInplaceOrView::new();
        op.redispatch_boxed(ks & after_autograd_keyset, stack)
    }
}

/// The error for `out=` with gradients.
#[cold]
pub(crate) fn out_requires_grad(op: OperatorHandle) -> Error {
    let name = op.name().base_name();
    Error::runtime(format!(
        "{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments \
         requires grad."
    ))
}

/// The edges of the differentiable arguments, and where each argument's begin when lists make that matter.
struct Edges {
    edges: EdgeList,
    starts: Box<[u32]>,
    /// Bit `k`: the `k`-th differentiable argument needs its gradient.
    needs: u64,
}

fn collect_edges(entry: &DerivativeEntry, args: &[IValue]) -> Result<Edges> {
    let mut edges = EdgeList::new();
    let mut starts: SmallVec<[u32; 8]> = SmallVec::new();
    let mut has_list = false;
    let mut needs = 0u64;
    for (k, &arg) in entry.differentiable.iter().enumerate() {
        let start = edges.len();
        starts.push(start as u32);
        match &args[arg] {
            IValue::Tensor(tensor) => edges.push(variable::gradient_edge(tensor)?),
            IValue::TensorList(tensors) => {
                has_list = true;
                for tensor in tensors.iter() {
                    edges.push(variable::gradient_edge(tensor)?);
                }
            }
            IValue::OptionalTensorList(tensors) => {
                has_list = true;
                for tensor in tensors.iter() {
                    edges.push(tensor.as_ref().map_or_else(|| Ok(Edge::default()), variable::gradient_edge)?);
                }
            }
            IValue::List(values) => {
                has_list = true;
                for value in values.iter() {
                    edges.push(
                        value.as_tensor().map_or_else(|| Ok(Edge::default()), variable::gradient_edge)?,
                    );
                }
            }
            _ => edges.push(Edge::default()),
        }
        if k < 64 && edges[start..].iter().any(Edge::is_valid) {
            needs |= 1 << k;
        }
    }
    starts.push(edges.len() as u32);
    let starts = if has_list { starts.into_boxed_slice() } else { Box::default() };
    Ok(Edges { edges, starts, needs })
}

/// Saves what backward needs of the arguments. Outputs get an empty place.
fn save_arguments(entry: &DerivativeEntry, info: &OpInfo, args: &[IValue], needs: u64) -> Result<Slots> {
    let mut slots = Slots::with_capacity(entry.saved.len());
    for saved in entry.saved {
        if !saved.is_needed(needs) {
            slots.push(Slot::Unneeded);
            continue;
        }
        slots.push(match *saved {
            SavedArg::Input { arg, .. } => {
                // The call is about to overwrite it: backward needs the value of now.
                let overwritten = info.mutated.contains(&arg);
                save_input(&args[arg], overwritten)?
            }
            SavedArg::Output { .. } => Slot::Variable(Mutex::default()),
            SavedArg::Value { arg } => Slot::Value(args[arg].clone()),
            SavedArg::Meta { arg, what, .. } => Slot::Meta(SavedMeta::capture(what, &args[arg])?),
        });
    }
    Ok(slots)
}

fn save_input(value: &IValue, overwritten: bool) -> Result<Slot> {
    let save = |tensor: Option<&Tensor>| -> Result<Mutex<SavedVariable>> {
        match tensor {
            Some(tensor) if overwritten => {
                let original = tensor_ops::clone(tensor)?;
                Ok(Mutex::new(SavedVariable::new(Some(&original), false)?))
            }
            tensor => Ok(Mutex::new(SavedVariable::new(tensor, false)?)),
        }
    };
    Ok(match value {
        IValue::Tensor(tensor) => Slot::Variable(save(Some(tensor))?),
        IValue::TensorList(tensors) => {
            Slot::List(tensors.iter().map(|t| save(Some(t))).collect::<Result<_>>()?)
        }
        IValue::OptionalTensorList(tensors) => {
            Slot::List(tensors.iter().map(|t| save(t.as_ref())).collect::<Result<_>>()?)
        }
        IValue::List(values) => {
            Slot::List(values.iter().map(|v| save(v.as_tensor())).collect::<Result<_>>()?)
        }
        _ => Slot::Variable(save(None)?),
    })
}

/// One tensor that came out of the call and gets a history.
struct Output {
    tensor: Tensor,
    output_nr: u32,
    mutated: bool,
}

/// The differentiable returns, in order: what the node's inputs are, and who gets an edge.
fn collect_outputs(
    entry: &DerivativeEntry,
    info: &OpInfo,
    returns: &[IValue],
) -> (MetadataList, SmallVec<[Output; 1]>) {
    let mut metadata = MetadataList::new();
    let mut outputs = SmallVec::new();
    for (ret, value) in returns.iter().enumerate() {
        if entry.output_differentiability.get(ret).is_some_and(|differentiable| !differentiable) {
            continue;
        }
        let mutated = matches!(info.returns.get(ret), Some(ReturnAlias::Mutated(_)));
        let mut add = |tensor: &Tensor| {
            let output_nr = metadata.len() as u32;
            metadata.push(InputMetadata::new(tensor));
            if variable::is_differentiable_type(tensor.scalar_type()) {
                outputs.push(Output { tensor: tensor.clone(), output_nr, mutated });
            }
        };
        match value {
            IValue::Tensor(tensor) => add(tensor),
            IValue::TensorList(_) | IValue::List(_) => value.for_each_tensor(&mut add),
            IValue::None => metadata.push(InputMetadata::undefined()),
            _ => {}
        }
    }
    (metadata, outputs)
}

/// Fills the places of saved outputs, once the outputs have their history (Note [SavedVariable and cycles]).
fn save_outputs(entry: &DerivativeEntry, info: &OpInfo, node: &Node, returns: &[IValue]) -> Result<()> {
    let Some(function) = node.as_generated() else { return Ok(()) };
    for (saved, slot) in entry.saved.iter().zip(&function.slots) {
        let (SavedArg::Output { ret, .. }, Slot::Variable(cell)) = (saved, slot) else { continue };
        let Some(tensor) = returns.get(*ret).and_then(IValue::as_tensor) else { continue };
        let mutated = matches!(info.returns.get(*ret), Some(ReturnAlias::Mutated(_)));
        let saved = if mutated && variable::is_view(tensor) {
            SavedVariable::new_inplace_on_view(tensor)?
        } else {
            SavedVariable::new(Some(tensor), true)?
        };
        *cell.lock() = saved;
    }
    Ok(())
}

fn record(
    entry: &'static DerivativeEntry,
    info: &OpInfo,
    op: OperatorHandle,
    ks: DispatchKeySet,
    stack: &mut Stack,
    first: usize,
) -> Result<()> {
    if info.is_out {
        return Err(out_requires_grad(op));
    }
    let args = &stack[first..];
    for &arg in &info.mutated {
        check_inplace(&args[arg])?;
    }
    let Edges { edges, starts, needs } = collect_edges(entry, args)?;
    let slots = save_arguments(entry, info, args, needs)?;

    redispatch(info, op, ks, stack)?;

    let returns = &stack[first..];
    if returns.len() != info.returns.len() {
        bail!(
            Internal,
            "{}: the kernel returned {} values instead of {}",
            op.name(),
            returns.len(),
            info.returns.len()
        );
    }
    let (metadata, outputs) = collect_outputs(entry, info, returns);
    if outputs.is_empty() {
        return Ok(());
    }
    let node = Node::generated(GeneratedNode { entry, slots, edge_starts: starts }, edges, metadata);
    for output in &outputs {
        let edge = Edge::new(node.clone(), output.output_nr);
        if output.mutated {
            variable::rebase_history(&output.tensor, edge)?;
        } else {
            variable::set_gradient_edge(&output.tensor, edge)?;
        }
    }
    save_outputs(entry, info, &node, returns)
}

/// Refuses in-place modifications of what may not be modified while recording.
pub(crate) fn check_inplace(value: &IValue) -> Result<()> {
    let mut result = Ok(());
    value.for_each_tensor(&mut |tensor| {
        if result.is_ok() {
            result = variable::check_inplace(tensor, true);
        }
    });
    result
}
