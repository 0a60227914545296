//! `_fused_sgd_`: stochastic gradient descent in one pass over memory.
//!
//! In float32 and float64 every element goes through the operations of the optimizer written with tensors, in their
//! order and with their roundings (each `add(other, alpha=…)` is one fused multiply-add), so that both give the same
//! bits.

use c10::{Element, Result, Tensor};

use super::fused::{check_lengths, step_tensor, Parameter, Real, Rule, Scaler};
use crate::dispatch::dispatch;
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
struct Sgd<S> {
    weight_decay: Option<S>,
    negative_lr: S,
    maximize: bool,
    grad_scale: Option<S>,
}

impl<S: Real> Sgd<S> {
    /// The gradient to go down along.
    #[inline(always)]
    fn descent(&self, param: S, grad: S) -> S {
        let grad = if self.maximize { -grad } else { grad };
        self.weight_decay.map_or(grad, |decay| param.fma(decay, grad))
    }
}

#[derive(Clone, Copy)]
struct Momentum<S> {
    sgd: Sgd<S>,
    factor: S,
    /// One less the dampening.
    fresh: S,
    nesterov: bool,
    is_first_step: bool,
}

impl<S: Real> Rule<2> for Sgd<S> {
    type Compute = S;
    fn step(&self, [param, grad]: [&mut [S]; 2]) {
        plain(param, grad, *self);
    }
    fn grad_scale(&self) -> Option<S> {
        self.grad_scale
    }
}

impl<S: Real> Rule<3> for Momentum<S> {
    type Compute = S;
    fn step(&self, [param, grad, buffer]: [&mut [S]; 3]) {
        with_momentum(param, grad, buffer, *self);
    }
    fn grad_scale(&self) -> Option<S> {
        self.sgd.grad_scale
    }
}

tiered! {
    fn plain<S>(param: &mut [S], grad: &[S], sgd: Sgd<S>) where { S: Real } => A {
        let _ = std::marker::PhantomData::<A>;
        for (param, grad) in param.iter_mut().zip(grad) {
            *param = sgd.descent(*param, *grad).fma(sgd.negative_lr, *param);
        }
    }

    fn with_momentum<S>(param: &mut [S], grad: &[S], buffer: &mut [S], step: Momentum<S>) where { S: Real } => A {
        let _ = std::marker::PhantomData::<A>;
        let Momentum { sgd, factor, fresh, nesterov, is_first_step } = step;
        for ((param, grad), buffer) in param.iter_mut().zip(grad).zip(buffer) {
            let d = sgd.descent(*param, *grad);
            *buffer = if is_first_step { d } else { d.fma(fresh, *buffer * factor) };
            let d = if nesterov { buffer.fma(factor, d) } else { *buffer };
            *param = d.fma(sgd.negative_lr, *param);
        }
    }
}

const OP: &str = "_fused_sgd_";

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
    let scaler = Scaler::read(OP, grad_scale, found_inf)?;
    if scaler.skip {
        return Ok(());
    }
    let has_momentum = momentum != 0.0;
    check_lengths(OP, params, &[("grads", grads)])?;
    if has_momentum {
        check_lengths(OP, params, &[("momentum_buffer_list", momentum_buffers)])?;
    }
    for (i, (param, grad)) in params.iter().zip(grads).enumerate() {
        dispatch!(param.dtype(), "fused_sgd_kernel", FLOATING_AND_HALF, |T| {
            let number = <<T as Parameter>::Compute as Element>::from_f64;
            let sgd = Sgd {
                weight_decay: (weight_decay != 0.0).then(|| number(weight_decay)),
                negative_lr: number(-lr),
                maximize,
                grad_scale: scaler.grad_scale.map(number),
            };
            if has_momentum {
                let step = Momentum {
                    sgd,
                    factor: number(momentum),
                    fresh: number(1.0 - dampening),
                    nesterov,
                    is_first_step,
                };
                step_tensor::<T, _, 3>(OP, [param, grad, &momentum_buffers[i]], step)
            } else {
                step_tensor::<T, _, 2>(OP, [param, grad], sgd)
            }
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
