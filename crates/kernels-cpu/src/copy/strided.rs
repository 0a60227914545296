//! Copies between strided rows, by element size.

use c10::Result;
use iter::TensorIterator;

use crate::vec::tiered;

/// Copies an iterator whose operands have one dtype and any strides.
pub(super) fn copy(iter: &TensorIterator) -> Result<()> {
    let size = iter.element_size(0);
    iter.for_each(
        // SAFETY: rows of the iterator's operands, which were checked against their storages.
        &|data, strides, n| unsafe { copy_row(size, data[1], strides[1], data[0], strides[0], n) },
        iter::parallel::GRAIN_SIZE,
    )
}

/// Copies `n` elements of `size` bytes; strides in bytes.
///
/// # Safety
/// Both rows must lie in memory, and not overlap unless they are the same.
#[inline]
pub(crate) unsafe fn copy_row(
    size: usize,
    from: *const u8,
    from_stride: i64,
    to: *mut u8,
    to_stride: i64,
    n: usize,
) {
    if from_stride == size as i64 && to_stride == size as i64 {
        // SAFETY: the caller's promise; dense rows.
        unsafe { std::ptr::copy(from, to, n * size) };
        return;
    }
    // SAFETY: the caller's promise, for each arm.
    unsafe {
        match size {
            1 => copy_elements::<u8>(from, from_stride, to, to_stride, n),
            2 => copy_elements::<u16>(from, from_stride, to, to_stride, n),
            4 => copy_elements::<u32>(from, from_stride, to, to_stride, n),
            8 => copy_elements::<u64>(from, from_stride, to, to_stride, n),
            16 => copy_elements::<[u64; 2]>(from, from_stride, to, to_stride, n),
            _ => {
                for i in 0..n as i64 {
                    let from = from.wrapping_offset((i * from_stride) as isize);
                    let to = to.wrapping_offset((i * to_stride) as isize);
                    std::ptr::copy(from, to, size);
                }
            }
        }
    }
}

tiered! { memory_bound:
    fn splat<T>(out: &mut [T], value: T) where { T: Copy } => A {
        let _ = std::marker::PhantomData::<A>;
        for out in out {
            *out = value;
        }
    }
}

/// # Safety
/// As for [`copy_row`].
unsafe fn copy_elements<T: Copy>(from: *const u8, from_stride: i64, to: *mut u8, to_stride: i64, n: usize) {
    let size = std::mem::size_of::<T>();
    let aligned = to.align_offset(std::mem::align_of::<T>()) == 0;
    if from_stride == 0 && to_stride == size as i64 && aligned {
        // SAFETY: the caller's promise; the row is dense and aligned, and every bit pattern is a `T`.
        unsafe {
            splat(std::slice::from_raw_parts_mut(to.cast::<T>(), n), from.cast::<T>().read_unaligned())
        };
        return;
    }
    for i in 0..n as isize {
        // SAFETY: the caller's promise.
        unsafe {
            let value = from.offset(i * from_stride as isize).cast::<T>().read_unaligned();
            to.offset(i * to_stride as isize).cast::<T>().write_unaligned(value);
        }
    }
}
