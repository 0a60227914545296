//! Kernels for keys rather than operators.

mod cpu_fallback;
mod lazy_bits;

pub use cpu_fallback::{abi_cpu_fallback, cpu_fallback};

use c10::{DispatchKey, Result};
use dispatch::{KernelFunction, Library, LibraryKind};

/// Registers the fallbacks of lazily conjugated and negated tensors.
pub(crate) fn register() -> Result<()> {
    let mut library = Library::new(LibraryKind::Impl, "_");
    library.fallback(DispatchKey::Conjugate, KernelFunction::from_boxed(lazy_bits::conjugate_fallback))?;
    library.fallback(DispatchKey::Negative, KernelFunction::from_boxed(lazy_bits::negative_fallback))?;
    library.leak();
    Ok(())
}
