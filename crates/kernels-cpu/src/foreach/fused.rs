//! Optimizer steps in one pass over memory: what those of all optimizers share.
//!
//! An optimizer is a [`Rule`] that steps slices. Here lists are walked, operands are checked and aligned, large tensors
//! are split over threads (elements are independent, so the bits are the same however many there are), gradients are
//! unscaled, and halves are computed in float32 and rounded once.

use std::ops::{Add, Div, Mul, Neg, Sub};

use c10::{check, BFloat16, Half, Result, ScalarType, Tensor};
use half::slice::HalfFloatSliceExt;
use iter::parallel::{parallel_for, GRAIN_SIZE};
use iter::{assert_no_partial_overlap, get_overlap_status, MemOverlapStatus};

use crate::address::Address;
use crate::map::Stored;

/// A type that steps are computed in.
pub(super) trait Real:
    Stored<Raw = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    fn fma(self, b: Self, c: Self) -> Self;
    fn root(self) -> Self;
    /// The larger one, NaN if either is.
    fn larger(self, b: Self) -> Self;
}

macro_rules! real {
    ($($T:ty),*) => {$(
        impl Real for $T {
            // In tiers without the instruction this is a library call: slow, but the same bits everywhere.
            #[inline(always)]
            fn fma(self, b: $T, c: $T) -> $T { self.mul_add(b, c) }
            #[inline(always)]
            fn root(self) -> $T { self.sqrt() }
            #[inline(always)]
            fn larger(self, b: $T) -> $T { if self > b || self.is_nan() { self } else { b } }
        }
    )*};
}

real!(f32, f64);

/// What happens to the elements of a parameter (the first part), given its gradient (the second), and states.
pub(super) trait Rule<const N: usize>: Copy + Sync {
    type Compute: Real;
    fn step(&self, parts: [&mut [Self::Compute]; N]);
    /// Gradients are divided by it, in memory.
    fn grad_scale(&self) -> Option<Self::Compute>;

    /// [`step`](Rule::step) on a gradient that may be scaled.
    fn unscale_and_step(&self, parts: [&mut [Self::Compute]; N]) {
        if let Some(scale) = self.grad_scale() {
            for grad in &mut *parts[1] {
                *grad = *grad / scale;
            }
        }
        self.step(parts);
    }
}

/// An element of a parameter.
pub(super) trait Parameter: Stored<Raw = Self> {
    type Compute: Real;
    /// One piece of a tensor.
    fn step<R: Rule<N, Compute = Self::Compute>, const N: usize>(parts: [&mut [Self]; N], rule: &R);
}

macro_rules! computes_in_itself {
    ($($T:ty),*) => {$(
        impl Parameter for $T {
            type Compute = $T;
            fn step<R: Rule<N, Compute = $T>, const N: usize>(parts: [&mut [$T]; N], rule: &R) {
                rule.unscale_and_step(parts);
            }
        }
    )*};
}

computes_in_itself!(f32, f64);

macro_rules! computes_in_f32 {
    ($($T:ty),*) => {$(
        impl Parameter for $T {
            type Compute = f32;
            fn step<R: Rule<N, Compute = f32>, const N: usize>(mut parts: [&mut [$T]; N], rule: &R) {
                const BLOCK: usize = 1024;
                let mut wide = [[0f32; BLOCK]; N];
                let count = parts[0].len();
                for begin in (0..count).step_by(BLOCK) {
                    let end = count.min(begin + BLOCK);
                    for (part, wide) in parts.iter().zip(&mut wide) {
                        part[begin..end].convert_to_f32_slice(&mut wide[..end - begin]);
                    }
                    rule.unscale_and_step(wide.each_mut().map(|wide| &mut wide[..end - begin]));
                    for (i, (part, wide)) in parts.iter_mut().zip(&wide).enumerate() {
                        if i != 1 || rule.grad_scale().is_some() {
                            part[begin..end].convert_from_f32_slice(&wide[..end - begin]);
                        }
                    }
                }
            }
        }
    )*};
}

computes_in_f32!(Half, BFloat16);

/// What a gradient scaler has to say: whether to step, and what to divide gradients by.
pub(super) struct Scaler {
    pub skip: bool,
    pub grad_scale: Option<f64>,
}

impl Scaler {
    pub(super) fn read(op: &str, grad_scale: Option<&Tensor>, found_inf: Option<&Tensor>) -> Result<Scaler> {
        let read = |tensor: Option<&Tensor>| {
            let Some(tensor) = tensor else { return Ok(None) };
            check!(
                tensor.numel()? == 1 && tensor.dtype() == ScalarType::Float,
                "{op}: expected grad_scale and found_inf to be float32 tensors of one element, got {} of sizes {:?}",
                tensor.dtype(),
                tensor.sizes()?
            );
            // SAFETY: one float32 element.
            Ok(Some(f64::from(unsafe { Address(tensor.data_ptr()).read::<f32>() })))
        };
        Ok(Scaler { skip: read(found_inf)? == Some(1.0), grad_scale: read(grad_scale)? })
    }
}

/// The number of steps so far, which a tensor of one element holds.
pub(super) fn read_step(op: &str, step: &Tensor) -> Result<f64> {
    let dtype = step.dtype();
    check!(
        step.numel()? == 1 && matches!(dtype, ScalarType::Float | ScalarType::Double) && step.device().is_cpu(),
        "{op}: expected state_steps to be float32 or float64 tensors of one element on the CPU, got {dtype} of sizes {:?} \
         on {}",
        step.sizes()?,
        step.device()
    );
    let address = Address(step.data_ptr());
    // SAFETY: one element of the dtype.
    Ok(unsafe {
        match dtype {
            ScalarType::Float => f64::from(address.read::<f32>()),
            _ => address.read(),
        }
    })
}

/// There are as many tensors in every list as there are parameters.
pub(super) fn check_lengths(op: &str, params: &[Tensor], lists: &[(&str, &[Tensor])]) -> Result<()> {
    for (name, list) in lists {
        check!(
            list.len() == params.len(),
            "{op}: expected {name} to have as many tensors as there are parameters, {}, got {}",
            params.len(),
            list.len()
        );
    }
    Ok(())
}

/// Steps one parameter. Operands whose elements lie in different orders go through copies in the parameter's.
pub(super) fn step_tensor<T: Parameter, R: Rule<N, Compute = T::Compute>, const N: usize>(
    op: &str,
    tensors: [&Tensor; N],
    rule: R,
) -> Result<()> {
    let param = tensors[0];
    for (i, other) in tensors.iter().enumerate().skip(1) {
        check!(
            other.dtype() == param.dtype() && other.sizes()? == param.sizes()?,
            "{op}: expected a {} like its parameter ({}, sizes {:?}), got {}, sizes {:?}",
            if i == 1 { "gradient" } else { "state" },
            param.dtype(),
            param.sizes()?,
            other.dtype(),
            other.sizes()?
        );
        // As for `param.add_(grad)`: what lies across the other is refused, and the very same elements are read from a
        // copy.
        for before in &tensors[..i] {
            assert_no_partial_overlap(before, other)?;
        }
    }
    let mut dense: Vec<Tensor> = Vec::with_capacity(N);
    for tensor in tensors {
        let copy = aligned(tensor, dense.first().unwrap_or(param), &dense)?;
        dense.push(copy);
    }
    let n = param.numel()? as usize;
    let addresses: [Address; N] = std::array::from_fn(|i| Address(dense[i].data_ptr()));
    let size = std::mem::size_of::<T>() as i64;
    parallel_for(0, n, GRAIN_SIZE / 2, &|begin, end| {
        // SAFETY: the tensors have `n` elements without gaps, in one order; pieces are disjoint, and `aligned`
        // keeps the tensors apart.
        let parts = addresses.map(|a| unsafe { a.offset(begin as i64 * size).slice_mut::<T>(end - begin) });
        T::step(parts, &rule);
    })?;
    for (i, (tensor, result)) in tensors.into_iter().zip(&dense).enumerate() {
        if !tensor.is_same(result) && (i != 1 || rule.grad_scale().is_some()) {
            iter::copy_into(tensor, result, false)?;
        }
    }
    Ok(())
}

/// The tensor if it has no gaps, its elements lie in the order of `like`'s, and none of them is an element of `others`;
/// else such a copy.
fn aligned(tensor: &Tensor, like: &Tensor, others: &[Tensor]) -> Result<Tensor> {
    let is_apart = others.iter().try_fold(true, |apart, other| {
        Ok::<_, c10::Error>(apart && get_overlap_status(tensor, other)? == MemOverlapStatus::No)
    })?;
    if is_apart && tensor.is_non_overlapping_and_dense() && tensor.strides()? == like.strides()? {
        return Ok(tensor.clone());
    }
    let strides = if like.is_non_overlapping_and_dense() { like.strides()? } else { &[] };
    let copy = iter::empty_strided(tensor.sizes()?, strides, &tensor.options())?;
    iter::copy_into(&copy, tensor, false)?;
    Ok(copy)
}
