//! Forward mode: tensors that carry a tangent, and how operators pass it on.
//!
//! # Note [Forward mode]
//!
//! A tensor's tangent hangs on its [`AutogradMeta`](crate::AutogradMeta). Where an operator meets an argument with a
//! tangent, the autograd kernel computes the results' tangents by the rule that the operator's declaration states
//! (`forward:`), beside whatever it records for backward. The tangents go through the dispatcher as any tensors do, so
//! that they can be differentiated themselves. An operator without a rule is an error: a tangent that is silently
//! lost would be a wrong derivative.
//!
//! As in PyTorch there is one level.

use std::sync::atomic::{AtomicBool, Ordering};

use c10::{AutogradMetaInterface, Error, Result, Tensor};
use dispatch::{IValue, OpInfo, OperatorHandle, Stack};

use crate::autograd_meta::AutogradMeta;
use crate::derivative_entry::DerivativeEntry;
use crate::tensor_ops;
use crate::variable;

/// How the results' tangents follow from the arguments'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardRule {
    /// The operator is linear: it is applied to the tangents (`auto_linear`).
    Linear,
}

/// The one level.
pub const LEVEL: u64 = 0;

/// Whether any tensor ever had a tangent: keeps the question off the path of programs that don't use this mode.
static USED: AtomicBool = AtomicBool::new(false);

/// Whether arguments are to be asked for tangents.
#[inline]
pub(crate) fn is_used() -> bool {
    USED.load(Ordering::Relaxed)
}

pub(crate) fn set_used() {
    USED.store(true, Ordering::Relaxed);
}

/// The tangent of a tensor.
pub fn fw_grad(tensor: &Tensor) -> Option<Tensor> {
    AutogradMeta::of(tensor)?.fw_grad(LEVEL)
}

/// Gives a tensor a tangent, or takes it away. It has the tensor's shape and dtype.
pub fn set_fw_grad(tensor: &Tensor, tangent: Option<Tensor>) -> Result<()> {
    if let Some(tangent) = &tangent {
        c10::check!(
            tangent.sym_sizes() == tensor.sym_sizes() && tangent.dtype() == tensor.dtype(),
            "Expected tangent to have the same size and dtype as the primal, but got tensors of dtype {} and {}",
            tangent.dtype(),
            tensor.dtype()
        );
    }
    AutogradMeta::materialize(tensor)?.set_fw_grad(tangent, LEVEL)
}

/// Whether a value is or contains a tensor with a tangent.
pub(crate) fn has_tangent(value: &IValue) -> bool {
    c10::FwGradMode::is_enabled() && value.any_tensor(&mut |tensor| fw_grad(tensor).is_some())
}

/// The error for an operator that has no rule.
#[cold]
pub(crate) fn not_implemented(op: OperatorHandle) -> Error {
    Error::not_implemented(format!(
        "Trying to use forward AD with {} that does not support it because it has not been implemented yet.",
        op.name().base_name()
    ))
}

/// The tangents of the results. Asked for before the operator runs, which may overwrite its arguments.
pub(crate) fn tangents_of_results(
    entry: &DerivativeEntry,
    info: &OpInfo,
    op: OperatorHandle,
    args: &[IValue],
) -> Result<Stack> {
    let Some(ForwardRule::Linear) = entry.forward else { return Err(not_implemented(op)) };
    let mut stack: Stack = args.iter().cloned().collect();
    for &arg in entry.differentiable {
        let overwritten = info.mutated.contains(&arg);
        // The tangent of the base would have to change with the view's.
        if overwritten && stack[arg].any_tensor(&mut variable::is_view) {
            return Err(not_implemented(op)
                .context("An in-place operator on a view, with tangents, is not implemented."));
        }
        stack[arg].for_each_tensor_mut(&mut |tensor| {
            *tensor = match fw_grad(tensor) {
                // An in-place operator must not change the tangent that others may hold.
                Some(tangent) if overwritten => tensor_ops::clone(&tangent)?,
                Some(tangent) => tangent,
                None => tensor_ops::zeros_like(tensor)?,
            };
            Ok(())
        })?;
    }
    op.call_boxed(&mut stack)?;
    Ok(stack)
}

/// Hangs tangents on results of the same structure.
pub(crate) fn attach(results: &[IValue], tangents: &[IValue]) -> Result<()> {
    for (result, tangent) in results.iter().zip(tangents) {
        let mut found = Vec::new();
        tangent.for_each_tensor(&mut |tensor| found.push(tensor.clone()));
        let mut found = found.into_iter();
        let mut outcome = Ok(());
        result.any_tensor(&mut |tensor| {
            outcome = set_fw_grad(tensor, found.next());
            outcome.is_err()
        });
        outcome?;
    }
    Ok(())
}
