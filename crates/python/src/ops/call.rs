//! The trampoline: parse, let others take over, run, wrap.

use c10::{AutoDispatchBelowADInplaceOrView, DispatchKey, DispatchKeySet, OperatorHold, SymInt, Tensor};
use dispatch::{IValue, OpInfo, OperatorHandle, Stack};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::parser::{Call, Parsed};
use super::signature::{OutSource, Signature};
use super::{error_text, return_types, torch_function, OpTable};
use crate::convert::{ivalue, warnings};
use crate::raw::objects::{self, NewError};
use crate::raw::Res;

/// Inputs of more elements than this let other threads run Python meanwhile. Below, releasing the lock and fighting
/// for it again costs more than the work.
const RELEASE_ABOVE_NUMEL: i64 = 65536;

/// Calls a function or method. `Ok(None)` if the arguments fit no signature, and nothing has been raised.
#[inline]
pub(crate) fn try_call(call: &mut Call<'_, '_>) -> Res<Option<*mut ffi::PyObject>> {
    let signatures = call.table.signatures(call.py)?;
    let mut stack = Stack::new();
    let Some(parsed) = call.parse(signatures, &mut stack)? else { return Ok(None) };
    if !call.context.overloaded.is_empty() || torch_function::modes_active() {
        if let Some(result) = torch_function::handle(call)? {
            return Ok(Some(result));
        }
    }
    run_parsed(call, &parsed, &mut stack).map(Some)
}

/// Calls a function or method.
#[inline]
pub(crate) fn call(call: &mut Call<'_, '_>) -> Res<*mut ffi::PyObject> {
    match try_call(call)? {
        Some(result) => Ok(result),
        None => Err(error_text::no_match(call, call.table.signatures(call.py)?)),
    }
}

fn run_parsed(call: &Call<'_, '_>, parsed: &Parsed<'_>, stack: &mut Stack) -> Res<*mut ffi::PyObject> {
    let (py, table) = (call.py, call.table);
    let signature = parsed.signature;
    if let Some(index) = signature.factory_device {
        if stack[index].is_none() {
            if let Some(device) = c10::get_default_device() {
                stack[index] = device.into();
            }
        }
    }
    let op = match (&parsed.out, &signature.op) {
        (IValue::None, Some(op)) => *op,
        (out, _) => {
            let (op, out_stack) = with_outputs(call, signature, out, stack)?;
            *stack = out_stack;
            op
        }
    };
    {
        // Filling a fresh tensor is no modification: it starts at version 0, without history.
        let _guard =
            (signature.is_factory && parsed.out.is_none()).then(AutoDispatchBelowADInplaceOrView::new);
        run(py, op, stack)?;
    }
    warnings::emit_pending()?;
    if parsed.requires_grad {
        if let Some(IValue::Tensor(result)) = stack.last() {
            crate::tensor::require_grad(result)?;
        }
    }
    wrap_returns(py, table, stack)
}

/// The stack of the `out=` form.
fn with_outputs(
    call: &Call<'_, '_>,
    signature: &Signature,
    out: &IValue,
    stack: &Stack,
) -> Res<(OperatorHandle, Stack)> {
    let table = call.table;
    let Some((op, sources)) = &signature.out else {
        return Err(PyTypeError::error(format!("{}() takes no argument 'out'", table.name())).into());
    };
    let outs: smallvec::SmallVec<[Tensor; 2]> = match out {
        IValue::Tensor(t) => smallvec::smallvec![t.clone()],
        IValue::TensorList(list) => list.iter().cloned().collect(),
        _ => smallvec::SmallVec::new(),
    };
    let expected = sources.iter().filter(|s| matches!(s, OutSource::Out(_))).count();
    if outs.len() != expected {
        return Err(PyTypeError::error(format!(
            "{}(): argument 'out' must be tuple of {expected} Tensors, got {}",
            table.name(),
            outs.len()
        ))
        .into());
    }
    if let Some(op) = signature.op {
        check_output_options(call, &op, stack, &outs)?;
    }
    let values = sources
        .iter()
        .map(|source| match source {
            OutSource::Argument(i) => stack[*i].clone(),
            OutSource::Out(i) => IValue::Tensor(outs[*i].clone()),
        })
        .collect();
    Ok((*op, values))
}

/// A factory's dtype, layout and device must be those of `out`, if given.
fn check_output_options(call: &Call<'_, '_>, op: &OperatorHandle, stack: &Stack, outs: &[Tensor]) -> Res<()> {
    let schema = op.schema()?;
    if !schema.has_tensor_options() {
        return Ok(());
    }
    let Some(out) = outs.first() else { return Ok(()) };
    let given = |name: &str| schema.argument_index(name).map(|i| &stack[i]).filter(|v| !v.is_none());
    if let Some(IValue::ScalarType(dtype)) = given("dtype") {
        // One that stands in the schema (`randperm`) is not the caller's.
        if *dtype != out.dtype() && call.names("dtype") {
            return Err(c10::Error::runtime(format!(
                "dtype torch.{} does not match dtype of out parameter (torch.{})",
                dtype.name(),
                out.dtype().name()
            ))
            .into());
        }
    }
    if let Some(IValue::Layout(layout)) = given("layout") {
        if *layout != out.layout() {
            return Err(c10::Error::runtime(format!(
                "layout torch.{} does not match layout of out parameter (torch.{})",
                layout.python_name(),
                out.layout().python_name()
            ))
            .into());
        }
    }
    if let Some(IValue::Device(device)) = given("device") {
        if device.type_ != out.device().type_ {
            return Err(c10::Error::runtime(format!(
                "device type {} does not match device type of out parameter ({})",
                device.type_.lower_case_name(),
                out.device().type_.lower_case_name()
            ))
            .into());
        }
    }
    Ok(())
}

/// Runs an operator on a stack, without the interpreter's lock if the work is large.
#[inline]
pub(crate) fn run(py: Python<'_>, op: OperatorHandle, stack: &mut Stack) -> Res<()> {
    let info = op.info()?;
    // `resize_` and its like are quick, and change their argument under the lock anyway.
    let large = (info.is_out || info.reshaped.is_empty()) && is_large(stack);
    if !large && info.reshaped.is_empty() && !info.is_random {
        op.call_boxed(stack)?;
        return Ok(());
    }
    run_held(py, op, info, stack, large)
}

/// Runs an operator that other threads may meet: see c10's Note [Pinned tensors].
fn run_held(py: Python<'_>, op: OperatorHandle, info: &OpInfo, stack: &mut Stack, large: bool) -> Res<()> {
    if python_takes_part(stack) {
        // What `__torch_dispatch__` calls in its turn comes here again.
        op.call_boxed(stack)?;
        return Ok(());
    }
    let (mut pinned, mut claimed) = (TensorVec::new(), TensorVec::new());
    // Random operators may have to wait for their generator.
    if large || info.is_random {
        for value in stack.iter() {
            value.for_each_tensor(&mut |tensor| {
                pinned.push(tensor.clone());
                // An in-place operator rewrites the history of a view's base.
                pinned.extend(autograd::variable::base(tensor));
            });
        }
    }
    for &argument in &info.reshaped {
        stack[argument].for_each_tensor(&mut |tensor| claimed.push(tensor.clone()));
    }
    let hold = OperatorHold::acquire(&pinned, &claimed);
    let result = if large { py.detach(|| op.call_boxed(stack)) } else { op.call_boxed(stack) };
    drop(hold);
    Ok(result?)
}

type TensorVec = smallvec::SmallVec<[Tensor; 4]>;

/// Runs what a single tensor is converted by, as [`run`] would: without the interpreter's lock if the tensor is large.
pub(crate) fn run_on<R: Send>(py: Python<'_>, tensor: &Tensor, body: impl FnOnce() -> R + Send) -> R {
    let large = tensor.numel().is_ok_and(|numel| numel > RELEASE_ABOVE_NUMEL);
    if !large || has_python_key(tensor.key_set()) {
        return body();
    }
    let _hold = OperatorHold::acquire(std::slice::from_ref(tensor), &[]);
    py.detach(body)
}

/// Whether a mode, or the class of an argument, has a `__torch_dispatch__`.
fn python_takes_part(stack: &Stack) -> bool {
    let mut keys = DispatchKeySet::EMPTY;
    for value in stack {
        value.for_each_tensor(&mut |tensor| keys |= tensor.key_set());
    }
    has_python_key(keys)
}

fn has_python_key(of_arguments: DispatchKeySet) -> bool {
    (of_arguments | c10::tls_local_dispatch_key_set().included).has(DispatchKey::Python)
}

/// Whether a call may take long: by the elements of its tensors, or, where it has none, by the sizes that it is given.
#[inline]
fn is_large(stack: &Stack) -> bool {
    let mut numel = None;
    let mut count = |t: &Tensor| {
        numel = Some(numel.unwrap_or(0i64).saturating_add(t.numel().unwrap_or(0)));
    };
    for value in stack {
        match value {
            IValue::Tensor(t) => count(t),
            IValue::TensorList(list) => list.iter().for_each(&mut count),
            _ => {}
        }
    }
    numel.unwrap_or_else(|| factory_numel(stack)) > RELEASE_ABOVE_NUMEL
}

/// A bound on the elements that a factory makes: its largest integer (`arange`, `randperm`) or product of sizes.
fn factory_numel(stack: &Stack) -> i64 {
    let known = |size: &SymInt| size.maybe_as_int().unwrap_or(0);
    let numel = |value: &IValue| match value {
        IValue::Int(n) => *n,
        IValue::SymInt(n) => known(n),
        IValue::Double(x) => *x as i64,
        IValue::IntList(sizes) => sizes.iter().fold(1, |product: i64, &n| product.saturating_mul(n)),
        IValue::SymIntList(sizes) => sizes.iter().fold(1, |product: i64, n| product.saturating_mul(known(n))),
        _ => 0,
    };
    stack.iter().map(numel).max().unwrap_or(0)
}

/// What an operator left on the stack, as PyTorch's Python functions return it.
#[inline]
pub(crate) fn wrap_returns(py: Python<'_>, table: &OpTable, stack: &mut Stack) -> Res<*mut ffi::PyObject> {
    match stack.len() {
        1 => {
            let value = std::mem::take(&mut stack[0]);
            ivalue::into_python(py, value)
        }
        0 => Ok(py.None().into_ptr()),
        n if n == table.binding().return_fields.len() => return_types::make(py, table.binding(), stack),
        n => {
            let tuple = objects::tuple_of(py, n, |i| ivalue::into_python(py, std::mem::take(&mut stack[i])))?;
            Ok(tuple.into_ptr())
        }
    }
}
