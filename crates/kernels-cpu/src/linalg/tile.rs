//! The innermost part of a product: a tile of sums that stays in registers while the depth runs.
//!
//! # Note [Tiles]
//! A tile has `mr` rows of `nr` columns, two registers wide. A step of the depth loads `nr` elements of the right
//! operand, broadcasts `mr` elements of the left one and takes `2·mr` fused multiply-adds, which are the only
//! instructions that matter if there are enough of them to hide their latency and few enough sums to fit the
//! registers: 12 of 16 with AVX2, 28 of 32 with AVX-512.
//!
//! A complex tile is a real one: the real and imaginary parts of `mr/2` rows and `nr/2` columns are multiplied as
//! `mr × nr` real numbers, and the four sums of each pair are put together at the end.

use c10::Element;
use num_complex::Complex;

use super::element::Accumulator;
use super::lanes::{Lanes, Portable};
use crate::vec::math::Unfused;

/// One tile: `c = alpha·a·b + beta·c`, which is read only if `beta` is given.
#[derive(Clone, Copy)]
pub(crate) struct Tile<S> {
    /// Rows that count, at most the kernel's; those beyond are read from `a` but not written.
    pub(super) rows: usize,
    pub(super) depth: usize,
    pub(super) a: *const S,
    /// Elements between rows of `a`.
    pub(super) a_row: isize,
    /// Elements between steps of the depth.
    pub(super) a_step: isize,
    /// A full row of `nr` elements per step.
    pub(super) b: *const S,
    pub(super) b_step: isize,
    /// Full rows of `nr` elements.
    pub(super) c: *mut S,
    pub(super) c_row: isize,
    pub(super) alpha: S,
    pub(super) beta: Option<S>,
}

/// The tile of an element type on this machine.
#[derive(Clone, Copy)]
pub(crate) struct Kernel<S> {
    /// Rows.
    pub(crate) mr: usize,
    /// Columns.
    pub(crate) nr: usize,
    /// Whether `a_row` may be other than 1.
    pub(super) strided_rows: bool,
    run: unsafe fn(&Tile<S>),
}

impl<S> Kernel<S> {
    /// # Safety
    /// The elements that the tile names exist, and nobody else uses those of `c`.
    #[inline(always)]
    pub(super) unsafe fn run(&self, tile: &Tile<S>) {
        debug_assert!(tile.rows <= self.mr && (self.strided_rows || tile.a_row == 1));
        // SAFETY: the caller's promise; `Panel::kernel` chose an instance that this CPU can run.
        unsafe { (self.run)(tile) }
    }
}

/// The most elements of a tile.
pub(super) const MAX_TILE: usize = 14 * 32;

/// A type that has a tile kernel.
pub(crate) trait Panel: Accumulator {
    /// The kernel for this machine.
    fn kernel() -> Kernel<Self>;
}

/// Asks for the line at an address, which need not exist, to come to the second cache level.
#[inline(always)]
pub(super) fn prefetch_far<S>(address: *const S) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as for `prefetch`.
    unsafe {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T1};
        _mm_prefetch::<_MM_HINT_T1>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Asks for the line at an address, which need not exist.
#[inline(always)]
fn prefetch<S>(address: *const S) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, valid for any address, of an instruction that every x86-64 has.
    unsafe {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// A tile of `R` rows of `N` registers. Packed rows have an instance of their own, in which an element's place is a
/// constant and takes no register to find.
///
/// # Safety
/// See [`Kernel::run`] and [`Lanes`].
#[inline(always)]
unsafe fn compute<S: Accumulator, V: Lanes<S>, const R: usize, const N: usize>(tile: &Tile<S>) {
    // SAFETY: the caller's promise.
    unsafe {
        if tile.a_row == 1 {
            compute_rows::<S, V, R, N>(tile, 1);
        } else {
            compute_rows::<S, V, R, N>(tile, tile.a_row);
        }
    }
}

/// See [`compute`].
///
/// # Safety
/// See [`compute`].
#[inline(always)]
unsafe fn compute_rows<S: Accumulator, V: Lanes<S>, const R: usize, const N: usize>(
    tile: &Tile<S>,
    a_row: isize,
) {
    let &Tile { rows, depth, a_step, b_step, c_row, .. } = tile;
    for i in 0..rows as isize {
        let row = tile.c.wrapping_offset(i * c_row);
        prefetch(row);
        prefetch(row.wrapping_add(N * V::LEN - 1));
    }
    // SAFETY: the CPU has the instructions, as the caller promises.
    let mut sums = [[unsafe { V::splat(S::ZERO) }; N]; R];
    let (mut a, mut b) = (tile.a, tile.b);
    for _ in 0..depth {
        // SAFETY: a row of `b`, which the caller vouches for.
        let right: [V; N] = std::array::from_fn(|j| unsafe { V::load(b.add(j * V::LEN)) });
        for (i, sums) in sums.iter_mut().enumerate() {
            // SAFETY: an element of `a`, likewise.
            let left = unsafe { V::splat(*a.offset(i as isize * a_row)) };
            for (sum, &right) in sums.iter_mut().zip(&right) {
                // SAFETY: the CPU has the instruction.
                *sum = unsafe { left.mul_add(right, *sum) };
            }
        }
        a = a.wrapping_offset(a_step);
        b = b.wrapping_offset(b_step);
    }
    // SAFETY: the CPU has the instructions; rows of `c`, which the caller vouches for.
    unsafe {
        let alpha = V::splat(tile.alpha);
        let beta = tile.beta.map(|beta| V::splat(beta));
        for (i, sums) in sums.iter().enumerate().take(rows) {
            for (j, &sum) in sums.iter().enumerate() {
                let to = tile.c.offset(i as isize * c_row).add(j * V::LEN);
                let value = alpha.times(sum);
                match beta {
                    Some(beta) => beta.mul_add(V::load(to), value).store(to),
                    None => value.store(to),
                }
            }
        }
    }
}

/// A kernel made of the lanes' type, registers per row, and the numbers of rows to have an instance for.
macro_rules! kernel {
    ($S:ty, $V:ty, $N:literal, [$($R:literal)* | $mr:literal] $(, $features:literal)?) => {{
        $(#[target_feature(enable = $features)])?
        unsafe fn run(tile: &Tile<$S>) {
            $(
                if tile.rows <= $R {
                    // SAFETY: the caller's promise; this function is reached only where the CPU has its features.
                    return unsafe { compute::<$S, $V, $R, $N>(tile) };
                }
            )*
            // SAFETY: as above.
            unsafe { compute::<$S, $V, $mr, $N>(tile) }
        }
        Kernel { mr: $mr, nr: $N * <$V as Lanes<$S>>::LEN, strided_rows: true, run }
    }};
}

macro_rules! panels {
    ($($S:ty: [$($avx512:tt)*] [$($avx2:tt)*] [$($default:tt)*];)*) => {$(
        impl Panel for $S {
            #[inline]
            fn kernel() -> Kernel<$S> {
                #[cfg(target_arch = "x86_64")]
                {
                    #[allow(unused_imports)]
                    use crate::vec::{capability, math::Fused, CpuCapability};
                    #[allow(unused_imports)]
                    use std::arch::x86_64::{__m256, __m256d, __m512, __m512d};
                    if capability() >= CpuCapability::Avx512 {
                        return kernel!($S, $($avx512)*, "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma");
                    }
                    if capability() >= CpuCapability::Avx2 {
                        return kernel!($S, $($avx2)*, "avx2,fma");
                    }
                }
                kernel!($S, $($default)*)
            }
        }
    )*};
}

panels! {
    f32: [__m512, 2, [4 8 | 14]] [__m256, 2, [2 4 | 6]] [Portable<f32, Unfused, 4>, 2, [2 | 4]];
    f64: [__m512d, 2, [4 8 | 14]] [__m256d, 2, [2 4 | 6]] [Portable<f64, Unfused, 2>, 2, [2 | 4]];
    i32: [Portable<i32, Fused, 16>, 2, [| 6]] [Portable<i32, Fused, 8>, 2, [| 6]] [Portable<i32, Unfused, 4>, 2, [| 4]];
    i64: [Portable<i64, Fused, 8>, 2, [| 6]] [Portable<i64, Fused, 4>, 2, [| 6]] [Portable<i64, Unfused, 2>, 2, [| 4]];
}

macro_rules! complex_panels {
    ($($R:ty)*) => {$(
        impl Panel for Complex<$R> {
            #[inline]
            fn kernel() -> Kernel<Complex<$R>> {
                let real = <$R>::kernel();
                Kernel { mr: real.mr / 2, nr: real.nr / 2, strided_rows: false, run: complex::<$R> }
            }
        }
    )*};
}

complex_panels!(f32 f64);

/// See Note [Tiles].
///
/// # Safety
/// See [`Kernel::run`].
unsafe fn complex<R>(tile: &Tile<Complex<R>>)
where
    R: Panel + std::ops::Sub<Output = R> + std::ops::Add<Output = R>,
    Complex<R>: Accumulator,
{
    let kernel = R::kernel();
    let mut sums = [R::ZERO; MAX_TILE];
    // SAFETY: the caller's promise: a complex number is its two parts, and rows of a packed panel lie side by side,
    // so those of parts do.
    unsafe {
        kernel.run(&Tile {
            rows: 2 * tile.rows,
            depth: tile.depth,
            a: tile.a.cast(),
            a_row: 1,
            a_step: 2 * tile.a_step,
            b: tile.b.cast(),
            b_step: 2 * tile.b_step,
            c: sums.as_mut_ptr(),
            c_row: kernel.nr as isize,
            alpha: R::ONE,
            beta: None,
        });
    }
    // A factor of one must not turn an infinity into a NaN.
    let scaled = |factor: Complex<R>, value: Complex<R>| {
        if factor == <Complex<R> as Element>::ONE {
            value
        } else {
            factor.times(value)
        }
    };
    for (i, rows) in sums.chunks_exact(2 * kernel.nr).enumerate().take(tile.rows) {
        let (re, im) = rows.split_at(kernel.nr);
        for (j, (re, im)) in re.chunks_exact(2).zip(im.chunks_exact(2)).enumerate() {
            let to = tile.c.wrapping_offset(i as isize * tile.c_row).wrapping_add(j);
            let mut value = scaled(tile.alpha, Complex::new(re[0] - im[1], re[1] + im[0]));
            if let Some(beta) = tile.beta {
                // SAFETY: an element of `c`.
                value = value.plus(scaled(beta, unsafe { *to }));
            }
            // SAFETY: as above.
            unsafe { *to = value };
        }
    }
}
