//! Warnings for the user. The binding installs a handler that raises them as Python warnings.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

static HANDLER: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Sends every later warning to `handler` (at first they go to standard error).
pub fn set_warning_handler(handler: fn(&str)) {
    HANDLER.store(handler as *mut (), Ordering::Release);
}

/// Warns the user.
#[cold]
pub fn warn(message: &str) {
    let handler = HANDLER.load(Ordering::Acquire);
    if handler.is_null() {
        eprintln!("Warning: {message}");
        return;
    }
    // SAFETY: only `set_warning_handler` stores here, and what it stores is a `fn(&str)`.
    let handler = unsafe { std::mem::transmute::<*mut (), fn(&str)>(handler) };
    handler(message);
}
