//! Norms of vectors and matrices.

use c10::{check, check_not_implemented, wrap_dim, Result, Scalar, ScalarType, SizeInt, Tensor};

use crate::{at, structured, sym};

/// The order of a norm as a float.
fn order(name: &str, ord: &Scalar) -> Result<f64> {
    check!(!ord.is_complex(), "{name}: Expected a non-complex scalar as the order of norm.");
    ord.to_f64()
}

fn check_dtypes(name: &str, self_: &Tensor, dtype: Option<ScalarType>) -> Result<()> {
    check!(
        self_.is_floating_point() || self_.is_complex(),
        "{name}: Expected a floating point or complex tensor as input. Got {}",
        self_.dtype()
    );
    let Some(dtype) = dtype else { return Ok(()) };
    check!(
        dtype.is_floating_point() || dtype.is_complex(),
        "{name}: dtype should be floating point or complex, but got {dtype}"
    );
    check!(
        dtype.is_complex() == self_.is_complex(),
        "{name}: dtype should be {} inputs, but got {dtype}",
        if self_.is_complex() { "complex for complex" } else { "real for real" }
    );
    check!(
        c10::promote_types(self_.dtype(), dtype)? == dtype,
        "{name}: the dtype of the input ({}) should be convertible without narrowing to the specified dtype ({dtype})",
        self_.dtype()
    );
    Ok(())
}

/// `aten::linalg_vector_norm`
pub fn linalg_vector_norm(
    self_: &Tensor,
    ord: &Scalar,
    dim: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<ScalarType>,
) -> Result<Tensor> {
    let name = "linalg.vector_norm";
    check_dtypes(name, self_, dtype)?;
    let ord = order(name, ord)?;
    let dims = dim.unwrap_or(&[]);
    if (ord < 0.0 || ord == f64::INFINITY) && sym::is_empty(self_)? {
        check!(
            !dims.is_empty(),
            "{name} cannot compute the {ord} norm on an empty tensor because the operation does not have an identity"
        );
        for &dim in dims {
            check!(
                !self_.sym_size(dim)?.is_zero()?,
                "{name} cannot compute the {ord} norm on the dimension {dim}because this dimension is empty and the \
                 operation does not have an identity"
            );
        }
    }
    let input = match dtype {
        Some(dtype) => at::to_dtype(self_, dtype, false, false, None)?,
        None => self_.clone(),
    };
    let magnitude = at::abs(&input)?;
    let result_dtype = magnitude.dtype();
    // Sums of powers leave the range of the halves long before the norm does.
    let magnitude = if result_dtype.is_reduced_floating_point() {
        at::to_dtype(&magnitude, ScalarType::Float, false, false, None)?
    } else {
        magnitude
    };
    let sum = |t: &Tensor| at::sum_dim_intlist(t, Some(dims), keepdim, None);
    let result = if ord == f64::INFINITY {
        at::amax(&magnitude, dims, keepdim)?
    } else if ord == f64::NEG_INFINITY {
        at::amin(&magnitude, dims, keepdim)?
    } else if ord == 0.0 {
        at::sum_dim_intlist(
            &at::ne_scalar(&magnitude, &Scalar::Int(0))?,
            Some(dims),
            keepdim,
            Some(magnitude.dtype()),
        )?
    } else if ord == 1.0 {
        sum(&magnitude)?
    } else if ord == 2.0 {
        at::sqrt(&sum(&at::mul_tensor(&magnitude, &magnitude)?)?)?
    } else {
        let powers = sum(&at::pow_tensor_scalar(&magnitude, &Scalar::Float(ord))?)?;
        at::pow_tensor_scalar(&powers, &Scalar::Float(1.0 / ord))?
    };
    at::to_dtype(&result, result_dtype, false, false, None)
}

/// `aten::linalg_vector_norm.out`: a given output has the norm's dtype.
pub fn linalg_vector_norm_out(
    self_: &Tensor,
    ord: &Scalar,
    dim: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<ScalarType>,
    out: &Tensor,
) -> Result<Tensor> {
    let result = linalg_vector_norm(self_, ord, dim, keepdim, dtype)?;
    structured::write_exact("linalg.vector_norm", out, &result)
}

/// Checks what all matrix norms ask, and gives the two dimensions, not negative.
fn matrix_dims(self_: &Tensor, dim: &[i64]) -> Result<[i64; 2]> {
    let name = "linalg.matrix_norm";
    check!(self_.dim() >= 2, "{name}: The input tensor A must have at least 2 dimensions.");
    check!(
        dim.len() == 2,
        "{name}: dim must be a 2-tuple. Got {}",
        dim.iter().map(i64::to_string).collect::<Vec<_>>().join(" ")
    );
    let dims = [wrap_dim(dim[0], self_.dim(), false)?, wrap_dim(dim[1], self_.dim(), false)?];
    check!(dims[0] != dims[1], "{name}: dims must be different. Got ({}, {})", dims[0], dims[1]);
    Ok(dims)
}

/// `aten::linalg_matrix_norm`
pub fn linalg_matrix_norm(
    self_: &Tensor,
    ord: &Scalar,
    dim: &[i64],
    keepdim: bool,
    dtype: Option<ScalarType>,
) -> Result<Tensor> {
    let name = "linalg.matrix_norm";
    check_dtypes(name, self_, dtype)?;
    let [mut rows, mut columns] = matrix_dims(self_, dim)?;
    let ord = order(name, ord)?;
    let magnitude = ord.abs();
    check!(
        magnitude == 1.0 || magnitude == 2.0 || magnitude == f64::INFINITY,
        "{name}: Order {ord} not supported."
    );
    check_not_implemented!(
        magnitude != 2.0,
        "{name}: the order {ord} needs singular values, which are not available"
    );
    if magnitude == f64::INFINITY {
        std::mem::swap(&mut rows, &mut columns);
    }
    if !keepdim && columns > rows {
        columns -= 1;
    }
    let sums = at::linalg_vector_norm(self_, &Scalar::Int(1), Some(&[rows]), keepdim, dtype)?;
    if ord > 0.0 && sums.dim() > 0 && sums.sym_size(columns)?.is_zero()? {
        // The largest of no sums.
        return at::sum_dim_intlist(&sums, Some(&[columns]), keepdim, None);
    }
    if ord > 0.0 {
        at::amax(&sums, &[columns], keepdim)
    } else {
        at::amin(&sums, &[columns], keepdim)
    }
}

/// `aten::linalg_matrix_norm.str_ord`
pub fn linalg_matrix_norm_str_ord(
    self_: &Tensor,
    ord: &str,
    dim: &[i64],
    keepdim: bool,
    dtype: Option<ScalarType>,
) -> Result<Tensor> {
    let name = "linalg.matrix_norm";
    check_dtypes(name, self_, dtype)?;
    let dims = matrix_dims(self_, dim)?;
    check!(matches!(ord, "fro" | "nuc"), "{name}: Order {ord} not supported.");
    check_not_implemented!(
        ord == "fro",
        "{name}: the order {ord} needs singular values, which are not available"
    );
    at::linalg_vector_norm(self_, &Scalar::Int(2), Some(&dims), keepdim, dtype)
}

fn check_norm_dims(self_: &Tensor, dim: Option<&[i64]>, has_order: bool) -> Result<()> {
    match dim {
        Some(dims) => check!(
            dims.len() == 1 || dims.len() == 2,
            "linalg.norm: If dim is specified, it must be of length 1 or 2. Got {dims:?}"
        ),
        None => check!(
            !has_order || self_.dim() == 1 || self_.dim() == 2,
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {}D",
            self_.dim()
        ),
    }
    Ok(())
}

/// `aten::linalg_norm`
pub fn linalg_norm(
    self_: &Tensor,
    ord: Option<&Scalar>,
    dim: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<ScalarType>,
) -> Result<Tensor> {
    check_norm_dims(self_, dim, ord.is_some())?;
    let Some(ord) = ord else {
        return at::linalg_vector_norm(self_, &Scalar::Int(2), dim, keepdim, dtype);
    };
    match dim {
        Some(dims) if dims.len() == 2 => at::linalg_matrix_norm(self_, ord, dims, keepdim, dtype),
        None if self_.dim() == 2 => at::linalg_matrix_norm(self_, ord, &[0, 1], keepdim, dtype),
        _ => at::linalg_vector_norm(self_, ord, dim, keepdim, dtype),
    }
}

/// `aten::linalg_norm.ord_str`
pub fn linalg_norm_ord_str(
    self_: &Tensor,
    ord: &str,
    dim: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<ScalarType>,
) -> Result<Tensor> {
    check_norm_dims(self_, dim, true)?;
    at::linalg_matrix_norm_str_ord(self_, ord, dim.unwrap_or(&[0, 1]), keepdim, dtype)
}

/// `aten::dist`
pub fn dist(self_: &Tensor, other: &Tensor, p: &Scalar) -> Result<Tensor> {
    at::linalg_vector_norm(&at::sub_tensor(self_, other, &Scalar::Int(1))?, p, None, false, None)
}

/// `aten::renorm`: slices along `dim` whose norm is too large are scaled down.
pub fn renorm(self_: &Tensor, p: &Scalar, dim: i64, maxnorm: &Scalar) -> Result<Tensor> {
    check!(!p.is_complex(), "renorm: p must be real-valued");
    check!(p.to_f64()? > 0.0, "renorm: non-positive-norm not supported");
    check!(!maxnorm.is_complex(), "renorm: maxnorm must be real-valued");
    let limit = maxnorm.to_f64()?;
    check!(limit >= 0.0, "renorm: expected maxnorm to be >= 0 but got {limit}");
    let ndim = self_.dim();
    check!(ndim > 1, "renorm: input needs at least 2 dimensions, got {ndim} dimensions");
    check!(
        self_.is_floating_point() || self_.is_complex(),
        "renorm: expected a floating point or complex input, got {}",
        self_.dtype()
    );
    let dim = wrap_dim(dim, ndim, false)?;
    let others: Vec<i64> = (0..ndim).filter(|&d| d != dim).collect();
    let half = self_.dtype().is_reduced_floating_point();
    let norm = at::linalg_vector_norm(self_, p, Some(&others), true, half.then_some(ScalarType::Float))?;
    let limit = Scalar::Float(limit);
    let shrunk = at::div_tensor(
        &at::full_like(&norm, &limit, None, None, None, None, None)?,
        &at::add_scalar(&norm, &Scalar::Float(1e-7), &Scalar::Int(1))?,
    )?;
    let ones = at::ones_like(&norm, None, None, None, None, None)?;
    let factor = at::where_self(&at::gt_scalar(&norm, &limit)?, &shrunk, &ones)?;
    let factor = if half { at::to_dtype(&factor, self_.dtype(), false, false, None)? } else { factor };
    at::mul_tensor(self_, &factor)
}
