//! The CPU kernels.
//!
//! Kernels only compute: shapes, dtypes, outputs and errors were settled by the operator's meta function.
//! Each kernel is registered by name with [`iter::kernel_registry`]; the generated wrappers in `ops` find it
//! there, so that neither crate depends on the other.

mod address;
mod attention;
mod conv;
mod copy;
mod dense;
mod dispatch;
mod factory;
mod foreach;
mod fork;
mod index;
mod linalg;
mod loops;
#[cfg(test)]
mod loops_tests;
mod loss;
mod map;
mod narrow;
mod norm;
mod pointwise;
mod pool;
mod random;
mod reduce;
mod registration;
mod rnn;
mod scan;
mod shape;
mod sort;
mod special;
#[cfg(test)]
mod test_tensor;
pub mod vec;

pub use random::{create_cpu_generator, CpuGenerator};

use std::sync::OnceLock;

/// Registers every kernel. Calling it again does nothing.
///
/// # Errors
/// If no handler for forked children can be registered.
pub fn init() -> c10::Result<()> {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    let done = DONE.get_or_init(|| {
        attention::register();
        conv::register();
        copy::register();
        factory::register();
        foreach::register();
        index::register();
        linalg::register();
        loss::register();
        norm::register();
        pointwise::register();
        pool::register();
        random::register();
        reduce::register();
        rnn::register();
        scan::register();
        shape::register();
        sort::register();
        special::register();
        fork::register().map_err(|error| error.to_string())
    });
    done.clone().map_err(c10::Error::runtime)
}
