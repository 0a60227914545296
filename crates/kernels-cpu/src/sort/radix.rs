//! Radix sort, least significant digit first, for rows too long for comparisons.

/// Bits of a digit: the counters of all digits stay in the first cache level, and so do the lines written to.
const DIGIT: u32 = 8;
const BUCKETS: usize = 1 << DIGIT;

/// Rows shorter than this are sorted by comparisons.
pub(super) const MIN_LENGTH: usize = 1024;

/// Something that is sorted by bits of it.
pub(super) trait Entry: Copy {
    /// The digit that begins at a bit.
    fn digit(self, bit: u32) -> usize;
}

impl Entry for u64 {
    #[inline(always)]
    fn digit(self, bit: u32) -> usize {
        (self >> bit) as usize % BUCKETS
    }
}

/// A key and an index.
impl Entry for (u64, u64) {
    #[inline(always)]
    fn digit(self, bit: u32) -> usize {
        self.0.digit(bit)
    }
}

/// Sorts by the `bits` bits from `first` on; entries that agree in them keep their order. `spare` must be as long as
/// `entries`.
pub(super) fn sort<E: Entry>(entries: &mut Vec<E>, spare: &mut Vec<E>, first: u32, bits: u32) {
    let digits = bits.div_ceil(DIGIT) as usize;
    let mut counts = [[0_usize; BUCKETS]; u64::BITS.div_ceil(DIGIT) as usize];
    let counts = &mut counts[..digits];
    for &entry in entries.iter() {
        for (which, counts) in counts.iter_mut().enumerate() {
            counts[entry.digit(first + which as u32 * DIGIT)] += 1;
        }
    }
    let n = entries.len();
    for (which, counts) in counts.iter_mut().enumerate() {
        // A digit that all entries share sorts nothing.
        if counts.contains(&n) {
            continue;
        }
        let bit = first + which as u32 * DIGIT;
        let mut start = 0;
        for count in counts.iter_mut() {
            start += std::mem::replace(count, start);
        }
        for &entry in entries.iter() {
            let place = &mut counts[entry.digit(bit)];
            spare[*place] = entry;
            *place += 1;
        }
        std::mem::swap(entries, spare);
    }
}
