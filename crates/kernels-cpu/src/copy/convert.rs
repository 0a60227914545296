//! Conversions between dtypes.
//!
//! Of the 240 pairs, those that programs use are one loop; the others go over dtypes in between that lose nothing
//! which the direct conversion (c10's Note `[Conversions]`) would keep: integers over int64, complex numbers over their
//! real part, numbers of 16 and 8 bits over float32.

use std::mem::MaybeUninit;

use c10::{BFloat16, Complex, Error, Half, Result, ScalarType};
use half::slice::HalfFloatSliceExt;
use iter::TensorIterator;

use super::strided::copy_row;
use crate::map::Stored;
use crate::narrow::round_bfloat16_slice;
use crate::vec::tiered;
use c10::float8;

/// Elements converted at a time when there are dtypes in between.
const BLOCK: usize = 256;

tiered! { memory_bound:
    fn convert_slice<F, T>(out: &mut [T::Raw], a: &[F::Raw]) where { F: Stored, T: Stored } => A {
        let _ = std::marker::PhantomData::<A>;
        for (out, &a) in out.iter_mut().zip(a) {
            *out = T::cast_from(F::load(a)).store();
        }
    }
}

/// A conversion of `n` elements.
type Step = unsafe fn(*const u8, *mut u8, usize);

/// # Safety
/// `n` aligned elements must lie at `from`, and there must be room for as many at `to`, elsewhere.
unsafe fn direct<F: Stored, T: Stored>(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: the caller's promise; every bit pattern is a value of a `Raw` type.
    let (to, from) = unsafe {
        (
            std::slice::from_raw_parts_mut(to.cast::<T::Raw>(), n),
            std::slice::from_raw_parts(from.cast::<F::Raw>(), n),
        )
    };
    convert_slice::<F, T>(to, from);
}

/// # Safety
/// As for [`direct`].
unsafe fn widen_half(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    let (to, from) = unsafe {
        (
            std::slice::from_raw_parts_mut(to.cast::<f32>(), n),
            std::slice::from_raw_parts(from.cast::<Half>(), n),
        )
    };
    from.convert_to_f32_slice(to);
}

/// # Safety
/// As for [`direct`].
unsafe fn round_half(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    let (to, from) = unsafe {
        (
            std::slice::from_raw_parts_mut(to.cast::<Half>(), n),
            std::slice::from_raw_parts(from.cast::<f32>(), n),
        )
    };
    to.convert_from_f32_slice(from);
}

/// # Safety
/// As for [`direct`].
unsafe fn round_to_bfloat16(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    let (to, from) = unsafe {
        (
            std::slice::from_raw_parts_mut(to.cast::<BFloat16>(), n),
            std::slice::from_raw_parts(from.cast::<f32>(), n),
        )
    };
    round_bfloat16_slice(to, from);
}

/// The dtype of that number: a function's parameter can't be the dtype itself.
fn float8_of<const DTYPE: u8>() -> Option<ScalarType> {
    ScalarType::try_from(DTYPE).ok()
}

/// # Safety
/// As for [`direct`], with float8 elements behind `from`.
unsafe fn widen_float8<const DTYPE: u8>(from: *const u8, to: *mut u8, n: usize) {
    let Some(values) = float8_of::<DTYPE>().and_then(float8::values) else { return };
    // SAFETY: the caller's promise.
    let (to, from) =
        unsafe { (std::slice::from_raw_parts_mut(to.cast::<f32>(), n), std::slice::from_raw_parts(from, n)) };
    for (to, &from) in to.iter_mut().zip(from) {
        *to = values[usize::from(from)];
    }
}

/// # Safety
/// As for [`direct`], with room for float8 elements at `to`.
unsafe fn round_to_float8<const DTYPE: u8>(from: *const u8, to: *mut u8, n: usize) {
    let Some(round) = float8_of::<DTYPE>().and_then(float8::round) else { return };
    // SAFETY: the caller's promise.
    let (to, from) =
        unsafe { (std::slice::from_raw_parts_mut(to, n), std::slice::from_raw_parts(from.cast::<f32>(), n)) };
    for (to, &from) in to.iter_mut().zip(from) {
        *to = round(from);
    }
}

/// The loop from one dtype to another, if the pair has one of its own.
fn step(from: ScalarType, to: ScalarType) -> Option<Step> {
    use ScalarType::*;
    macro_rules! pairs {
        ($($from:ident $F:ty => $($to:ident $T:ty),*;)*) => {
            match (from, to) {
                $($(($from, $to) => direct::<$F, $T> as Step,)*)*
                (Half, Float) => widen_half as Step,
                (Float, Half) => round_half as Step,
                (Float, BFloat16) => round_to_bfloat16 as Step,
                (Float8_e5m2, Float) => widen_float8::<{ Float8_e5m2 as u8 }> as Step,
                (Float8_e4m3fn, Float) => widen_float8::<{ Float8_e4m3fn as u8 }> as Step,
                (Float8_e5m2fnuz, Float) => widen_float8::<{ Float8_e5m2fnuz as u8 }> as Step,
                (Float8_e4m3fnuz, Float) => widen_float8::<{ Float8_e4m3fnuz as u8 }> as Step,
                (Float8_e8m0fnu, Float) => widen_float8::<{ Float8_e8m0fnu as u8 }> as Step,
                (Float, Float8_e5m2) => round_to_float8::<{ Float8_e5m2 as u8 }> as Step,
                (Float, Float8_e4m3fn) => round_to_float8::<{ Float8_e4m3fn as u8 }> as Step,
                (Float, Float8_e5m2fnuz) => round_to_float8::<{ Float8_e5m2fnuz as u8 }> as Step,
                (Float, Float8_e4m3fnuz) => round_to_float8::<{ Float8_e4m3fnuz as u8 }> as Step,
                (Float, Float8_e8m0fnu) => round_to_float8::<{ Float8_e8m0fnu as u8 }> as Step,
                _ => return None,
            }
        };
    }
    Some(pairs! {
        Bool bool => Byte u8, Int i32, Long i64, Float f32, Double f64;
        Byte u8 => Bool bool, Int i32, Long i64, Float f32, Double f64;
        Int i32 => Bool bool, Byte u8, Long i64, Float f32, Double f64;
        Long i64 => Bool bool, Byte u8, Int i32, Float f32, Double f64, Char i8, Short i16, UInt16 u16, UInt32 u32, UInt64 u64;
        Float f32 => Bool bool, Byte u8, Int i32, Long i64, Double f64, Char i8, Short i16, UInt16 u16, UInt32 u32, UInt64 u64,
            ComplexFloat Complex<f32>;
        Double f64 => Bool bool, Byte u8, Int i32, Long i64, Float f32, Char i8, Short i16, UInt16 u16, UInt32 u32, UInt64 u64,
            ComplexDouble Complex<f64>;
        Char i8 => Long i64;
        Short i16 => Long i64;
        UInt16 u16 => Long i64;
        UInt32 u32 => Long i64;
        UInt64 u64 => Long i64, Float f32, Double f64;
        BFloat16 c10::BFloat16 => Float f32;
        Half c10::Half => ComplexHalf Complex<c10::Half>;
        ComplexHalf Complex<c10::Half> => Half c10::Half, Bool bool, ComplexFloat Complex<f32>;
        ComplexFloat Complex<f32> => Float f32, Bool bool, ComplexHalf Complex<c10::Half>, ComplexDouble Complex<f64>;
        ComplexDouble Complex<f64> => Double f64, Bool bool, ComplexFloat Complex<f32>;
    })
}

/// The dtype to convert to first on the way from one dtype to another. It is never `from`, and the way never
/// comes back to a dtype.
fn next(from: ScalarType, to: ScalarType) -> Option<ScalarType> {
    use ScalarType::*;
    if step(from, to).is_some() {
        return Some(to);
    }
    let part = |dtype| match dtype {
        ComplexHalf => Half,
        ComplexFloat => Float,
        _ => Double,
    };
    match (from, to) {
        (ComplexHalf | ComplexDouble, ComplexHalf | ComplexDouble) => Some(ComplexFloat),
        (ComplexHalf | ComplexFloat | ComplexDouble, _) => Some(part(from)),
        (_, ComplexHalf | ComplexFloat | ComplexDouble) => next(from, part(to)),
        (Half | BFloat16, _) => Some(Float),
        (_, Half | BFloat16) => next(from, Float),
        _ if from.is_float8() => Some(Float),
        _ if to.is_float8() => next(from, Float),
        (
            Bool | Byte | Char | Short | Int | UInt16 | UInt32 | UInt64,
            Bool | Byte | Char | Short | Int | Long,
        )
        | (
            Bool | Byte | Char | Short | Int | UInt16 | UInt32 | UInt64,
            UInt16 | UInt32 | UInt64 | Float | Double,
        ) => Some(Long),
        _ => None,
    }
}

/// The loops that lead from one dtype to another.
fn route(from: ScalarType, to: ScalarType) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut at = from;
    while at != to {
        let hop = next(at, to).and_then(|hop| step(at, hop).map(|step| (hop, step)));
        let Some((hop, step)) = hop else {
            return Err(Error::not_implemented(format!(
                "copy_: no conversion from {} to {}",
                from.name(),
                to.name()
            )));
        };
        steps.push(step);
        at = hop;
    }
    Ok(steps)
}

#[repr(align(64))]
struct Buffer([MaybeUninit<u8>; BLOCK * 16]);

/// # Safety
/// As for [`direct`], for the first and last dtype of the steps.
unsafe fn walk(steps: &[Step], from: *const u8, from_size: usize, to: *mut u8, to_size: usize, n: usize) {
    if let [step] = steps {
        // SAFETY: the caller's promise.
        unsafe { step(from, to, n) };
        return;
    }
    let Some((last, first)) = steps.split_last() else { return };
    let mut buffers = [const { Buffer([MaybeUninit::uninit(); BLOCK * 16]) }; 2];
    let mut begin = 0;
    while begin < n {
        let count = BLOCK.min(n - begin);
        let mut source = from.wrapping_add(begin * from_size);
        for (i, step) in first.iter().enumerate() {
            let target = buffers[i % 2].0.as_mut_ptr().cast::<u8>();
            // SAFETY: the caller's promise, and a buffer with room for a block of any dtype; the other one is read.
            unsafe { step(source, target, count) };
            source = target;
        }
        // SAFETY: as above.
        unsafe { last(source, to.wrapping_add(begin * to_size), count) };
        begin += count;
    }
}

/// Copies an iterator whose operands differ in dtype.
pub(super) fn convert(iter: &TensorIterator) -> Result<()> {
    let steps = route(iter.dtype(1), iter.dtype(0))?;
    let (to_size, from_size) = (iter.element_size(0), iter.element_size(1));
    iter.for_each_2d(
        &|data, strides, size0, size1| {
            let to = Plane { base: data[0], inner: strides[0], outer: strides[2], size: to_size, size0 };
            let from = Plane { base: data[1], inner: strides[1], outer: strides[3], size: from_size, size0 };
            convert_plane(&steps, from, to, size0 * size1);
        },
        iter::parallel::GRAIN_SIZE,
    )
}

/// One operand of a two-dimensional piece.
#[derive(Clone, Copy)]
struct Plane {
    base: *mut u8,
    inner: i64,
    outer: i64,
    /// Bytes per element.
    size: usize,
    /// Elements per row.
    size0: usize,
}

impl Plane {
    fn is_dense(self) -> bool {
        self.inner == self.size as i64
    }

    /// Calls `f` for each row's share of `count` elements: address, elements since the start, length.
    fn rows(self, begin: usize, count: usize, mut f: impl FnMut(*mut u8, usize, usize)) {
        let mut done = 0;
        while done < count {
            let (row, column) = ((begin + done) / self.size0, (begin + done) % self.size0);
            let length = (self.size0 - column).min(count - done);
            let offset = row as i64 * self.outer + column as i64 * self.inner;
            f(self.base.wrapping_offset(offset as isize), done, length);
            done += length;
        }
    }
}

fn convert_plane(steps: &[Step], from: Plane, to: Plane, total: usize) {
    if from.is_dense() && to.is_dense() && (from.size0 == total || from.size0 >= BLOCK / 4) {
        for row in 0..(total / from.size0) as i64 {
            let source = from.base.wrapping_offset((row * from.outer) as isize);
            let target = to.base.wrapping_offset((row * to.outer) as isize);
            // SAFETY: dense rows of the iterator's operands, which were checked against their storages.
            unsafe { walk(steps, source, from.size, target, to.size, from.size0) };
        }
        return;
    }
    let mut source = Buffer([MaybeUninit::uninit(); BLOCK * 16]);
    let mut target = Buffer([MaybeUninit::uninit(); BLOCK * 16]);
    let (source, target) = (source.0.as_mut_ptr().cast::<u8>(), target.0.as_mut_ptr().cast::<u8>());
    let mut begin = 0;
    while begin < total {
        let count = BLOCK.min(total - begin);
        from.rows(begin, count, |pointer, done, length| {
            // SAFETY: a row of the operand, and a buffer with room for a block.
            unsafe {
                copy_row(
                    from.size,
                    pointer,
                    from.inner,
                    source.add(done * from.size),
                    from.size as i64,
                    length,
                );
            }
        });
        // SAFETY: two buffers with room for a block; the first one was just filled.
        unsafe { walk(steps, source, from.size, target, to.size, count) };
        to.rows(begin, count, |pointer, done, length| {
            // SAFETY: as above.
            unsafe {
                copy_row(to.size, target.add(done * to.size), to.size as i64, pointer, to.inner, length)
            };
        });
        begin += count;
    }
}
