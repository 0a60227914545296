//! Errors across the interface.

use std::panic::{catch_unwind, AssertUnwindSafe};

use abi::{AbiError, AbiStr};
use c10::{Error, ErrorKind, Result};

/// What an `AbiError` points to: the error, and its message kept for `error_message`.
struct Raw {
    error: Error,
    message: String,
}

fn into_raw(error: Error) -> *mut AbiError {
    let message = error.message().to_owned();
    Box::into_raw(Box::new(Raw { error, message })).cast()
}

/// Takes an error that an extension's kernel returned.
///
/// # Safety
/// `error` must be null or an owned error made by this process.
pub(super) unsafe fn take(error: *mut AbiError) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    Err(unsafe { Box::from_raw(error.cast::<Raw>()) }.error)
}

/// Runs a function of the table: its error is boxed for the extension, a panic becomes an error.
pub fn catch(f: impl FnOnce() -> Result<()>) -> *mut AbiError {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(())) => std::ptr::null_mut(),
        Ok(Err(error)) => into_raw(error),
        Err(_) => into_raw(Error::internal("a panic was stopped at the stable ABI")),
    }
}

pub(super) unsafe extern "C" fn error_new(kind: u32, message: AbiStr) -> *mut AbiError {
    // SAFETY: the extension's string lives through the call.
    let message = unsafe { message.get() };
    let kind = match kind {
        1 => ErrorKind::Index,
        2 => ErrorKind::Value,
        3 => ErrorKind::Type,
        4 => ErrorKind::NotImplemented,
        5 => ErrorKind::OutOfMemory,
        _ => ErrorKind::Runtime,
    };
    into_raw(Error::new(kind, message))
}

pub(super) unsafe extern "C" fn error_kind(error: *const AbiError) -> u32 {
    // SAFETY: a live error of this process.
    let error = unsafe { &*error.cast::<Raw>() };
    match error.error.kind() {
        ErrorKind::Index => 1,
        ErrorKind::Value => 2,
        ErrorKind::Type => 3,
        ErrorKind::NotImplemented => 4,
        ErrorKind::OutOfMemory => 5,
        _ => 0,
    }
}

pub(super) unsafe extern "C" fn error_message(error: *const AbiError) -> AbiStr {
    // SAFETY: a live error of this process; the string lives as long as it.
    AbiStr::new(unsafe { &(*error.cast::<Raw>()).message })
}

pub(super) unsafe extern "C" fn error_free(error: *mut AbiError) {
    // SAFETY: an owned error of this process, given back once.
    drop(unsafe { Box::from_raw(error.cast::<Raw>()) });
}
