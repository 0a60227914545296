//! An extension built apart from `ptr`: an operator with a gradient, a device, and a fallback on a transform's key.
//!
//! `tests/unit/test_abi.py` builds it, loads it and calls [`abi_test_init`] with the table of the process.

mod device;
mod operator;
mod transform;

use std::sync::Mutex;

use abi::{Abi, Api, Library, Result};

/// The registrations, kept until [`abi_test_exit`].
static LIBRARIES: Mutex<Vec<Library>> = Mutex::new(Vec::new());

fn register(api: Api) -> Result<()> {
    let libraries = vec![operator::register(api)?, device::register(api)?];
    LIBRARIES.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).extend(libraries);
    Ok(())
}

/// Registers everything; returns 0 for success.
///
/// # Safety
/// `table` must be the table that `ptr._C` exports.
#[no_mangle]
pub unsafe extern "C" fn abi_test_init(table: *const Abi) -> i32 {
    // SAFETY: the caller's promise.
    match unsafe { Api::from_table(table) }.and_then(register) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("abi_test_init: {error}");
            1
        }
    }
}

/// Takes everything back.
#[no_mangle]
pub extern "C" fn abi_test_exit() {
    LIBRARIES.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clear();
}

/// Calls `aten::neg` on a tensor of ones with the transform's key included, and returns how many operators the
/// transform's fallback saw beneath; −1 for an error.
///
/// # Safety
/// `table` must be the table that `ptr._C` exports.
#[no_mangle]
pub unsafe extern "C" fn abi_test_count_calls(table: *const Abi) -> i64 {
    // SAFETY: the caller's promise.
    let seen = unsafe { Api::from_table(table) }.and_then(transform::count_calls);
    seen.unwrap_or_else(|error| {
        eprintln!("abi_test_count_calls: {error}");
        -1
    })
}
