//! A snapshot of everything a thread's calls depend on, for work that continues on another thread.
//!
//! The autograd engine captures it when a backward pass starts, and sets it on each thread that runs part of
//! that pass. Crates above register what they keep per thread ([`register_tls_extension`]): mode stacks,
//! autocast's dtypes, anomaly mode.

use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;

use parking_lot::RwLock;

use crate::core::grad_mode::AutogradState;
use crate::core::local_dispatch_key_set::{
    set_tls_local_dispatch_key_set, tls_local_dispatch_key_set, LocalDispatchKeySet,
};
use crate::Device;

thread_local! {
    static DEFAULT_DEVICE: Cell<Option<Device>> = const { Cell::new(None) };
}

/// The device on which this thread's factories allocate when they are not told; `None` is the CPU.
#[inline]
pub fn get_default_device() -> Option<Device> {
    DEFAULT_DEVICE.get()
}

/// Sets this thread's default device.
pub fn set_default_device(device: Option<Device>) {
    DEFAULT_DEVICE.set(device);
}

/// State captured by an extension; shared by the threads it is restored on.
pub type TlsExtensionState = Box<dyn Any + Send + Sync>;

/// How a crate above takes part in [`ThreadLocalState`].
#[derive(Clone, Copy)]
pub struct TlsExtension {
    /// Copies this thread's state; `None` stands for the default and costs nothing.
    pub capture: fn() -> Option<TlsExtensionState>,
    /// Replaces this thread's state; `None` sets the default.
    pub restore: fn(Option<&(dyn Any + Send + Sync)>),
}

static EXTENSIONS: RwLock<Vec<TlsExtension>> = RwLock::new(Vec::new());

/// Adds thread-local state to every later capture. Extensions stay for the life of the process.
pub fn register_tls_extension(
    capture: fn() -> Option<TlsExtensionState>,
    restore: fn(Option<&(dyn Any + Send + Sync)>),
) {
    EXTENSIONS.write().push(TlsExtension { capture, restore });
}

/// The `index`-th extension, copied out so that callbacks run without the lock.
fn extension(index: usize) -> Option<TlsExtension> {
    EXTENSIONS.read().get(index).copied()
}

/// A snapshot of a thread's state.
pub struct ThreadLocalState {
    keys: LocalDispatchKeySet,
    autograd: AutogradState,
    default_device: Option<Device>,
    /// One entry per extension registered at the time of the capture, in order.
    extensions: Vec<Option<TlsExtensionState>>,
}

impl ThreadLocalState {
    /// This thread's state.
    pub fn capture() -> Self {
        let extensions = (0..).map_while(extension).map(|extension| (extension.capture)()).collect();
        Self {
            keys: tls_local_dispatch_key_set(),
            autograd: AutogradState::get(),
            default_device: get_default_device(),
            extensions,
        }
    }

    /// Makes this the state of the calling thread. Use [`ThreadLocalStateGuard`] to have it undone.
    pub fn restore(&self) {
        set_tls_local_dispatch_key_set(self.keys);
        self.autograd.set();
        set_default_device(self.default_device);
        for (index, state) in self.extensions.iter().enumerate() {
            if let Some(extension) = extension(index) {
                (extension.restore)(state.as_deref());
            }
        }
    }

    /// The same state with another grad mode: what the engine uses for `create_graph`.
    #[must_use]
    pub fn with_grad_mode(mut self, enabled: bool) -> Self {
        self.autograd = self.autograd.with_grad_mode(enabled);
        self
    }

    /// The dispatch keys of the snapshot.
    pub fn local_dispatch_key_set(&self) -> LocalDispatchKeySet {
        self.keys
    }
}

/// Sets a captured state while it lives, and restores the thread's own at the end.
#[must_use = "the state is set only while the guard lives"]
pub struct ThreadLocalStateGuard {
    saved: ThreadLocalState,
    _not_send: PhantomData<*const ()>,
}

impl ThreadLocalStateGuard {
    /// Sets `state`.
    pub fn new(state: &ThreadLocalState) -> Self {
        let saved = ThreadLocalState::capture();
        state.restore();
        Self { saved, _not_send: PhantomData }
    }
}

impl Drop for ThreadLocalStateGuard {
    fn drop(&mut self) {
        self.saved.restore();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::dispatch_key::DispatchKey;
    use crate::core::grad_mode::{GradMode, NoGradGuard};
    use crate::core::local_dispatch_key_set::{tls_is_dispatch_key_excluded, ExcludeDispatchKeyGuard};

    thread_local! {
        static LEVEL: Cell<u32> = const { Cell::new(0) };
    }

    #[test]
    fn travels_to_another_thread() {
        register_tls_extension(
            || (LEVEL.get() != 0).then(|| Box::new(LEVEL.get()) as TlsExtensionState),
            |state| LEVEL.set(state.and_then(|s| s.downcast_ref()).copied().unwrap_or(0)),
        );
        let state = {
            let _no_grad = NoGradGuard::new();
            let _exclude = ExcludeDispatchKeyGuard::new(DispatchKey::Python);
            LEVEL.set(7);
            ThreadLocalState::capture()
        };
        let outcome = std::thread::spawn(move || {
            {
                let _guard = ThreadLocalStateGuard::new(&state);
                assert!(!GradMode::is_enabled());
                assert!(tls_is_dispatch_key_excluded(DispatchKey::Python));
                assert_eq!(LEVEL.get(), 7);
            }
            assert!(GradMode::is_enabled());
            assert!(!tls_is_dispatch_key_excluded(DispatchKey::Python));
            assert_eq!(LEVEL.get(), 0);
        })
        .join();
        assert!(outcome.is_ok());
    }
}
