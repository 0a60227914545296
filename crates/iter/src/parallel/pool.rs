//! The workers: a fork-join pool that spins shortly, then sleeps.
//!
//! Why not rayon's pool: a loop is started from a thread outside the pool (Python's, or the engine's), and entering
//! rayon from outside costs about 6 µs with the pool awake and 20–40 µs with it asleep; this pool costs 0.8 µs and
//! 20 µs (`cargo test -p iter --release -- --ignored fork_join_cost --nocapture` prints both). A loop of 30 µs per
//! piece would lose most of its gain to the former.
//!
//! Each worker has one slot that holds nothing, a job, or "busy". A caller offers its job to idle workers, works
//! through the pieces itself, then takes back the offers nobody took up, and waits only for workers that began. So
//! a worker that is slow to wake never delays a loop, and several callers share the workers without a queue: who
//! finds none idle works alone.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::OnceLock;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use c10::{Error, Result};
use parking_lot::Mutex;

use super::fork;

/// The most workers a pool has.
pub(super) const MAX_WORKERS: usize = 1023;

/// How long an idle worker looks for the next job before it sleeps.
const SPIN: Duration = Duration::from_micros(60);

/// One parallel loop. Lives on the caller's stack until no worker can reach it.
struct Job<'a> {
    body: &'a (dyn Fn(usize) -> Result<()> + Sync),
    pieces: usize,
    next: AtomicUsize,
    /// Workers that hold an offer or are at work; the caller waits for 0.
    active: AtomicUsize,
    failed: AtomicBool,
    error: Mutex<Option<Error>>,
    caller: Thread,
}

impl Job<'_> {
    /// Takes pieces until there are none.
    fn work(&self) {
        while !self.failed.load(Ordering::Relaxed) {
            let piece = self.next.fetch_add(1, Ordering::Relaxed);
            if piece >= self.pieces {
                return;
            }
            if let Err(error) = (self.body)(piece) {
                self.failed.store(true, Ordering::Relaxed);
                self.error.lock().get_or_insert(error);
            }
        }
    }
}

/// A worker's mailbox, on its own cache line.
#[repr(align(128))]
struct Worker {
    /// Null: idle. [`busy`]: at work. Else a `Job` that its caller keeps alive while it is here.
    slot: AtomicPtr<Job<'static>>,
    sleeping: AtomicBool,
    thread: OnceLock<Thread>,
}

/// The mark of a worker at work; never dereferenced.
fn busy() -> *mut Job<'static> {
    ptr::without_provenance_mut(1)
}

struct Pool {
    workers: [AtomicPtr<Worker>; MAX_WORKERS],
    len: AtomicUsize,
    growing: Mutex<()>,
}

/// The pool of this process; null at first and in a forked child. Pools are never freed, since workers refer to them.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    static IN_PARALLEL_REGION: Cell<bool> = const { Cell::new(false) };
    static THREAD_NUM: Cell<usize> = const { Cell::new(0) };
}

/// Whether the calling thread is running a piece of a parallel loop.
pub fn in_parallel_region() -> bool {
    IN_PARALLEL_REGION.get()
}

/// Which thread of the running loop this is: 0 for the caller, else the worker's number.
pub fn thread_num() -> usize {
    THREAD_NUM.get()
}

/// Runs `body(0) … body(pieces - 1)` on the calling thread and at most `helpers` workers.
pub(super) fn run(helpers: usize, pieces: usize, body: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
    let pool = pool();
    let job = Job {
        body,
        pieces,
        next: AtomicUsize::new(0),
        active: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        error: Mutex::new(None),
        caller: thread::current(),
    };
    let job_ptr = ptr::from_ref(&job).cast_mut().cast::<Job<'static>>();
    pool.offer(&job, job_ptr, helpers);
    IN_PARALLEL_REGION.set(true);
    job.work();
    IN_PARALLEL_REGION.set(false);
    pool.withdraw(&job, job_ptr);
    wait_until_done(&job);
    match job.error.into_inner() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Forgets the pool whose workers a forked child does not have. Called by the child's only thread.
pub(super) fn forget_after_fork() {
    POOL.store(ptr::null_mut(), Ordering::Release);
}

fn pool() -> &'static Pool {
    let pool = POOL.load(Ordering::Acquire);
    if pool.is_null() {
        return new_pool();
    }
    // SAFETY: not null, so `new_pool` made it, and pools are never freed.
    unsafe { &*pool }
}

#[cold]
fn new_pool() -> &'static Pool {
    fork::install();
    let pool = Box::leak(Box::new(Pool {
        workers: [const { AtomicPtr::new(ptr::null_mut()) }; MAX_WORKERS],
        len: AtomicUsize::new(0),
        growing: Mutex::new(()),
    }));
    let new = ptr::from_mut(pool);
    match POOL.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: just made, and from now on shared and never freed.
        Ok(_) => unsafe { &*new },
        Err(other) => {
            // SAFETY: no other thread has seen `new`, so it may go.
            drop(unsafe { Box::from_raw(new) });
            // SAFETY: another thread's pool, never freed.
            unsafe { &*other }
        }
    }
}

impl Pool {
    /// The workers there are.
    fn workers(&self) -> impl Iterator<Item = &'static Worker> + '_ {
        let len = self.len.load(Ordering::Acquire);
        self.workers[..len].iter().map(|worker| {
            // SAFETY: the first `len` entries are leaked workers, stored before `len` was.
            unsafe { &*worker.load(Ordering::Relaxed) }
        })
    }

    /// Puts the job into the slots of up to `helpers` idle workers.
    fn offer(&self, job: &Job<'_>, job_ptr: *mut Job<'static>, helpers: usize) {
        if self.len.load(Ordering::Acquire) < helpers {
            self.grow(helpers);
        }
        let mut offered = 0;
        for worker in self.workers() {
            if offered == helpers {
                break;
            }
            if !worker.slot.load(Ordering::Relaxed).is_null() {
                continue;
            }
            // Counted before the worker can see it, so that `active` never falls to 0 too early.
            job.active.fetch_add(1, Ordering::Relaxed);
            let taken =
                worker.slot.compare_exchange(ptr::null_mut(), job_ptr, Ordering::SeqCst, Ordering::Relaxed);
            if taken.is_err() {
                job.active.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            offered += 1;
            // The worker sets `sleeping`, then looks at its slot; we fill the slot, then look at `sleeping`. Both
            // are sequentially consistent, so one of us sees the other.
            if worker.sleeping.load(Ordering::SeqCst) {
                if let Some(thread) = worker.thread.get() {
                    thread.unpark();
                }
            }
        }
    }

    /// Takes back the offers that no worker has taken up.
    fn withdraw(&self, job: &Job<'_>, job_ptr: *mut Job<'static>) {
        if job.active.load(Ordering::Relaxed) == 0 {
            return;
        }
        for worker in self.workers() {
            let withdrawn = worker.slot.load(Ordering::Relaxed) == job_ptr
                && worker
                    .slot
                    .compare_exchange(job_ptr, ptr::null_mut(), Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok();
            if withdrawn {
                job.active.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Starts workers until there are `wanted`, or as many as the system gives.
    #[cold]
    fn grow(&self, wanted: usize) {
        let _growing = self.growing.lock();
        for index in self.len.load(Ordering::Acquire)..wanted.min(MAX_WORKERS) {
            let worker: &'static Worker = Box::leak(Box::new(Worker {
                slot: AtomicPtr::new(ptr::null_mut()),
                sleeping: AtomicBool::new(false),
                thread: OnceLock::new(),
            }));
            let spawned = thread::Builder::new().name(format!("ptr-worker-{}", index + 1)).spawn(move || {
                THREAD_NUM.set(index + 1);
                IN_PARALLEL_REGION.set(true);
                worker_loop(worker);
            });
            let Ok(handle) = spawned else {
                // The system has no more threads; fewer workers change the speed, not the result.
                return;
            };
            // First write to this cell, so it cannot fail.
            let _ = worker.thread.set(handle.thread().clone());
            self.workers[index].store(ptr::from_ref(worker).cast_mut(), Ordering::Relaxed);
            self.len.store(index + 1, Ordering::Release);
        }
    }
}

fn worker_loop(worker: &'static Worker) -> ! {
    loop {
        let job_ptr = next_job(worker);
        // SAFETY: swapping the job out of the slot made this worker one of the `active` ones it was counted as, and
        // the caller keeps the job alive until `active` is 0.
        let job = unsafe { &*job_ptr };
        job.work();
        // The job may be gone as soon as `active` is lowered; the handle to wake its caller must be ours.
        let caller = job.caller.clone();
        worker.slot.store(ptr::null_mut(), Ordering::Release);
        if job.active.fetch_sub(1, Ordering::AcqRel) == 1 {
            caller.unpark();
        }
    }
}

/// Waits for a job and takes it out of the slot, leaving "busy".
fn next_job(worker: &'static Worker) -> *mut Job<'static> {
    loop {
        let begin = Instant::now();
        let spin = if spinning_pays() { SPIN } else { Duration::ZERO };
        loop {
            for _ in 0..64 {
                if let Some(job) = try_take(worker) {
                    return job;
                }
                std::hint::spin_loop();
            }
            if begin.elapsed() >= spin {
                break;
            }
        }
        worker.sleeping.store(true, Ordering::SeqCst);
        while worker.slot.load(Ordering::SeqCst).is_null() {
            thread::park();
        }
        worker.sleeping.store(false, Ordering::Relaxed);
    }
}

fn try_take(worker: &Worker) -> Option<*mut Job<'static>> {
    let job = worker.slot.load(Ordering::Relaxed);
    // A caller may withdraw in between, so the exchange can fail.
    (!job.is_null()
        && worker.slot.compare_exchange(job, busy(), Ordering::Acquire, Ordering::Relaxed).is_ok())
    .then_some(job)
}

/// With more threads than processors a spinning worker takes time from one that has work.
fn spinning_pays() -> bool {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    super::num_threads() <= *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

/// Waits for the workers that began: spinning while they are likely at their last piece, then asleep.
fn wait_until_done(job: &Job<'_>) {
    let mut spins = 0_u32;
    while job.active.load(Ordering::Acquire) != 0 {
        spins += 1;
        if spins < 2000 && spinning_pays() {
            std::hint::spin_loop();
        } else {
            // The last worker unparks. A stray token from elsewhere only makes us look again; one left over from
            // this job makes some later `park` return early, which every user of `park` must expect.
            thread::park();
        }
    }
}
