use std::collections::VecDeque;
use std::sync::mpsc;

use super::*;

/// A small generator of reproducible numbers (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    /// Sizes over all orders of magnitude up to 4 MiB.
    fn nbytes(&mut self) -> usize {
        let order = self.below(22);
        self.below(1 << order) + self.below(2)
    }
}

/// Memory with a pattern that shows when two blocks overlap.
struct Marked {
    data: DataPtr,
    nbytes: usize,
    mark: u8,
}

impl Marked {
    fn new(nbytes: usize, mark: u8) -> Marked {
        let data = CPU_ALLOCATOR.allocate(nbytes).unwrap();
        assert_eq!(data.get().addr() % 64, 0);
        assert_eq!(data.is_null(), nbytes == 0);
        // SAFETY: nbytes were just allocated (none if null).
        Self::ends(nbytes).for_each(|i| unsafe { data.get().add(i).write(mark) });
        Marked { data, nbytes, mark }
    }

    /// The bytes that are checked: all of small blocks, the ends of large ones.
    fn ends(nbytes: usize) -> impl Iterator<Item = usize> {
        (0..nbytes.min(256)).chain(nbytes.saturating_sub(256)..nbytes)
    }

    fn check(&self) {
        for i in Self::ends(self.nbytes) {
            // SAFETY: i is inside the block, which `new` wrote.
            assert_eq!(unsafe { self.data.get().add(i).read() }, self.mark);
        }
    }
}

fn churn(seed: u64, rounds: usize) -> VecDeque<Marked> {
    let mut random = Random(seed);
    let mut live: VecDeque<Marked> = VecDeque::new();
    for round in 0..rounds {
        live.push_back(Marked::new(random.nbytes(), round as u8));
        if random.below(3) != 0 || live.len() > 100 {
            let i = random.below(live.len());
            live.swap_remove_back(i).unwrap().check();
        }
    }
    live
}

#[test]
fn live_blocks_never_overlap() {
    for marked in churn(0x9e3779b97f4a7c15, 5000) {
        marked.check();
    }
}

#[test]
fn blocks_may_be_freed_on_other_threads() {
    let (send, receive) = mpsc::channel::<Marked>();
    std::thread::scope(|scope| {
        for seed in 1..=4 {
            let send = send.clone();
            scope.spawn(move || {
                for marked in churn(0x2545f4914f6cdd1d ^ seed, 2000) {
                    send.send(marked).unwrap();
                }
            });
        }
        drop(send);
        // Freed here while the threads that allocated run or have ended.
        for marked in receive {
            marked.check();
        }
    });
    let stats = CPU_ALLOCATOR.memory_stats().unwrap();
    assert!(stats.allocation.allocated >= 8000 && stats.allocation.freed >= 8000);
    assert!(stats.reserved_bytes.peak >= stats.reserved_bytes.current);
}

#[test]
fn threads_emptying_the_cache_disturb_nobody() {
    std::thread::scope(|scope| {
        for seed in 1..=2 {
            scope.spawn(move || churn(0x9e3779b97f4a7c15 ^ seed, 2000).iter().for_each(Marked::check));
        }
        scope.spawn(|| {
            for _ in 0..50 {
                CPU_ALLOCATOR.empty_cache();
                std::thread::yield_now();
            }
        });
    });
}

#[test]
fn ending_threads_may_still_allocate_and_free() {
    struct AtEnd(Option<Marked>);
    impl Drop for AtEnd {
        fn drop(&mut self) {
            let fresh = Marked::new(500, 9);
            self.0.take().unwrap().check();
            fresh.check();
            drop(Marked::new(3 << 20, 8));
        }
    }
    thread_local!(static AT_END: Cell<Option<AtEnd>> = const { Cell::new(None) });
    std::thread::spawn(|| {
        // Registered before the cache, so that it is dropped after it.
        AT_END.set(None);
        AT_END.set(Some(AtEnd(Some(Marked::new(100, 7)))));
    })
    .join()
    .unwrap();
}

/// Forks while other threads allocate: the child must be able to allocate, free and empty the cache.
#[test]
fn a_forked_child_can_allocate() {
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 1..=3 {
            let done = &done;
            scope.spawn(move || {
                let mut seed = seed;
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    seed += 7;
                    churn(seed, 50);
                }
            });
        }
        let inherited = Marked::new(1000, 3);
        for _ in 0..30 {
            // SAFETY: the child uses this allocator only, after the repair, and leaves without unwinding.
            match unsafe { libc::fork() } {
                0 => {
                    // A deadlock ends the child by a signal, which the parent sees.
                    // SAFETY: alarm has no preconditions.
                    unsafe { libc::alarm(20) };
                    // SAFETY: this is the child, with this thread only.
                    unsafe { CPU_ALLOCATOR.after_fork_in_child() };
                    let blocks = [100, 5000, 100 << 10, 3 << 20].map(|n| CPU_ALLOCATOR.allocate(n).is_ok());
                    CPU_ALLOCATOR.empty_cache();
                    let ok = blocks == [true; 4] && CPU_ALLOCATOR.memory_stats().is_some();
                    // SAFETY: leaves at once, running nothing of the parent's.
                    unsafe { libc::_exit(if ok { 0 } else { 1 }) };
                }
                child => {
                    assert!(child > 0);
                    let mut status = 0;
                    // SAFETY: child is our child and status a valid place.
                    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                    if status != 0 {
                        done.store(true, std::sync::atomic::Ordering::Relaxed);
                    }
                    assert_eq!(status, 0);
                }
            }
        }
        inherited.check();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn absurd_sizes_are_errors() {
    for nbytes in [usize::MAX, isize::MAX as usize, isize::MAX as usize + 1, 1 << 60] {
        let error = CPU_ALLOCATOR.allocate(nbytes).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::OutOfMemory);
        let text =
            format!("DefaultCPUAllocator: can't allocate memory: you tried to allocate {nbytes} bytes.");
        assert!(error.to_string().contains(&text), "{error}");
    }
}

#[test]
fn zero_bytes_are_a_null_pointer() {
    let data = CPU_ALLOCATOR.allocate(0).unwrap();
    assert!(data.is_null() && data.context().is_null());
    assert_eq!(data.device(), Device::CPU);
}

#[test]
fn the_deleter_is_shared_and_copies_are_equal() {
    let data = CPU_ALLOCATOR.allocate(100).unwrap();
    assert!(ptr::fn_addr_eq(data.deleter().unwrap(), CPU_ALLOCATOR.deleter().unwrap()));
    // SAFETY: 100 bytes were allocated.
    unsafe { data.get().write_bytes(5, 100) };
    // SAFETY: the same 100 bytes, now written.
    let copy = unsafe { CPU_ALLOCATOR.clone_data(data.get(), 100) }.unwrap();
    assert_ne!(copy.get(), data.get());
    // SAFETY: 100 bytes were copied.
    assert_eq!(unsafe { copy.get().add(99).read() }, 5);
}

/// The best of many short runs, in nanoseconds per call, so that other load matters little.
fn nanoseconds(mut f: impl FnMut()) -> f64 {
    const CALLS: u32 = 1000;
    let run = |f: &mut dyn FnMut()| {
        let start = std::time::Instant::now();
        f();
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    let mut batch = || (0..CALLS).for_each(|_| f());
    (0..300).map(|_| run(&mut batch)).fold(f64::INFINITY, f64::min)
}

/// `cargo test --release -p c10 --lib allocation_cost -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn allocation_cost() {
    use std::hint::black_box;
    for nbytes in [64, 1000, 64 << 10, 1 << 20, 40 << 20] {
        let ours = nanoseconds(|| drop(black_box(CPU_ALLOCATOR.allocate(black_box(nbytes)))));
        let malloc = nanoseconds(|| drop(black_box(Vec::<u8>::with_capacity(black_box(nbytes)))));
        println!("{nbytes:>9} bytes: {ours:.1} ns per allocate and free; malloc {malloc:.1}");
    }
}
