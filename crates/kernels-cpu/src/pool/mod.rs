//! Pooling.

mod element;
mod max_pool2d;
mod max_pool2d_backward;
#[cfg(test)]
mod tests;

/// Registers the family.
pub(crate) fn register() {
    max_pool2d::register();
    max_pool2d_backward::register();
}
