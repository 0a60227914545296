//! Radix sort, least significant digit first, for rows too long for comparisons.

/// Bits of a digit: the counters of all digits stay in the first cache level, and so do the lines written to.
const DIGIT: u32 = 8;
const BUCKETS: usize = 1 << DIGIT;

/// Rows shorter than this are sorted by comparisons.
pub(super) const MIN_LENGTH: usize = 1024;

/// An entry: a key, and where it came from.
pub(super) trait Entry: Copy {
    /// Digits of the key.
    const DIGITS: u32;
    fn digit(self, which: u32) -> usize;
}

/// A key of 32 bits above an index of 32 bits.
impl Entry for u64 {
    const DIGITS: u32 = 4;
    #[inline(always)]
    fn digit(self, which: u32) -> usize {
        (self >> (32 + which * DIGIT)) as usize % BUCKETS
    }
}

/// A key of 64 bits, and an index.
impl Entry for (u64, u64) {
    const DIGITS: u32 = 8;
    #[inline(always)]
    fn digit(self, which: u32) -> usize {
        (self.0 >> (which * DIGIT)) as usize % BUCKETS
    }
}

/// Sorts by key; entries with one key keep their order. `spare` must be as long as `entries`.
pub(super) fn sort<E: Entry>(entries: &mut Vec<E>, spare: &mut Vec<E>) {
    let mut counts = [[0_usize; BUCKETS]; 8];
    for &entry in entries.iter() {
        for which in 0..E::DIGITS {
            counts[which as usize][entry.digit(which)] += 1;
        }
    }
    let n = entries.len();
    for which in 0..E::DIGITS {
        let counts = &mut counts[which as usize];
        // A digit that all entries share sorts nothing: small integers skip most digits.
        if counts.contains(&n) {
            continue;
        }
        let mut start = 0;
        for count in counts.iter_mut() {
            start += std::mem::replace(count, start);
        }
        for &entry in entries.iter() {
            let place = &mut counts[entry.digit(which)];
            spare[*place] = entry;
            *place += 1;
        }
        std::mem::swap(entries, spare);
    }
}
