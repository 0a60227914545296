//! Working memory that a thread keeps.

use std::cell::RefCell;
use std::mem::MaybeUninit;

/// What a thread keeps at most, between calls.
const KEEP_BYTES: usize = 16 << 20;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([MaybeUninit<u8>; 64]);

thread_local! {
    /// One buffer per level of nesting, the outermost last.
    static BUFFERS: RefCell<Vec<Vec<Line>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `f` with room for `len` elements, whose values are left over from earlier uses: fresh memory would cost a
/// page fault per 4 KiB. A nested call gets memory of its own.
///
/// Every bit pattern must be a value of `T`: numbers.
pub(super) fn with_scratch<T: Copy + Default + 'static, R>(len: usize, f: impl FnOnce(&mut [T]) -> R) -> R {
    let lines = (len * std::mem::size_of::<T>()).div_ceil(64);
    let kept = BUFFERS.try_with(|buffers| buffers.try_borrow_mut().ok()?.pop());
    let mut buffer = kept.ok().flatten().unwrap_or_default();
    if buffer.len() < lines {
        // Zeroed, so that everything in it is initialized.
        buffer = vec![Line([MaybeUninit::new(0); 64]); lines];
    }
    // SAFETY: the lines hold at least `len` elements, aligned to 64, initialized with zeros or by earlier users who
    // wrote numbers; `T` is a plain number.
    let result = f(unsafe { std::slice::from_raw_parts_mut(buffer.as_mut_ptr().cast::<T>(), len) });
    // Inner calls have put theirs back, so the order of nesting stays.
    let _ = BUFFERS.try_with(|buffers| {
        if let Ok(mut buffers) = buffers.try_borrow_mut() {
            let lines = buffers.iter().map(Vec::len).sum::<usize>() + buffer.len();
            if lines * 64 <= KEEP_BYTES {
                buffers.push(buffer);
            }
        }
    });
    result
}
