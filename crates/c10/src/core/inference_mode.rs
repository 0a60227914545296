//! Inference mode: tensors made inside carry no autograd keys and no version counter, and operators skip both.
//!
//! Inside, a *normal* tensor (made outside) still has its ADInplaceOrView key, so that views of it and in-place changes to it are
//! tracked and it stays usable by autograd outside. An *inference tensor* must not be saved for backward,
//! and outside the mode it must not be changed in place.

use std::marker::PhantomData;

use crate::core::dispatch_key::DispatchKey;
use crate::core::dispatch_key_set::autograd_dispatch_keyset;
use crate::core::grad_mode::AutogradState;
use crate::core::local_dispatch_key_set::{
    set_tls_local_dispatch_key_set, tls_local_dispatch_key_set, LocalDispatchKeySet,
};

/// The switch of inference mode.
pub struct InferenceMode;

impl InferenceMode {
    /// Whether this thread is in inference mode.
    #[inline]
    pub fn is_enabled() -> bool {
        AutogradState::get().inference_mode()
    }

    /// Sets the bit alone, without the dispatch keys that go with it. Use [`InferenceModeGuard`].
    pub fn set_enabled(enabled: bool) {
        AutogradState::get().with_inference_mode(enabled).set();
    }
}

/// Enters inference mode, or with `false` leaves it, while it lives.
#[must_use = "the mode is set only while the guard lives"]
pub struct InferenceModeGuard {
    saved_state: AutogradState,
    saved_keys: LocalDispatchKeySet,
    _not_send: PhantomData<*const ()>,
}

impl InferenceModeGuard {
    /// Sets the mode, grad modes and dispatch keys.
    pub fn new(enabled: bool) -> Self {
        let saved_state = AutogradState::get();
        let saved_keys = tls_local_dispatch_key_set();
        saved_state.with_grad_mode(!enabled).with_fw_grad_mode(!enabled).with_inference_mode(enabled).set();
        set_tls_local_dispatch_key_set(if enabled {
            LocalDispatchKeySet {
                included: saved_keys.included.remove(DispatchKey::ADInplaceOrView),
                excluded: saved_keys.excluded | autograd_dispatch_keyset,
            }
        } else {
            LocalDispatchKeySet {
                included: saved_keys.included.add(DispatchKey::ADInplaceOrView),
                excluded: saved_keys.excluded - autograd_dispatch_keyset,
            }
        });
        Self { saved_state, saved_keys, _not_send: PhantomData }
    }
}

impl Drop for InferenceModeGuard {
    fn drop(&mut self) {
        self.saved_state.set();
        set_tls_local_dispatch_key_set(self.saved_keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::grad_mode::GradMode;
    use crate::core::local_dispatch_key_set::tls_is_dispatch_key_excluded;

    #[test]
    fn entering_and_leaving() {
        {
            let _on = InferenceModeGuard::new(true);
            assert!(InferenceMode::is_enabled() && !GradMode::is_enabled());
            assert!(tls_is_dispatch_key_excluded(DispatchKey::AutogradCPU.to_functionality_key()));
            {
                let _off = InferenceModeGuard::new(false);
                assert!(!InferenceMode::is_enabled() && GradMode::is_enabled());
                assert!(tls_local_dispatch_key_set().included.has(DispatchKey::ADInplaceOrView));
            }
            assert!(InferenceMode::is_enabled());
        }
        assert!(!InferenceMode::is_enabled() && GradMode::is_enabled());
    }
}
