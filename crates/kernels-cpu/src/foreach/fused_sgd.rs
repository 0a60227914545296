//! `_fused_sgd_`: stochastic gradient descent in one pass over memory.
//!
//! In float32 and float64 every element goes through the operations of the optimizer written with tensors, in their
//! order and with their roundings (each `add(other, alpha=…)` is one fused multiply-add), so that both give the same
//! bits. Halves compute in float32 and round once.

use c10::{check, BFloat16, Element, Half, Result, ScalarType, Tensor};
use half::slice::HalfFloatSliceExt;
use iter::parallel::{parallel_for, GRAIN_SIZE};
use iter::{assert_no_partial_overlap, get_overlap_status, MemOverlapStatus};

use crate::address::Address;
use crate::dispatch::dispatch;
use crate::map::Stored;
use crate::registration::register;
use crate::vec::tiered;

pub(super) fn register() {
    register! {
        fused_sgd_kernel: fn(
            &[Tensor], &[Tensor], &[Tensor], f64, f64, f64, f64, bool, bool, bool, Option<&Tensor>, Option<&Tensor>,
        );
    }
}

/// The step's settings, in the type that it is computed in.
#[derive(Clone, Copy)]
struct Step<S> {
    weight_decay: Option<S>,
    /// `None` without momentum.
    momentum: Option<Momentum<S>>,
    negative_lr: S,
    maximize: bool,
    /// Gradients are divided by it, in memory.
    grad_scale: Option<S>,
}

#[derive(Clone, Copy)]
struct Momentum<S> {
    factor: S,
    /// One less the dampening.
    fresh: S,
    nesterov: bool,
    is_first_step: bool,
}

/// A type that steps are computed in.
trait Real: Stored<Raw = Self> {
    fn fma(self, b: Self, c: Self) -> Self;
    fn times(self, b: Self) -> Self;
    fn over(self, b: Self) -> Self;
    fn negated(self) -> Self;
}

macro_rules! real {
    ($($T:ty),*) => {$(
        impl Real for $T {
            // In tiers without the instruction this is a library call: slow, but the same bits everywhere.
            #[inline(always)]
            fn fma(self, b: $T, c: $T) -> $T { self.mul_add(b, c) }
            #[inline(always)]
            fn times(self, b: $T) -> $T { self * b }
            #[inline(always)]
            fn over(self, b: $T) -> $T { self / b }
            #[inline(always)]
            fn negated(self) -> $T { -self }
        }
    )*};
}

real!(f32, f64);

tiered! {
    /// The buffer may be empty if the step has no momentum.
    fn step_slice<S>(param: &mut [S], grad: &mut [S], buffer: &mut [S], step: Step<S>) where { S: Real } => A {
        let _ = std::marker::PhantomData::<A>;
        let unscale = |grad: &mut S| {
            if let Some(scale) = step.grad_scale {
                *grad = grad.over(scale);
            }
            if step.maximize { grad.negated() } else { *grad }
        };
        let decay = |grad: S, param: S| step.weight_decay.map_or(grad, |decay| param.fma(decay, grad));
        match step.momentum {
            None => {
                for (param, grad) in param.iter_mut().zip(grad) {
                    let d = decay(unscale(grad), *param);
                    *param = d.fma(step.negative_lr, *param);
                }
            }
            Some(Momentum { factor, fresh, nesterov, is_first_step }) => {
                for ((param, grad), buffer) in param.iter_mut().zip(grad).zip(buffer) {
                    let d = decay(unscale(grad), *param);
                    *buffer = if is_first_step { d } else { d.fma(fresh, buffer.times(factor)) };
                    let d = if nesterov { buffer.fma(factor, d) } else { *buffer };
                    *param = d.fma(step.negative_lr, *param);
                }
            }
        }
    }
}

/// An element of a parameter.
trait Parameter: Stored<Raw = Self> {
    type Compute: Real;
    /// One piece of a tensor.
    fn step(param: &mut [Self], grad: &mut [Self], buffer: &mut [Self], step: Step<Self::Compute>);
}

macro_rules! computes_in_itself {
    ($($T:ty),*) => {$(
        impl Parameter for $T {
            type Compute = $T;
            fn step(param: &mut [$T], grad: &mut [$T], buffer: &mut [$T], step: Step<$T>) {
                step_slice(param, grad, buffer, step);
            }
        }
    )*};
}

computes_in_itself!(f32, f64);

macro_rules! computes_in_f32 {
    ($($T:ty),*) => {$(
        impl Parameter for $T {
            type Compute = f32;
            fn step(param: &mut [$T], grad: &mut [$T], buffer: &mut [$T], step: Step<f32>) {
                const BLOCK: usize = 1024;
                let mut wide = [[0f32; BLOCK]; 3];
                let [wide_param, wide_grad, wide_buffer] = &mut wide;
                for begin in (0..param.len()).step_by(BLOCK) {
                    let end = param.len().min(begin + BLOCK);
                    let (param, grad) = (&mut param[begin..end], &mut grad[begin..end]);
                    let wide_param = &mut wide_param[..end - begin];
                    let wide_grad = &mut wide_grad[..end - begin];
                    param.convert_to_f32_slice(wide_param);
                    grad.convert_to_f32_slice(wide_grad);
                    let buffer: &mut [$T] = if buffer.is_empty() { &mut [] } else { &mut buffer[begin..end] };
                    let wide_buffer = &mut wide_buffer[..buffer.len()];
                    buffer.convert_to_f32_slice(wide_buffer);
                    step_slice(wide_param, wide_grad, wide_buffer, step);
                    param.convert_from_f32_slice(wide_param);
                    buffer.convert_from_f32_slice(wide_buffer);
                    if step.grad_scale.is_some() {
                        grad.convert_from_f32_slice(wide_grad);
                    }
                }
            }
        }
    )*};
}

computes_in_f32!(Half, BFloat16);

/// The element of an optional float32 tensor.
fn read(tensor: Option<&Tensor>) -> Result<Option<f32>> {
    let Some(tensor) = tensor else { return Ok(None) };
    check!(
        tensor.numel()? == 1 && tensor.dtype() == ScalarType::Float,
        "_fused_sgd_: expected grad_scale and found_inf to be float32 tensors of one element, got {} of sizes {:?}",
        tensor.dtype(),
        tensor.sizes()?
    );
    // SAFETY: one float32 element.
    Ok(Some(unsafe { Address(tensor.data_ptr()).read() }))
}

#[allow(clippy::too_many_arguments)]
fn fused_sgd_kernel(
    params: &[Tensor],
    grads: &[Tensor],
    momentum_buffers: &[Tensor],
    weight_decay: f64,
    momentum: f64,
    lr: f64,
    dampening: f64,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: Option<&Tensor>,
    found_inf: Option<&Tensor>,
) -> Result<()> {
    if read(found_inf)?.is_some_and(|found| found == 1.0) {
        return Ok(());
    }
    let grad_scale = read(grad_scale)?;
    let has_momentum = momentum != 0.0;
    check!(
        grads.len() == params.len() && (!has_momentum || momentum_buffers.len() == params.len()),
        "_fused_sgd_: expected as many gradients and momentum buffers as parameters, got {}, {} and {}",
        grads.len(),
        momentum_buffers.len(),
        params.len()
    );
    for (i, (param, grad)) in params.iter().zip(grads).enumerate() {
        let buffer = has_momentum.then(|| &momentum_buffers[i]);
        dispatch!(param.dtype(), "fused_sgd_kernel", FLOATING_AND_HALF, |T| {
            type Compute<P> = <P as Parameter>::Compute;
            let number = <Compute<T> as Element>::from_f64;
            let step = Step {
                weight_decay: (weight_decay != 0.0).then(|| number(weight_decay)),
                momentum: has_momentum.then(|| Momentum {
                    factor: number(momentum),
                    fresh: number(1.0 - dampening),
                    nesterov,
                    is_first_step,
                }),
                negative_lr: number(-lr),
                maximize,
                grad_scale: grad_scale.map(|scale| number(f64::from(scale))),
            };
            step_tensor::<T>(param, grad, buffer, step)
        })?;
    }
    Ok(())
}

/// One parameter; operands whose elements lie in different orders go through copies in the parameter's.
fn step_tensor<T: Parameter>(
    param: &Tensor,
    grad: &Tensor,
    buffer: Option<&Tensor>,
    step: Step<T::Compute>,
) -> Result<()> {
    let dtype = param.dtype();
    for (name, other) in [("gradient", Some(grad)), ("momentum buffer", buffer)] {
        let Some(other) = other else { continue };
        check!(
            other.dtype() == dtype && other.sizes()? == param.sizes()?,
            "_fused_sgd_: expected a {name} like its parameter ({dtype}, sizes {:?}), got {}, sizes {:?}",
            param.sizes()?,
            other.dtype(),
            other.sizes()?
        );
    }
    // As for `param.add_(grad)`: what lies across the other is refused, and the very same elements are read from a copy.
    let pairs =
        [Some((param, grad)), buffer.map(|buffer| (param, buffer)), buffer.map(|buffer| (buffer, grad))];
    for (written, read) in pairs.into_iter().flatten() {
        assert_no_partial_overlap(written, read)?;
    }
    let dense_param = aligned(param, param, &[])?;
    let dense_grad = aligned(grad, &dense_param, &[&dense_param])?;
    let dense_buffer =
        buffer.map(|buffer| aligned(buffer, &dense_param, &[&dense_param, &dense_grad])).transpose()?;
    let n = param.numel()? as usize;
    let [p, g] = [&dense_param, &dense_grad].map(|t| Address(t.data_ptr()));
    let b = dense_buffer.as_ref().map(|t| Address(t.data_ptr()));
    let size = std::mem::size_of::<T>() as i64;
    parallel_for(0, n, GRAIN_SIZE / 2, &|begin, end| {
        let (offset, count) = (begin as i64 * size, end - begin);
        // SAFETY: the tensors have `n` elements without gaps, in one order; pieces are disjoint, and `aligned`
        // keeps the three apart.
        unsafe {
            let buffer = b.map_or(&mut [][..], |b| b.offset(offset).slice_mut::<T>(count));
            T::step(p.offset(offset).slice_mut(count), g.offset(offset).slice_mut(count), buffer, step);
        }
    })?;
    let unscaled = step.grad_scale.is_some().then_some((grad, &dense_grad));
    let results = [Some((param, &dense_param)), unscaled, buffer.zip(dense_buffer.as_ref())];
    for (tensor, result) in results.into_iter().flatten() {
        if !tensor.is_same(result) {
            iter::copy_into(tensor, result, false)?;
        }
    }
    Ok(())
}

/// The tensor if it has no gaps, its elements lie in the order of `like`'s, and none of them is an element of `others`;
/// else such a copy.
fn aligned(tensor: &Tensor, like: &Tensor, others: &[&Tensor]) -> Result<Tensor> {
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

#[cfg(test)]
mod tests;
