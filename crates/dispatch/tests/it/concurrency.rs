//! Registration and removal while other threads call.

use std::sync::atomic::{AtomicBool, Ordering};

use c10::{empty_cpu, DispatchKey, DispatchKeySet, Result, ScalarType, Tensor};
use dispatch::{KernelFunction, Library, LibraryKind, TypedOp};

#[test]
fn calls_never_see_a_half_made_table() {
    fn one(_: DispatchKeySet, (_x,): (&Tensor,)) -> Result<i64> {
        Ok(1)
    }
    fn two(_: DispatchKeySet, (_x,): (&Tensor,)) -> Result<i64> {
        Ok(2)
    }
    super::pass_by_autograd();
    let mut library = Library::new(LibraryKind::Def, "concurrency");
    library.def("f(Tensor x) -> int", &[]).unwrap();
    library.impl_("f", DispatchKey::CPU, KernelFunction::from_unboxed::<(Tensor,), i64>(one)).unwrap();
    static OP: TypedOp<(Tensor,), i64> = TypedOp::new("concurrency::f", "");
    let x = empty_cpu(&[1], ScalarType::Float).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut counts = [0usize; 3];
                    while !done.load(Ordering::Relaxed) {
                        counts[OP.call((&x,)).unwrap() as usize] += 1;
                    }
                    counts
                })
            })
            .collect();
        for _ in 0..500 {
            let mut second = Library::new(LibraryKind::Impl, "concurrency");
            let kernel = KernelFunction::from_unboxed::<(Tensor,), i64>(two);
            second.impl_("f", DispatchKey::CPU, kernel).unwrap();
            assert_eq!(OP.call((&x,)).unwrap(), 2);
            drop(second);
            assert_eq!(OP.call((&x,)).unwrap(), 1);
        }
        done.store(true, Ordering::Relaxed);
        for caller in callers {
            let counts = caller.join().unwrap();
            assert_eq!(counts[0], 0);
        }
    });
}
