//! Second derivatives of activation functions: what differentiates their `…_backward` operators.

use c10::{Result, Scalar, Tensor};
use ops::at;

use super::elementary::{one_minus_square, scaled};
use super::pointwise::{conj, drop_where, keep_where, mul_conj};

const ZERO: Scalar = Scalar::Int(0);
const ONE: Scalar = Scalar::Int(1);

fn one_minus(tensor: &Tensor) -> Result<Tensor> {
    at::rsub_scalar(tensor, &ONE, &ONE)
}

/// `elu_backward` with respect to the forward function's input or result
pub fn elu_double_backward(
    grad: &Tensor,
    grad_output: &Tensor,
    alpha: &Scalar,
    scale: &Scalar,
    input_scale: &Scalar,
    is_result: bool,
    self_or_result: &Tensor,
) -> Result<Tensor> {
    let product = at::mul_scalar(&at::mul_tensor(grad, grad_output)?, input_scale)?;
    let negative = at::lt_scalar(self_or_result, &ZERO)?;
    if is_result {
        return keep_where(&product, &negative);
    }
    let slope = at::elu_backward(&product, alpha, scale, input_scale, false, self_or_result)?;
    keep_where(&slope, &negative)
}

/// `hardswish_backward` with respect to its input
pub fn hardswish_double_backward(grad: &Tensor, grad_output: &Tensor, self_: &Tensor) -> Result<Tensor> {
    let bent =
        at::logical_and(&at::gt_scalar(self_, &Scalar::Int(-3))?, &at::lt_scalar(self_, &Scalar::Int(3))?)?;
    keep_where(&at::div_scalar(&at::mul_tensor(grad, grad_output)?, &Scalar::Int(3))?, &bent)
}

/// `softplus_backward` with respect to its input; `grad` is the product of both gradients.
pub fn softplus_double_backward(
    grad: &Tensor,
    self_: &Tensor,
    beta: &Scalar,
    threshold: &Scalar,
) -> Result<Tensor> {
    let x = at::mul_scalar(self_, beta)?;
    let slope = at::sigmoid_backward(&at::mul_scalar(grad, beta)?, &at::sigmoid(&x)?)?;
    drop_where(&slope, &at::gt_scalar(&x, threshold)?)
}

/// `log_sigmoid_backward` with respect to its input; `grad` is the product of both gradients.
pub fn log_sigmoid_double_backward(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
    at::neg(&at::sigmoid_backward(grad, &at::sigmoid(self_)?)?)
}

/// `gelu_backward` with respect to its input; `grad` is the product of both gradients.
pub fn gelu_double_backward(grad: &Tensor, self_: &Tensor, approximate: &str) -> Result<Tensor> {
    let square = at::mul_tensor(self_, self_)?;
    if approximate != "tanh" {
        // φ(x)·(2 − x²)
        let density = scaled(
            &at::exp(&scaled(&square, -0.5)?)?,
            std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2 * 0.5,
        )?;
        let slope = at::mul_tensor(&density, &at::rsub_scalar(&square, &Scalar::Int(2), &ONE)?)?;
        return at::mul_tensor(grad, &slope);
    }
    // ½x·(1 + tanh u) twice differentiated: (1 − t²)·(u′ + ½x·u″ − x·t·u′²)
    let beta = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;
    let kappa = 0.044_715;
    let cubic = at::add_scalar(&scaled(&square, kappa)?, &ONE, &ONE)?;
    let t = at::tanh(&scaled(&at::mul_tensor(self_, &cubic)?, beta)?)?;
    let first = scaled(&at::add_scalar(&scaled(&square, 3.0 * kappa)?, &ONE, &ONE)?, beta)?;
    let second = scaled(&square, 3.0 * kappa * beta)?;
    let bend = at::mul_tensor(&at::mul_tensor(self_, &t)?, &at::mul_tensor(&first, &first)?)?;
    let sum = at::sub_tensor(&at::add_tensor(&first, &second, &ONE)?, &bend, &ONE)?;
    at::mul_tensor(grad, &at::mul_tensor(&one_minus_square(&t)?, &sum)?)
}

/// `silu_backward` with respect to its input: `s·(1 − s)·(2 + x·(1 − 2s))`.
pub fn silu_double_backward(grad: &Tensor, grad_output: &Tensor, self_: &Tensor) -> Result<Tensor> {
    let s = at::sigmoid(self_)?;
    let tilt = at::mul_tensor(self_, &one_minus(&scaled(&s, 2.0)?)?)?;
    let slope = at::mul_tensor(
        &at::mul_tensor(&s, &one_minus(&s)?)?,
        &at::add_scalar(&tilt, &Scalar::Int(2), &ONE)?,
    )?;
    // The first derivative enters conjugated, so that its own gradient is conjugated once more.
    mul_conj(&at::mul_tensor(&conj(grad)?, grad_output)?, &slope)
}

/// `mish_backward` with respect to its input; `grad` is the product of both gradients.
pub fn mish_double_backward(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
    // x·w, w = tanh(softplus x): (1 − w²)·s·(2 + x·(1 − s − 2ws))
    let w = at::tanh(&at::softplus(self_, &ONE, &Scalar::Int(20))?)?;
    let s = at::sigmoid(self_)?;
    let inner = at::sub_tensor(&one_minus(&s)?, &scaled(&at::mul_tensor(&w, &s)?, 2.0)?, &ONE)?;
    let sum = at::add_scalar(&at::mul_tensor(self_, &inner)?, &Scalar::Int(2), &ONE)?;
    at::mul_tensor(grad, &at::mul_tensor(&at::mul_tensor(&one_minus_square(&w)?, &s)?, &sum)?)
}

/// `_prelu_kernel`
pub fn prelu_backward(
    grad: &Tensor,
    self_: &Tensor,
    weight: &Tensor,
    mask: [bool; 2],
) -> Result<(Option<Tensor>, Option<Tensor>)> {
    let (for_self, for_weight) = at::_prelu_kernel_backward(grad, self_, weight)?;
    Ok((mask[0].then_some(for_self), mask[1].then_some(for_weight)))
}
