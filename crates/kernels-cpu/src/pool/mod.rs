//! Pooling.

mod element;
mod linear_maps;
mod max_pool2d;
mod max_pool2d_backward;
mod separable;
mod taps;
#[cfg(test)]
mod tests;
mod window_max;

/// Registers the family.
pub(crate) fn register() {
    linear_maps::register();
    max_pool2d::register();
    max_pool2d_backward::register();
    window_max::register();
}
