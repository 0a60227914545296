//! Kernels that put tensors together.

mod cat;
#[cfg(test)]
mod tests;

/// Registers the family.
pub(crate) fn register() {
    cat::register();
}
