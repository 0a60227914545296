//! The CPU kernels.
//!
//! Kernels only compute: shapes, dtypes, outputs and errors were settled by the operator's meta function.
//! Each kernel is registered by name with [`iter::kernel_registry`]; the generated wrappers in `ops` find it
//! there, so that neither crate depends on the other.

mod dispatch;
mod loops;
mod map;
mod pointwise;
mod registration;
pub mod vec;

use std::sync::Once;

/// Registers every kernel. Calling it again does nothing.
pub fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        pointwise::register();
    });
}
