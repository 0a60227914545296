//! Composites of the `foreach` family that are more than an operator on each tensor of a list.

use c10::{Result, Tensor};

use crate::at;

/// `aten::_fused_sgd_.tensor_lr`
#[allow(clippy::too_many_arguments)]
pub fn _fused_sgd__tensor_lr(
    self_: &[Tensor],
    grads: &[Tensor],
    momentum_buffer_list: &[Tensor],
    weight_decay: f64,
    momentum: f64,
    lr: &Tensor,
    dampening: f64,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: Option<&Tensor>,
    found_inf: Option<&Tensor>,
) -> Result<()> {
    let lr = at::item(lr)?.to_f64()?;
    at::_fused_sgd_(
        self_,
        grads,
        momentum_buffer_list,
        weight_decay,
        momentum,
        lr,
        dampening,
        nesterov,
        maximize,
        is_first_step,
        grad_scale,
        found_inf,
    )
}

macro_rules! adam_with_tensor_lr {
    ($($(#[$doc:meta])* $name:ident => $base:ident;)*) => {$(
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        pub fn $name(
            self_: &[Tensor],
            grads: &[Tensor],
            exp_avgs: &[Tensor],
            exp_avg_sqs: &[Tensor],
            max_exp_avg_sqs: &[Tensor],
            state_steps: &[Tensor],
            lr: &Tensor,
            beta1: f64,
            beta2: f64,
            weight_decay: f64,
            eps: f64,
            amsgrad: bool,
            maximize: bool,
            grad_scale: Option<&Tensor>,
            found_inf: Option<&Tensor>,
        ) -> Result<()> {
            let lr = at::item(lr)?.to_f64()?;
            at::$base(
                self_, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps,
                amsgrad, maximize, grad_scale, found_inf,
            )
        }
    )*};
}

adam_with_tensor_lr! {
    /// `aten::_fused_adam_.tensor_lr`
    _fused_adam__tensor_lr => _fused_adam_;
    /// `aten::_fused_adamw_.tensor_lr`
    _fused_adamw__tensor_lr => _fused_adamw_;
}

/// `aten::_fused_adagrad_.tensor_lr`
#[allow(clippy::too_many_arguments)]
pub fn _fused_adagrad__tensor_lr(
    self_: &[Tensor],
    grads: &[Tensor],
    state_sums: &[Tensor],
    state_steps: &[Tensor],
    lr: &Tensor,
    lr_decay: f64,
    weight_decay: f64,
    eps: f64,
    maximize: bool,
    grad_scale: Option<&Tensor>,
    found_inf: Option<&Tensor>,
) -> Result<()> {
    let lr = at::item(lr)?.to_f64()?;
    at::_fused_adagrad_(
        self_,
        grads,
        state_sums,
        state_steps,
        lr,
        lr_decay,
        weight_decay,
        eps,
        maximize,
        grad_scale,
        found_inf,
    )
}
