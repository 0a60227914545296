//! Observers of operator calls (PyTorch's `RecordFunction`): profilers, loggers, tests.
//!
//! With no observer registered a call pays one relaxed load.

use std::any::Any;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use c10::{DispatchKeySet, ForkSafeMutex, Result};

use super::operator_handle::OperatorHandle;
use crate::boxing::{ArgTuple, IValue, KernelFunction, RetType, Stack};

/// One operator call, as observers see it.
pub struct CallInfo<'a> {
    /// The operator.
    pub op: OperatorHandle,
    /// The keys that the call dispatches on.
    pub keyset: DispatchKeySet,
    /// The arguments.
    pub inputs: &'a [IValue],
}

/// Something that wants to know of operator calls made through the front door (redispatches are not calls).
pub trait Observer: Send + Sync {
    /// Before the kernel runs, on its thread. What it returns comes back in [`Observer::on_exit`].
    fn on_enter(&self, call: &CallInfo<'_>) -> Option<Box<dyn Any>>;
    /// After the kernel ran, also when it failed (`outputs` is then `None`).
    fn on_exit(&self, op: OperatorHandle, outputs: Option<&[IValue]>, context: Option<Box<dyn Any>>);
}

/// Keeps an observer registered until dropped.
pub struct ObserverHandle(Arc<dyn Observer>);

static COUNT: AtomicUsize = AtomicUsize::new(0);
/// A fork holds it: see `registry`.
pub(super) static OBSERVERS: ForkSafeMutex<Vec<Arc<dyn Observer>>> = ForkSafeMutex::new(Vec::new());

thread_local! {
    /// Operators that an observer itself calls are not observed.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Registers an observer for all threads.
pub fn add_observer(observer: Arc<dyn Observer>) -> ObserverHandle {
    OBSERVERS.lock().push(observer.clone());
    COUNT.fetch_add(1, Ordering::Relaxed);
    ObserverHandle(observer)
}

impl Drop for ObserverHandle {
    fn drop(&mut self) {
        // The handle's own reference outlives this one, so no observer is dropped under the lock.
        OBSERVERS.lock().retain(|o| !Arc::ptr_eq(o, &self.0));
        COUNT.fetch_sub(1, Ordering::Relaxed);
    }
}

#[inline]
pub(crate) fn active() -> bool {
    COUNT.load(Ordering::Relaxed) != 0
}

fn quietly<T>(f: impl FnOnce() -> T) -> T {
    struct Leave(bool);
    impl Drop for Leave {
        fn drop(&mut self) {
            INSIDE.with(|inside| inside.set(self.0));
        }
    }
    let _leave = Leave(INSIDE.with(|inside| inside.replace(true)));
    f()
}

#[cold]
pub(crate) fn observe_boxed(
    op: OperatorHandle,
    keyset: DispatchKeySet,
    kernel: &KernelFunction,
    stack: &mut Stack,
) -> Result<()> {
    if INSIDE.with(Cell::get) {
        return kernel.call_boxed(op, keyset, stack);
    }
    let schema = op.schema()?;
    let observers = OBSERVERS.lock().clone();
    let first = stack.len().saturating_sub(schema.arguments.len());
    let call = CallInfo { op, keyset, inputs: &stack[first..] };
    let contexts: Vec<_> = quietly(|| observers.iter().map(|o| o.on_enter(&call)).collect());
    let result = kernel.call_boxed(op, keyset, stack);
    let outputs = match &result {
        Ok(()) => Some(&stack[stack.len().saturating_sub(schema.returns.len())..]),
        Err(_) => None,
    };
    quietly(|| {
        for (observer, context) in observers.iter().zip(contexts).rev() {
            observer.on_exit(op, outputs, context);
        }
    });
    result
}

#[cold]
pub(crate) fn observe_unboxed<A: ArgTuple, R: RetType>(
    op: OperatorHandle,
    keyset: DispatchKeySet,
    kernel: &KernelFunction,
    args: A::Refs<'_>,
) -> Result<R> {
    let mut stack = Stack::new();
    A::push(args, &mut stack);
    observe_boxed(op, keyset, kernel, &mut stack)?;
    R::pop(&mut stack)
}
