//! Errors that cross the interface.

use crate::table::{Abi, AbiError, AbiStr};

/// The kinds of errors, in the interface's numbering. Each maps to a Python exception class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum ErrorKind {
    /// `RuntimeError`.
    Runtime = 0,
    /// `IndexError`.
    Index = 1,
    /// `ValueError`.
    Value = 2,
    /// `TypeError`.
    Type = 3,
    /// `NotImplementedError`.
    NotImplemented = 4,
    /// `ptr.OutOfMemoryError`.
    OutOfMemory = 5,
}

/// An error: a kind and a message.
#[derive(Clone, Debug)]
pub struct Error {
    /// Decides the Python class.
    pub kind: ErrorKind,
    /// What happened.
    pub message: String,
}

/// The result of everything that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A `RuntimeError`.
    pub fn runtime(message: impl Into<String>) -> Error {
        Error { kind: ErrorKind::Runtime, message: message.into() }
    }

    pub(crate) fn into_raw(self, table: &Abi) -> *mut AbiError {
        // SAFETY: the string outlives the call, which copies it.
        unsafe { (table.error_new)(self.kind as u32, AbiStr::new(&self.message)) }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl AbiStr {
    /// Borrows a string.
    pub fn new(text: &str) -> AbiStr {
        AbiStr { data: text.as_ptr(), len: text.len() }
    }

    /// Reads the string.
    ///
    /// # Safety
    /// `data` must point to `len` bytes that live for `'a`.
    pub unsafe fn get<'a>(self) -> &'a str {
        if self.len == 0 {
            return "";
        }
        // SAFETY: the caller's promise.
        let bytes = unsafe { std::slice::from_raw_parts(self.data, self.len) };
        std::str::from_utf8(bytes).unwrap_or("<not UTF-8>")
    }
}

/// Turns what a table function returned into a `Result`.
pub(crate) fn check(table: &Abi, error: *mut AbiError) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: a non-null error is owned by us until freed; the message is copied before that.
    unsafe {
        let kind = match (table.error_kind)(error) {
            1 => ErrorKind::Index,
            2 => ErrorKind::Value,
            3 => ErrorKind::Type,
            4 => ErrorKind::NotImplemented,
            5 => ErrorKind::OutOfMemory,
            _ => ErrorKind::Runtime,
        };
        let message = (table.error_message)(error).get().to_owned();
        (table.error_free)(error);
        Err(Error { kind, message })
    }
}
