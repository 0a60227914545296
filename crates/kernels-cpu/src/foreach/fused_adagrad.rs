//! `_fused_adagrad_`: Adagrad in one pass over memory.

use c10::{Element, Result, Tensor};

use super::fused::{check_lengths, read_step, step_tensor, Parameter, Real, Rule, Scaler};
use crate::dispatch::dispatch;
use crate::registration::register;
use crate::vec::tiered;

pub(super) fn register() {
    register! {
        fused_adagrad_kernel: fn(
            &[Tensor], &[Tensor], &[Tensor], &[Tensor], f64, f64, f64, f64, bool, Option<&Tensor>, Option<&Tensor>,
        );
    }
}

/// The step's settings, in the type that it is computed in.
#[derive(Clone, Copy)]
struct Adagrad<S> {
    weight_decay: Option<S>,
    /// -1 to go uphill.
    sign: S,
    eps: S,
    negative_lr: S,
    grad_scale: Option<S>,
}

impl<S: Real> Rule<3> for Adagrad<S> {
    type Compute = S;
    fn step(&self, [param, grad, sum]: [&mut [S]; 3]) {
        step_slice(param, grad, sum, *self);
    }
    fn grad_scale(&self) -> Option<S> {
        self.grad_scale
    }
}

tiered! {
    fn step_slice<S>(param: &mut [S], grad: &[S], sum: &mut [S], step: Adagrad<S>) where { S: Real } => A {
        let _ = std::marker::PhantomData::<A>;
        for ((param, grad), sum) in param.iter_mut().zip(grad).zip(sum) {
            let grad = *grad * step.sign;
            let grad = step.weight_decay.map_or(grad, |decay| param.fma(decay, grad));
            *sum = grad.fma(grad, *sum);
            *param = *param + grad * step.negative_lr / (sum.root() + step.eps);
        }
    }
}

const OP: &str = "_fused_adagrad_";

#[allow(clippy::too_many_arguments)]
fn fused_adagrad_kernel(
    params: &[Tensor],
    grads: &[Tensor],
    state_sums: &[Tensor],
    state_steps: &[Tensor],
    lr: f64,
    lr_decay: f64,
    weight_decay: f64,
    eps: f64,
    maximize: bool,
    grad_scale: Option<&Tensor>,
    found_inf: Option<&Tensor>,
) -> Result<()> {
    let scaler = Scaler::read(OP, grad_scale, found_inf)?;
    if scaler.skip {
        return Ok(());
    }
    let lists = [("grads", grads), ("state_sums", state_sums), ("state_steps", state_steps)];
    check_lengths(OP, params, &lists)?;
    for (i, param) in params.iter().enumerate() {
        let steps_before = read_step(OP, &state_steps[i])? - 1.0;
        dispatch!(param.dtype(), "fused_adagrad_kernel", FLOATING_AND_HALF, |T| {
            let number = <<T as Parameter>::Compute as Element>::from_f64;
            let rule = Adagrad {
                weight_decay: (weight_decay != 0.0).then(|| number(weight_decay)),
                sign: number(if maximize { -1.0 } else { 1.0 }),
                eps: number(eps),
                negative_lr: number(-lr / (1.0 + steps_before * lr_decay)),
                grad_scale: scaler.grad_scale.map(number),
            };
            step_tensor::<T, _, 3>(OP, [param, &grads[i], &state_sums[i]], rule)
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
