//! Optimizer steps over lists of tensors.

mod fused;
mod fused_adagrad;
mod fused_adam;
mod fused_sgd;

/// Registers the family.
pub(crate) fn register() {
    fused_adagrad::register();
    fused_adam::register();
    fused_sgd::register();
}
