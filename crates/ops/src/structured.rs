//! What the generated wrappers of structured operators share.

use c10::{
    can_cast, check, highest_priority_backend_type_id, Device, DispatchKey, DispatchKeySet, Error, ErrorKind,
    GradMode, Layout, MemoryFormat, Result, ScalarType, Tensor, TensorOptions,
};
use iter::StructuredOutputs;

pub use crate::sym::{ints, optional_int, optional_ints};
use crate::{at, sym};

/// The key whose kernel a wrapper is to run: the one that it was called for. Of the call's keys only the backends' count,
/// since what lies above them (lazy conjugation, autograd) may be there and have been passed by.
#[inline]
pub fn backend_key(keyset: DispatchKeySet) -> DispatchKey {
    highest_priority_backend_type_id(keyset)
}

/// [`backend_key`], or `None` when there is nothing to compute (the Meta device).
#[inline]
pub fn kernel_key(keyset: DispatchKeySet) -> Option<DispatchKey> {
    let key = backend_key(keyset);
    (key != DispatchKey::Meta).then_some(key)
}

/// The device that a factory's options ask for.
pub fn device_or_default(device: Option<Device>) -> Device {
    TensorOptions::new().device(device).device_or_default()
}

/// Where a factory's call goes on: the backend that its options ask for, beneath `BackendSelect`.
pub fn select_backend(
    keyset: DispatchKeySet,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<DispatchKeySet> {
    let options = TensorOptions::new().dtype(dtype).layout(layout).device(device).pinned_memory(pin_memory);
    let selected = DispatchKeySet::from_key(options.compute_dispatch_key()?);
    Ok((keyset & DispatchKeySet::full_after(DispatchKey::BackendSelect)) | selected)
}

/// Whether a predicate's kernel may write to this output.
#[inline]
pub fn is_bool(out: &Tensor) -> bool {
    out.dtype() == ScalarType::Bool
}

/// Says which operator it was that had no memory for intermediate values; a kernel's other errors name it themselves.
#[inline]
pub fn in_operator(op: &'static str) -> impl FnOnce(Error) -> Error {
    move |error| name_operator(error, op)
}

#[cold]
fn name_operator(error: Error, op: &str) -> Error {
    match error.kind() {
        ErrorKind::OutOfMemory => error.context(format!("in {op}()")),
        _ => error,
    }
}

/// Copies `self` into the output that a kernel is to change, unless they are the same tensor.
pub fn init_from(self_: &Tensor, outs: &StructuredOutputs) -> Result<()> {
    let out = outs.output(0)?;
    if !out.is_same(self_) {
        iter::copy_into(out, self_, false)?;
    }
    Ok(())
}

/// The `out=` form of an operator that has none of its own: resizes `out` and copies the result into it.
pub fn write_out(name: &str, out: &Tensor, result: &Tensor) -> Result<Tensor> {
    check!(
        can_cast(result.dtype(), out.dtype()),
        "{name}(): result type {} can't be cast to the desired output type {}",
        result.dtype(),
        out.dtype()
    );
    check!(
        result.device() == out.device(),
        "{name}(): expected out tensor to be on device {}, but it is on {}",
        result.device(),
        out.device()
    );
    iter::resize_output(out, &result.sym_sizes())?;
    at::copy_(out, result, false)?;
    Ok(out.clone())
}

/// What the functional form of an operator that changes a tensor in place starts from.
pub fn copy_of(self_: &Tensor) -> Result<Tensor> {
    at::clone(self_, Some(MemoryFormat::Preserve))
}

/// What a view's copying form returns: the view in memory of its own.
pub fn copied(view: &Tensor) -> Result<Tensor> {
    at::clone(view, Some(MemoryFormat::Contiguous))
}

/// [`copied`] for each tensor of a list.
pub fn copied_list(views: &[Tensor]) -> Result<Vec<Tensor>> {
    views.iter().map(copied).collect()
}

/// [`write_out`] where `out` must have the result's dtype.
pub fn write_exact(name: &str, out: &Tensor, result: &Tensor) -> Result<Tensor> {
    check_out_dtype(name, out, result.dtype())?;
    write_out(name, out, result)
}

/// Refuses a given output of another dtype than the operator computes.
pub fn check_out_dtype(name: &str, out: &Tensor, dtype: ScalarType) -> Result<()> {
    check!(
        out.dtype() == dtype,
        "{name}(): Expected out tensor to have dtype {}, but got {} instead",
        iter::type_meta_name(dtype),
        iter::type_meta_name(out.dtype())
    );
    Ok(())
}

/// [`write_out`] where `out` may be one of the inputs: such an output keeps its size, as under an iterator.
///
/// Else it is refused where an iterator would refuse it: when it shares only some elements with an input.
pub fn write_out_or_input(name: &str, out: &Tensor, inputs: &[&Tensor], result: &Tensor) -> Result<Tensor> {
    iter::mem_overlap::assert_no_internal_overlap(out)?;
    inputs.iter().try_for_each(|input| iter::mem_overlap::assert_no_partial_overlap(out, input))?;
    if inputs.iter().any(|input| input.is_same(out)) {
        return write_inplace(name, out, result);
    }
    write_out(name, out, result)
}

/// What the in-place form of a composite computes from: a copy of `self` if gradients of any of the arguments are recorded,
/// because the nodes may save it before it changes.
pub fn unmodified(self_: &Tensor, arguments: &[Option<&Tensor>]) -> Result<Tensor> {
    if GradMode::is_enabled() && arguments.iter().flatten().any(|argument| argument.requires_grad()) {
        return at::clone(self_, None);
    }
    Ok(self_.clone())
}

/// The in-place form of an operator that has none of its own.
pub fn write_inplace(name: &str, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
    check!(
        can_cast(result.dtype(), self_.dtype()),
        "{name}(): result type {} can't be cast to the desired output type {}",
        result.dtype(),
        self_.dtype()
    );
    check!(
        sym::expect_same_sizes(self_, result)?,
        "output with shape {:?} doesn't match the broadcast shape {:?}",
        self_.sym_sizes(),
        result.sym_sizes()
    );
    at::copy_(self_, result, false)
}

/// [`write_out`] or [`write_inplace`] for each tensor of a list.
pub fn write_list(
    name: &str,
    written: &[Tensor],
    results: &[Tensor],
    write: fn(&str, &Tensor, &Tensor) -> Result<Tensor>,
) -> Result<()> {
    check!(
        written.len() == results.len(),
        "{name}(): expected {} tensors to write to, got {}",
        results.len(),
        written.len()
    );
    written.iter().zip(results).try_for_each(|(to, from)| write(name, to, from).map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use DispatchKey::{AutogradCPU, Conjugate, Meta, Negative, Python, CPU, CUDA};

    #[test]
    fn a_wrapper_runs_the_kernel_of_the_backend_it_was_called_for() {
        let key = |keys: &[DispatchKey]| kernel_key(DispatchKeySet::from_keys(keys));
        assert_eq!(key(&[CPU]), Some(CPU));
        assert_eq!(key(&[CPU, AutogradCPU, Conjugate, Negative, Python]), Some(CPU));
        // A number on the CPU beside a tensor elsewhere.
        assert_eq!(key(&[CPU, CUDA]), Some(CUDA));
        assert_eq!(key(&[CPU, Meta]), None);
    }
}
