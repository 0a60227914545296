use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use c10::ErrorKind;

use super::num_threads::default_num_threads;
use super::tests_support::thread_count_lock;
use super::*;

/// Runs `f` with `threads` threads.
fn with_threads<R>(threads: usize, f: impl FnOnce() -> R) -> R {
    let _lock = thread_count_lock();
    let before = num_threads();
    set_num_threads(threads).unwrap();
    let result = f();
    set_num_threads(before).unwrap();
    result
}

#[test]
fn pieces_depend_on_the_grain_alone() {
    let pieces = |threads| {
        with_threads(threads, || {
            let seen = Mutex::new(Vec::new());
            parallel_for(3, 103, 7, &|begin, end| seen.lock().push((begin, end))).unwrap();
            let mut seen = seen.into_inner();
            seen.sort_unstable();
            seen
        })
    };
    let expected: Vec<_> = (0..15).map(|k| (3 + 7 * k, (10 + 7 * k).min(103))).collect();
    for threads in [1, 2, 5] {
        assert_eq!(pieces(threads), expected);
    }
}

#[test]
fn degenerate_ranges() {
    let count = AtomicUsize::new(0);
    let body = |begin: usize, end: usize| {
        count.fetch_add(end - begin, Ordering::Relaxed);
    };
    parallel_for(5, 5, 1, &body).unwrap();
    parallel_for(5, 4, 1, &body).unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 0);
    parallel_for(0, 10, 0, &body).unwrap();
    parallel_for(usize::MAX - 3, usize::MAX, usize::MAX, &body).unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 13);
    assert_eq!(parallel_reduce(1, 1, 4, &|_, _| 1, |a, b| a + b).unwrap(), None);
}

#[test]
fn reductions_combine_in_order() {
    for threads in [1, 4] {
        let joined = with_threads(threads, || {
            parallel_reduce(0, 10, 3, &|b, e| format!("{b}-{e}"), |a, b| format!("({a} {b})")).unwrap()
        });
        assert_eq!(joined.as_deref(), Some("(((0-3 3-6) 6-9) 9-10)"));
    }
}

#[test]
fn nested_loops_stay_on_their_thread() {
    with_threads(4, || {
        assert!(!in_parallel_region());
        parallel_for(0, 8, 1, &|_, _| {
            assert!(in_parallel_region());
            let thread = std::thread::current().id();
            parallel_for(0, 100, 1, &|_, _| assert_eq!(std::thread::current().id(), thread)).unwrap();
            assert!(in_parallel_region());
        })
        .unwrap();
        assert!(!in_parallel_region());
    });
}

#[test]
fn panics_and_errors_come_back() {
    for threads in [1, 3] {
        with_threads(threads, || {
            let error = parallel_for(0, 100, 1, &|b, _| assert!(b != 40, "piece {b}")).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Internal);
            assert!(error.message().contains("piece 40"), "{error}");
            let error =
                parallel_for_result(0, 9, 1, &|b, _| if b == 5 { Err(Error::value("five")) } else { Ok(()) });
            assert_eq!(error.err().unwrap().message(), "five");
            // The pool is as good as before.
            assert_eq!(parallel_reduce(0, 1000, 10, &|b, e| e - b, |a, b| a + b).unwrap(), Some(1000));
            assert!(!in_parallel_region());
        });
    }
}

#[test]
fn many_callers_share_the_workers() {
    with_threads(3, || {
        std::thread::scope(|scope| {
            for caller in 0..6 {
                scope.spawn(move || {
                    for round in 0..300 {
                        let sum = AtomicU64::new(0);
                        parallel_for(0, 1000, 16, &|begin, end| {
                            sum.fetch_add((begin..end).map(|i| i as u64).sum(), Ordering::Relaxed);
                        })
                        .unwrap();
                        assert_eq!(sum.into_inner(), 499_500, "caller {caller}, round {round}");
                    }
                });
            }
        });
    });
}

#[test]
fn thread_numbers_are_distinct() {
    with_threads(4, || {
        let busy: Vec<AtomicUsize> = (0..=super::pool::MAX_WORKERS).map(|_| AtomicUsize::new(0)).collect();
        parallel_for(0, 64, 1, &|_, _| {
            assert_eq!(busy[thread_num()].fetch_add(1, Ordering::SeqCst), 0);
            std::thread::yield_now();
            busy[thread_num()].fetch_sub(1, Ordering::SeqCst);
        })
        .unwrap();
    });
}

#[test]
fn the_number_of_threads_comes_from_the_environment() {
    let with = |ptr: Option<&str>, omp: Option<&str>| {
        default_num_threads(|name| if name == "PTR_NUM_THREADS" { ptr } else { omp }.map(str::to_owned))
    };
    assert_eq!(with(Some("3"), Some("5")), 3);
    assert_eq!(with(None, Some("5,2")), 5);
    assert_eq!(with(Some("none"), Some(" 4 ")), 4);
    assert!(with(Some("0"), None) >= 1);
    assert!(set_num_threads(0).is_err() && set_num_interop_threads(0).is_err());
    assert!(num_interop_threads() >= 1);
}

#[test]
fn a_forked_child_computes() {
    with_threads(3, || {
        let sum =
            || parallel_reduce(0, 100_000, 100, &|b, e| (b..e).sum::<usize>(), |a, b| a + b).ok().flatten();
        assert_eq!(sum(), Some(4_999_950_000));
        // SAFETY: the child only computes and leaves by `_exit`.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            let code = i32::from(sum() != Some(4_999_950_000) || in_parallel_region());
            // SAFETY: leaves without running the parent's clean-up.
            unsafe { libc::_exit(code) };
        }
        let begin = Instant::now();
        let mut status = 0;
        loop {
            // SAFETY: waits for the child made above.
            let waited = unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) };
            if waited == pid {
                break;
            }
            if begin.elapsed().as_secs() > 30 {
                // SAFETY: ends the child made above.
                unsafe { libc::kill(pid, libc::SIGKILL) };
                panic!("the child hangs");
            }
            std::thread::yield_now();
        }
        assert_eq!(status, 0);
        assert_eq!(sum(), Some(4_999_950_000));
    });
}

/// `cargo test -p iter --release -- --ignored fork_join_cost --nocapture`
#[test]
#[ignore = "prints a measurement"]
fn fork_join_cost() {
    let median = |name: &str, pause: bool, f: &dyn Fn()| {
        f();
        let mut times: Vec<_> = (0..if pause { 200 } else { 20_000 })
            .map(|_| {
                if pause {
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
                let begin = Instant::now();
                f();
                begin.elapsed().as_nanos()
            })
            .collect();
        times.sort_unstable();
        println!("{name}: median {} ns, p90 {} ns", times[times.len() / 2], times[times.len() * 9 / 10]);
    };
    let work = || std::hint::black_box((0..20_000_u64).fold(0, |a, x| a ^ std::hint::black_box(x)));
    let rayon = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    with_threads(2, || {
        for pause in [false, true] {
            let state = if pause { "asleep" } else { "hot" };
            median(&format!("ours, nothing to do, {state}"), pause, &|| {
                parallel_for(0, 2, 1, &|_, _| ()).unwrap()
            });
            median(&format!("rayon, nothing to do, {state}"), pause, &|| {
                rayon.install(|| rayon::join(|| (), || ()));
            });
            median(&format!("serial, two pieces, {state}"), pause, &|| {
                work();
                work();
            });
            median(&format!("ours, two pieces, {state}"), pause, &|| {
                parallel_for(0, 2, 1, &|_, _| {
                    work();
                })
                .unwrap();
            });
            median(&format!("rayon, two pieces, {state}"), pause, &|| {
                rayon.install(|| rayon::join(work, work));
            });
        }
    });
}
