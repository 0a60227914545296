//! The sizes small requests are rounded up to: multiples of 64 bytes, four per doubling.

/// Every block starts at a multiple of this: a cache line, and the widest vector.
pub(super) const ALIGNMENT: usize = 64;

/// The largest request that is served from a size class.
pub(super) const MAX_SMALL: usize = 1 << 20;

/// The number of classes: 64, 128, 192 and 256 bytes, then four for each of the twelve doublings up to 1 MiB.
pub(super) const NUM_CLASSES: usize = 52;

/// Blocks of up to this size are cut out of spans; larger classes are whole pages and mapped one by one.
pub(super) const MAX_SPAN_BLOCK: usize = 16 << 10;

/// Bytes in a span, which holds blocks of one class and starts at a multiple of its size.
pub(super) const SPAN_SIZE: usize = 64 << 10;

const SIZES: [u32; NUM_CLASSES] = {
    let mut sizes = [0; NUM_CLASSES];
    let mut class = 0;
    while class < NUM_CLASSES {
        sizes[class] = if class < 4 {
            64 * (class as u32 + 1)
        } else {
            let exponent = 8 + (class as u32 - 4) / 4;
            let quarter = (class as u32 - 4) % 4;
            (1 << exponent) + ((quarter + 1) << (exponent - 2))
        };
        class += 1;
    }
    sizes
};

/// Bytes in a block of a class.
#[inline(always)]
pub(super) const fn class_size(class: usize) -> usize {
    SIZES[class] as usize
}

/// The class of a request of `1..=MAX_SMALL` bytes.
#[inline(always)]
pub(super) const fn class_of(nbytes: usize) -> usize {
    let last = nbytes - 1;
    if last < 256 {
        last / 64
    } else {
        let exponent = (usize::BITS - 1 - last.leading_zeros()) as usize;
        4 + (exponent - 8) * 4 + ((last >> (exponent - 2)) & 3)
    }
}

/// True if blocks of the class are cut out of spans.
pub(super) const fn is_span_class(class: usize) -> bool {
    class_size(class) <= MAX_SPAN_BLOCK
}

/// The most blocks a thread keeps of a class.
pub(super) const MAX_MAGAZINE: usize = 64;

const MAGAZINE_CAPACITIES: [u8; NUM_CLASSES] = {
    let mut capacities = [0; NUM_CLASSES];
    let mut class = 0;
    while class < NUM_CLASSES {
        let count = (128 << 10) / class_size(class);
        capacities[class] = if count > MAX_MAGAZINE {
            MAX_MAGAZINE as u8
        } else if count < 1 {
            1
        } else {
            count as u8
        };
        class += 1;
    }
    capacities
};

/// How many blocks a thread keeps of a class: 128 KiB worth, at least one.
#[inline(always)]
pub(super) const fn magazine_capacity(class: usize) -> usize {
    MAGAZINE_CAPACITIES[class] as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_gets_the_smallest_class_that_holds_it() {
        for nbytes in (1..=5000).chain((5000..=MAX_SMALL).step_by(61)).chain([MAX_SMALL]) {
            let class = class_of(nbytes);
            assert!(class_size(class) >= nbytes, "{nbytes}");
            assert!(class == 0 || class_size(class - 1) < nbytes, "{nbytes}");
        }
        assert_eq!(class_of(MAX_SMALL), NUM_CLASSES - 1);
        assert_eq!(class_size(NUM_CLASSES - 1), MAX_SMALL);
    }

    #[test]
    fn classes_are_aligned_and_waste_at_most_a_fifth() {
        for class in 0..NUM_CLASSES {
            let size = class_size(class);
            assert_eq!(size % ALIGNMENT, 0);
            assert_eq!(class_of(size), class);
            if class > 3 {
                let smallest = class_size(class - 1) + 1;
                assert!((size - smallest) * 5 <= size);
            }
            if !is_span_class(class) {
                assert_eq!(size % 4096, 0);
            }
        }
    }
}
