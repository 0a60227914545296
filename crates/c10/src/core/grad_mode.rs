//! Whether this thread records operations for backward and forward differentiation.

use std::cell::Cell;
use std::marker::PhantomData;

/// This thread's switches of autograd, in one byte. A set bit means "not the default".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AutogradState(u8);

const GRAD_MODE_OFF: u8 = 1;
const FW_GRAD_MODE_OFF: u8 = 2;
const INFERENCE_MODE: u8 = 4;
const MULTITHREADING_OFF: u8 = 8;
const VIEW_REPLAY: u8 = 16;

thread_local! {
    static STATE: Cell<AutogradState> = const { Cell::new(AutogradState(0)) };
}

macro_rules! switches {
    ($($(#[$doc:meta])* $get:ident, $set:ident, $bit:ident, on_when_set = $on:literal;)*) => {
        $(
            $(#[$doc])*
            #[inline]
            pub const fn $get(self) -> bool {
                (self.0 & $bit != 0) == $on
            }

            /// The state with this switch set.
            #[inline]
            #[must_use]
            pub const fn $set(self, enabled: bool) -> Self {
                if enabled == $on { Self(self.0 | $bit) } else { Self(self.0 & !$bit) }
            }
        )*
    };
}

impl AutogradState {
    /// This thread's state.
    #[inline]
    pub fn get() -> Self {
        STATE.get()
    }

    /// Replaces this thread's state.
    #[inline]
    pub fn set(self) {
        STATE.set(self);
    }

    switches! {
        /// Whether backward graphs are recorded.
        grad_mode, with_grad_mode, GRAD_MODE_OFF, on_when_set = false;
        /// Whether tangents are propagated.
        fw_grad_mode, with_fw_grad_mode, FW_GRAD_MODE_OFF, on_when_set = false;
        /// Whether new tensors are inference tensors.
        inference_mode, with_inference_mode, INFERENCE_MODE, on_when_set = true;
        /// Whether the engine may use threads of its own.
        multithreading_enabled, with_multithreading_enabled, MULTITHREADING_OFF, on_when_set = false;
        /// Whether views of in-place-modified bases are replayed rather than restrided.
        view_replay_enabled, with_view_replay_enabled, VIEW_REPLAY, on_when_set = true;
    }
}

/// The switch of backward recording.
pub struct GradMode;

impl GradMode {
    /// Whether this thread records.
    #[inline]
    pub fn is_enabled() -> bool {
        AutogradState::get().grad_mode()
    }

    /// Sets the switch. Prefer [`AutoGradMode`].
    #[inline]
    pub fn set_enabled(enabled: bool) {
        AutogradState::get().with_grad_mode(enabled).set();
    }
}

/// The switch of forward-mode differentiation.
pub struct FwGradMode;

impl FwGradMode {
    /// Whether this thread propagates tangents.
    #[inline]
    pub fn is_enabled() -> bool {
        AutogradState::get().fw_grad_mode()
    }

    /// Sets the switch. Prefer [`AutoFwGradMode`].
    #[inline]
    pub fn set_enabled(enabled: bool) {
        AutogradState::get().with_fw_grad_mode(enabled).set();
    }
}

/// Sets grad mode while it lives.
#[must_use = "the mode is set only while the guard lives"]
pub struct AutoGradMode {
    saved: bool,
    _not_send: PhantomData<*const ()>,
}

impl AutoGradMode {
    /// Sets the mode.
    #[inline]
    pub fn new(enabled: bool) -> Self {
        let saved = GradMode::is_enabled();
        GradMode::set_enabled(enabled);
        Self { saved, _not_send: PhantomData }
    }
}

impl Drop for AutoGradMode {
    #[inline]
    fn drop(&mut self) {
        GradMode::set_enabled(self.saved);
    }
}

/// Turns grad mode off while it lives.
#[must_use = "the mode is set only while the guard lives"]
pub struct NoGradGuard {
    _guard: AutoGradMode,
}

impl NoGradGuard {
    /// Turns grad mode off.
    #[inline]
    #[allow(clippy::new_without_default)] // Making a guard is an effect, not a value.
    pub fn new() -> Self {
        Self { _guard: AutoGradMode::new(false) }
    }
}

/// Sets forward-mode differentiation while it lives.
#[must_use = "the mode is set only while the guard lives"]
pub struct AutoFwGradMode {
    saved: bool,
    _not_send: PhantomData<*const ()>,
}

impl AutoFwGradMode {
    /// Sets the mode.
    #[inline]
    pub fn new(enabled: bool) -> Self {
        let saved = FwGradMode::is_enabled();
        FwGradMode::set_enabled(enabled);
        Self { saved, _not_send: PhantomData }
    }
}

impl Drop for AutoFwGradMode {
    #[inline]
    fn drop(&mut self) {
        FwGradMode::set_enabled(self.saved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_restore() {
        assert!(GradMode::is_enabled() && FwGradMode::is_enabled());
        {
            let _no_grad = NoGradGuard::new();
            assert!(!GradMode::is_enabled() && FwGradMode::is_enabled());
            {
                let _grad = AutoGradMode::new(true);
                let _fw = AutoFwGradMode::new(false);
                assert!(GradMode::is_enabled() && !FwGradMode::is_enabled());
            }
            assert!(!GradMode::is_enabled());
        }
        assert!(GradMode::is_enabled());
    }

    #[test]
    fn a_new_thread_has_the_defaults() {
        let _no_grad = NoGradGuard::new();
        let enabled = std::thread::spawn(GradMode::is_enabled).join();
        assert!(matches!(enabled, Ok(true)));
    }
}
