//! Activation functions that are made of others.

use c10::{check, check_value, Generator, Result, Scalar, ScalarType, SymInt, Tensor};

use crate::at;

const ONE: Scalar = Scalar::Int(1);
const SELU_ALPHA: Scalar = Scalar::Float(1.673_263_242_354_377_2);
const SELU_SCALE: Scalar = Scalar::Float(1.050_700_987_355_480_5);
const ZERO: Scalar = Scalar::Int(0);
const SIX: Scalar = Scalar::Int(6);

/// `aten::selu`
pub fn selu(self_: &Tensor) -> Result<Tensor> {
    at::elu(self_, &SELU_ALPHA, &SELU_SCALE, &ONE)
}

/// `aten::selu_`
pub fn selu_(self_: &Tensor) -> Result<Tensor> {
    at::elu_(self_, &SELU_ALPHA, &SELU_SCALE, &ONE)
}

fn inverse_alpha(alpha: &Scalar) -> Result<Scalar> {
    let value = alpha.to_f64()?;
    check!(value != 0.0, "ZeroDivisionError: alpha cannot be 0 for CELU");
    Ok(Scalar::Float(1.0 / value))
}

/// `aten::celu`
pub fn celu(self_: &Tensor, alpha: &Scalar) -> Result<Tensor> {
    at::elu(self_, alpha, &ONE, &inverse_alpha(alpha)?)
}

/// `aten::celu_`
pub fn celu_(self_: &Tensor, alpha: &Scalar) -> Result<Tensor> {
    at::elu_(self_, alpha, &ONE, &inverse_alpha(alpha)?)
}

fn check_relu6(self_: &Tensor) -> Result<()> {
    check!(self_.dtype() != ScalarType::Bool, "Boolean inputs not supported for relu6");
    Ok(())
}

/// `aten::relu6`
pub fn relu6(self_: &Tensor) -> Result<Tensor> {
    check_relu6(self_)?;
    at::hardtanh(self_, &ZERO, &SIX)
}

/// `aten::relu6_`
pub fn relu6_(self_: &Tensor) -> Result<Tensor> {
    check_relu6(self_)?;
    at::hardtanh_(self_, &ZERO, &SIX)
}

/// `aten::log_sigmoid_forward`: the buffer is for backends whose backward pass wants one.
pub fn log_sigmoid_forward(self_: &Tensor) -> Result<(Tensor, Tensor)> {
    let buffer = at::new_empty(self_, &[SymInt::from(0)], None, None, None, None)?;
    Ok((at::log_sigmoid(self_)?, buffer))
}

/// `aten::prelu`: one slope, or one for each index of the second dimension.
pub fn prelu(self_: &Tensor, weight: &Tensor) -> Result<Tensor> {
    check!(
        self_.dtype() == weight.dtype(),
        "prelu: Type promoting not supported. Got {} and {}",
        self_.dtype().short_name(),
        weight.dtype().short_name()
    );
    check!(
        weight.dim() == 1 || weight.dim() == 0,
        "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {}",
        weight.dim()
    );
    let count = weight.sym_numel();
    if count == SymInt::from(1) {
        return at::_prelu_kernel(
            self_,
            &at::reshape(weight, &vec![SymInt::from(1); self_.dim().max(1) as usize])?,
        )
        .and_then(|result| if self_.dim() == 0 { at::reshape(&result, &[]) } else { Ok(result) });
    }
    check!(self_.dim() > 0, "Not allow zero-dim input tensor.");
    let channels = if self_.dim() > 1 { self_.sym_sizes()[1].clone() } else { SymInt::from(1) };
    check!(
        channels == count,
        "Mismatch of parameter numbers and input channel size. Found parameter numbers = {count} and channel size = \
         {channels}."
    );
    let mut shape = vec![SymInt::from(1); self_.dim() as usize];
    if let Some(second) = shape.get_mut(1) {
        *second = count;
    }
    at::_prelu_kernel(self_, &at::reshape(weight, &shape)?)
}

/// `aten::_prelu_kernel_backward`
pub fn _prelu_kernel_backward(
    grad_output: &Tensor,
    self_: &Tensor,
    weight: &Tensor,
) -> Result<(Tensor, Tensor)> {
    let positive = at::gt_scalar(self_, &ZERO)?;
    let for_self = at::where_self(&positive, grad_output, &at::mul_tensor(grad_output, weight)?)?;
    let for_weight = at::masked_fill_scalar(&at::mul_tensor(grad_output, self_)?, &positive, &ZERO)?;
    Ok((for_self, for_weight))
}

/// The two halves of a tensor along a dimension.
fn halves(self_: &Tensor, dim: i64) -> Result<(Tensor, Tensor)> {
    check!(self_.dim() > 0, "glu does not support 0-dimensional tensors");
    let wrapped = c10::wrap_dim(dim, self_.dim(), true)?;
    let size = self_.sym_sizes()[wrapped as usize].clone();
    check!(
        size.sym_mod(&SymInt::from(2))? == SymInt::from(0),
        "Halving dimension must be even, but dimension {wrapped} is size {size}"
    );
    let half = size.sym_floordiv(&SymInt::from(2))?;
    Ok((at::narrow(self_, wrapped, &SymInt::from(0), &half)?, at::narrow(self_, wrapped, &half, &half)?))
}

/// `aten::glu`
pub fn glu(self_: &Tensor, dim: i64) -> Result<Tensor> {
    let (value, gate) = halves(self_, dim)?;
    at::mul_tensor(&value, &at::sigmoid(&gate)?)
}

/// `aten::glu_backward`
pub fn glu_backward(grad_output: &Tensor, self_: &Tensor, dim: i64) -> Result<Tensor> {
    let (value, gate) = halves(self_, dim)?;
    let open = at::sigmoid(&gate)?;
    let for_value = at::mul_tensor(grad_output, &open)?;
    let for_gate = at::mul_tensor(&at::sigmoid_backward(grad_output, &open)?, &value)?;
    at::cat(&[for_value, for_gate], dim)
}

/// `aten::rrelu`
pub fn rrelu(
    self_: &Tensor,
    lower: &Scalar,
    upper: &Scalar,
    training: bool,
    generator: Option<&Generator>,
) -> Result<Tensor> {
    check_slopes(lower, upper)?;
    let noise = at::empty_like(self_, None, None, None, None, None)?;
    at::rrelu_with_noise(self_, &noise, lower, upper, training, generator)
}

/// `aten::rrelu_`
pub fn rrelu_(
    self_: &Tensor,
    lower: &Scalar,
    upper: &Scalar,
    training: bool,
    generator: Option<&Generator>,
) -> Result<Tensor> {
    at::copy_(self_, &rrelu(&at::clone(self_, None)?, lower, upper, training, generator)?, false)
}

fn check_slopes(lower: &Scalar, upper: &Scalar) -> Result<()> {
    let (lower, upper) = (lower.to_f64()?, upper.to_f64()?);
    check!(lower.is_finite(), "rrelu: lower bound must be finite, got {lower}");
    check!(upper.is_finite(), "rrelu: upper bound must be finite, got {upper}");
    check_value!(lower <= upper, "Lower bound should be less than or equal to the upper bound");
    Ok(())
}

/// `aten::rrelu_with_noise`: while training each negative element gets a slope of its own, which `noise` keeps.
pub fn rrelu_with_noise(
    self_: &Tensor,
    noise: &Tensor,
    lower: &Scalar,
    upper: &Scalar,
    training: bool,
    generator: Option<&Generator>,
) -> Result<Tensor> {
    check!(
        self_.sym_sizes() == noise.sym_sizes(),
        "noise tensor shape must match self tensor shape. Got self.shape = {:?} noise.shape = {:?}",
        self_.sym_sizes(),
        noise.sym_sizes()
    );
    check_slopes(lower, upper)?;
    let (low, high) = (lower.to_f64()?, upper.to_f64()?);
    if !training {
        return at::leaky_relu(self_, &Scalar::Float((low + high) / 2.0));
    }
    // One draw in double precision for each element that is not positive, in order.
    let flat = at::reshape(self_, &[SymInt::from(-1)])?;
    let negative = at::le_scalar(&flat, &ZERO)?;
    let selected = at::masked_select(&flat, &negative)?;
    let draws = at::empty_like(&selected, Some(ScalarType::Double), None, None, None, None)?;
    let draws =
        at::to_dtype(&at::uniform_(&draws, low, high, generator)?, self_.dtype(), false, false, None)?;
    let slopes = at::ones_like(&flat, None, None, None, None, None)?;
    at::index_put_(&slopes, &[Some(negative)], &draws, false)?;
    at::copy_(noise, &at::reshape(&slopes, &self_.sym_sizes())?, false)?;
    at::mul_tensor(self_, noise)
}

/// `aten::rrelu_with_noise_backward`
pub fn rrelu_with_noise_backward(
    grad_output: &Tensor,
    self_: &Tensor,
    noise: &Tensor,
    lower: &Scalar,
    upper: &Scalar,
    training: bool,
    self_is_result: bool,
) -> Result<Tensor> {
    let (low, high) = (lower.to_f64()?, upper.to_f64()?);
    if training && high - low > 1e-6 {
        return at::mul_tensor(grad_output, noise);
    }
    at::leaky_relu_backward(grad_output, self_, &Scalar::Float((low + high) / 2.0), self_is_result)
}
