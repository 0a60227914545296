//! Kernels that make values out of nothing, and the one that reads a value back.

mod fill;
mod local_scalar_dense;
mod range;
#[cfg(test)]
mod tests;

pub(crate) use fill::element_bytes;

/// Registers the family.
pub(crate) fn register() {
    fill::register();
    local_scalar_dense::register();
    range::register();
}
