//! `arange` and `linspace`.

use c10::{internal_assert, Element, ElementKind, Result, Scalar, Tensor};
use iter::parallel;
use num_complex::Complex;

use crate::address::Address;
use crate::dispatch::dispatch;
use crate::map::Stored;
use crate::registration::register;
use crate::vec::math::Arith;
use crate::vec::tiered;

pub(super) fn register() {
    register! {
        arange_kernel: fn(&Scalar, &Scalar, &[Tensor]);
        linspace_kernel: fn(&Scalar, &Scalar, i64, &[Tensor]);
    }
}

/// A type that element `i` of a range is computed in.
trait Progression: Element {
    /// `start + step * i`.
    fn at<A: Arith>(start: Self, step: Self, i: i64) -> Self;
}

impl Progression for i64 {
    #[inline(always)]
    fn at<A: Arith>(start: i64, step: i64, i: i64) -> i64 {
        start.wrapping_add(step.wrapping_mul(i))
    }
}

impl Progression for f32 {
    #[inline(always)]
    fn at<A: Arith>(start: f32, step: f32, i: i64) -> f32 {
        A::fma32(step, i as f32, start)
    }
}

impl Progression for f64 {
    #[inline(always)]
    fn at<A: Arith>(start: f64, step: f64, i: i64) -> f64 {
        A::fma64(step, i as f64, start)
    }
}

impl Progression for Complex<f64> {
    #[inline(always)]
    fn at<A: Arith>(start: Complex<f64>, step: Complex<f64>, i: i64) -> Complex<f64> {
        let i = i as f64;
        Complex::new(A::fma64(step.re, i, start.re), A::fma64(step.im, i, start.im))
    }
}

tiered! { memory_bound:
    /// `out[k] = start + step * (first + stride * k)`.
    fn progression<P, T>(out: &mut [T], start: P, step: P, first: i64, stride: i64)
    where { P: Progression, T: Element } => A {
        for (k, out) in out.iter_mut().enumerate() {
            *out = T::cast_from(P::at::<A>(start, step, first + stride * k as i64));
        }
    }
}

/// Fills `out[begin..end]` with a progression, on several threads.
///
/// # Safety
/// `end` elements must lie there that nobody else uses.
unsafe fn fill<P: Progression, T: Element>(
    out: Address,
    begin: usize,
    end: usize,
    start: P,
    step: P,
    index: impl Fn(usize) -> i64 + Sync,
    stride: i64,
) -> Result<()> {
    parallel::parallel_for(begin, end, parallel::GRAIN_SIZE, &|from, to| {
        let piece = out.offset((from * std::mem::size_of::<T>()) as i64);
        // SAFETY: the caller's promise; pieces are disjoint.
        let piece = unsafe { piece.slice_mut::<T>(to - from) };
        progression::<P, T>(piece, start, step, index(from), stride);
    })
}

fn dense_output<'a>(outs: &'a [Tensor], name: &str) -> Result<(&'a Tensor, usize)> {
    let Some(out) = outs.first() else { c10::bail!(Internal, "{name}: no output") };
    internal_assert!(out.is_contiguous(), "{name}: output with strides {:?}", out.strides()?);
    Ok((out, out.numel()? as usize))
}

/// Element `i` is `start + step * i`, in int64 for integers, in double for float and double, in float for halves.
fn arange_kernel(start: &Scalar, step: &Scalar, outs: &[Tensor]) -> Result<()> {
    let (out, n) = dense_output(outs, "arange")?;
    if n == 0 {
        return Ok(());
    }
    let address = Address(out.data_ptr());
    dispatch!(out.dtype(), "arange_kernel", ALL_AND_HALF + BAREBONES_UNSIGNED, |T| {
        let index = |i: usize| i as i64;
        // SAFETY: a dense output of `n` elements of this dtype.
        unsafe {
            if T::KIND != ElementKind::Floating {
                fill::<i64, T>(address, 0, n, start.to_i64()?, step.to_i64()?, index, 1)
            } else if std::mem::size_of::<T>() == 2 {
                fill::<f32, T>(address, 0, n, start.to::<f32>()?, step.to::<f32>()?, index, 1)
            } else {
                fill::<f64, T>(address, 0, n, start.to_f64()?, step.to_f64()?, index, 1)
            }
        }
    })
}

/// The first half counts from the start, the second one back from the end, so that both ends are exact.
fn linspace_kernel(start: &Scalar, end: &Scalar, steps: i64, outs: &[Tensor]) -> Result<()> {
    let (out, n) = dense_output(outs, "linspace")?;
    internal_assert!(n as i64 == steps, "linspace: {n} elements for {steps} steps");
    if n == 0 {
        return Ok(());
    }
    let address = Address(out.data_ptr());
    dispatch!(out.dtype(), "linspace_kernel", ALL_AND_COMPLEX_AND_HALF_AND_BOOL, |T| {
        let (start, end) = (start.to::<T>()?, end.to::<T>()?);
        if n == 1 {
            // The only element is the start, whatever the step would be.
            // SAFETY: the output has this one element, of this dtype.
            unsafe { address.write(start.store()) };
            return Ok(());
        }
        match (T::KIND, std::mem::size_of::<T>()) {
            (ElementKind::Complex, _) => {
                let (start, end) = (start.to_complex(), end.to_complex());
                let step = (end - start) / (n.max(2) - 1) as f64;
                // SAFETY: a dense output of `n` elements of this dtype.
                unsafe { halves::<Complex<f64>, T>(address, n, start, end, step, -step) }
            }
            (ElementKind::Floating, 2 | 4) => {
                let (start, end) = (Element::to_f32(start), Element::to_f32(end));
                let step = (end - start) / (n.max(2) - 1) as f32;
                // SAFETY: as above.
                unsafe { halves::<f32, T>(address, n, start, end, step, -step) }
            }
            _ => {
                let (start, end) = (Element::to_f64(start), Element::to_f64(end));
                let step = (end - start) / (n.max(2) - 1) as f64;
                // SAFETY: as above.
                unsafe { halves::<f64, T>(address, n, start, end, step, -step) }
            }
        }
    })
}

/// # Safety
/// As for [`fill`], of `n` elements.
unsafe fn halves<P: Progression, T: Element>(
    out: Address,
    n: usize,
    start: P,
    end: P,
    step: P,
    back: P,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        if n == 1 {
            return fill::<P, T>(out, 0, 1, start, step, |_| 0, 1);
        }
        fill::<P, T>(out, 0, n / 2, start, step, |i| i as i64, 1)?;
        fill::<P, T>(out, n / 2, n, end, back, |i| (n - 1 - i) as i64, -1)
    }
}
