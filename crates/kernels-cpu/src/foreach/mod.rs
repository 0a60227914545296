//! Optimizer steps over lists of tensors.

mod fused_sgd;

/// Registers the family.
pub(crate) fn register() {
    fused_sgd::register();
}
