//! Sorting.

mod key;
mod radix;
mod row;
mod sort_kernel;
#[cfg(test)]
mod tests;

/// Registers the family.
pub(crate) fn register() {
    sort_kernel::register();
}
