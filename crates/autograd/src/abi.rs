//! Gradients across the stable ABI: graph nodes whose backward function lives in an extension.

use std::any::Any;
use std::borrow::Cow;
use std::ffi::c_void;

use abi::{AbiError, AbiKernel, AbiStack, AbiStr};
use c10::{check, DispatchKeySet, GradMode, Result, Tensor};
use dispatch::abi_table::{catch, stack_from_raw, ForeignKernel};
use dispatch::{IValue, Stack};

use crate::custom_function::wrap_outputs;
use crate::edge::VariableList;
use crate::node::{Node, NodeFunction};
use crate::variable;

/// A node whose gradients an extension computes.
struct ForeignFunction {
    name: String,
    inputs: usize,
    backward: ForeignKernel,
}

impl NodeFunction for ForeignFunction {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.name)
    }

    fn apply(&self, _node: &Node, grads: VariableList) -> Result<VariableList> {
        let mut stack: Stack = grads.into_iter().map(IValue::from).collect();
        self.backward.call(None, DispatchKeySet::default(), &mut stack)?;
        check!(
            stack.len() == self.inputs,
            "{}: the extension's backward function gave {} gradients for {} inputs",
            self.name,
            stack.len(),
            self.inputs
        );
        stack
            .into_iter()
            .map(|value| match value {
                IValue::None => Ok(None),
                value => value.to_tensor().cloned().map(Some),
            })
            .collect()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// [`abi::Abi::autograd_record`].
///
/// # Safety
/// The stack must be live and lent for the call, the name live, and the kernel callable with its context from any
/// thread until the context is dropped.
pub unsafe extern "C" fn autograd_record(
    stack: *mut AbiStack,
    inputs: usize,
    outputs: usize,
    name: AbiStr,
    backward: AbiKernel,
    context: *mut c_void,
    drop_context: Option<unsafe extern "C" fn(*mut c_void)>,
) -> *mut AbiError {
    // SAFETY: the caller's promise.
    let (backward, stack, name) = unsafe {
        (ForeignKernel::new(backward, context, drop_context), stack_from_raw(stack), name.get().to_owned())
    };
    catch(|| record(stack, inputs, outputs, ForeignFunction { name, inputs, backward }))
}

fn record(stack: &mut Stack, inputs: usize, outputs: usize, function: ForeignFunction) -> Result<()> {
    let first_output = stack.len().checked_sub(outputs);
    let first_input = first_output.and_then(|first| first.checked_sub(inputs));
    let (Some(first_output), Some(first_input)) = (first_output, first_input) else {
        check!(
            false,
            "autograd_record(): expected {inputs} inputs and {outputs} outputs on the stack, got {} values",
            stack.len()
        );
        return Ok(());
    };
    let tensors = |values: &[IValue]| -> Vec<Option<Tensor>> {
        values.iter().map(|v| v.as_tensor().cloned()).collect()
    };
    let input_tensors = tensors(&stack[first_input..first_output]);
    if !GradMode::is_enabled() || !input_tensors.iter().flatten().any(variable::requires_grad) {
        return Ok(());
    }
    let raw_outputs = tensors(&stack[first_output..]);
    let node = Node::new(Box::new(function));
    // SAFETY: nobody else has the node yet.
    unsafe { node.set_next_edges(variable::collect_next_edges(input_tensors.iter().map(Option::as_ref))?) };
    let view_as_self = |tensor: &Tensor| ops::at::view(tensor, &tensor.sym_sizes());
    let wrapped = wrap_outputs(&input_tensors, &[], &[], raw_outputs, Some(&node), &[], &view_as_self)?;
    for (slot, output) in stack[first_output..].iter_mut().zip(wrapped) {
        if let Some(output) = output {
            *slot = IValue::Tensor(output);
        }
    }
    Ok(())
}
