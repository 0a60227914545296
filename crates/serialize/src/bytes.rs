//! A range of a shared, immutable buffer: a memory map or a vector.

use std::fmt;
use std::fs::File;
use std::ops::{Deref, Range};
use std::sync::Arc;

use memmap2::{MmapMut, MmapOptions};

use crate::error::{error, Result, SerializeError};

enum Source {
    Mapped(MmapMut),
    Owned(Vec<u8>),
}

impl Source {
    fn as_slice(&self) -> &[u8] {
        match self {
            Source::Mapped(map) => map,
            Source::Owned(vec) => vec,
        }
    }
}

/// A range of a buffer that stays alive as long as any range of it does. Cloning copies no data.
#[derive(Clone)]
pub struct Bytes {
    source: Arc<Source>,
    range: Range<usize>,
}

impl Bytes {
    /// The whole of `vec`.
    pub fn from_vec(vec: Vec<u8>) -> Self {
        let range = 0..vec.len();
        Bytes { source: Arc::new(Source::Owned(vec)), range }
    }

    /// The whole of `file`, mapped privately: pages are read when touched, and a write through [`as_ptr`](Self::as_ptr)
    /// copies the page and never reaches the file.
    ///
    /// As with every memory map, truncating the file while the map lives makes later reads fail with `SIGBUS`.
    /// Savers that replace the file by renaming, as [`ArchiveWriter::create`](crate::ArchiveWriter::create) does,
    /// do not disturb it.
    pub fn map(file: &File) -> Result<Self> {
        let nbytes = file.metadata().map_err(|e| SerializeError::io("read the size of the file", e))?.len();
        if nbytes == 0 {
            return Ok(Bytes::from_vec(Vec::new()));
        }
        // SAFETY: the map is private, so no write of ours reaches the file; that nobody truncates or rewrites the
        // file in place meanwhile is the documented condition of mapping it.
        let map = unsafe { MmapOptions::new().map_copy(file) }
            .map_err(|e| SerializeError::io("map the file into memory", e))?;
        let range = 0..map.len();
        Ok(Bytes { source: Arc::new(Source::Mapped(map)), range })
    }

    /// The part `range` of this range; an error when it reaches past the end.
    pub fn slice(&self, range: Range<usize>) -> Result<Self> {
        if range.start > range.end || range.end > self.len() {
            return Err(error!(
                Corrupt,
                "bytes {}..{} lie outside the {} bytes there are",
                range.start,
                range.end,
                self.len()
            ));
        }
        Ok(Bytes {
            source: Arc::clone(&self.source),
            range: self.range.start + range.start..self.range.start + range.end,
        })
    }

    /// Where this range starts in the underlying buffer, which is the file for an archive that was opened whole.
    pub fn offset(&self) -> usize {
        self.range.start
    }

    /// Whether the bytes are a private memory map.
    pub fn is_mapped(&self) -> bool {
        matches!(*self.source, Source::Mapped(_))
    }

    /// The first byte. Valid for `len()` bytes while any clone lives.
    ///
    /// For a mapped range the pages may be written through the pointer (the map is private); whoever does so must
    /// make sure that no `&[u8]` of the same range is in use.
    pub fn as_ptr(&self) -> *const u8 {
        match &*self.source {
            Source::Mapped(map) => map.as_ptr().wrapping_add(self.range.start),
            Source::Owned(vec) => vec.as_ptr().wrapping_add(self.range.start),
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.source.as_slice()[self.range.clone()]
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bytes").field("range", &self.range).field("mapped", &self.is_mapped()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_share_and_check_bounds() {
        let whole = Bytes::from_vec((0..10).collect());
        let part = whole.slice(2..8).unwrap();
        let inner = part.slice(1..3).unwrap();
        assert_eq!(&inner[..], &[3, 4]);
        assert_eq!(inner.offset(), 3);
        assert_eq!(inner.as_ptr(), whole.as_ptr().wrapping_add(3));
        assert!(part.slice(0..7).is_err());
        #[allow(clippy::reversed_empty_ranges)]
        let reversed = 3..2;
        assert!(part.slice(reversed).is_err());
    }
}
