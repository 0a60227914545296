//! The one autograd kernel: records any operator that has a [`DerivativeEntry`].
//!
//! # Note [Keys below autograd]
//!
//! The kernel continues the call with the keys below autograd, `ks & after_autograd_keyset`, computed from the arguments
//! and not from thread-local state. Operators that the backend's kernel calls in turn do consult thread-local
//! state, so the autograd keys are excluded there as well: what happens inside an operator is covered by the operator's own
//! derivative. Views and in-place operators must still reach ADInplaceOrView, which tracks views and versions; all
//! others skip it too.
//!
//! # Note [Written on the side]
//!
//! An operator that is neither in-place nor `out=` may still write to an argument: batch normalization updates running
//! statistics. As in PyTorch such a write is no modification that autograd counts, or evaluating a model twice would
//! invalidate the first result's graph, which has saved the statistics. So the version stays, and a formula that names
//! the argument saves it as it is and sees what the operator has left there; what anybody else does to it later is
//! found by its version.

use c10::{
    after_autograd_keyset, bail, AutoDispatchBelowADInplaceOrView, AutoDispatchBelowAutograd, DispatchKeySet,
    Error, GradMode, Result, Tensor,
};
use dispatch::{IValue, KernelFunction, OpInfo, OperatorHandle, ReturnAlias, Stack};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::derivative_entry::{DerivativeEntry, SavedArg};
use crate::edge::{Edge, EdgeList};
use crate::forward_ad;
use crate::generated_node::{GeneratedNode, Slot, Slots};
use crate::input_metadata::InputMetadata;
use crate::node::{MetadataList, Node};
use crate::saved_meta::SavedMeta;
use crate::saved_variable::SavedVariable;
use crate::tensor_ops;
use crate::variable;

/// The kernel of one operator.
pub fn autograd_kernel(entry: &'static DerivativeEntry) -> KernelFunction {
    KernelFunction::from_boxed_closure(move |op, ks, stack| {
        let info = op.info()?;
        let first = first_argument(op, info, stack)?;
        if forward_ad::is_used()
            && entry.differentiable.iter().any(|&arg| forward_ad::has_tangent(&stack[first + arg]))
        {
            return with_tangents(entry, info, op, ks, stack, first);
        }
        run(entry, info, op, ks, stack, first)
    })
}

/// Calls the operator, and records it if a gradient may be asked for.
#[inline]
fn run(
    entry: &'static DerivativeEntry,
    info: &OpInfo,
    op: OperatorHandle,
    ks: DispatchKeySet,
    stack: &mut Stack,
    first: usize,
) -> Result<()> {
    if GradMode::is_enabled()
        && entry.differentiable.iter().any(|&arg| value_requires_grad(&stack[first + arg]))
    {
        record(entry, info, op, ks, stack, first)
    } else {
        redispatch(info, op, ks, stack)
    }
}

/// [`run`], and the results' tangents: see Note [Forward mode].
#[cold]
fn with_tangents(
    entry: &'static DerivativeEntry,
    info: &OpInfo,
    op: OperatorHandle,
    ks: DispatchKeySet,
    stack: &mut Stack,
    first: usize,
) -> Result<()> {
    let tangents = forward_ad::tangents_of_results(entry, info, op, &stack[first..])?;
    run(entry, info, op, ks, stack, first)?;
    forward_ad::attach(&stack[first..], &tangents)
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
        other => other.any_tensor(&mut variable::requires_grad),
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
    if info.is_view || info.writes_results() {
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
        has_list = has_list || args[arg].is_tensor_list();
        let mut result = Ok(());
        args[arg].for_each_optional_tensor(&mut |tensor| match tensor
            .map_or_else(|| Ok(Edge::default()), variable::gradient_edge)
        {
            Ok(edge) => edges.push(edge),
            Err(error) => result = Err(error),
        });
        result?;
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
                // The call is about to overwrite it: backward needs the value of now. See Note [Written on the side].
                let overwritten = info.writes_results() && info.mutated.contains(&arg);
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
    if !value.is_tensor_list() {
        return Ok(Slot::Variable(save(value.as_tensor())?));
    }
    let mut cells = Vec::new();
    let mut result = Ok(());
    value.for_each_optional_tensor(&mut |tensor| match save(tensor) {
        Ok(cell) => cells.push(cell),
        Err(error) => result = Err(error),
    });
    result?;
    Ok(Slot::List(cells.into()))
}

/// One tensor that came out of the call and gets a history.
struct Output {
    tensor: Tensor,
    output_nr: u32,
    mutated: bool,
}

/// What comes out of a call: its returns, or, of an operator that returns nothing, the arguments that it writes to
/// (`_foreach_add_`). Those must be taken from the stack before the call.
pub(crate) struct Results {
    written: SmallVec<[IValue; 1]>,
}

impl Results {
    pub(crate) fn before_call(info: &OpInfo, args: &[IValue]) -> Self {
        let written = if info.returns.is_empty() {
            info.mutated.iter().map(|&arg| args[arg].clone()).collect()
        } else {
            SmallVec::new()
        };
        Self { written }
    }

    /// The values after the call.
    pub(crate) fn values<'a>(&'a self, info: &OpInfo, returns: &'a [IValue]) -> &'a [IValue] {
        if info.returns.is_empty() {
            &self.written
        } else {
            returns
        }
    }
}

/// Whether the `i`-th of an operator's [`Results`] is an argument that it has written to.
pub(crate) fn is_mutated(info: &OpInfo, i: usize) -> bool {
    info.returns.get(i).is_none_or(|alias| matches!(alias, ReturnAlias::Mutated(_)))
}

/// The differentiable results, in order: what the node's inputs are, and who gets an edge.
fn collect_outputs(
    entry: &DerivativeEntry,
    info: &OpInfo,
    results: &[IValue],
) -> (MetadataList, SmallVec<[Output; 1]>) {
    let mut metadata = MetadataList::new();
    let mut outputs = SmallVec::new();
    for (ret, value) in results.iter().enumerate() {
        if entry.output_differentiability.get(ret).is_some_and(|differentiable| !differentiable) {
            continue;
        }
        let mutated = is_mutated(info, ret);
        let mut add = |tensor: &Tensor| {
            let output_nr = metadata.len() as u32;
            metadata.push(InputMetadata::new(tensor));
            if variable::is_differentiable_type(tensor.scalar_type()) {
                outputs.push(Output { tensor: tensor.clone(), output_nr, mutated });
            }
        };
        match value {
            IValue::Tensor(tensor) => add(tensor),
            value if value.is_tensor_list() => value.for_each_tensor(&mut add),
            IValue::None => metadata.push(InputMetadata::undefined()),
            _ => {}
        }
    }
    (metadata, outputs)
}

/// Makes room for saved outputs that are lists, whose lengths are known after the call.
fn size_output_lists(entry: &DerivativeEntry, slots: &mut Slots, results: &[IValue]) {
    for (saved, slot) in entry.saved.iter().zip(slots) {
        let (SavedArg::Output { ret, .. }, Slot::Variable(_)) = (saved, &slot) else { continue };
        let Some(list) = results.get(*ret).filter(|value| value.is_tensor_list()) else { continue };
        let mut cells = Vec::new();
        list.for_each_optional_tensor(&mut |_| cells.push(Mutex::default()));
        *slot = Slot::List(cells.into());
    }
}

/// Fills the places of saved outputs, once the outputs have their history (Note [SavedVariable and cycles]).
fn save_outputs(entry: &DerivativeEntry, info: &OpInfo, node: &Node, results: &[IValue]) -> Result<()> {
    let Some(function) = node.as_generated() else { return Ok(()) };
    for (saved, slot) in entry.saved.iter().zip(&function.slots) {
        let SavedArg::Output { ret, .. } = saved else { continue };
        let cells = match slot {
            Slot::Variable(cell) => std::slice::from_ref(cell),
            Slot::List(cells) => cells,
            _ => continue,
        };
        let Some(value) = results.get(*ret) else { continue };
        let mutated = is_mutated(info, *ret);
        let mut cells = cells.iter();
        let mut result = Ok(());
        value.for_each_optional_tensor(&mut |tensor| {
            if let (Some(cell), Some(tensor)) = (cells.next(), tensor) {
                match save_output(tensor, mutated) {
                    Ok(saved) => *cell.lock() = saved,
                    Err(error) => result = Err(error),
                }
            }
        });
        result?;
    }
    Ok(())
}

fn save_output(tensor: &Tensor, mutated: bool) -> Result<SavedVariable> {
    if mutated && variable::is_view(tensor) {
        SavedVariable::new_inplace_on_view(tensor)
    } else {
        SavedVariable::new(Some(tensor), true)
    }
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
    let mut slots = save_arguments(entry, info, args, needs)?;
    let results = Results::before_call(info, args);

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
    let results = results.values(info, returns);
    let (metadata, outputs) = collect_outputs(entry, info, results);
    if outputs.is_empty() {
        return Ok(());
    }
    size_output_lists(entry, &mut slots, results);
    let node = Node::generated(GeneratedNode { entry, slots, edge_starts: starts }, edges, metadata);
    for output in &outputs {
        let edge = Edge::new(node.clone(), output.output_nr);
        // An in-place view changes what the tensor shows of its base, not the base's values.
        if output.mutated && !info.is_inplace_view {
            variable::rebase_history(&output.tensor, edge)?;
        } else {
            variable::set_gradient_edge(&output.tensor, edge)?;
        }
    }
    save_outputs(entry, info, &node, results)
}

/// Refuses in-place modifications of what may not be modified while recording.
pub(crate) fn check_inplace(value: &IValue) -> Result<()> {
    let mut result = Ok(());
    value.any_tensor(&mut |tensor| {
        result = variable::check_inplace(tensor, true);
        result.is_err()
    });
    result
}
