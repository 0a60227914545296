//! `_fused_adam_` and `_fused_adamw_`: Adam in one pass over memory.

use c10::{Element, Result, Tensor};

use super::fused::{check_lengths, read_step, step_tensor, Parameter, Real, Rule, Scaler};
use crate::dispatch::dispatch;
use crate::registration::register;
use crate::vec::tiered;

pub(super) fn register() {
    register! {
        fused_adam_kernel: fn(
            &[Tensor], &[Tensor], &[Tensor], &[Tensor], &[Tensor], &[Tensor], f64, f64, f64, f64, f64, bool, bool,
            Option<&Tensor>, Option<&Tensor>,
        );
        fused_adamw_kernel: fn(
            &[Tensor], &[Tensor], &[Tensor], &[Tensor], &[Tensor], &[Tensor], f64, f64, f64, f64, f64, bool, bool,
            Option<&Tensor>, Option<&Tensor>,
        );
    }
}

/// The step's settings, in the type that it is computed in.
#[derive(Clone, Copy)]
struct Adam<S> {
    /// What of the parameter is added to the gradient.
    decay: Option<S>,
    /// What the parameter is multiplied by.
    shrink: S,
    /// -1 to go uphill.
    sign: S,
    beta1: S,
    fresh1: S,
    beta2: S,
    fresh2: S,
    /// The root of the second moment's bias correction.
    correction: S,
    eps: S,
    negative_step: S,
    /// Whether the first moment is nearer to its old value than to the gradient.
    keeps: bool,
    grad_scale: Option<S>,
}

impl<S: Real> Adam<S> {
    /// The moments after an element's gradient.
    #[inline(always)]
    fn moments(&self, grad: S, first: S, second: S) -> (S, S) {
        let difference = grad - first;
        // As `lerp`: from the nearer end.
        let first =
            if self.keeps { difference.fma(self.fresh1, first) } else { (-difference).fma(self.beta1, grad) };
        (first, (grad * self.fresh2).fma(grad, second * self.beta2))
    }

    #[inline(always)]
    fn moved(&self, param: S, first: S, second: S) -> S {
        let spread = second.root() / self.correction + self.eps;
        (first / spread).fma(self.negative_step, param)
    }
}

impl<S: Real> Rule<4> for Adam<S> {
    type Compute = S;
    fn step(&self, [param, grad, first, second]: [&mut [S]; 4]) {
        plain(param, grad, first, second, *self);
    }
    fn grad_scale(&self) -> Option<S> {
        self.grad_scale
    }
}

/// With the largest second moment so far in the denominator.
#[derive(Clone, Copy)]
struct AmsGrad<S>(Adam<S>);

impl<S: Real> Rule<5> for AmsGrad<S> {
    type Compute = S;
    fn step(&self, [param, grad, first, second, largest]: [&mut [S]; 5]) {
        amsgrad(param, grad, first, second, largest, self.0);
    }
    fn grad_scale(&self) -> Option<S> {
        self.0.grad_scale
    }
}

tiered! {
    fn plain<S>(param: &mut [S], grad: &[S], first: &mut [S], second: &mut [S], adam: Adam<S>) where { S: Real } => A {
        let _ = std::marker::PhantomData::<A>;
        let zipped = param.iter_mut().zip(grad).zip(first).zip(second);
        // One loop for each, without a branch.
        match adam.decay {
            None => for (((param, grad), first), second) in zipped {
                (*first, *second) = adam.moments(*grad * adam.sign, *first, *second);
                *param = adam.moved(*param * adam.shrink, *first, *second);
            },
            Some(decay) => for (((param, grad), first), second) in zipped {
                let grad = param.fma(decay, *grad * adam.sign);
                (*first, *second) = adam.moments(grad, *first, *second);
                *param = adam.moved(*param, *first, *second);
            },
        }
    }

    fn amsgrad<S>(
        param: &mut [S], grad: &[S], first: &mut [S], second: &mut [S], largest: &mut [S], adam: Adam<S>,
    ) where { S: Real } => A {
        let _ = std::marker::PhantomData::<A>;
        for ((((param, grad), first), second), largest) in
            param.iter_mut().zip(grad).zip(first).zip(second).zip(largest)
        {
            let grad = *grad * adam.sign;
            let grad = adam.decay.map_or(grad, |decay| param.fma(decay, grad));
            (*first, *second) = adam.moments(grad, *first, *second);
            *largest = largest.larger(*second);
            *param = adam.moved(*param * adam.shrink, *first, *largest);
        }
    }
}

/// Whether weight decay is a part of the gradient, or shrinks the parameter.
#[derive(Clone, Copy, PartialEq)]
enum Decay {
    OfGradient,
    Decoupled,
}

/// The numbers of a call.
struct Options {
    lr: f64,
    beta1: f64,
    beta2: f64,
    weight_decay: f64,
    eps: f64,
    maximize: bool,
    decay: Decay,
    grad_scale: Option<f64>,
}

impl Options {
    fn at_step<S: Real>(&self, step: f64) -> Adam<S> {
        let number = <S as Element>::from_f64;
        let decoupled = self.decay == Decay::Decoupled;
        Adam {
            decay: (!decoupled && self.weight_decay != 0.0).then(|| number(self.weight_decay)),
            shrink: number(if decoupled { 1.0 - self.lr * self.weight_decay } else { 1.0 }),
            sign: number(if self.maximize { -1.0 } else { 1.0 }),
            beta1: number(self.beta1),
            fresh1: number(1.0 - self.beta1),
            beta2: number(self.beta2),
            fresh2: number(1.0 - self.beta2),
            correction: number((1.0 - self.beta2.powf(step)).sqrt()),
            eps: number(self.eps),
            negative_step: number(-self.lr / (1.0 - self.beta1.powf(step))),
            keeps: 1.0 - self.beta1 < 0.5,
            grad_scale: self.grad_scale.map(number),
        }
    }
}

/// Parameters, gradients, first and second moments, the largest second ones (with `amsgrad`) and the numbers of steps.
type Lists<'a> = [&'a [Tensor]; 6];

fn step_lists(op: &str, lists: Lists<'_>, amsgrad: bool, options: &Options) -> Result<()> {
    let [params, grads, firsts, seconds, largest, steps] = lists;
    let checked = [("grads", grads), ("exp_avgs", firsts), ("exp_avg_sqs", seconds), ("state_steps", steps)];
    check_lengths(op, params, &checked)?;
    if amsgrad {
        check_lengths(op, params, &[("max_exp_avg_sqs", largest)])?;
    }
    for (i, param) in params.iter().enumerate() {
        let step = read_step(op, &steps[i])?;
        dispatch!(param.dtype(), "fused_adam_kernel", FLOATING_AND_HALF, |T| {
            let adam = options.at_step::<<T as Parameter>::Compute>(step);
            let (grad, first, second) = (&grads[i], &firsts[i], &seconds[i]);
            if amsgrad {
                step_tensor::<T, _, 5>(op, [param, grad, first, second, &largest[i]], AmsGrad(adam))
            } else {
                step_tensor::<T, _, 4>(op, [param, grad, first, second], adam)
            }
        })?;
    }
    Ok(())
}

macro_rules! kernel {
    ($name:ident, $op:literal, $decay:expr) => {
        #[allow(clippy::too_many_arguments)]
        fn $name(
            params: &[Tensor],
            grads: &[Tensor],
            exp_avgs: &[Tensor],
            exp_avg_sqs: &[Tensor],
            max_exp_avg_sqs: &[Tensor],
            state_steps: &[Tensor],
            lr: f64,
            beta1: f64,
            beta2: f64,
            weight_decay: f64,
            eps: f64,
            amsgrad: bool,
            maximize: bool,
            grad_scale: Option<&Tensor>,
            found_inf: Option<&Tensor>,
        ) -> Result<()> {
            let Scaler { skip, grad_scale } = Scaler::read($op, grad_scale, found_inf)?;
            if skip {
                return Ok(());
            }
            let options =
                Options { lr, beta1, beta2, weight_decay, eps, maximize, decay: $decay, grad_scale };
            let lists = [params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps];
            step_lists($op, lists, amsgrad, &options)
        }
    };
}

kernel!(fused_adam_kernel, "_fused_adam_", Decay::OfGradient);
kernel!(fused_adamw_kernel, "_fused_adamw_", Decay::Decoupled);

#[cfg(test)]
mod tests;
