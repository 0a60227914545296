//! Distances, similarities, and the losses made of them.

use c10::{check, Result, Scalar, SizeInt, SymDimVector, SymInt, Tensor};

use super::apply_reduction;
use crate::at;
use crate::meta::norm::statistics_dtype;
use crate::terms::{add, cast, mul, shift, square, sub, sum, zeros_like, ONE};

const ZERO: Scalar = Scalar::Int(0);

/// The p-norm along a dimension. Where it is zero its gradient is, too: roots are taken of a one there.
pub fn p_norm(x: &Tensor, p: f64, dim: i64, keepdim: bool) -> Result<Tensor> {
    let dtype = x.dtype();
    let x = &cast(x, statistics_dtype(dtype))?;
    let dims = [dim];
    let size = if x.is_complex() || p != 2.0 { at::abs(x)? } else { x.clone() };
    let norm = if p == 1.0 {
        sum(&size, &dims, keepdim)?
    } else if p == f64::INFINITY {
        at::amax(&size, &dims, keepdim)?
    } else if p == f64::NEG_INFINITY {
        at::amin(&size, &dims, keepdim)?
    } else if p == 0.0 {
        cast(&sum(&at::ne_scalar(&size, &ZERO)?, &dims, keepdim)?, size.dtype())?
    } else {
        let powers = if p == 2.0 {
            square(&size)?
        } else {
            let zero = at::eq_scalar(&size, &ZERO)?;
            let safe = at::masked_fill_scalar(&size, &zero, &ONE)?;
            let powers = at::pow_tensor_scalar(&safe, &Scalar::Float(p))?;
            at::masked_fill_scalar(&powers, &zero, &Scalar::Float(if p < 0.0 { f64::INFINITY } else { 0.0 }))?
        };
        let total = sum(&powers, &dims, keepdim)?;
        let zero = at::eq_scalar(&total, &ZERO)?;
        let safe = at::masked_fill_scalar(&total, &zero, &ONE)?;
        let root =
            if p == 2.0 { at::sqrt(&safe)? } else { at::pow_tensor_scalar(&safe, &Scalar::Float(1.0 / p))? };
        at::masked_fill_scalar(&root, &zero, &ZERO)?
    };
    if dtype.is_reduced_floating_point() {
        return cast(&norm, dtype);
    }
    Ok(norm)
}

/// `aten::pairwise_distance`
pub fn pairwise_distance(x1: &Tensor, x2: &Tensor, p: f64, eps: f64, keepdim: bool) -> Result<Tensor> {
    // The last dimension of what the two broadcast to.
    let difference = shift(&sub(x1, x2)?, eps)?;
    p_norm(&difference, p, difference.dim() - 1, keepdim)
}

/// `aten::cosine_similarity`
pub fn cosine_similarity(x1: &Tensor, x2: &Tensor, dim: i64, eps: f64) -> Result<Tensor> {
    let dtype = iter::result_type(&[x1, x2])?;
    check!(
        dtype.is_floating_point() || dtype.is_complex(),
        "expected common dtype to be floating point, yet common dtype is {}",
        dtype.short_name()
    );
    let (x1, x2) = (cast(x1, dtype)?, cast(x2, dtype)?);
    let sizes = c10::infer_broadcast_size(&x1.sym_sizes(), &x2.sym_sizes())?;
    let dim = c10::wrap_dim(dim, sizes.len() as i64, true)?;
    // Each is divided by its norm first, so that the result stays between -1 and 1. A norm that is raised to eps keeps
    // its gradient.
    let normalized = |x: &Tensor| {
        let x = at::expand(x, &sizes, false)?;
        let norm = if x.dim() == 0 { at::abs(&x)? } else { p_norm(&x, 2.0, dim, true)? };
        let raised = sub(&at::clamp_min(&norm, &Scalar::Float(eps))?, &norm)?;
        at::div_tensor(&x, &add(&norm, &at::detach(&raised)?)?)
    };
    let product = mul(&normalized(&x1)?, &normalized(&x2)?)?;
    if product.dim() == 0 {
        return Ok(product);
    }
    sum(&product, &[dim], false)
}

/// `aten::cosine_embedding_loss`
pub fn cosine_embedding_loss(
    input1: &Tensor,
    input2: &Tensor,
    target: &Tensor,
    margin: f64,
    reduction: i64,
) -> Result<Tensor> {
    let dims = target.dim();
    check!(dims == 0 || dims == 1, "0D or 1D target tensor expected, multi-target not supported");
    let fits = input1.dim() == dims + 1 && input2.dim() == dims + 1;
    if dims == 1 {
        check!(
            fits,
            "1D target tensor expects 2D input tensors, but found inputs with sizes {:?} and {:?}.",
            input1.sym_sizes(),
            input2.sym_sizes()
        );
    } else {
        check!(
            fits,
            "0D target tensor expects 1D input tensors, but found inputs with sizes {:?} and {:?}.",
            input1.sym_sizes(),
            input2.sym_sizes()
        );
    }
    const EPSILON: f64 = 1e-12;
    let inner = |a: &Tensor, b: &Tensor| sum(&mul(a, b)?, &[dims], false);
    let lengths = [input1, input2].map(|x| shift(&inner(x, x)?, EPSILON));
    let [first, second] = lengths;
    let cosine = at::div_tensor(&inner(input1, input2)?, &at::sqrt(&mul(&first?, &second?)?)?)?;
    let zeros = zeros_like(&cosine)?;
    let apart = shift(&at::neg(&cosine)?, 1.0)?;
    let together = at::clamp_min(&shift(&cosine, -margin)?, &ZERO)?;
    let positive = at::where_self(&at::eq_scalar(target, &ONE)?, &apart, &zeros)?;
    let negative = at::where_self(&at::eq_scalar(target, &Scalar::Int(-1))?, &together, &zeros)?;
    apply_reduction(add(&positive, &negative)?, reduction)
}

/// `aten::triplet_margin_loss`
#[allow(clippy::too_many_arguments)]
pub fn triplet_margin_loss(
    anchor: &Tensor,
    positive: &Tensor,
    negative: &Tensor,
    margin: f64,
    p: f64,
    eps: f64,
    swap: bool,
    reduction: i64,
) -> Result<Tensor> {
    check!(
        anchor.dim() == positive.dim() && positive.dim() == negative.dim(),
        "All inputs should have same dimension but got {}D, {}D and {}D inputs.",
        anchor.dim(),
        positive.dim(),
        negative.dim()
    );
    let near = at::pairwise_distance(anchor, positive, p, eps, false)?;
    let mut far = at::pairwise_distance(anchor, negative, p, eps, false)?;
    if swap {
        far = at::minimum(&far, &at::pairwise_distance(positive, negative, p, eps, false)?)?;
    }
    let loss = at::clamp_min(&shift(&sub(&near, &far)?, margin)?, &ZERO)?;
    apply_reduction(loss, reduction)
}

/// `aten::margin_ranking_loss`
pub fn margin_ranking_loss(
    input1: &Tensor,
    input2: &Tensor,
    target: &Tensor,
    margin: f64,
    reduction: i64,
) -> Result<Tensor> {
    check!(
        input1.dim() == input2.dim() && input1.dim() == target.dim(),
        "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: {:?}, input2: {:?}, \
         target: {:?} ",
        input1.sym_sizes(),
        input2.sym_sizes(),
        target.sym_sizes()
    );
    let ranked = mul(&at::neg(target)?, &sub(input1, input2)?)?;
    apply_reduction(at::clamp_min(&shift(&ranked, margin)?, &ZERO)?, reduction)
}

/// A class per row: rows, and their shape without the classes.
pub(super) fn rows_of(name: &str, self_: &Tensor) -> Result<(Tensor, SymDimVector)> {
    let sizes = self_.sym_sizes();
    check!(
        sizes.len() <= 2,
        "{name}(): Expected non-empty vector or matrix with optional 0-dim batch size, but got: {sizes:?}"
    );
    if let Some(last) = sizes.last() {
        check!(
            !last.is_zero()?,
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: {sizes:?}"
        );
    }
    let classes = sizes.last().cloned().unwrap_or(SymInt::ONE);
    let batch = if sizes.len() == 2 { sizes[0].clone() } else { SymInt::ONE };
    let lead: SymDimVector =
        if sizes.len() == 2 { SymDimVector::from(&sizes[..1]) } else { SymDimVector::new() };
    Ok((at::reshape(self_, &[batch, classes])?, lead))
}
