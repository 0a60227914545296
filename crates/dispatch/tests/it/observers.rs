//! Observers see calls from the front door, with inputs and outputs, and nothing once they are gone.

use std::any::Any;
use std::sync::{Arc, Mutex};

use c10::{empty_cpu, DispatchKey, DispatchKeySet, Result, ScalarType, Tensor};
use dispatch::observer::{add_observer, CallInfo, Observer};
use dispatch::{IValue, KernelFunction, Library, LibraryKind, OperatorHandle, TypedOp};

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Observer for Log {
    fn on_enter(&self, call: &CallInfo<'_>) -> Option<Box<dyn Any>> {
        // Other tests of this process run at the same time.
        if call.op.name().name == "observers::f" {
            self.0.lock().unwrap().push(format!("enter {} inputs", call.inputs.len()));
        }
        Some(Box::new(42i32))
    }
    fn on_exit(&self, op: OperatorHandle, outputs: Option<&[IValue]>, context: Option<Box<dyn Any>>) {
        assert_eq!(context.and_then(|c| c.downcast::<i32>().ok()).as_deref(), Some(&42));
        if op.name().name == "observers::f" {
            self.0.lock().unwrap().push(format!("exit {:?}", outputs.map(<[IValue]>::len)));
        }
    }
}

#[test]
fn calls_are_seen_while_an_observer_lives() {
    fn f(_: DispatchKeySet, (x,): (&Tensor,)) -> Result<Tensor> {
        c10::check!(x.numel()? > 0, "f(): expected elements");
        Ok(x.clone())
    }
    super::pass_by_autograd();
    let mut library = Library::new(LibraryKind::Def, "observers");
    library.def("f(Tensor x) -> Tensor", &[]).unwrap();
    library.impl_("f", DispatchKey::CPU, KernelFunction::from_unboxed::<(Tensor,), Tensor>(f)).unwrap();
    let op: TypedOp<(Tensor,), Tensor> = TypedOp::new("observers::f", "");
    let (x, empty) =
        (empty_cpu(&[1], ScalarType::Float).unwrap(), empty_cpu(&[0], ScalarType::Float).unwrap());

    let log = Arc::new(Log::default());
    let handle = add_observer(log.clone());
    op.call((&x,)).unwrap();
    assert!(op.call((&empty,)).is_err());
    drop(handle);
    op.call((&x,)).unwrap();
    let seen = log.0.lock().unwrap().clone();
    assert_eq!(seen, ["enter 1 inputs", "exit Some(1)", "enter 1 inputs", "exit None"]);
}
