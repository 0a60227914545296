//! Composites of the `special` family.

use c10::{check, Result, Scalar, ScalarType, Tensor};

use crate::at;

/// `aten::polygamma_`
pub fn polygamma_(self_: &Tensor, n: i64) -> Result<Tensor> {
    at::polygamma_out(n, self_, self_)
}

/// `aten::mvlgamma`: `ln Γₚ(x) = p(p−1)/4·ln π + Σ ln Γ(x − j/2)`.
pub fn mvlgamma(self_: &Tensor, p: i64) -> Result<Tensor> {
    check!(p >= 1, "p has to be greater than or equal to 1");
    check!(self_.dtype() != ScalarType::Bool, "The input tensor may not be a boolean tensor.");
    let dtype = if self_.dtype().is_integral(true) { c10::get_default_dtype() } else { self_.dtype() };
    let input = at::to_dtype(self_, dtype, false, false, None)?;
    let halves = at::arange_start_step(
        &Scalar::Float(-0.5 * p as f64 + 0.5),
        &Scalar::Float(0.5),
        &Scalar::Float(0.5),
        Some(dtype),
        None,
        Some(self_.device()),
        None,
    )?;
    let terms = at::lgamma(&at::add_tensor(&at::unsqueeze(&input, -1)?, &halves, &Scalar::Int(1))?)?;
    let sum = at::sum_dim_intlist(&terms, Some(&[-1]), false, None)?;
    let p = p as f64;
    let constant = Scalar::Float(p * (p - 1.0) * std::f64::consts::PI.ln() / 4.0);
    at::add_scalar(&sum, &constant, &Scalar::Int(1))
}

/// `aten::special_round`
pub fn special_round(self_: &Tensor, decimals: i64) -> Result<Tensor> {
    at::round_decimals(self_, decimals)
}

/// `aten::special_softmax`
pub fn special_softmax(self_: &Tensor, dim: i64, dtype: Option<ScalarType>) -> Result<Tensor> {
    at::softmax_int(self_, dim, dtype)
}

/// `aten::special_log_softmax`
pub fn special_log_softmax(self_: &Tensor, dim: i64, dtype: Option<ScalarType>) -> Result<Tensor> {
    at::log_softmax_int(self_, dim, dtype)
}
