//! The innermost part of a product: a tile of sums that stays in registers while the depth runs.
//!
//! # Note [Tiles]
//! A tile has `mr` rows of `nr` columns, a few registers wide. A step of the depth loads `nr` elements of the right
//! operand, broadcasts `mr` elements of the left one and takes a fused multiply-add per row and register, which are
//! the only instructions that matter if there are enough of them to hide their latency and few enough sums to fit the
//! registers: 6 × 2 of 16 with AVX2, 8 × 3 of 32 with AVX-512. The latter is not 14 × 2, which loads 16 times for 28
//! multiply-adds instead of 11 times for 24, and leaves no register to load the next step into.
//!
//! Where a matrix ends there are instances of fewer rows and fewer registers.
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
    /// Rows that count, at most the kernel's; those up to a multiple of its unit are read from `a` but not written.
    pub(super) rows: usize,
    /// Columns: a multiple of the kernel's unit.
    pub(super) cols: usize,
    pub(super) depth: usize,
    pub(super) a: *const S,
    /// Elements between rows of `a`.
    pub(super) a_row: isize,
    /// Elements between steps of the depth.
    pub(super) a_step: isize,
    /// A row of `cols` elements per step.
    pub(super) b: *const S,
    pub(super) b_step: isize,
    /// Rows of `cols` elements.
    pub(super) c: *mut S,
    pub(super) c_row: isize,
    pub(super) alpha: S,
    pub(super) beta: Option<S>,
    /// Bytes, which need not exist, to bring to the second cache level meanwhile.
    pub(super) ahead: (*const u8, usize),
}

/// The tile of an element type on this machine.
#[derive(Clone, Copy)]
pub(crate) struct Kernel<S> {
    /// Rows.
    pub(crate) mr: usize,
    /// Columns.
    pub(crate) nr: usize,
    /// There are instances for every multiple of so many rows.
    pub(super) row_unit: usize,
    /// And of so many columns.
    pub(super) col_unit: usize,
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
        debug_assert!(tile.cols <= self.nr && tile.cols.is_multiple_of(self.col_unit));
        // SAFETY: the caller's promise; `Panel::kernel` chose an instance that this CPU can run.
        unsafe { (self.run)(tile) }
    }
}

/// The most elements of a tile.
pub(super) const MAX_TILE: usize = 8 * 48;

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

/// Registers of sums whose lines of `c` are asked for at a time.
const SUMS_PER_PART: usize = 6;

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
    let &Tile { rows, depth, a_step, b_step, c_row, ahead: (ahead, ahead_bytes), .. } = tile;
    // SAFETY: the CPU has the instructions, as the caller promises.
    let mut sums = [[unsafe { V::splat(S::ZERO) }; N]; R];
    let (mut a, mut b) = (tile.a, tile.b);
    let mut left_over = depth;
    // The depth runs in parts; what is asked for all at once would hold up the operands.
    let parts = (R * N / SUMS_PER_PART).max(1);
    for part in 0..parts {
        for i in R * part / parts..rows.min(R * (part + 1) / parts) {
            let row = tile.c.wrapping_offset(i as isize * c_row);
            for byte in (0..N * V::LEN * std::mem::size_of::<S>()).step_by(64) {
                prefetch(row.cast::<u8>().wrapping_add(byte));
            }
            prefetch(row.wrapping_add(N * V::LEN - 1));
        }
        let share = ahead_bytes / parts;
        for byte in (part * share..(part + 1) * share).step_by(64) {
            prefetch_far(ahead.wrapping_add(byte));
        }
        let steps = left_over / (parts - part);
        left_over -= steps;
        for _ in 0..steps {
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

/// A kernel made of the lanes' type, the numbers of registers per row, and those of rows, to have instances for: all
/// multiples of the first.
macro_rules! kernel {
    ($S:ty, $V:ty, [$($N:literal)* | $max:literal], $rows:tt $(, $features:literal)?) => {{
        $(#[target_feature(enable = $features)])?
        unsafe fn run(tile: &Tile<$S>) {
            $(
                if tile.cols <= $N * <$V as Lanes<$S>>::LEN {
                    return by_rows!($S, $V, $N, $rows, tile);
                }
            )*
            by_rows!($S, $V, $max, $rows, tile)
        }
        let (row_unit, mr) = row_counts!($rows);
        let col_unit = <$V as Lanes<$S>>::LEN;
        Kernel { mr, nr: $max * col_unit, row_unit, col_unit, strided_rows: true, run }
    }};
}

macro_rules! by_rows {
    ($S:ty, $V:ty, $N:literal, [$($R:literal)* | $mr:literal], $tile:expr) => {{
        $(
            if $tile.rows <= $R {
                // SAFETY: the caller's promise; `run` is reached only where the CPU has its features.
                return unsafe { compute::<$S, $V, $R, $N>($tile) };
            }
        )*
        // SAFETY: as above.
        unsafe { compute::<$S, $V, $mr, $N>($tile) }
    }};
}

macro_rules! row_counts {
    ([| $mr:literal]) => {
        ($mr, $mr)
    };
    ([$first:literal $($R:literal)* | $mr:literal]) => {
        ($first, $mr)
    };
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
    f32:
        [__m512, [1 2 | 3], [4 | 8]]
        [__m256, [1 | 2], [2 4 | 6]]
        [Portable<f32, Unfused, 4>, [1 | 2], [2 | 4]];
    f64:
        [__m512d, [1 2 | 3], [4 | 8]]
        [__m256d, [1 | 2], [2 4 | 6]]
        [Portable<f64, Unfused, 2>, [1 | 2], [2 | 4]];
    i32:
        [Portable<i32, Fused, 16>, [1 | 2], [| 6]]
        [Portable<i32, Fused, 8>, [1 | 2], [| 6]]
        [Portable<i32, Unfused, 4>, [1 | 2], [| 4]];
    i64:
        [Portable<i64, Fused, 8>, [1 | 2], [| 6]]
        [Portable<i64, Fused, 4>, [1 | 2], [| 6]]
        [Portable<i64, Unfused, 2>, [1 | 2], [| 4]];
}

macro_rules! complex_panels {
    ($($R:ty)*) => {$(
        impl Panel for Complex<$R> {
            #[inline]
            fn kernel() -> Kernel<Complex<$R>> {
                let real = <$R>::kernel();
                Kernel {
                    mr: real.mr / 2,
                    nr: real.nr / 2,
                    row_unit: real.row_unit / 2,
                    col_unit: real.col_unit / 2,
                    strided_rows: false,
                    run: complex::<$R>,
                }
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
            cols: 2 * tile.cols,
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
            ahead: tile.ahead,
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
        for (j, (re, im)) in re.chunks_exact(2).zip(im.chunks_exact(2)).enumerate().take(tile.cols) {
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
