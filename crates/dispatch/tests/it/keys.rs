//! Which kernel serves a call.

use c10::{empty_cpu, AutoDispatchBelowAutograd, DispatchKey, DispatchKeySet, Result, ScalarType, Tensor};
use dispatch::{KernelFunction, Library, LibraryKind, OperatorHandle, Stack, TypedOp};

fn answer(value: i64) -> KernelFunction {
    KernelFunction::from_boxed_closure(move |op, _, stack| {
        stack.truncate(stack.len() - op.schema()?.arguments.len());
        stack.push(value.into());
        Ok(())
    })
}

struct Fixture {
    library: Library,
    op: TypedOp<(Tensor,), i64>,
    x: Tensor,
}

fn fixture(namespace: &'static str) -> Fixture {
    super::pass_by_autograd();
    let name: &'static str = Box::leak(format!("{namespace}::f").into_boxed_str());
    let mut library = Library::new(LibraryKind::Def, namespace);
    library.def("f(Tensor x) -> int", &[]).unwrap();
    Fixture { library, op: TypedOp::new(name, ""), x: empty_cpu(&[1], ScalarType::Float).unwrap() }
}

#[test]
fn a_missing_kernel_is_named() {
    let Fixture { library: _library, op, x } = fixture("keys_missing");
    let error = op.call((&x,)).unwrap_err();
    assert_eq!(error.kind(), c10::ErrorKind::NotImplemented);
    assert!(error.message().contains("Could not run 'keys_missing::f'"), "{error}");
}

#[test]
fn autograd_comes_before_the_backend_and_can_be_excluded() {
    let Fixture { mut library, op, x } = fixture("keys_autograd");
    library.impl_("f", DispatchKey::CPU, answer(1)).unwrap();
    library.impl_("f", DispatchKey::Autograd, answer(2)).unwrap();
    assert_eq!(op.call((&x,)).unwrap(), 2);
    {
        let _below = AutoDispatchBelowAutograd::new();
        assert_eq!(op.call((&x,)).unwrap(), 1);
    }
    assert_eq!(op.call((&x,)).unwrap(), 2);
}

#[test]
fn redispatch_goes_on_below() {
    fn autograd(op: OperatorHandle, keys: DispatchKeySet, stack: &mut Stack) -> Result<()> {
        op.redispatch_boxed(keys & c10::after_autograd_keyset, stack)?;
        let below = stack.pop().unwrap_or_default().to_int()?;
        stack.push((below + 10).into());
        Ok(())
    }
    let Fixture { mut library, op, x } = fixture("keys_redispatch");
    library.impl_("f", DispatchKey::CPU, answer(1)).unwrap();
    library.impl_("f", DispatchKey::AutogradCPU, KernelFunction::from_boxed(autograd)).unwrap();
    assert_eq!(op.call((&x,)).unwrap(), 11);
}

#[test]
fn composites_yield_to_direct_kernels() {
    let Fixture { mut library, op, x } = fixture("keys_composite");
    library.impl_("f", DispatchKey::CompositeImplicitAutograd, answer(1)).unwrap();
    assert_eq!(op.call((&x,)).unwrap(), 1, "serves the autograd key too");
    library.impl_("f", DispatchKey::CompositeExplicitAutograd, answer(2)).unwrap();
    let _below = AutoDispatchBelowAutograd::new();
    assert_eq!(op.call((&x,)).unwrap(), 2);
    library.impl_("f", DispatchKey::CPU, answer(3)).unwrap();
    assert_eq!(op.call((&x,)).unwrap(), 3);
}

#[test]
fn the_newest_registration_wins_until_it_is_dropped() {
    let Fixture { mut library, op, x } = fixture("keys_newest");
    library.impl_("f", DispatchKey::CPU, answer(1)).unwrap();
    assert_eq!(op.call((&x,)).unwrap(), 1);
    let mut second = Library::new(LibraryKind::Impl, "keys_newest");
    second.impl_("f", DispatchKey::CPU, answer(2)).unwrap();
    assert_eq!(op.call((&x,)).unwrap(), 2);
    drop(second);
    assert_eq!(op.call((&x,)).unwrap(), 1);
}

#[test]
fn fallthrough_for_one_backend_goes_to_the_next_key() {
    let Fixture { mut library, op, x } = fixture("keys_fallthrough");
    library.impl_("f", DispatchKey::CPU, answer(1)).unwrap();
    library.impl_("f", DispatchKey::AutogradCPU, KernelFunction::fallthrough()).unwrap();
    library.impl_("f", DispatchKey::AutogradCUDA, answer(9)).unwrap();
    assert_eq!(op.call((&x,)).unwrap(), 1);
}

#[test]
fn a_fallback_serves_operators_without_a_kernel() {
    let Fixture { library: _library, op, x } = fixture("keys_fallback");
    let mut fallbacks = Library::new(LibraryKind::Impl, "_");
    fallbacks.fallback(DispatchKey::FuncTorchVmapMode, answer(5)).unwrap();
    let _include = c10::IncludeDispatchKeyGuard::new(DispatchKey::FuncTorchVmapMode);
    assert_eq!(op.call((&x,)).unwrap(), 5);
    drop(fallbacks);
    assert!(op.call((&x,)).is_err());
}

#[test]
fn kernels_of_another_signature_are_refused() {
    fn one(_: DispatchKeySet, (_x,): (&Tensor,)) -> Result<i64> {
        Ok(1)
    }
    fn other(_: DispatchKeySet, (_x, _y): (&Tensor, &Tensor)) -> Result<i64> {
        Ok(2)
    }
    let Fixture { mut library, .. } = fixture("keys_signature");
    library.impl_("f", DispatchKey::CPU, KernelFunction::from_unboxed::<(Tensor,), i64>(one)).unwrap();
    let kernel = KernelFunction::from_unboxed::<(Tensor, Tensor), i64>(other);
    assert!(library.impl_("f", DispatchKey::CUDA, kernel).unwrap_err().message().contains("signature"));
}
