//! Vectors whose length a caller of an operator chose: memory that is not there is an error, not the end of the process.

use super::error::{Error, Result};
use super::reserve_allocator::without_reserve;

/// `n` clones of a value, or an `OutOfMemory` error.
///
/// ```
/// assert_eq!(c10::try_filled(7_u8, 3)?, [7, 7, 7]);
/// assert!(c10::try_filled(0_u64, 1 << 60).is_err());
/// # Ok::<(), c10::Error>(())
/// ```
pub fn try_filled<T: Clone>(value: T, n: usize) -> Result<Vec<T>> {
    try_from_fn(n, || value.clone())
}

/// `n` values of a function, or an `OutOfMemory` error.
pub fn try_from_fn<T>(n: usize, f: impl FnMut() -> T) -> Result<Vec<T>> {
    let mut values = try_with_capacity(n)?;
    values.resize_with(n, f);
    Ok(values)
}

/// An empty vector with room for `n` values, or an `OutOfMemory` error.
pub fn try_with_capacity<T>(n: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    try_reserve(&mut values, n)?;
    Ok(values)
}

/// The values of an iterator that knows how many they are, or an `OutOfMemory` error.
pub fn try_collect<T>(values: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>> {
    let mut collected = try_with_capacity(values.len())?;
    collected.extend(values);
    Ok(collected)
}

/// Makes room for `n` values more, or gives an `OutOfMemory` error.
pub fn try_reserve<T>(values: &mut Vec<T>, n: usize) -> Result<()> {
    without_reserve(|| values.try_reserve_exact(n)).map_err(|_| {
        Error::out_of_memory(format!(
            "not enough memory for {n} intermediate values of {} bytes each",
            std::mem::size_of::<T>()
        ))
    })
}
