//! [`StripedCell`]: a value behind one of a fixed set of locks.
//!
//! Storages are too many for a forked child to open a lock in each, so they share a few, which the forking thread
//! takes first: the child finds every storage whole. Sharing has a price: whoever holds one of these locks must not take
//! another, allocate tensor memory, or run a deleter or a destructor of somebody else's.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::core::fork_safe_mutex::{ForkSafeMutex, ForkSafeMutexGuard};
use crate::core::os;

const NUM_STRIPES: usize = 64;

/// One lock, in a cache line of its own.
#[repr(align(64))]
struct Stripe(ForkSafeMutex<()>);

static STRIPES: [Stripe; NUM_STRIPES] = [const { Stripe(ForkSafeMutex::new(())) }; NUM_STRIPES];

static FORK_HANDLED: AtomicBool = AtomicBool::new(false);

#[cold]
fn handle_fork() {
    if !FORK_HANDLED.swap(true, Ordering::Relaxed) {
        // Without memory for the handlers, fork is what it was before: safe when other threads are idle.
        let _ = os::at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
    }
}

unsafe extern "C" fn before_fork() {
    STRIPES.iter().for_each(|stripe| stripe.0.hold_for_fork());
}

unsafe extern "C" fn after_fork_in_parent() {
    for stripe in &STRIPES {
        // SAFETY: this thread has taken all of them in `before_fork`.
        unsafe { stripe.0.release_in_parent() };
    }
}

unsafe extern "C" fn after_fork_in_child() {
    for stripe in &STRIPES {
        // SAFETY: in the child, whose only thread this is; its locks are those that `before_fork` took.
        unsafe { stripe.0.unlock_after_fork() };
    }
}

/// A value whose lock it shares with others.
pub(super) struct StripedCell<T>(UnsafeCell<T>);

// SAFETY: the value is reached through a guard that holds the lock of its address, or through `&mut`.
unsafe impl<T: Send> Sync for StripedCell<T> {}

impl<T> StripedCell<T> {
    pub(super) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// The value, of a cell that nobody shares yet.
    pub(super) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    /// Waits for the lock.
    #[inline]
    pub(super) fn lock(&self) -> StripedGuard<'_, T> {
        if !FORK_HANDLED.load(Ordering::Relaxed) {
            handle_fork();
        }
        // Cells are at least 64 bytes apart; the multiplication spreads allocators' regular distances.
        let hash = ((self.0.get().addr() >> 6) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let index = (hash >> 58) as usize;
        StripedGuard { cell: self, _lock: STRIPES[index].0.lock() }
    }
}

/// Access to the value of a [`StripedCell`].
pub(super) struct StripedGuard<'a, T> {
    cell: &'a StripedCell<T>,
    _lock: ForkSafeMutexGuard<'static, ()>,
}

impl<T> Deref for StripedGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the cell's lock, and a shared cell is only reached with it.
        unsafe { &*self.cell.0.get() }
    }
}

impl<T> DerefMut for StripedGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; the guard is borrowed exclusively.
        unsafe { &mut *self.cell.0.get() }
    }
}
