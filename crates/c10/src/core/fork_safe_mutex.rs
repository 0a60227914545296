//! `ForkSafeMutex`: a lock that a forked child can take over.
//!
//! `fork` copies only the calling thread. A lock held by another thread at that moment stays locked in the child for
//! ever. Locks of parking_lot can be forced open, but waiters are kept in a table of the process, whose own locks
//! may be held too. This lock is one word and the kernel's futex, so that forcing it open is one store.
//!
//! There are two disciplines. A value that can be forgotten is reset in the child
//! ([`ForkSafeMutex::reset_after_fork`]). One that cannot is never seen half changed: the forking thread takes the lock
//! first ([`ForkSafeMutex::hold_for_fork`]) and opens it on both sides.

use std::cell::UnsafeCell;
use std::fmt;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::core::os;

const UNLOCKED: u32 = 0;
const LOCKED: u32 = 1;
/// Locked, and somebody may be waiting.
const CONTENDED: u32 = 2;

/// How often a thread looks again before it sleeps: critical sections here are shorter than a system call.
const SPINS: u32 = 100;

/// A mutual exclusion lock in one word. Not poisoned by panics.
pub struct ForkSafeMutex<T> {
    state: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by one thread at a time, through a guard; that needs T: Send.
unsafe impl<T: Send> Send for ForkSafeMutex<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for ForkSafeMutex<T> {}

impl<T> ForkSafeMutex<T> {
    /// An unlocked value.
    pub const fn new(value: T) -> ForkSafeMutex<T> {
        ForkSafeMutex { state: AtomicU32::new(UNLOCKED), value: UnsafeCell::new(value) }
    }

    /// Waits until nobody else holds the lock.
    #[inline]
    pub fn lock(&self) -> ForkSafeMutexGuard<'_, T> {
        if !self.acquire() {
            self.lock_contended();
        }
        ForkSafeMutexGuard { mutex: self }
    }

    /// The lock, if nobody holds it.
    #[inline]
    pub fn try_lock(&self) -> Option<ForkSafeMutexGuard<'_, T>> {
        self.acquire().then(|| ForkSafeMutexGuard { mutex: self })
    }

    #[inline]
    fn acquire(&self) -> bool {
        self.state.compare_exchange(UNLOCKED, LOCKED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn lock_contended(&self) {
        for _ in 0..SPINS {
            if self.state.load(Ordering::Relaxed) == UNLOCKED && self.acquire() {
                return;
            }
            std::hint::spin_loop();
        }
        // From here on the state says that somebody may sleep, also while we hold the lock: others may sleep too.
        while self.state.swap(CONTENDED, Ordering::Acquire) != UNLOCKED {
            os::futex_wait(&self.state, CONTENDED);
        }
    }

    #[inline]
    fn unlock(&self) {
        if self.state.swap(UNLOCKED, Ordering::Release) == CONTENDED {
            os::futex_wake_one(&self.state);
        }
    }

    /// Takes the lock for the time of a fork. See [`at_fork`](crate::at_fork).
    pub fn hold_for_fork(&self) {
        mem::forget(self.lock());
    }

    /// Opens, in the parent, what [`hold_for_fork`](Self::hold_for_fork) has taken.
    ///
    /// # Safety
    /// Only after `hold_for_fork`, on the same thread, in the process that called it.
    pub unsafe fn release_in_parent(&self) {
        self.unlock();
    }

    /// In a forked child, opens the lock; says whether somebody held it, in which case the value may be half changed.
    ///
    /// # Safety
    /// Only in a forked child, before it starts threads, and not while the calling thread holds the lock.
    pub unsafe fn unlock_after_fork(&self) -> bool {
        self.state.swap(UNLOCKED, Ordering::Acquire) != UNLOCKED
    }

    /// As `unlock_after_fork`; a value that may be half changed is forgotten and replaced by the default.
    ///
    /// # Safety
    /// As for `unlock_after_fork`.
    pub unsafe fn reset_after_fork(&self)
    where
        T: Default,
    {
        // SAFETY: passed on.
        if unsafe { self.unlock_after_fork() } {
            mem::forget(mem::take(&mut *self.lock()));
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for ForkSafeMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(guard) => f.debug_tuple("ForkSafeMutex").field(&*guard).finish(),
            None => f.write_str("ForkSafeMutex(<locked>)"),
        }
    }
}

impl<T: Default> Default for ForkSafeMutex<T> {
    fn default() -> ForkSafeMutex<T> {
        ForkSafeMutex::new(T::default())
    }
}

/// Access to the value for as long as it lives.
#[must_use = "the lock is released when the guard is dropped"]
pub struct ForkSafeMutexGuard<'a, T> {
    mutex: &'a ForkSafeMutex<T>,
}

// SAFETY: a shared guard gives out `&T` only.
unsafe impl<T: Sync> Sync for ForkSafeMutexGuard<'_, T> {}

impl<T> Deref for ForkSafeMutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock, so nobody else reaches the value.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for ForkSafeMutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock and is borrowed exclusively.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for ForkSafeMutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn increments_are_not_lost() {
        let counter = ForkSafeMutex::new(0u64);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for i in 0..5000 {
                        let mut guard = counter.lock();
                        let seen = *guard;
                        if i % 500 == 0 {
                            // Long enough for others to fall asleep.
                            std::thread::yield_now();
                        }
                        *guard = seen + 1;
                    }
                });
            }
        });
        assert_eq!(*counter.lock(), 40_000);
    }

    #[test]
    fn try_lock_does_not_wait() {
        let mutex = ForkSafeMutex::new(1);
        let guard = mutex.lock();
        assert!(mutex.try_lock().is_none());
        drop(guard);
        assert!(mutex.try_lock().is_some());
    }

    #[test]
    fn a_lock_left_behind_is_opened_and_its_value_forgotten() {
        let mutex = ForkSafeMutex::new(vec![1]);
        // SAFETY: nobody holds the lock.
        unsafe { mutex.reset_after_fork() };
        assert_eq!(*mutex.lock(), [1]);
        mem::forget(mutex.lock());
        // SAFETY: the guard was forgotten, as after a fork.
        unsafe { mutex.reset_after_fork() };
        assert!(mutex.lock().is_empty());
    }
}
