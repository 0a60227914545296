//! Losses.

mod ctc_loss;
mod nll_loss;

/// Registers the family.
pub(crate) fn register() {
    ctc_loss::register();
    nll_loss::register();
}
