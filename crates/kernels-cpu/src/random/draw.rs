//! How words of the engine become elements of a tensor.

use c10::{get_generator_or_default, Generator, Result};
use iter::TensorIterator;
use num_complex::Complex;

use super::cpu_generator::CpuGenerator;
use super::mt19937::Mt19937;
use crate::map::Stored;
use crate::vec::tiered;

/// Elements per block: the words of 64-bit draws and their elements stay in the first cache level.
pub(super) const BLOCK: usize = 1024;

/// What one element is made of.
pub(super) trait Word: Copy + 'static {
    /// Draws `out.len()` of them.
    fn draw(engine: &mut Mt19937, out: &mut [Self]);
}

impl Word for u32 {
    fn draw(engine: &mut Mt19937, out: &mut [u32]) {
        engine.fill(out);
    }
}

impl Word for u64 {
    fn draw(engine: &mut Mt19937, out: &mut [u64]) {
        let mut words = [0u32; 2 * BLOCK];
        for out in out.chunks_mut(BLOCK) {
            let words = &mut words[..2 * out.len()];
            engine.fill(words);
            for (out, pair) in out.iter_mut().zip(words.chunks_exact(2)) {
                *out = u64::from(pair[0]) << 32 | u64::from(pair[1]);
            }
        }
    }
}

tiered! {
    /// `out = f(word)`.
    pub(super) fn map_words<W, T, F>(out: &mut [T], words: &[W], f: F)
    where { W: Copy, T: Copy, F: Fn(W) -> T + Copy } => A {
        let _ = std::marker::PhantomData::<A>;
        for (out, &word) in out.iter_mut().zip(words) {
            *out = f(word);
        }
    }
}

/// A uniform number in [0, 1) from the low 24 bits.
#[inline(always)]
pub(super) fn unit_f32(word: u32) -> f32 {
    (word & 0x00ff_ffff) as i32 as f32 * (1.0 / 16_777_216.0)
}

/// A uniform number in [0, 1) from the low 53 bits.
#[inline(always)]
pub(super) fn unit_f64(word: u64) -> f64 {
    (word & ((1 << 53) - 1)) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// Runs a kernel with the generator given, or the default one, locked.
pub(super) fn with_generator<R>(
    generator: Option<&Generator>,
    f: impl FnOnce(&mut CpuGenerator) -> Result<R>,
) -> Result<R> {
    get_generator_or_default(generator, c10::Device::CPU)?.with(f)?
}

/// Fills the iterator's only operand in its order, `f(word)` for one draw per element.
pub(super) fn fill<W: Word + Default, T: Stored>(
    iter: &TensorIterator,
    engine: &mut Mt19937,
    f: impl Fn(W) -> T::Raw + Copy,
) {
    let mut words = [W::default(); BLOCK];
    blocks::<T>(iter, &mut |out| {
        let words = &mut words[..out.len()];
        W::draw(engine, words);
        map_words(out, words, f);
    });
}

/// As [`blocks`] for complex elements, given as real and imaginary parts in turn.
pub(super) fn complex_blocks<R>(iter: &TensorIterator, f: &mut dyn FnMut(&mut [R]))
where
    Complex<R>: Stored<Raw = Complex<R>>,
{
    blocks::<Complex<R>>(iter, &mut |out| {
        // SAFETY: a complex number is two parts, one after the other (`repr(C)`).
        f(unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<R>(), out.len() * 2) });
    });
}

/// As [`fill`] for complex elements: one draw per part.
pub(super) fn fill_complex<W: Word + Default, R: Stored<Raw = R>>(
    iter: &TensorIterator,
    engine: &mut Mt19937,
    f: impl Fn(W) -> R + Copy,
) where
    Complex<R>: Stored<Raw = Complex<R>>,
{
    let mut words = [W::default(); 2 * BLOCK];
    complex_blocks::<R>(iter, &mut |out| {
        let words = &mut words[..out.len()];
        W::draw(engine, words);
        map_words(out, words, f);
    });
}

/// Calls `f` with room for at most [`BLOCK`] elements of the only operand at a time, in the iterator's order.
pub(super) fn blocks<T: Stored>(iter: &TensorIterator, f: &mut dyn FnMut(&mut [T::Raw])) {
    let mut buffer = [T::default().store(); BLOCK];
    let size = std::mem::size_of::<T::Raw>() as i64;
    iter.serial_for_each(
        &mut |data, strides, n| {
            let mut begin = 0;
            while begin < n {
                let count = BLOCK.min(n - begin);
                let first = data[0].wrapping_offset(begin as isize * strides[0] as isize);
                if strides[0] == size {
                    // SAFETY: a dense row of the output, whose element type the caller's dtype switch matched; any
                    // bytes are a value of a `Raw` type.
                    f(unsafe { std::slice::from_raw_parts_mut(first.cast(), count) });
                } else {
                    f(&mut buffer[..count]);
                    for (i, &value) in buffer[..count].iter().enumerate() {
                        let to = first.wrapping_offset(i as isize * strides[0] as isize);
                        // SAFETY: the iterator's i-th element in this row.
                        unsafe { to.cast::<T::Raw>().write_unaligned(value) };
                    }
                }
                begin += count;
            }
        },
        0..iter.numel(),
    );
}
