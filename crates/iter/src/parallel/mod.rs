//! Loops over index ranges on several threads.
//!
//! Note [Results do not depend on the number of threads]: a range is cut at `begin + k * grain`, whoever runs the
//! pieces and however many threads there are; one thread alone walks the same pieces in order. A body therefore
//! sees the same calls on every machine, and what it computes per piece (vector bodies, scalar tails, partial sums
//! combined in piece order) has the same bits.
//!
//! Nested calls run on the calling thread. A panic in a body becomes an error of the call that started the loop.

pub mod fork;
mod num_threads;
mod pool;

use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};

use c10::{Error, Result};
use parking_lot::Mutex;

pub use num_threads::{num_interop_threads, num_threads, set_num_interop_threads, set_num_threads};
pub use pool::{in_parallel_region, thread_num};

/// Elements of cheap work per piece: about 30 µs, below which waking a thread costs more than it gives.
pub const GRAIN_SIZE: usize = 32768;

/// Calls `f(begin, end)` for consecutive pieces of at most `grain` indices that cover `begin..end`.
///
/// Pieces run on several threads in any order. See Note [Results do not depend on the number of threads].
pub fn parallel_for(begin: usize, end: usize, grain: usize, f: &(dyn Fn(usize, usize) + Sync)) -> Result<()> {
    parallel_for_result(begin, end, grain, &|piece_begin, piece_end| {
        f(piece_begin, piece_end);
        Ok(())
    })
}

/// [`parallel_for`] with a body that can fail. The error of the first failing piece that was seen is returned, and
/// pieces not yet begun are skipped.
pub fn parallel_for_result(
    begin: usize,
    end: usize,
    grain: usize,
    f: &(dyn Fn(usize, usize) -> Result<()> + Sync),
) -> Result<()> {
    if begin >= end {
        return Ok(());
    }
    let grain = grain.max(1);
    if end - begin <= grain {
        return guarded(&|| f(begin, end));
    }
    let pieces = (end - begin).div_ceil(grain);
    let piece = |k: usize| {
        let from = begin + k * grain;
        f(from, end.min(from.saturating_add(grain)))
    };
    let threads = num_threads().min(pieces);
    if threads <= 1 || in_parallel_region() {
        return guarded(&|| (0..pieces).try_for_each(piece));
    }
    pool::run(threads - 1, pieces, &|k| guarded(&|| piece(k)))
}

/// Computes `f(begin, end)` for the pieces of [`parallel_for`] and combines the values in the order of the pieces.
///
/// `None` when the range is empty.
pub fn parallel_reduce<T: Send>(
    begin: usize,
    end: usize,
    grain: usize,
    f: &(dyn Fn(usize, usize) -> T + Sync),
    combine: impl FnMut(T, T) -> T,
) -> Result<Option<T>> {
    if begin >= end {
        return Ok(None);
    }
    let grain = grain.max(1);
    let pieces = (end - begin).div_ceil(grain);
    let partials = c10::try_from_fn(pieces, || Mutex::new(None))?;
    parallel_for(begin, end, grain, &|piece_begin, piece_end| {
        let value = f(piece_begin, piece_end);
        *partials[(piece_begin - begin) / grain].lock() = Some(value);
    })?;
    Ok(partials.into_iter().filter_map(Mutex::into_inner).reduce(combine))
}

/// Runs `f`, turning a panic into an error.
fn guarded(f: &dyn Fn() -> Result<()>) -> Result<()> {
    // Unwind safety: what a body leaves half-written are output elements, and the error tells that they are.
    let result = catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| Err(panic_error(&*payload)));
    // What a worker could not allocate is the caller's error.
    result.and_then(|()| c10::check_memory())
}

#[cold]
fn panic_error(payload: &(dyn Any + Send)) -> Error {
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    Error::internal(format!("a kernel panicked: {message}. This is a bug in ptr, please report it."))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) mod tests_support {
    use parking_lot::{Mutex, MutexGuard};

    /// Held by tests that change the number of threads, or fork.
    pub(crate) fn thread_count_lock() -> MutexGuard<'static, ()> {
        static LOCK: Mutex<()> = Mutex::new(());
        LOCK.lock()
    }
}
