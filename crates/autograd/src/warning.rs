//! Where autograd's warnings go: to the handler of the binding, or to standard error.

use std::sync::OnceLock;

static HANDLER: OnceLock<fn(&str)> = OnceLock::new();

/// Sets who shows warnings (Python's `warnings.warn`). The first caller wins.
pub fn set_warning_handler(handler: fn(&str)) {
    let _ = HANDLER.set(handler);
}

/// Shows a warning.
pub(crate) fn warn(message: &str) {
    match HANDLER.get() {
        Some(handler) => handler(message),
        None => eprintln!("Warning: {message}"),
    }
}
