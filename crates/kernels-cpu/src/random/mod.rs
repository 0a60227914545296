//! Random numbers: PyTorch's streams, to the bit.
//!
//! For a seed, every kernel draws from the Mersenne Twister in PyTorch's order and turns words into values by the
//! same arithmetic, so programs that fix a seed reproduce. [`draw`] holds the two ways that words become elements;
//! each distribution has a file of its own.

mod bernoulli;
mod cpu_generator;
mod draw;
mod integers;
mod inversion;
mod mt19937;
mod normal;
mod randperm;
#[cfg(test)]
mod tests;
mod uniform;

use c10::{register_default_generator, DeviceType};

pub(crate) use cpu_generator::default_generator_if_made;
pub use cpu_generator::{create_cpu_generator, CpuGenerator};

/// Registers the family, and the default generator of the CPU.
pub(crate) fn register() {
    register_default_generator(DeviceType::CPU, |_| Ok(cpu_generator::default_cpu_generator()));
    bernoulli::register();
    integers::register();
    inversion::register();
    normal::register();
    randperm::register();
    uniform::register();
}
