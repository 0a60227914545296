//! Sorting.

mod key;
mod radix;
mod row;
mod searchsorted;
mod select;
mod sort_kernel;
#[cfg(test)]
mod tests;

/// Registers the family.
pub(crate) fn register() {
    searchsorted::register();
    select::register();
    sort_kernel::register();
}
