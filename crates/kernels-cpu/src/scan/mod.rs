//! Running results along a dimension. A line is walked by one thread, in order, so the bits do not depend on threads.

mod cumulative;
mod extremes;
mod lines;
mod log_sum;
#[cfg(test)]
mod tests;

/// Registers the family.
pub(crate) fn register() {
    cumulative::register();
    extremes::register();
    log_sum::register();
}
