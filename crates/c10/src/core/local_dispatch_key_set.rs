//! The dispatch keys that this thread adds to every call and takes from every call.
//!
//! The dispatcher computes `(arguments' keys | included) - excluded`. Both sets are stored XORed with their
//! defaults, so that a new thread's zeroed memory means the default and needs no initialisation check.

use std::cell::Cell;
use std::marker::PhantomData;

use crate::core::dispatch_key::DispatchKey;
use crate::core::dispatch_key_set::{
    autograd_dispatch_keyset, autograd_dispatch_keyset_with_ADInplaceOrView, default_excluded_set,
    default_included_set, DispatchKeySet,
};

/// This thread's included and excluded keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalDispatchKeySet {
    /// Added to every call.
    pub included: DispatchKeySet,
    /// Taken from every call; wins over `included`.
    pub excluded: DispatchKeySet,
}

thread_local! {
    static INCLUDED: Cell<u64> = const { Cell::new(0) };
    static EXCLUDED: Cell<u64> = const { Cell::new(0) };
}

/// This thread's sets.
#[inline]
pub fn tls_local_dispatch_key_set() -> LocalDispatchKeySet {
    LocalDispatchKeySet {
        included: DispatchKeySet::from_raw_repr(INCLUDED.get() ^ default_included_set.raw_repr()),
        excluded: DispatchKeySet::from_raw_repr(EXCLUDED.get() ^ default_excluded_set.raw_repr()),
    }
}

/// Replaces this thread's sets. Prefer a guard.
#[inline]
pub fn set_tls_local_dispatch_key_set(keys: LocalDispatchKeySet) {
    INCLUDED.set(keys.included.raw_repr() ^ default_included_set.raw_repr());
    EXCLUDED.set(keys.excluded.raw_repr() ^ default_excluded_set.raw_repr());
}

/// Whether this thread excludes the key.
pub fn tls_is_dispatch_key_excluded(key: DispatchKey) -> bool {
    tls_local_dispatch_key_set().excluded.has(key)
}

/// Whether this thread includes the key.
pub fn tls_is_dispatch_key_included(key: DispatchKey) -> bool {
    tls_local_dispatch_key_set().included.has(key)
}

/// Whether this thread excludes all of the keys.
pub fn tls_is_dispatch_keyset_excluded(keys: DispatchKeySet) -> bool {
    tls_local_dispatch_key_set().excluded.has_all(keys)
}

/// Whether this thread includes all of the keys.
pub fn tls_is_dispatch_keyset_included(keys: DispatchKeySet) -> bool {
    tls_local_dispatch_key_set().included.has_all(keys)
}

/// Excludes or un-excludes a key on this thread, without a guard (modes entered and left by Python).
pub fn tls_set_dispatch_key_excluded(key: DispatchKey, excluded: bool) {
    let mut keys = tls_local_dispatch_key_set();
    keys.excluded = with_key(keys.excluded, key, excluded);
    set_tls_local_dispatch_key_set(keys);
}

/// Includes or un-includes a key on this thread, without a guard.
pub fn tls_set_dispatch_key_included(key: DispatchKey, included: bool) {
    let mut keys = tls_local_dispatch_key_set();
    keys.included = with_key(keys.included, key, included);
    set_tls_local_dispatch_key_set(keys);
}

fn with_key(keys: DispatchKeySet, key: DispatchKey, on: bool) -> DispatchKeySet {
    if on {
        keys.add(key)
    } else {
        keys.remove(key)
    }
}

/// Guards belong to the thread that made them.
type NotSend = PhantomData<*const ()>;

/// Adds keys to the included set while it lives.
#[must_use = "the keys are included only while the guard lives"]
pub struct IncludeDispatchKeyGuard {
    /// The bits this guard set: those that were already there are another guard's.
    added: u64,
    _not_send: NotSend,
}

impl IncludeDispatchKeyGuard {
    /// Includes `keys`.
    #[inline]
    pub fn new(keys: impl Into<DispatchKeySet>) -> Self {
        let present = INCLUDED.get() ^ default_included_set.raw_repr();
        let added = keys.into().raw_repr() & !present;
        INCLUDED.set(INCLUDED.get() ^ added);
        Self { added, _not_send: PhantomData }
    }
}

impl Drop for IncludeDispatchKeyGuard {
    #[inline]
    fn drop(&mut self) {
        let present = INCLUDED.get() ^ default_included_set.raw_repr();
        INCLUDED.set(INCLUDED.get() ^ (present & self.added));
    }
}

/// Adds keys to the excluded set while it lives.
#[must_use = "the keys are excluded only while the guard lives"]
pub struct ExcludeDispatchKeyGuard {
    added: u64,
    _not_send: NotSend,
}

impl ExcludeDispatchKeyGuard {
    /// Excludes `keys`.
    #[inline]
    pub fn new(keys: impl Into<DispatchKeySet>) -> Self {
        let present = EXCLUDED.get() ^ default_excluded_set.raw_repr();
        let added = keys.into().raw_repr() & !present;
        EXCLUDED.set(EXCLUDED.get() ^ added);
        Self { added, _not_send: PhantomData }
    }
}

impl Drop for ExcludeDispatchKeyGuard {
    #[inline]
    fn drop(&mut self) {
        let present = EXCLUDED.get() ^ default_excluded_set.raw_repr();
        EXCLUDED.set(EXCLUDED.get() ^ (present & self.added));
    }
}

/// Replaces both sets while it lives, and restores them as they were.
#[must_use = "the keys are forced only while the guard lives"]
pub struct ForceDispatchKeyGuard {
    saved: LocalDispatchKeySet,
    _not_send: NotSend,
}

impl ForceDispatchKeyGuard {
    /// Sets this thread's sets to `keys`.
    #[inline]
    pub fn new(keys: LocalDispatchKeySet) -> Self {
        let guard = Self::saving();
        set_tls_local_dispatch_key_set(keys);
        guard
    }

    /// Changes nothing now, and restores the present sets at the end.
    #[inline]
    pub fn saving() -> Self {
        Self { saved: tls_local_dispatch_key_set(), _not_send: PhantomData }
    }
}

impl Drop for ForceDispatchKeyGuard {
    #[inline]
    fn drop(&mut self) {
        set_tls_local_dispatch_key_set(self.saved);
    }
}

/// Runs below autograd: what autograd kernels hold while they call the operator they differentiate.
/// Views and versions are still tracked.
#[must_use = "autograd is skipped only while the guard lives"]
pub struct AutoDispatchBelowAutograd {
    _guard: ExcludeDispatchKeyGuard,
}

impl AutoDispatchBelowAutograd {
    /// Excludes the autograd keys.
    #[inline]
    #[allow(clippy::new_without_default)] // Making a guard is an effect, not a value.
    pub fn new() -> Self {
        Self { _guard: ExcludeDispatchKeyGuard::new(autograd_dispatch_keyset) }
    }
}

/// Runs below ADInplaceOrView: backends' kernels that call operators on tensors whose views nobody will see.
#[must_use = "ADInplaceOrView is skipped only while the guard lives"]
pub struct AutoDispatchBelowADInplaceOrView {
    _guard: ExcludeDispatchKeyGuard,
}

impl AutoDispatchBelowADInplaceOrView {
    /// Excludes the autograd keys and ADInplaceOrView.
    #[inline]
    #[allow(clippy::new_without_default)] // Making a guard is an effect, not a value.
    pub fn new() -> Self {
        Self { _guard: ExcludeDispatchKeyGuard::new(autograd_dispatch_keyset_with_ADInplaceOrView) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults() {
        let keys = tls_local_dispatch_key_set();
        assert_eq!(keys.included, default_included_set);
        assert_eq!(keys.excluded, default_excluded_set);
    }

    #[test]
    fn guards_nest_and_undo_only_what_they_did() {
        let before = tls_local_dispatch_key_set();
        let outer = ExcludeDispatchKeyGuard::new(DispatchKey::Python);
        {
            let _inner = ExcludeDispatchKeyGuard::new(DispatchKeySet::from_keys(&[
                DispatchKey::Python,
                DispatchKey::Tracer,
            ]));
            assert!(tls_is_dispatch_key_excluded(DispatchKey::Tracer));
        }
        assert!(tls_is_dispatch_key_excluded(DispatchKey::Python));
        assert!(!tls_is_dispatch_key_excluded(DispatchKey::Tracer));
        drop(outer);
        {
            // Keys included by default stay after a guard that asked for them ends.
            let _guard = IncludeDispatchKeyGuard::new(DispatchKey::BackendSelect);
        }
        assert_eq!(tls_local_dispatch_key_set(), before);
    }

    #[test]
    fn force_restores() {
        let before = tls_local_dispatch_key_set();
        {
            let _guard = ForceDispatchKeyGuard::new(LocalDispatchKeySet {
                included: DispatchKeySet::EMPTY,
                excluded: DispatchKeySet::EMPTY,
            });
            assert!(!tls_is_dispatch_key_included(DispatchKey::ADInplaceOrView));
            assert!(!tls_is_dispatch_key_excluded(DispatchKey::AutocastCPU));
        }
        assert_eq!(tls_local_dispatch_key_set(), before);
    }

    #[test]
    fn below_autograd() {
        let _guard = AutoDispatchBelowAutograd::new();
        let tls = tls_local_dispatch_key_set();
        let call = (DispatchKeySet::from_keys(&[DispatchKey::CPU, DispatchKey::AutogradCPU]) | tls.included)
            - tls.excluded;
        assert_eq!(call.highest_priority_type_id(), DispatchKey::ADInplaceOrView);
    }
}
