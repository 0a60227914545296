//! Makes a forked child able to compute: the host allocator and the default generator may have been locked by
//! threads that the child does not have. (The thread pool and the engine see to themselves.)

use c10::{Result, CPU_ALLOCATOR};

use crate::random::default_generator_if_made;

/// Registers the child's handler.
pub(crate) fn register() -> Result<()> {
    iter::parallel::fork::at_fork_child(after_fork_in_child)
}

fn after_fork_in_child() {
    // SAFETY: called in a forked child before `fork` returns there, so this is its only thread and it holds neither
    // the allocator's nor the generator's lock.
    unsafe {
        CPU_ALLOCATOR.after_fork_in_child();
        if let Some(generator) = default_generator_if_made() {
            generator.after_fork_in_child();
        }
    }
}
