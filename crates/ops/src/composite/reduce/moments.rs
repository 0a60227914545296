//! Variances and standard deviations.

use c10::{check, sym_multiply_integers, Result, Scalar, ScalarType, SymDimVector, SymInt, Tensor};

use crate::{at, structured, sym};

const ONE: Scalar = Scalar::Int(1);

/// The number of elements that are reduced to one.
pub fn reduced_count(self_: &Tensor, dim: Option<&[i64]>) -> Result<SymInt> {
    let mask = iter::make_dim_mask(dim, self_.dim(), false)?;
    let sizes = self_.sym_sizes();
    let reduced = sizes.into_iter().enumerate().filter(|(dim, _)| iter::is_reduced(mask, *dim));
    sym_multiply_integers(&reduced.map(|(_, size)| size).collect::<SymDimVector>())
}

/// Variance and mean: first the mean, then the squares of what differs from it.
fn moments(
    name: &str,
    self_: &Tensor,
    dim: Option<&[i64]>,
    correction: Option<&Scalar>,
    keepdim: bool,
) -> Result<(Tensor, Tensor)> {
    check!(
        self_.is_floating_point() || self_.is_complex(),
        "{name} only support floating point and complex dtypes"
    );
    let dtype = self_.dtype();
    let correction = match correction {
        Some(correction) => correction.to_f64()?,
        None => 1.0,
    };
    let count = reduced_count(self_, dim)?;
    let half = dtype.is_reduced_floating_point();
    let input =
        if half { at::to_dtype(self_, ScalarType::Float, false, false, None)? } else { self_.clone() };
    let sum = |t: &Tensor| at::sum_dim_intlist(t, dim, true, None);
    let mean = at::div_scalar(&sum(&input)?, &sym::scalar(&count))?;
    let centred = at::sub_tensor(&input, &mean, &ONE)?;
    let squares = if centred.is_complex() {
        let parts = at::view_as_real(&centred)?;
        at::sum_dim_intlist(&at::mul_tensor(&parts, &parts)?, Some(&[-1]), false, None)?
    } else {
        at::mul_tensor(&centred, &centred)?
    };
    let divisor = match count.maybe_as_int() {
        Some(count) => Scalar::Float((count as f64 - correction).max(0.0)),
        None => sym::scalar(&count.sym_sub(&SymInt::from(correction as i64))?.sym_max(&SymInt::ZERO)?),
    };
    let variance = at::div_scalar(&sum(&squares)?, &divisor)?;
    let finish = |t: Tensor, dtype: ScalarType| -> Result<Tensor> {
        let t = if keepdim { t } else { drop_dims(&t, dim)? };
        if t.dtype() == dtype {
            Ok(t)
        } else {
            at::to_dtype(&t, dtype, false, false, None)
        }
    };
    Ok((finish(variance, dtype.to_real_value_type())?, finish(mean, dtype)?))
}

/// Drops reduced dimensions, which are of size 1.
fn drop_dims(tensor: &Tensor, dim: Option<&[i64]>) -> Result<Tensor> {
    let mask = iter::make_dim_mask(dim, tensor.dim(), false)?;
    let kept: SymDimVector = tensor
        .sym_sizes()
        .into_iter()
        .enumerate()
        .filter(|(dim, _)| !iter::is_reduced(mask, *dim))
        .map(|(_, size)| size)
        .collect();
    at::view(tensor, &kept)
}

/// `aten::var.correction`
pub fn var_correction(
    self_: &Tensor,
    dim: Option<&[i64]>,
    correction: Option<&Scalar>,
    keepdim: bool,
) -> Result<Tensor> {
    Ok(moments("std and var", self_, dim, correction, keepdim)?.0)
}

/// `aten::std.correction`
pub fn std_correction(
    self_: &Tensor,
    dim: Option<&[i64]>,
    correction: Option<&Scalar>,
    keepdim: bool,
) -> Result<Tensor> {
    at::sqrt(&moments("std and var", self_, dim, correction, keepdim)?.0)
}

/// `aten::var_mean.correction`
pub fn var_mean_correction(
    self_: &Tensor,
    dim: Option<&[i64]>,
    correction: Option<&Scalar>,
    keepdim: bool,
) -> Result<(Tensor, Tensor)> {
    moments("var_mean", self_, dim, correction, keepdim)
}

/// `aten::std_mean.correction`
pub fn std_mean_correction(
    self_: &Tensor,
    dim: Option<&[i64]>,
    correction: Option<&Scalar>,
    keepdim: bool,
) -> Result<(Tensor, Tensor)> {
    let (variance, mean) = moments("std_mean", self_, dim, correction, keepdim)?;
    Ok((at::sqrt(&variance)?, mean))
}

fn as_correction(unbiased: bool) -> Scalar {
    Scalar::Int(i64::from(unbiased))
}

macro_rules! unbiased {
    ($($name:literal $all:ident $dim:ident $correction:ident -> $result:ty),* $(,)?) => {$(
        #[doc = concat!("`aten::", $name, "`")]
        pub fn $all(self_: &Tensor, unbiased: bool) -> Result<$result> {
            at::$correction(self_, None, Some(&as_correction(unbiased)), false)
        }

        #[doc = concat!("`aten::", $name, ".dim`")]
        pub fn $dim(self_: &Tensor, dim: Option<&[i64]>, unbiased: bool, keepdim: bool) -> Result<$result> {
            at::$correction(self_, dim, Some(&as_correction(unbiased)), keepdim)
        }
    )*};
}

unbiased! {
    "var" var var_dim var_correction -> Tensor,
    "std" std std_dim std_correction -> Tensor,
    "var_mean" var_mean var_mean_dim var_mean_correction -> (Tensor, Tensor),
    "std_mean" std_mean std_mean_dim std_mean_correction -> (Tensor, Tensor),
}

/// `aten::nanmean`
pub fn nanmean(
    self_: &Tensor,
    dim: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<ScalarType>,
) -> Result<Tensor> {
    check!(
        self_.is_floating_point() || self_.is_complex(),
        "nanmean(): expected input to have floating point or complex dtype but got {}",
        self_.dtype()
    );
    let numbers = at::logical_not(&at::isnan(&at::detach(self_)?)?)?;
    let count = at::sum_dim_intlist(&numbers, dim, keepdim, None)?;
    at::div_tensor(&at::nansum(self_, dim, keepdim, dtype)?, &count)
}

/// `aten::count_nonzero.dim_IntList`
pub fn count_nonzero_dim_intlist(self_: &Tensor, dim: &[i64]) -> Result<Tensor> {
    let nonzero = at::ne_scalar(self_, &Scalar::Int(0))?;
    at::sum_dim_intlist(&nonzero, Some(dim), false, None)
}

/// `aten::count_nonzero`
pub fn count_nonzero(self_: &Tensor, dim: Option<i64>) -> Result<Tensor> {
    match dim {
        Some(dim) => at::count_nonzero_dim_intlist(self_, &[dim]),
        None => at::count_nonzero_dim_intlist(self_, &[]),
    }
}

/// `aten::logsumexp`
pub fn logsumexp(self_: &Tensor, dim: &[i64], keepdim: bool) -> Result<Tensor> {
    let input = if self_.dtype().is_integral(true) {
        at::to_dtype(self_, c10::get_default_dtype(), false, false, None)?
    } else {
        self_.clone()
    };
    let log_of_sum = |t: &Tensor| at::log(&at::sum_dim_intlist(&at::exp(t)?, Some(dim), keepdim, None)?);
    if sym::is_empty(&input)? {
        return log_of_sum(&input);
    }
    let greatest = at::amax(&at::real(&input)?, dim, true)?;
    // An infinity is not subtracted: it would become NaN.
    let infinite = at::eq_scalar(&at::abs(&greatest)?, &Scalar::Float(f64::INFINITY))?;
    let greatest = at::masked_fill_scalar(&greatest, &infinite, &Scalar::Int(0))?;
    let logs = log_of_sum(&at::sub_tensor(&input, &greatest, &ONE)?)?;
    let greatest = if keepdim { greatest } else { drop_dims(&greatest, Some(dim))? };
    at::add_tensor(&logs, &greatest, &ONE)
}

/// `aten::logsumexp.out`
pub fn logsumexp_out(self_: &Tensor, dim: &[i64], keepdim: bool, out: &Tensor) -> Result<Tensor> {
    check!(
        out.is_floating_point() || out.is_complex(),
        "logsumexp(): Expected floating point type for result tensor, but got: {}",
        out.dtype()
    );
    structured::write_out("logsumexp", out, &logsumexp(self_, dim, keepdim)?)
}

/// `aten::aminmax`
pub fn aminmax(self_: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<(Tensor, Tensor)> {
    if dim.is_none() {
        check!(
            !sym::is_empty(self_)?,
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        );
    }
    let dims: &[i64] = match &dim {
        Some(dim) => std::slice::from_ref(dim),
        None => &[],
    };
    Ok((at::amin(self_, dims, keepdim)?, at::amax(self_, dims, keepdim)?))
}
