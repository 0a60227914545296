//! Elementwise functions as block kernels.
//!
//! A scalar formula becomes a kernel by `unary`, `binary` or `ternary`: the loop over it is compiled for each
//! instruction tier (see [`crate::vec`]) and fed by [`crate::loops`]. A formula is a closure; an elementary function,
//! which needs to know whether the tier has fused multiply-add, is a type with [`Map1`] and goes through `function`.

use c10::{Element, Result};
use iter::TensorIterator;

use crate::loops::run;
use crate::vec::math::Arith;
use crate::vec::tiered;

/// How a type lies in memory: as itself, but `bool` as a byte, since memory that nobody initialized may hold any.
pub(crate) trait Stored: Element {
    /// The type behind pointers.
    type Raw: Copy + Send + Sync;
    /// Reads.
    fn load(raw: Self::Raw) -> Self;
    /// Writes.
    fn store(self) -> Self::Raw;
}

macro_rules! stored_as_itself {
    ($($T:ty),*) => {$(
        impl Stored for $T {
            type Raw = $T;
            #[inline(always)]
            fn load(raw: $T) -> $T {
                raw
            }
            #[inline(always)]
            fn store(self) -> $T {
                self
            }
        }
    )*};
}

stored_as_itself!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64, c10::Half, c10::BFloat16);
stored_as_itself!(num_complex::Complex<f32>, num_complex::Complex<f64>, num_complex::Complex<c10::Half>);

impl Stored for bool {
    type Raw = u8;
    #[inline(always)]
    fn load(raw: u8) -> bool {
        raw != 0
    }
    #[inline(always)]
    fn store(self) -> u8 {
        self as u8
    }
}

/// A function of one element that does enough arithmetic to care about the tier.
pub(crate) trait Map1<I, O>: Copy + Sync {
    /// Whether there are arguments that the function is not for.
    const GUARDED: bool = false;
    /// The value.
    fn call<A: Arith>(self, a: I) -> O;
    /// Whether the function is for the argument.
    #[inline(always)]
    fn is_near(_a: I) -> bool {
        true
    }
    /// The value where it is not: rare, so that branches and library calls are fine.
    #[inline(always)]
    fn call_far(self, a: I) -> O {
        self.call::<crate::vec::math::Unfused>(a)
    }
}

/// A function of two elements that does enough arithmetic to care about the tier.
pub(crate) trait Map2<I, O>: Copy + Sync {
    /// The value.
    fn call<A: Arith>(self, a: I, b: I) -> O;
}

/// Elements that are asked together whether a guarded function is for them.
const GUARD: usize = 64;

tiered! {
    fn map_function<I, O, F>(out: &mut [O::Raw], a: &[I::Raw], f: F)
    where { I: Stored, O: Stored, F: Map1<I, O> } => A {
        if !F::GUARDED {
            for (out, &a) in out.iter_mut().zip(a) {
                *out = f.call::<A>(I::load(a)).store();
            }
            return;
        }
        for (out, a) in out.chunks_mut(GUARD).zip(a.chunks(GUARD)) {
            if a.iter().fold(true, |near, &a| near & F::is_near(I::load(a))) {
                for (out, &a) in out.iter_mut().zip(a) {
                    *out = f.call::<A>(I::load(a)).store();
                }
            } else {
                for (out, &a) in out.iter_mut().zip(a) {
                    let a = I::load(a);
                    *out = if F::is_near(a) { f.call::<A>(a) } else { f.call_far(a) }.store();
                }
            }
        }
    }
    fn map_function2<I, O, F>(out: &mut [O::Raw], a: &[I::Raw], b: &[I::Raw], f: F)
    where { I: Stored, O: Stored, F: Map2<I, O> } => A {
        for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
            *out = f.call::<A>(I::load(a), I::load(b)).store();
        }
    }
}

tiered! { memory_bound:
    fn map1<I, O, F>(out: &mut [O::Raw], a: &[I::Raw], f: F)
    where { I: Stored, O: Stored, F: Fn(I) -> O + Copy } => A {
        let _ = std::marker::PhantomData::<A>;
        for (out, &a) in out.iter_mut().zip(a) {
            *out = f(I::load(a)).store();
        }
    }
    fn map2<I, J, O, F>(out: &mut [O::Raw], a: &[I::Raw], b: &[J::Raw], f: F)
    where { I: Stored, J: Stored, O: Stored, F: Fn(I, J) -> O + Copy } => A {
        let _ = std::marker::PhantomData::<A>;
        for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
            *out = f(I::load(a), J::load(b)).store();
        }
    }
    fn map3<I, J, O, F>(out: &mut [O::Raw], a: &[I::Raw], b: &[J::Raw], c: &[J::Raw], f: F)
    where { I: Stored, J: Stored, O: Stored, F: Fn(I, J, J) -> O + Copy } => A {
        let _ = std::marker::PhantomData::<A>;
        for (((out, &a), &b), &c) in out.iter_mut().zip(a).zip(b).zip(c) {
            *out = f(I::load(a), J::load(b), J::load(c)).store();
        }
    }
}

/// # Safety
/// The pointer must be valid for reads of `n` elements, aligned, for `'a`.
unsafe fn input<'a, T: Stored>(pointer: *mut u8, n: usize) -> &'a [T::Raw] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(pointer.cast(), n) }
}

/// # Safety
/// The pointer must be valid for writes of `n` elements, aligned, and not aliased, for `'a`.
unsafe fn output<'a, T: Stored>(pointer: *mut u8, n: usize) -> &'a mut [T::Raw] {
    // SAFETY: the caller's promise; every bit pattern is a value of a `Raw` type.
    unsafe { std::slice::from_raw_parts_mut(pointer.cast(), n) }
}

/// Elements that one thread takes at least, for a formula of some cost: 1 is an addition.
fn grain(cost: usize) -> usize {
    (iter::parallel::GRAIN_SIZE / cost).max(1024)
}

/// `out = f(a)`.
pub(crate) fn unary<I: Stored, O: Stored>(
    iter: &TensorIterator,
    cost: usize,
    f: impl Fn(I) -> O + Copy + Sync,
) -> Result<()> {
    run(
        iter,
        &[O::SCALAR_TYPE, I::SCALAR_TYPE],
        // SAFETY: Note [Block kernels]: the pointers are contiguous blocks of the operands' compute dtypes, which
        // `run` compares with I and O; an output is not aliased.
        &|data, n| unsafe { map1::<I, O, _>(output::<O>(data[0], n), input::<I>(data[1], n), f) },
        grain(cost),
    )
}

/// `out = f(a)` for an elementary function.
pub(crate) fn function<I: Stored, O: Stored>(
    iter: &TensorIterator,
    cost: usize,
    f: impl Map1<I, O>,
) -> Result<()> {
    run(
        iter,
        &[O::SCALAR_TYPE, I::SCALAR_TYPE],
        // SAFETY: as in `unary`.
        &|data, n| unsafe { map_function::<I, O, _>(output::<O>(data[0], n), input::<I>(data[1], n), f) },
        grain(cost),
    )
}

/// `out = f(a, b)` for an elementary function.
pub(crate) fn function2<I: Stored, O: Stored>(
    iter: &TensorIterator,
    cost: usize,
    f: impl Map2<I, O>,
) -> Result<()> {
    run(
        iter,
        &[O::SCALAR_TYPE, I::SCALAR_TYPE, I::SCALAR_TYPE],
        // SAFETY: as in `unary`.
        &|data, n| unsafe {
            let (a, b) = (input::<I>(data[1], n), input::<I>(data[2], n));
            map_function2::<I, O, _>(output::<O>(data[0], n), a, b, f);
        },
        grain(cost),
    )
}

/// `out = f(a, b)`.
pub(crate) fn binary<I: Stored, J: Stored, O: Stored>(
    iter: &TensorIterator,
    cost: usize,
    f: impl Fn(I, J) -> O + Copy + Sync,
) -> Result<()> {
    run(
        iter,
        &[O::SCALAR_TYPE, I::SCALAR_TYPE, J::SCALAR_TYPE],
        // SAFETY: as in `unary`.
        &|data, n| unsafe {
            map2::<I, J, O, _>(output::<O>(data[0], n), input::<I>(data[1], n), input::<J>(data[2], n), f);
        },
        grain(cost),
    )
}

/// `out = f(a, b, c)`, where `b` and `c` are of one dtype.
pub(crate) fn ternary<I: Stored, J: Stored, O: Stored>(
    iter: &TensorIterator,
    cost: usize,
    f: impl Fn(I, J, J) -> O + Copy + Sync,
) -> Result<()> {
    run(
        iter,
        &[O::SCALAR_TYPE, I::SCALAR_TYPE, J::SCALAR_TYPE, J::SCALAR_TYPE],
        // SAFETY: as in `unary`.
        &|data, n| unsafe {
            let (a, b, c) = (input::<I>(data[1], n), input::<J>(data[2], n), input::<J>(data[3], n));
            map3::<I, J, O, _>(output::<O>(data[0], n), a, b, c, f);
        },
        grain(cost),
    )
}
