//! Losses.

mod nll_loss;

/// Registers the family.
pub(crate) fn register() {
    nll_loss::register();
}
