//! What is proved about a call's tensors before a kernel that walks memory by itself touches them: that they are inside
//! their storages, and that what is written lies neither over itself nor over what is read. (That they are on one device
//! is checked around every wrapper: `dispatch::DeviceRules`.)
//!
//! [`iter::TensorIterator`] proves the same for the kernels that it drives.

use c10::{check, DispatchKey, DispatchKeySet, Result, Tensor};
use iter::mem_overlap::{assert_no_internal_overlap, get_overlap_status, MemOverlapStatus};
use iter::StructuredOutputs;

use crate::structured::backend_key;

/// An argument that holds tensors.
pub trait Operand {
    /// Calls `f` with each of them until it fails.
    fn try_for_each<'a>(&'a self, f: &mut dyn FnMut(&'a Tensor) -> Result<()>) -> Result<()>;
}

impl Operand for &Tensor {
    #[inline]
    fn try_for_each<'a>(&'a self, f: &mut dyn FnMut(&'a Tensor) -> Result<()>) -> Result<()> {
        f(self)
    }
}

impl Operand for Option<&Tensor> {
    #[inline]
    fn try_for_each<'a>(&'a self, f: &mut dyn FnMut(&'a Tensor) -> Result<()>) -> Result<()> {
        self.iter().copied().try_for_each(f)
    }
}

impl Operand for &[Tensor] {
    fn try_for_each<'a>(&'a self, f: &mut dyn FnMut(&'a Tensor) -> Result<()>) -> Result<()> {
        self.iter().try_for_each(f)
    }
}

impl Operand for &[Option<Tensor>] {
    fn try_for_each<'a>(&'a self, f: &mut dyn FnMut(&'a Tensor) -> Result<()>) -> Result<()> {
        self.iter().flatten().try_for_each(f)
    }
}

/// What a kernel's inputs are called, and what they hold.
pub type Operands<'a> = &'a [(&'static str, &'a dyn Operand)];

/// What to do when an output shares memory with an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// Refuse the call, as PyTorch does where elements move to other places (`gather`, `index_put_`, `cat`).
    Refuse,
    /// Refuse it if only some elements are shared, or at other places; compute apart if all are.
    RefusePartial,
    /// Compute into memory of its own and copy the result.
    Separate,
}

/// Checks the inputs of a kernel that makes its outputs itself.
pub fn check_operands(op: &str, operands: Operands<'_>) -> Result<()> {
    for (argument, operand) in operands {
        operand.try_for_each(&mut |tensor| check_operand(op, argument, tensor))?;
    }
    Ok(())
}

#[inline]
fn check_operand(op: &str, argument: &str, tensor: &Tensor) -> Result<()> {
    // `DeviceRules` refuses other devices, except where an operator takes several (`device_check: NoCheck`).
    check!(
        !tensor.is_meta(),
        "Expected all tensors to be on the same device, but argument {argument} of {op}() is on meta"
    );
    if !tensor.has_storage() {
        return Ok(());
    }
    tensor.check_in_storage().map_err(|error| error.context(format!("argument {argument} of {op}()")))
}

/// Checks the tensors of a structured operator whose kernel is not driven by an iterator, and says whose kernel is to
/// run: `None` when there is nothing to compute (the Meta device).
pub fn kernel_key(
    keyset: DispatchKeySet,
    outs: &StructuredOutputs,
    op: &str,
    operands: Operands<'_>,
) -> Result<Option<DispatchKey>> {
    let key = backend_key(keyset);
    // Operators that take tensors of several devices may be called for another one than they write to.
    let out = outs.output(0)?;
    check!(
        out.key_set().has_backend(key.to_backend_component()),
        "Expected all tensors to be on the same device, but found at least two devices, {} and that of {key}, in \
         {op}()",
        out.device()
    );
    if key == DispatchKey::Meta {
        return Ok(None);
    }
    check_operands(op, operands)?;
    if !outs.is_functional() {
        (0..outs.len()).try_for_each(|i| check_operand(op, "out", outs.output(i)?))?;
    }
    Ok(Some(key))
}

/// Refuses outputs of which several elements share a place, and outputs that lie over an input; where that is to be
/// borne, says whether one does.
///
/// Called before the outputs are resized, which would change an input that is the same tensor.
pub fn overlaps(outs: &[&Tensor], op: &str, overlap: Overlap, operands: Operands<'_>) -> Result<bool> {
    let mut found = false;
    for (i, out) in outs.iter().enumerate() {
        if out.is_meta() || !out.has_storage() {
            continue;
        }
        assert_no_internal_overlap(out)?;
        for (argument, operand) in operands {
            operand.try_for_each(&mut |tensor| {
                let status = get_overlap_status(out, tensor)?;
                let shared = match status {
                    MemOverlapStatus::Full | MemOverlapStatus::Partial => true,
                    MemOverlapStatus::TooHard => overlap != Overlap::Refuse,
                    MemOverlapStatus::No => false,
                };
                let refused = match overlap {
                    Overlap::Refuse => shared,
                    Overlap::RefusePartial => status == MemOverlapStatus::Partial,
                    Overlap::Separate => false,
                };
                check!(
                    !refused,
                    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a \
                     single memory location. Please clone() the tensor before performing the operation. (argument \
                     {argument} and output {i} of {op}())"
                );
                found |= shared;
                Ok(())
            })?;
        }
    }
    Ok(found)
}
