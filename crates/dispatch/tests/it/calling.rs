//! Every pairing of caller and kernel convention gives the same answer.

use c10::{empty_cpu, DispatchKey, DispatchKeySet, Result, Scalar, ScalarType, SymInt, Tensor};
use dispatch::{Dispatcher, IValue, KernelFunction, Library, LibraryKind, OperatorHandle, Stack, TypedOp};

type Args = (Tensor, Vec<SymInt>, Option<Scalar>, bool);

fn unboxed(
    _keys: DispatchKeySet,
    (tensor, sizes, scale, flag): (&Tensor, &[SymInt], Option<&Scalar>, bool),
) -> Result<i64> {
    let sizes: i64 = sizes.iter().map(|s| s.guard_int()).sum::<Result<i64>>()?;
    let scale = scale.map_or(Ok(1), |s| s.to_i64())?;
    Ok((tensor.numel()? + sizes) * scale + i64::from(flag))
}

fn boxed(op: OperatorHandle, _keys: DispatchKeySet, stack: &mut Stack) -> Result<()> {
    let arguments = stack.split_off_arguments(op)?;
    let sizes: i64 = arguments[1].to_int_list()?.iter().sum();
    let scale = if arguments[2].is_none() { 1 } else { arguments[2].to_int()? };
    let sum = (arguments[0].to_tensor()?.numel()? + sizes) * scale + i64::from(arguments[3].to_bool()?);
    stack.push(IValue::Int(sum));
    Ok(())
}

trait SplitOff {
    fn split_off_arguments(&mut self, op: OperatorHandle) -> Result<Vec<IValue>>;
}

impl SplitOff for Stack {
    fn split_off_arguments(&mut self, op: OperatorHandle) -> Result<Vec<IValue>> {
        let first = self.len() - op.schema()?.arguments.len();
        Ok(self.drain(first..).collect())
    }
}

fn check(namespace: &'static str, kernel: KernelFunction) {
    let name: &'static str = Box::leak(format!("{namespace}::f").into_boxed_str());
    super::pass_by_autograd();
    let mut library = Library::new(LibraryKind::Def, namespace);
    let op = library
        .def("f(Tensor x, SymInt[] sizes, Scalar? scale=None, *, bool flag=False) -> int", &[])
        .unwrap();
    library.impl_("f", DispatchKey::CPU, kernel).unwrap();
    let tensor = empty_cpu(&[2, 3], ScalarType::Float).unwrap();
    let sizes = [SymInt::from(4), SymInt::from(5)];

    let typed: TypedOp<Args, i64> = TypedOp::new(name, "");
    assert_eq!(typed.call((&tensor, &sizes, Some(&Scalar::Int(2)), true)).unwrap(), 31);
    assert_eq!(typed.call((&tensor, &sizes, None, false)).unwrap(), 15);

    // The value beneath the arguments stays.
    let mut stack = Stack::new();
    stack.push(IValue::Int(77));
    stack.push(tensor.clone().into());
    stack.push(IValue::IntList([4i64, 5].into()));
    stack.push(IValue::Int(2));
    stack.push(IValue::Bool(true));
    op.call_boxed(&mut stack).unwrap();
    assert_eq!(stack.len(), 2);
    assert_eq!(stack[1].to_int().unwrap(), 31);
    assert_eq!(stack[0].to_int().unwrap(), 77);
    assert_eq!(tensor.use_count(), 1, "no reference is kept");
}

#[test]
fn an_unboxed_kernel_serves_both_callers() {
    check("calling_unboxed", KernelFunction::from_unboxed::<Args, i64>(unboxed));
}

#[test]
fn a_boxed_kernel_serves_both_callers() {
    check("calling_boxed", KernelFunction::from_boxed(boxed));
}

#[test]
fn wrong_values_on_the_stack_are_errors() {
    super::pass_by_autograd();
    let mut library = Library::new(LibraryKind::Def, "calling_errors");
    let op = library
        .def("f(Tensor x, SymInt[] sizes, Scalar? scale=None, *, bool flag=False) -> int", &[])
        .unwrap();
    library.impl_("f", DispatchKey::CPU, KernelFunction::from_unboxed::<Args, i64>(unboxed)).unwrap();
    let error = op.call_boxed(&mut Stack::new()).unwrap_err();
    assert!(error.message().contains("expected 4 arguments"), "{error}");
    let tensor = empty_cpu(&[1], ScalarType::Float).unwrap();
    let mut stack: Stack =
        [tensor.into(), IValue::from("no list"), IValue::None, IValue::Bool(false)].into_iter().collect();
    let error = op.call_boxed(&mut stack).unwrap_err();
    assert!(error.to_string().contains("expected a value of type SymInt[], got str"), "{error}");
}

#[test]
fn several_returns_come_in_order() {
    fn two(_keys: DispatchKeySet, (x,): (&Tensor,)) -> Result<(Tensor, Tensor)> {
        Ok((x.clone(), empty_cpu(&[7], ScalarType::Long)?))
    }
    super::pass_by_autograd();
    let mut library = Library::new(LibraryKind::Def, "calling_two");
    let op = library.def("two(Tensor x) -> (Tensor, Tensor)", &[]).unwrap();
    library
        .impl_("two", DispatchKey::CPU, KernelFunction::from_unboxed::<(Tensor,), (Tensor, Tensor)>(two))
        .unwrap();
    let x = empty_cpu(&[1], ScalarType::Float).unwrap();
    let mut stack: Stack = [x.clone().into()].into_iter().collect();
    op.call_boxed(&mut stack).unwrap();
    assert!(stack[0].to_tensor().unwrap().is_same(&x));
    assert_eq!(stack[1].to_tensor().unwrap().sizes().unwrap(), [7]);
    let typed: TypedOp<(Tensor,), (Tensor, Tensor)> = TypedOp::new("calling_two::two", "");
    assert_eq!(typed.call((&x,)).unwrap().1.dtype(), ScalarType::Long);
}

#[test]
fn definitions_and_lookups() {
    super::pass_by_autograd();
    let mut library = Library::new(LibraryKind::Def, "calling_defs");
    library.def("f.a(Tensor x) -> Tensor", &["core"]).unwrap();
    assert!(library.def("f.a(Tensor x) -> Tensor", &[]).unwrap_err().message().contains("multiple times"));
    assert!(library.def("other::f(Tensor x) -> Tensor", &[]).is_err(), "another namespace");
    assert!(library.def("g(Tensor x", &[]).is_err(), "a malformed schema is refused at once");
    let op = Dispatcher::find_schema("calling_defs::f", "a").unwrap();
    assert_eq!(op.schema().unwrap().to_string(), "calling_defs::f.a(Tensor x) -> Tensor");
    assert_eq!(op.tags().as_slice(), ["core"]);
    assert!(Dispatcher::find_schema("calling_defs::f", "").is_none());
    drop(library);
    assert!(Dispatcher::find_schema("calling_defs::f", "a").is_none(), "dropping the library takes it back");
}
