//! Registration and removal while other threads call.

use std::sync::atomic::{AtomicBool, Ordering};

use c10::{empty_cpu, DispatchKey, DispatchKeySet, Result, ScalarType, Tensor};
use dispatch::{KernelFunction, Library, LibraryKind, OperatorHandle, Stack, TypedOp};

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

/// A child forked while other threads register operators must not wait for a lock of theirs.
#[test]
fn a_child_forked_during_registrations_can_define_and_call() {
    const FORKS: usize = 60;
    fn answer(_: OperatorHandle, _: DispatchKeySet, stack: &mut Stack) -> Result<()> {
        stack.clear();
        stack.push(42.into());
        Ok(())
    }
    let define_and_call = |namespace: &'static str| {
        let mut library = Library::new(LibraryKind::Def, namespace);
        let op = library.def("f(int x) -> int", &[]).unwrap();
        let kernel = KernelFunction::from_boxed(answer);
        library.impl_("f", DispatchKey::CompositeExplicitAutograd, kernel).unwrap();
        let mut stack: Stack = smallvec::smallvec![1.into()];
        op.call_boxed(&mut stack).unwrap();
        stack[0].to_int().unwrap() == 42
    };
    let stop = AtomicBool::new(false);
    let failed = std::thread::scope(|scope| {
        for namespace in ["forked_a", "forked_b"] {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    assert!(define_and_call(namespace));
                }
            });
        }
        let failed = (0..FORKS).filter(|_| !child_succeeds(|| define_and_call("forked_child"))).count();
        stop.store(true, Ordering::Relaxed);
        failed
    });
    assert_eq!(failed, 0);
}

/// Whether `f` says so in a forked child. One that hangs is killed by its alarm.
fn child_succeeds(f: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child only runs `f`, whose locks the fork handlers have opened, and leaves without running
    // anything of the test harness.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            libc::alarm(5);
            libc::_exit(i32::from(!f()));
        }
        let mut status = -1;
        pid > 0 && libc::waitpid(pid, &mut status, 0) == pid && status == 0
    }
}
