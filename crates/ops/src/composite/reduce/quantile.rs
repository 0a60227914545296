//! Quantiles, from sorted slices.

use c10::{check, wrap_dim, Result, Scalar, ScalarType, SymInt, Tensor};

use crate::terms::at_least_1d;
use crate::{at, structured, sym};

/// How a quantile between two elements is made.
#[derive(Clone, Copy, PartialEq)]
enum Interpolation {
    Linear,
    Lower,
    Higher,
    Midpoint,
    Nearest,
}

fn interpolation_of(name: &str) -> Result<Interpolation> {
    Ok(match name {
        "linear" => Interpolation::Linear,
        "lower" => Interpolation::Lower,
        "higher" => Interpolation::Higher,
        "midpoint" => Interpolation::Midpoint,
        "nearest" => Interpolation::Nearest,
        _ => c10::bail!(
            Runtime,
            "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {name}"
        ),
    })
}

fn compute(
    self_: &Tensor,
    q: &Tensor,
    dim: Option<i64>,
    keepdim: bool,
    interpolation: &str,
    ignore_nan: bool,
) -> Result<Tensor> {
    let interpolation = interpolation_of(interpolation)?;
    check!(!sym::is_empty(self_)?, "quantile() input tensor must be non-empty");
    check!(q.dim() <= 1, "quantile() q must be a scalar or 1D tensor");
    check!(
        matches!(self_.dtype(), ScalarType::Float | ScalarType::Double),
        "quantile() input tensor must be either float or double dtype"
    );
    check!(self_.dtype() == q.dtype(), "quantile() q tensor must be same dtype as the input tensor");
    check!(
        self_.device() == q.device(),
        "quantile() q tensor must be on the same device as the input tensor"
    );
    if q.device().is_cpu() {
        let inside =
            at::logical_and(&at::ge_scalar(q, &Scalar::Int(0))?, &at::le_scalar(q, &Scalar::Int(1))?)?;
        check!(at::item(&at::all(&inside)?)?.to_bool()?, "quantile() q values must be in the range [0, 1]");
    }
    let ndim = self_.dim();
    let wrapped = dim.map(|dim| wrap_dim(dim, ndim, true)).transpose()?;
    // The slices go along a last dimension.
    let slices = match wrapped {
        None => at::reshape(self_, &[SymInt::from(-1)])?,
        Some(_) if ndim == 0 => at::unsqueeze(self_, 0)?,
        Some(dim) => at::movedim_int(self_, dim, -1)?,
    };
    let sorted = at::sort(&slices, -1, false)?.0;
    let last = sym::scalar(&sorted.sym_size(-1)?.sym_sub(&SymInt::ONE)?);
    let q_row = at_least_1d(q)?;
    let is_nan = at::isnan(&sorted)?;
    let ranks = if ignore_nan {
        let counts = at::sum_dim_intlist(&at::logical_not(&is_nan)?, Some(&[-1]), true, None)?;
        let lasts = at::to_dtype(
            &at::sub_scalar(&counts, &Scalar::Int(1), &Scalar::Int(1))?,
            q.dtype(),
            false,
            false,
            None,
        )?;
        at::clamp_min(&at::mul_tensor(&q_row, &lasts)?, &Scalar::Int(0))?
    } else {
        let ranks = at::mul_scalar(&q_row, &last)?;
        let mut sizes = sorted.sym_sizes();
        sizes.pop();
        sizes.push(q_row.sym_numel());
        // NaN is sorted last, and makes the slice's quantiles NaN.
        let tainted = at::any_dim(&is_nan, -1, true)?;
        at::masked_fill_scalar(&at::expand(&ranks, &sizes, false)?, &tainted, &last)?
    };
    let ranks = match interpolation {
        Interpolation::Lower => at::floor(&ranks)?,
        Interpolation::Higher => at::ceil(&ranks)?,
        Interpolation::Nearest => at::round(&ranks)?,
        _ => ranks,
    };
    let at_ranks = |ranks: &Tensor| -> Result<Tensor> {
        at::gather(&sorted, -1, &at::to_dtype(ranks, ScalarType::Long, false, false, None)?, false)
    };
    let below = at_ranks(&ranks)?;
    let values = match interpolation {
        Interpolation::Linear | Interpolation::Midpoint => {
            let floor = at::floor(&ranks)?;
            let weights = if interpolation == Interpolation::Midpoint {
                at::full_like(&ranks, &Scalar::Float(0.5), None, None, None, None, None)?
            } else {
                at::sub_tensor(&ranks, &floor, &Scalar::Int(1))?
            };
            at::lerp_tensor(&below, &at_ranks(&at::ceil(&ranks)?)?, &weights)?
        }
        _ => below,
    };
    // [.., quantiles] to [quantiles, ..]
    let values = if keepdim {
        match wrapped {
            Some(dim) if ndim > 0 => at::movedim_int(&at::unsqueeze(&values, dim)?, -1, 0)?,
            Some(_) => at::movedim_int(&values, -1, 0)?,
            None => {
                let mut sizes = c10::SymDimVector::from_elem(SymInt::ONE, ndim as usize);
                sizes.insert(0, q_row.sym_numel());
                at::reshape(&values, &sizes)?
            }
        }
    } else {
        at::movedim_int(&values, -1, 0)?
    };
    if q.dim() == 0 {
        at::squeeze_dim(&values, 0)
    } else {
        Ok(values)
    }
}

fn scalar_q(self_: &Tensor, q: f64) -> Result<Tensor> {
    check!((0.0..=1.0).contains(&q), "quantile() q must be in the range [0, 1] but got {q}");
    at::scalar_tensor(&Scalar::Float(q), Some(self_.dtype()), None, Some(self_.device()), None)
}

macro_rules! quantiles {
    ($($name:literal $ignore_nan:literal $tensor:ident $tensor_out:ident $scalar:ident $scalar_out:ident),*) => {$(
        #[doc = concat!("`aten::", $name, "`")]
        pub fn $tensor(
            self_: &Tensor,
            q: &Tensor,
            dim: Option<i64>,
            keepdim: bool,
            interpolation: &str,
        ) -> Result<Tensor> {
            compute(self_, q, dim, keepdim, interpolation, $ignore_nan)
        }

        #[doc = concat!("`aten::", $name, ".out`")]
        pub fn $tensor_out(
            self_: &Tensor,
            q: &Tensor,
            dim: Option<i64>,
            keepdim: bool,
            interpolation: &str,
            out: &Tensor,
        ) -> Result<Tensor> {
            structured::write_exact($name, out, &compute(self_, q, dim, keepdim, interpolation, $ignore_nan)?)
        }

        #[doc = concat!("`aten::", $name, ".scalar`")]
        pub fn $scalar(
            self_: &Tensor,
            q: f64,
            dim: Option<i64>,
            keepdim: bool,
            interpolation: &str,
        ) -> Result<Tensor> {
            at::$tensor(self_, &scalar_q(self_, q)?, dim, keepdim, interpolation)
        }

        #[doc = concat!("`aten::", $name, ".scalar_out`")]
        pub fn $scalar_out(
            self_: &Tensor,
            q: f64,
            dim: Option<i64>,
            keepdim: bool,
            interpolation: &str,
            out: &Tensor,
        ) -> Result<Tensor> {
            $tensor_out(self_, &scalar_q(self_, q)?, dim, keepdim, interpolation, out)
        }
    )*};
}

quantiles! {
    "quantile" false quantile quantile_out quantile_scalar quantile_scalar_out,
    "nanquantile" true nanquantile nanquantile_out nanquantile_scalar nanquantile_scalar_out
}
