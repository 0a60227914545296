//! How many threads a loop may use.

use std::sync::atomic::{AtomicUsize, Ordering};

use c10::{check, Result};

use super::pool::MAX_WORKERS;

/// 0 until first asked for.
static NUM_THREADS: AtomicUsize = AtomicUsize::new(0);
static NUM_INTEROP_THREADS: AtomicUsize = AtomicUsize::new(0);

/// Threads that one parallel loop uses, the calling one included.
///
/// At first: `PTR_NUM_THREADS`, else `OMP_NUM_THREADS`, else the processors this process may run on.
pub fn num_threads() -> usize {
    match NUM_THREADS.load(Ordering::Relaxed) {
        0 => initialize(&NUM_THREADS),
        n => n,
    }
}

/// Sets [`num_threads`]; takes effect from the next loop on.
pub fn set_num_threads(n: usize) -> Result<()> {
    check!(n > 0, "set_num_threads(): expected a positive number of threads, got {n}");
    NUM_THREADS.store(n.min(MAX_WORKERS + 1), Ordering::Relaxed);
    Ok(())
}

/// Threads that may run independent operators side by side.
pub fn num_interop_threads() -> usize {
    match NUM_INTEROP_THREADS.load(Ordering::Relaxed) {
        0 => initialize(&NUM_INTEROP_THREADS),
        n => n,
    }
}

/// Sets [`num_interop_threads`].
pub fn set_num_interop_threads(n: usize) -> Result<()> {
    check!(n > 0, "set_num_interop_threads(): expected a positive number of threads, got {n}");
    NUM_INTEROP_THREADS.store(n, Ordering::Relaxed);
    Ok(())
}

#[cold]
fn initialize(slot: &AtomicUsize) -> usize {
    let n = default_num_threads(|name| std::env::var(name).ok());
    // A value set meanwhile by another thread stays.
    match slot.compare_exchange(0, n, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => n,
        Err(current) => current,
    }
}

/// The default, from the environment given as a function.
pub(super) fn default_num_threads(env: impl Fn(&str) -> Option<String>) -> usize {
    // OMP_NUM_THREADS may be a list, one entry per nesting level; ours is the outermost.
    let from = |name| {
        env(name)
            .and_then(|value| value.split(',').next().and_then(|first| first.trim().parse::<usize>().ok()))
            .filter(|&n| n > 0)
    };
    from("PTR_NUM_THREADS")
        .or_else(|| from("OMP_NUM_THREADS"))
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
        .min(MAX_WORKERS + 1)
}
