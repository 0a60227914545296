//! Kernels for keys rather than operators.

mod lazy_bits;

use c10::{DispatchKey, Result};
use dispatch::{KernelFunction, Library, LibraryKind};

/// Registers the fallbacks of lazily conjugated and negated tensors.
pub(crate) fn register() -> Result<()> {
    let mut library = Library::new(LibraryKind::Impl, "_");
    library.fallback(DispatchKey::Conjugate, KernelFunction::from_boxed(lazy_bits::conjugate_fallback))?;
    library.fallback(DispatchKey::Negative, KernelFunction::from_boxed(lazy_bits::negative_fallback))?;
    library.leak();
    let mut aten = Library::new(LibraryKind::Impl, "aten");
    for name in lazy_bits::TRANSPARENT {
        aten.impl_(name, DispatchKey::Conjugate, KernelFunction::fallthrough())?;
        aten.impl_(name, DispatchKey::Negative, KernelFunction::fallthrough())?;
    }
    aten.leak();
    Ok(())
}
