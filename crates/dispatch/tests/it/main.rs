//! The dispatcher from outside: registration, both calling conventions, keys, observers, concurrency.

mod calling;
mod concurrency;
mod keys;
mod observers;

use std::sync::Once;

/// Stands in for the autograd crate's fallback: tensors carry autograd keys, and nothing here differentiates.
fn pass_by_autograd() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut library = dispatch::Library::new(dispatch::LibraryKind::Impl, "_");
        let kernel = dispatch::KernelFunction::fallthrough();
        library.fallback(c10::DispatchKey::AutogradCPU, kernel).expect("a runtime key");
        library.leak();
    });
}
