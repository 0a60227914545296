//! `_C._abi`: the capsule through which separately built extensions reach the engine.

use std::sync::OnceLock;

use abi::Abi;
use dispatch::abi_table::{make_table, FromAbove};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::raw::{owned, Res};

/// The table, which extensions keep pointers to.
pub(crate) fn table() -> &'static Abi {
    static TABLE: OnceLock<Abi> = OnceLock::new();
    TABLE.get_or_init(|| {
        make_table(FromAbove {
            cpu_fallback: ::ops::fallback::abi_cpu_fallback,
            autograd_record: autograd::abi::autograd_record,
        })
    })
}

/// Adds the capsule.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> Res<()> {
    let table = std::ptr::from_ref(table()).cast_mut();
    // SAFETY: the table and its name live for ever; a new reference comes back.
    let capsule =
        unsafe { owned(module.py(), ffi::PyCapsule_New(table.cast(), abi::CAPSULE_NAME.as_ptr(), None))? };
    module.add("_abi", capsule)?;
    Ok(())
}
