//! Hooks that decide how tensors are kept between forward and backward: `saved_tensors_hooks`, `save_on_cpu`.
//!
//! The hooks on top of this thread's stack pack each tensor that an operator saves.

use std::cell::RefCell;
use std::sync::Arc;

use c10::{bail, Result, Tensor};

/// Packs tensors that are saved for backward.
pub trait SavedTensorHooks: Send + Sync {
    /// Turns a tensor into whatever is kept.
    fn pack(&self, tensor: &Tensor) -> Result<Arc<dyn PackedTensor>>;
}

/// What a pack hook kept.
pub trait PackedTensor: Send + Sync {
    /// Gives the tensor back.
    fn unpack(&self) -> Result<Tensor>;
}

#[derive(Default)]
struct State {
    stack: Vec<Arc<dyn SavedTensorHooks>>,
    disabled: Option<String>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::new(State::default());
    /// Whether `STATE` is empty of hooks, so that the common case is one load.
    static ACTIVE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Puts hooks on top of this thread's stack.
pub fn push(hooks: Arc<dyn SavedTensorHooks>) -> Result<()> {
    STATE.with_borrow_mut(|state| {
        if let Some(message) = &state.disabled {
            bail!(Runtime, "{message}");
        }
        state.stack.push(hooks);
        ACTIVE.set(true);
        Ok(())
    })
}

/// Takes the topmost hooks off.
pub fn pop() -> Option<Arc<dyn SavedTensorHooks>> {
    STATE.with_borrow_mut(|state| {
        let hooks = state.stack.pop();
        ACTIVE.set(!state.stack.is_empty());
        hooks
    })
}

/// The topmost hooks.
#[inline]
pub fn top() -> Option<Arc<dyn SavedTensorHooks>> {
    if ACTIVE.get() {
        STATE.with_borrow(|state| state.stack.last().cloned())
    } else {
        None
    }
}

/// Makes [`push`] fail with `message`, and fails itself when hooks are active.
pub fn disable(message: &str) -> Result<()> {
    STATE.with_borrow_mut(|state| {
        if state.disabled.is_none() && !state.stack.is_empty() {
            bail!(Runtime, "{message}");
        }
        state.disabled = Some(message.to_owned());
        Ok(())
    })
}

/// Allows hooks again.
pub fn enable() {
    STATE.with_borrow_mut(|state| state.disabled = None);
}

/// The message given to [`disable`], while it holds.
pub fn disabled_message() -> Option<String> {
    STATE.with_borrow(|state| state.disabled.clone())
}

/// Makes the stack travel with backward work to other threads.
pub(crate) fn register_tls_extension() {
    type Snapshot = (Vec<Arc<dyn SavedTensorHooks>>, Option<String>);
    c10::register_tls_extension(
        || {
            STATE.with_borrow(|state| {
                let is_default = state.stack.is_empty() && state.disabled.is_none();
                (!is_default).then(|| {
                    let snapshot: Snapshot = (state.stack.clone(), state.disabled.clone());
                    Box::new(snapshot) as c10::TlsExtensionState
                })
            })
        },
        |snapshot| {
            let (stack, disabled) =
                snapshot.and_then(|s| s.downcast_ref::<Snapshot>()).cloned().unwrap_or_default();
            ACTIVE.set(!stack.is_empty());
            let old = STATE.replace(State { stack, disabled });
            drop(old);
        },
    );
}
