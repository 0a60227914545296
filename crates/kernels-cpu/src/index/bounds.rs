//! Indices out of bounds, seen inside loops that cannot return an error.

use std::sync::atomic::{AtomicBool, Ordering};

use c10::{Error, ErrorKind, Result};
use parking_lot::Mutex;

/// The first index that was found out of bounds, by whichever thread.
#[derive(Default)]
pub(super) struct OutOfBounds {
    seen: AtomicBool,
    first: Mutex<Option<(i64, usize, i64)>>,
}

impl OutOfBounds {
    /// Notes an index that is out of bounds for a dimension of some size.
    #[cold]
    pub(super) fn note(&self, index: i64, dim: usize, size: i64) {
        self.seen.store(true, Ordering::Relaxed);
        self.first.lock().get_or_insert((index, dim, size));
    }

    /// Whether to give up.
    pub(super) fn seen(&self) -> bool {
        self.seen.load(Ordering::Relaxed)
    }

    /// The error, if there is one.
    pub(super) fn check(&self, kind: ErrorKind) -> Result<()> {
        match *self.first.lock() {
            Some((index, dim, size)) => Err(error(kind, index, dim, size)),
            None => Ok(()),
        }
    }
}

/// PyTorch's message.
#[cold]
pub(super) fn error(kind: ErrorKind, index: i64, dim: usize, size: i64) -> Error {
    Error::new(kind, format!("index {index} is out of bounds for dimension {dim} with size {size}"))
}
