//! Operators that write to the tensors of a list and return nothing.

use std::sync::OnceLock;

use autograd::kernel::autograd_kernel;
use autograd::{variable, BackwardCtx, DerivativeEntry, SavedArg};
use c10::{DispatchKey, DispatchKeySet, Result, Scalar, Tensor};
use dispatch::{IValue, KernelFunction, Library, LibraryKind, OperatorHandle, Stack};
use ops::at;

use crate::backend::{grad_values, init, leaf, values};

static EXP_ALL: DerivativeEntry = DerivativeEntry {
    op: "aten::exp_all_",
    node_name: "ExpAllBackward0",
    source: "a test",
    differentiable: &[0],
    saved: &[SavedArg::Output { ret: 0, needed_by: 0 }],
    output_differentiability: &[],
    forward: None,
    backward: exp_all_backward,
};

fn exp_all_backward(ctx: &mut BackwardCtx<'_>) -> Result<()> {
    let results = ctx.tensor_list(0)?;
    let grads = results.iter().enumerate().map(|(i, result)| {
        let grad = ctx.grad(i);
        grad.map(|grad| at::mul_tensor(grad, result)).transpose()
    });
    let grads = grads.collect::<Result<Vec<_>>>()?;
    ctx.set_grad(0, grads);
    Ok(())
}

fn exp_all(_: OperatorHandle, _: DispatchKeySet, stack: &mut Stack) -> Result<()> {
    for tensor in stack[0].to_tensor_list()?.iter() {
        at::exp_(tensor)?;
    }
    stack.clear();
    Ok(())
}

/// The operators with that kernel, one with a derivative and one without.
fn operators() -> [OperatorHandle; 2] {
    static OPERATORS: OnceLock<[OperatorHandle; 2]> = OnceLock::new();
    *OPERATORS.get_or_init(|| {
        init();
        let mut library = Library::new(LibraryKind::Fragment, "aten");
        let ops = ["exp_all_", "exp_all_no_derivative_"].map(|name| {
            let op = library.def(&format!("{name}(Tensor(a!)[] self) -> ()"), &[]).unwrap();
            library.impl_(name, DispatchKey::CPU, KernelFunction::from_boxed(exp_all)).unwrap();
            autograd::register_ad_inplace_or_view(&mut library, op).unwrap();
            op
        });
        library.impl_("exp_all_", DispatchKey::Autograd, autograd_kernel(&EXP_ALL)).unwrap();
        library.leak();
        ops
    })
}

fn call(op: OperatorHandle, tensors: &[&Tensor]) {
    let list: Vec<Tensor> = tensors.iter().map(|&t| t.clone()).collect();
    let mut stack: Stack = smallvec::smallvec![IValue::from(list)];
    op.call_boxed(&mut stack).unwrap();
    assert!(stack.is_empty());
}

fn twice(x: &Tensor) -> Tensor {
    at::mul_scalar(x, &Scalar::Float(2.0)).unwrap()
}

#[test]
fn each_tensor_of_a_written_list_gets_the_history() {
    let [op, _] = operators();
    let (x, y) = (leaf(&[1], &[0.0]), leaf(&[1], &[1.0]));
    let (a, b) = (twice(&x), twice(&y));
    call(op, &[&a, &b]);
    assert_eq!(variable::grad_fn(&b).unwrap().unwrap().name(), "ExpAllBackward0");
    assert_eq!(variable::version(&a), 1);
    let expected = 2.0 * values(&b)[0];
    autograd::backward(&[at::sum(&b, None).unwrap()], &[], None, true, None).unwrap();
    assert_eq!(grad_values(&y), [expected]);
    autograd::backward(&[at::sum(&a, None).unwrap()], &[], None, false, None).unwrap();
    assert_eq!(grad_values(&x), [2.0]);
}

#[test]
fn without_a_derivative_what_was_written_refuses_gradients() {
    let [_, op] = operators();
    let x = leaf(&[1], &[0.0]);
    let a = twice(&x);
    call(op, &[&a]);
    let error = autograd::backward(&[at::sum(&a, None).unwrap()], &[], None, false, None).unwrap_err();
    assert!(error.message().contains("derivative for aten::exp_all_no_derivative_"), "{error}");
}
