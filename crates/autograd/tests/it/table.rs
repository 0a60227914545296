//! Entries of the derivative table that no operator of the tests' backend has.

use std::sync::Once;

use autograd::forward_ad::{fw_grad, set_fw_grad};
use autograd::kernel::autograd_kernel;
use autograd::{variable, BackwardCtx, DerivativeEntry, MetaKind, SavedArg};
use c10::{DispatchKey, ErrorKind, Result, Tensor};
use dispatch::{Library, LibraryKind, TypedOp};
use ops::at;

use crate::backend::{grad_values, init, leaf, tensor, values};

static SCALE: TypedOp<(Tensor, Tensor), Tensor> = TypedOp::new("aten::scale_by_running", "");
static NEG: TypedOp<(Tensor,), Tensor> = TypedOp::new("table_tests::neg", "");

/// `scale_by_running` saves the statistics that it writes to.
static SCALE_ENTRY: DerivativeEntry = DerivativeEntry {
    op: "aten::scale_by_running",
    node_name: "ScaleByRunningBackward0",
    source: "table.rs",
    differentiable: &[0],
    saved: &[SavedArg::Input { arg: 1, needed_by: 0b1 }],
    output_differentiability: &[],
    forward: None,
    backward: |ctx: &mut BackwardCtx<'_>| {
        let (running, grad) = (ctx.tensor(0)?, ctx.grad_or_zeros(0)?);
        ctx.set_grad(0, at::mul_tensor(&grad, &running)?);
        Ok(())
    },
};

/// A formula that asks for the strides where the sizes were saved.
static MISUSED: DerivativeEntry = DerivativeEntry {
    op: "table_tests::neg",
    node_name: "NegBackward0",
    source: "table.rs",
    differentiable: &[0],
    saved: &[SavedArg::Meta { arg: 0, what: MetaKind::SymSizes, needed_by: 0b1 }],
    output_differentiability: &[],
    forward: None,
    backward: |ctx: &mut BackwardCtx<'_>| {
        assert_eq!(ctx.sym_sizes(0)?.len(), 1);
        ctx.sym_strides(0).map(|_| ())
    },
};

fn start() {
    static ONCE: Once = Once::new();
    init();
    ONCE.call_once(|| register().unwrap());
}

fn register() -> Result<()> {
    let mut aten = Library::new(LibraryKind::Impl, "aten");
    aten.impl_("scale_by_running", DispatchKey::AutogradCPU, autograd_kernel(&SCALE_ENTRY))?;
    aten.leak();
    let mut own = Library::new(LibraryKind::Def, "table_tests");
    own.def("neg(Tensor self) -> Tensor", &[])?;
    own.impl_(
        "neg",
        DispatchKey::CPU,
        dispatch::KernelFunction::from_unboxed::<(Tensor,), Tensor>(|_, (a,)| at::neg(a)),
    )?;
    own.impl_("neg", DispatchKey::AutogradCPU, autograd_kernel(&MISUSED))?;
    own.leak();
    Ok(())
}

fn backward(t: &Tensor) -> Result<()> {
    autograd::backward(std::slice::from_ref(t), &[], None, true, None)
}

#[test]
fn what_is_written_on_the_side_is_saved_as_it_is() -> Result<()> {
    start();
    let (x, running) = (leaf(&[], &[2.0]), tensor(&[], &[0.0]));
    let first = SCALE.call((&x, &running))?;
    let second = SCALE.call((&x, &running))?;
    assert_eq!((values(&first)[0], values(&second)[0]), (2.0, 4.0));
    assert_eq!(variable::version(&running), 0, "the operator's own write does not count");
    // The second call has not invalidated the first one's graph; the formula sees the statistics of now.
    backward(&first)?;
    assert_eq!(grad_values(&x), [2.0]);
    at::mul__tensor(&running, &tensor(&[], &[10.0]))?;
    let error = backward(&second).unwrap_err();
    assert!(error.message().contains("is at version 1; expected version 0"), "{error}");
    Ok(())
}

#[test]
fn a_formula_that_reads_another_fact_than_was_saved_fails() -> Result<()> {
    start();
    let y = NEG.call((&leaf(&[2], &[1.0, 2.0]),))?;
    let error = autograd::backward(&[y], &[Some(tensor(&[2], &[1.0, 1.0]))], None, false, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(error.message().contains("NegBackward0 (table.rs): the formula uses saved fact 0"), "{error}");
    Ok(())
}

#[test]
fn linear_operators_pass_tangents_on_and_others_say_that_they_cannot() -> Result<()> {
    start();
    let (x, tangent) = (leaf(&[2], &[1.0, 2.0]), tensor(&[2], &[3.0, 4.0]));
    assert!(set_fw_grad(&x, Some(tensor(&[3], &[0.0; 3]))).is_err(), "another shape");
    set_fw_grad(&x, Some(tangent.clone()))?;
    let y = at::neg(&x)?;
    assert_eq!(values(&fw_grad(&y).unwrap()), [-3.0, -4.0]);
    // Beside the record for backward.
    assert_eq!(variable::grad_fn(&y)?.unwrap().name(), "NegBackward0");
    let view = at::select_int(&y, 0, &1.into())?;
    assert_eq!(values(&fw_grad(&view).unwrap()), [-4.0]);
    assert_eq!(values(&tangent), [3.0, 4.0]);
    assert!(fw_grad(&at::detach(&y)?).is_none());

    let error = at::exp(&x).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotImplemented);
    assert!(error.message().contains("forward AD with exp "), "{error}");
    set_fw_grad(&x, None)?;
    assert!(fw_grad(&at::exp(&x)?).is_none());
    Ok(())
}
