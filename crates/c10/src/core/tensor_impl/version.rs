//! Counting in-place changes, so that autograd notices when a saved value has changed.
//!
//! A tensor and its views share one counter. Most tensors never have a view nor are saved, so a count starts inside
//! the tensor's own word and moves to a shared counter when somebody asks to share it.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::Arc;

use crate::{bail, InferenceMode, Result};

/// A share of a version counter, or none: inference tensors do not count.
#[derive(Clone, Debug, Default)]
pub struct VariableVersion(Option<Arc<AtomicU32>>);

impl VariableVersion {
    /// A counter of its own, at `version`.
    pub fn new(version: u32) -> Self {
        Self(Some(Arc::new(AtomicU32::new(version))))
    }

    /// No counter.
    pub const fn disabled() -> Self {
        Self(None)
    }

    /// Whether there is a counter.
    pub const fn enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Whether nobody else shares the counter.
    pub fn unique(&self) -> bool {
        self.0.as_ref().is_none_or(|counter| Arc::strong_count(counter) == 1)
    }

    /// Whether both are shares of one counter.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// The count.
    pub fn current_version(&self) -> Result<u32> {
        match &self.0 {
            Some(counter) => Ok(counter.load(Ordering::Acquire)),
            None => no_version(),
        }
    }

    /// Counts a change.
    pub fn bump(&self) -> Result<()> {
        match &self.0 {
            Some(counter) => {
                counter.fetch_add(1, Ordering::AcqRel);
                Ok(())
            }
            None => bump_disabled(),
        }
    }

    /// Sets the count (restoring saved tensors).
    pub fn set_version(&self, version: u32) -> Result<()> {
        match &self.0 {
            Some(counter) => {
                counter.store(version, Ordering::Release);
                Ok(())
            }
            None => no_version(),
        }
    }
}

#[cold]
fn no_version<T>() -> Result<T> {
    bail!(Runtime, "Inference tensors do not track version counter.")
}

#[cold]
fn bump_disabled() -> Result<()> {
    if !InferenceMode::is_enabled() {
        bail!(
            Runtime,
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a \
             normal tensor before doing inplace update."
        );
    }
    Ok(())
}

/// A tensor's version: null = not counted, odd = the count itself, else an owned `Arc` of a shared counter.
pub(super) struct VersionSlot(AtomicPtr<AtomicU32>);

const fn inline(count: u32) -> *mut AtomicU32 {
    std::ptr::without_provenance_mut((count as usize) << 1 | 1)
}

fn as_inline(word: *mut AtomicU32) -> Option<u32> {
    (word.addr() & 1 != 0).then_some((word.addr() >> 1) as u32)
}

impl VersionSlot {
    pub(super) const fn new(enabled: bool) -> Self {
        Self(AtomicPtr::new(if enabled { inline(0) } else { std::ptr::null_mut() }))
    }

    /// The shared counter behind a word that is neither null nor a count.
    fn shared(&self, word: *mut AtomicU32) -> &AtomicU32 {
        // SAFETY: such a word is an owned Arc, replaced only by `set`, whose caller has exclusive access.
        unsafe { &*word }
    }

    pub(super) fn current_version(&self) -> Result<u32> {
        let word = self.0.load(Ordering::Acquire);
        match as_inline(word) {
            Some(count) => Ok(count),
            None if word.is_null() => no_version(),
            None => Ok(self.shared(word).load(Ordering::Acquire)),
        }
    }

    pub(super) fn bump(&self) -> Result<()> {
        let mut word = self.0.load(Ordering::Acquire);
        while let Some(count) = as_inline(word) {
            let next = inline(count.wrapping_add(1));
            match self.0.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(()),
                // Somebody counted, or moved the count to a shared counter.
                Err(seen) => word = seen,
            }
        }
        if word.is_null() {
            return bump_disabled();
        }
        self.shared(word).fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// A share of the counter.
    pub(super) fn share(&self) -> VariableVersion {
        let mut word = self.0.load(Ordering::Acquire);
        while let Some(count) = as_inline(word) {
            let counter = Arc::new(AtomicU32::new(count));
            let owned = Arc::into_raw(Arc::clone(&counter)).cast_mut();
            match self.0.compare_exchange(word, owned, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return VariableVersion(Some(counter)),
                Err(seen) => {
                    // SAFETY: takes back the count that the slot did not take.
                    drop(unsafe { Arc::from_raw(owned.cast_const()) });
                    word = seen;
                }
            }
        }
        if word.is_null() {
            return VariableVersion::disabled();
        }
        // SAFETY: the word is an owned Arc, which stays while `self` is borrowed.
        let counter = unsafe {
            Arc::increment_strong_count(word.cast_const());
            Arc::from_raw(word.cast_const())
        };
        VariableVersion(Some(counter))
    }

    /// Replaces the counter.
    ///
    /// # Safety
    ///
    /// No other thread uses this slot.
    pub(super) unsafe fn set(&self, version: VariableVersion) {
        let new = match version.0 {
            Some(counter) => Arc::into_raw(counter).cast_mut(),
            None => std::ptr::null_mut(),
        };
        Self::release(self.0.swap(new, Ordering::AcqRel));
    }

    fn release(word: *mut AtomicU32) {
        if as_inline(word).is_none() && !word.is_null() {
            // SAFETY: the word was an owned Arc and has been taken out of the slot.
            drop(unsafe { Arc::from_raw(word.cast_const()) });
        }
    }
}

impl Drop for VersionSlot {
    #[inline]
    fn drop(&mut self) {
        Self::release(*self.0.get_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InferenceModeGuard;

    #[test]
    fn sharing_keeps_the_count() -> Result<()> {
        let slot = VersionSlot::new(true);
        slot.bump()?;
        slot.bump()?;
        let share = slot.share();
        assert_eq!(share.current_version()?, 2);
        share.bump()?;
        slot.bump()?;
        assert_eq!((slot.current_version()?, share.current_version()?), (4, 4));
        assert!(share.is_same(&slot.share()) && !share.unique());
        drop(slot);
        assert!(share.unique());
        Ok(())
    }

    #[test]
    fn disabled() {
        let slot = VersionSlot::new(false);
        assert!(!slot.share().enabled());
        assert!(slot.current_version().is_err_and(|e| e.message().contains("do not track version counter")));
        assert!(slot.bump().is_err_and(|e| e.message().starts_with("Inplace update to inference tensor")));
        let _inference = InferenceModeGuard::new(true);
        assert!(slot.bump().is_ok());
    }

    #[test]
    fn bumps_and_shares_from_many_threads() -> Result<()> {
        for _ in 0..50 {
            let slot = VersionSlot::new(true);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for i in 0..100 {
                            assert!(slot.bump().is_ok());
                            if i == 50 {
                                assert!(slot.share().enabled());
                            }
                        }
                    });
                }
            });
            assert_eq!(slot.current_version()?, 400);
        }
        Ok(())
    }
}
