//! Lazy conjugation and negation: operators that do not know the bits get tensors without them.
//!
//! Note [Lazy bits]: `_conj` and `_neg_view` set a bit in a view's key set. Views keep the bits (their operators fall
//! through the keys), implicit composites leave them to their parts, and `copy_` applies them on the way, so that `clone` gives a plain tensor. Any other operator
//! lands here: arguments with the bit are cloned, and what the operator has written to a clone is copied back. Operators
//! that apply the bits themselves, or read metadata alone, say so in their declarations:
//! `dispatch: {"Conjugate, Negative": fallthrough}`.

use c10::{DispatchKey, DispatchKeySet, Error, Result, Tensor};
use dispatch::{IValue, OperatorHandle, Stack};

use crate::at;

/// One of the two bits.
struct Bit {
    key: DispatchKey,
    is_set: fn(&Tensor) -> bool,
}

const CONJUGATE: Bit = Bit { key: DispatchKey::Conjugate, is_set: |tensor| tensor.is_conj() };

const NEGATIVE: Bit = Bit { key: DispatchKey::Negative, is_set: |tensor| tensor.is_neg() };

/// The fallback of `DispatchKey::Conjugate`.
pub(super) fn conjugate_fallback(
    op: OperatorHandle,
    keyset: DispatchKeySet,
    stack: &mut Stack,
) -> Result<()> {
    fallback(&CONJUGATE, op, keyset, stack)
}

/// The fallback of `DispatchKey::Negative`.
pub(super) fn negative_fallback(op: OperatorHandle, keyset: DispatchKeySet, stack: &mut Stack) -> Result<()> {
    fallback(&NEGATIVE, op, keyset, stack)
}

fn fallback(bit: &Bit, op: OperatorHandle, keyset: DispatchKeySet, stack: &mut Stack) -> Result<()> {
    let schema = op.schema()?;
    let expected = schema.arguments.len();
    let first = stack.len().checked_sub(expected).ok_or_else(|| {
        let found = stack.len();
        Error::runtime(format!("{}: expected {expected} arguments on the stack, got {found}", op.name()))
    })?;
    // (the argument as given, its resolved copy) for those the operator writes to
    let mut written: Vec<(Tensor, Tensor)> = Vec::new();
    for (argument, value) in schema.arguments.iter().zip(&mut stack[first..]) {
        resolve_value(bit, value, argument.is_write(), &mut written)?;
    }
    op.redispatch_boxed(keyset & DispatchKeySet::full_after(bit.key), stack)?;
    for (given, resolved) in &written {
        // An output may have been given another size.
        if !given.has_symbolic_sizes_strides() && given.sizes()? != resolved.sizes()? {
            iter::resize_output(given, resolved.sizes()?)?;
        }
        at::copy_(given, resolved, false)?;
    }
    // Returns that alias a written argument are the argument, not its copy.
    let returns = stack.len().saturating_sub(schema.returns.len());
    for value in &mut stack[returns..] {
        let original = |tensor: &Tensor| written.iter().find(|(_, resolved)| resolved.is_same(tensor));
        if value.any_tensor(&mut |tensor| original(tensor).is_some()) {
            value.for_each_tensor_mut(&mut |tensor| {
                if let Some((given, _)) = original(tensor) {
                    *tensor = given.clone();
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

fn resolve_value(
    bit: &Bit,
    value: &mut IValue,
    is_write: bool,
    written: &mut Vec<(Tensor, Tensor)>,
) -> Result<()> {
    // Asked first: lists are shared, and changing one clones it.
    if !value.any_tensor(&mut |tensor| (bit.is_set)(tensor)) {
        return Ok(());
    }
    value.for_each_tensor_mut(&mut |tensor| resolve_tensor(bit, tensor, is_write, written))
}

fn resolve_tensor(
    bit: &Bit,
    tensor: &mut Tensor,
    is_write: bool,
    written: &mut Vec<(Tensor, Tensor)>,
) -> Result<()> {
    if !(bit.is_set)(tensor) {
        return Ok(());
    }
    let resolved = at::clone(tensor, None)?;
    let given = std::mem::replace(tensor, resolved.clone());
    if is_write {
        written.push((given, resolved));
    }
    Ok(())
}
