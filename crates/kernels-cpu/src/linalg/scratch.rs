//! Working memory that a thread keeps.

use std::cell::RefCell;

use c10::Result;
use num_complex::Complex;

/// What a thread keeps at most, between calls.
const KEEP_BYTES: usize = 16 << 20;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

thread_local! {
    /// One buffer per level of nesting, the outermost last.
    static BUFFERS: RefCell<Vec<Vec<Line>>> = const { RefCell::new(Vec::new()) };
}

/// A number: every bit pattern is a value, and no byte is padding.
///
/// # Safety
/// It must be so.
pub(crate) unsafe trait PlainNumber: Copy + 'static {}

macro_rules! plain_numbers {
    ($($T:ty),*) => {$(
        // SAFETY: a primitive number, or two of one kind side by side.
        unsafe impl PlainNumber for $T {}
    )*};
}

plain_numbers!(f32, f64, i32, i64, Complex<f32>, Complex<f64>);

/// Calls `f` with room for `len` elements, whose values are left over from earlier uses: fresh memory would cost a
/// page fault per 4 KiB. A nested call gets memory of its own.
///
/// For a length that the sizes of caches bound; one that grows with a tensor takes [`try_with_scratch`].
pub(crate) fn with_scratch<T: PlainNumber, R>(len: usize, f: impl FnOnce(&mut [T]) -> R) -> R {
    let lines = lines_for::<T>(len);
    let mut buffer = take();
    if buffer.len() < lines {
        buffer = vec![ZEROS; lines];
    }
    let result = f(elements(&mut buffer, len));
    put_back(buffer);
    result
}

/// [`with_scratch`], or an `OutOfMemory` error.
pub(crate) fn try_with_scratch<T: PlainNumber, R>(len: usize, f: impl FnOnce(&mut [T]) -> R) -> Result<R> {
    let lines = lines_for::<T>(len);
    let mut buffer = take();
    if buffer.len() < lines {
        buffer = c10::try_filled(ZEROS, lines)?;
    }
    let result = f(elements(&mut buffer, len));
    put_back(buffer);
    Ok(result)
}

/// Initialized, so that everything in a buffer is.
const ZEROS: Line = Line([0; 64]);

fn lines_for<T>(len: usize) -> usize {
    len.saturating_mul(std::mem::size_of::<T>()).div_ceil(std::mem::size_of::<Line>())
}

/// The first elements of a buffer that has room for them.
fn elements<T: PlainNumber>(buffer: &mut [Line], len: usize) -> &mut [T] {
    assert!(lines_for::<T>(len) <= buffer.len() && std::mem::align_of::<T>() <= std::mem::align_of::<Line>());
    // SAFETY: the lines hold at least `len` elements, aligned, and are initialized; whatever bits are in them make a
    // value of `T`, and whatever is written leaves them initialized.
    unsafe { std::slice::from_raw_parts_mut(buffer.as_mut_ptr().cast::<T>(), len) }
}

/// A buffer that the thread keeps, or none.
fn take() -> Vec<Line> {
    let kept = BUFFERS.try_with(|buffers| buffers.try_borrow_mut().ok()?.pop());
    kept.ok().flatten().unwrap_or_default()
}

/// Keeps a buffer for the next call.
fn put_back(buffer: Vec<Line>) {
    // Inner calls have put theirs back, so the order of nesting stays.
    let _ = BUFFERS.try_with(|buffers| {
        if let Ok(mut buffers) = buffers.try_borrow_mut() {
            let lines = buffers.iter().map(Vec::len).sum::<usize>() + buffer.len();
            if lines * std::mem::size_of::<Line>() <= KEEP_BYTES {
                buffers.push(buffer);
            }
        }
    });
}
