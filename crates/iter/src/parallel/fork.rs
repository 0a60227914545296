//! What a forked child must do before it can compute.
//!
//! `fork` copies only the calling thread, so the child's pool has no workers, and locks that other threads held stay
//! locked. The child therefore forgets the pool (the next loop makes a new one). Other parts of the engine with
//! threads or locks register their own handler here.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::Once;

use c10::{bail, Result};

use super::pool;

const MAX_HANDLERS: usize = 16;

// An array of atomics rather than a locked list: the child must not take a lock that another thread may have held.
static HANDLERS: [AtomicPtr<()>; MAX_HANDLERS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; MAX_HANDLERS];
static NUM_HANDLERS: AtomicUsize = AtomicUsize::new(0);

/// Calls `handler` in every forked child, before `fork` returns there.
///
/// The child may have been forked from a process with many threads, so the handler may only do what is
/// async-signal-safe: atomic stores, not locks or allocations. An error when all places are taken.
pub fn at_fork_child(handler: fn()) -> Result<()> {
    install();
    let index = NUM_HANDLERS.fetch_add(1, Ordering::AcqRel);
    match HANDLERS.get(index) {
        Some(slot) => {
            slot.store(handler as *mut (), Ordering::Release);
            Ok(())
        }
        None => {
            NUM_HANDLERS.store(MAX_HANDLERS, Ordering::Release);
            bail!(Runtime, "at_fork_child(): all {MAX_HANDLERS} places for handlers are taken")
        }
    }
}

/// Registers the child handler with the C library, once.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: `child` is a plain function that lives as long as the process and only touches atomics. A failure
        // (out of memory) leaves fork as it was.
        unsafe { libc::pthread_atfork(None, None, Some(child)) };
    });
}

extern "C" fn child() {
    pool::forget_after_fork();
    for slot in HANDLERS.iter().take(NUM_HANDLERS.load(Ordering::Acquire)) {
        let handler = slot.load(Ordering::Acquire);
        if !handler.is_null() {
            // SAFETY: only `at_fork_child` stores here, and what it stores is a `fn()`.
            let handler = unsafe { std::mem::transmute::<*mut (), fn()>(handler) };
            handler();
        }
    }
}
