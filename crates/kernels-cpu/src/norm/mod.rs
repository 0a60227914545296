//! Normalizations.

mod layer_norm;

/// Registers the family.
pub(crate) fn register() {
    layer_norm::register();
}
