//! Bounds on what a file may make the reader hold.

use crate::error::{error, Result};

/// Bounds that a real checkpoint stays far below.
///
/// Sizes that a file states are always compared with the bytes that are there before anything is allocated, so
/// memory is proportional to the file even without these; they bound the factor for files that are large themselves.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Nodes in one pickle. A node takes 32 bytes and a file needs at least one byte for it.
    pub max_nodes: usize,
    /// Entries in the memo of one pickle.
    pub max_memo: usize,
    /// Marks open at once, the depth of nesting of a pickle that is being read.
    pub max_depth: usize,
    /// Bytes in one string or byte string of a pickle.
    pub max_string: usize,
    /// Decimal digits in an integer that is written as text, whose conversion is quadratic (CPython's bound).
    pub max_digits: usize,
    /// Entries in a zip archive.
    pub max_records: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_nodes: 1 << 27,
            max_memo: 1 << 27,
            max_depth: 1 << 20,
            max_string: 1 << 30,
            max_digits: 4300,
            max_records: 1 << 24,
        }
    }
}

/// Errors when `got` is above `limit`; `what` names the quantity.
pub(crate) fn check(what: &str, got: usize, limit: usize) -> Result<()> {
    if got > limit {
        return Err(error!(Limit, "{what}: expected at most {limit}, got {got}"));
    }
    Ok(())
}
