//! Allocation that fails with an error. What a file or a caller can make large is allocated through these.

use std::collections::{HashMap, TryReserveError};
use std::hash::Hash;

use crate::error::{error, Result, SerializeError};

fn exhausted(_: TryReserveError) -> SerializeError {
    error!(Memory, "not enough memory for the values of the pickle")
}

/// Makes room for `n` values more, growing as `Vec` does by itself.
#[inline]
pub(crate) fn reserve<T>(values: &mut Vec<T>, n: usize) -> Result<()> {
    values.try_reserve(n).map_err(exhausted)
}

/// Makes room for an entry more.
#[inline]
pub(crate) fn reserve_entry<K: Eq + Hash, V>(map: &mut HashMap<K, V>) -> Result<()> {
    map.try_reserve(1).map_err(exhausted)
}

/// Fails if there is no memory for two copies of this many bytes, which what follows makes.
pub(crate) fn check_copies(nbytes: usize) -> Result<()> {
    /// Below, it is not worth a call of the allocator.
    const SMALL: usize = 1 << 16;
    if nbytes > SMALL {
        reserve(&mut Vec::<[u8; 2]>::new(), nbytes)?;
    }
    Ok(())
}
