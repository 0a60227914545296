//! Registers of several numbers, for the one loop whose registers are counted by hand: the tile of a product.
//!
//! Elsewhere LLVM vectorizes plain loops. A tile fills the register file to the last register, and what LLVM makes of
//! nested arrays spills.

use std::marker::PhantomData;

use super::element::Accumulator;
use crate::vec::math::Arith;

/// A register of `LEN` elements.
///
/// # Safety
/// Every method may be called only where the CPU has the instructions of the implementing type, and, to be inlined,
/// from a function compiled for them.
pub(super) trait Lanes<S>: Copy {
    /// Elements.
    const LEN: usize;
    /// The same value everywhere.
    unsafe fn splat(value: S) -> Self;
    /// Reads `LEN` elements.
    unsafe fn load(from: *const S) -> Self;
    /// Writes `LEN` elements.
    unsafe fn store(self, to: *mut S);
    /// `self * b`.
    unsafe fn times(self, b: Self) -> Self;
    /// `self * b + c`.
    unsafe fn mul_add(self, b: Self, c: Self) -> Self;
}

/// Lanes that LLVM makes registers of: for integers, and for CPUs without a type of their own here.
#[derive(Clone, Copy)]
pub(super) struct Portable<S, A, const LEN: usize>([S; LEN], PhantomData<A>);

impl<S: Accumulator, A: Arith, const LEN: usize> Lanes<S> for Portable<S, A, LEN> {
    const LEN: usize = LEN;
    #[inline(always)]
    unsafe fn splat(value: S) -> Self {
        Portable([value; LEN], PhantomData)
    }
    #[inline(always)]
    unsafe fn load(from: *const S) -> Self {
        // SAFETY: the caller's promise.
        Portable(unsafe { from.cast::<[S; LEN]>().read_unaligned() }, PhantomData)
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut S) {
        // SAFETY: the caller's promise.
        unsafe { to.cast::<[S; LEN]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn times(self, b: Self) -> Self {
        Portable(std::array::from_fn(|i| self.0[i].times(b.0[i])), PhantomData)
    }
    #[inline(always)]
    unsafe fn mul_add(self, b: Self, c: Self) -> Self {
        Portable(std::array::from_fn(|i| self.0[i].mul_add::<A>(b.0[i], c.0[i])), PhantomData)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::*;

    use super::Lanes;

    macro_rules! lanes {
        ($($S:ty, $V:ty, $len:literal: $splat:ident $load:ident $store:ident $times:ident $mul_add:ident;)*) => {$(
            impl Lanes<$S> for $V {
                const LEN: usize = $len;
                #[inline(always)]
                unsafe fn splat(value: $S) -> Self {
                    // SAFETY: the CPU has the instruction, as the caller promises.
                    unsafe { $splat(value) }
                }
                #[inline(always)]
                unsafe fn load(from: *const $S) -> Self {
                    // SAFETY: as above; the elements exist, as the caller promises.
                    unsafe { $load(from) }
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut $S) {
                    // SAFETY: as above.
                    unsafe { $store(to, self) }
                }
                #[inline(always)]
                unsafe fn times(self, b: Self) -> Self {
                    // SAFETY: the CPU has the instruction, as the caller promises.
                    unsafe { $times(self, b) }
                }
                #[inline(always)]
                unsafe fn mul_add(self, b: Self, c: Self) -> Self {
                    // SAFETY: as above.
                    unsafe { $mul_add(self, b, c) }
                }
            }
        )*};
    }

    lanes! {
        f32, __m256, 8: _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_mul_ps _mm256_fmadd_ps;
        f64, __m256d, 4: _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_mul_pd _mm256_fmadd_pd;
        f32, __m512, 16: _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_mul_ps _mm512_fmadd_ps;
        f64, __m512d, 8: _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_mul_pd _mm512_fmadd_pd;
    }
}
