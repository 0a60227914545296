//! PyO3, whose panics and lazily made errors end inside of the function that CPython called. See `contain.rs`.

pub use pyo3::*;

pub mod contain;

/// What PyO3's attributes refer to.
#[doc(hidden)]
pub mod impl_ {
    pub use pyo3::impl_::*;

    pub mod trampoline {
        pub use crate::contained_trampoline as get_trampoline_function;
        pub use pyo3::impl_::trampoline::*;
    }
}
