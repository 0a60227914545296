//! Composites of the `attention` family.

use c10::{bail, check, wrap_dim, Result, Scalar, ScalarType, SizeInt, SymInt, Tensor};

use crate::at;
use crate::meta::attention::DTYPES;
use crate::sdp_backends::SdpBackend;

const ONE: Scalar = Scalar::Int(1);

/// The name that PyTorch's messages about attention have for a dtype.
fn type_name(dtype: ScalarType) -> &'static str {
    match dtype {
        ScalarType::Float => "float",
        ScalarType::Double => "double",
        ScalarType::Half => "c10::Half",
        ScalarType::BFloat16 => "c10::BFloat16",
        ScalarType::Int => "int",
        ScalarType::Long => "long",
        ScalarType::Short => "short",
        ScalarType::Char => "signed char",
        ScalarType::Byte => "unsigned char",
        ScalarType::Bool => "bool",
        ScalarType::ComplexFloat => "c10::complex<float>",
        ScalarType::ComplexDouble => "c10::complex<double>",
        other => other.name(),
    }
}

fn check_input(query: &Tensor, key: &Tensor, value: &Tensor, mask: Option<&Tensor>) -> Result<()> {
    check!(
        query.dtype() == key.dtype() && query.dtype() == value.dtype(),
        "Expected query, key, and value to have the same dtype, but got query.dtype: {} key.dtype: {} and value.dtype: {} \
         instead.",
        type_name(query.dtype()),
        type_name(key.dtype()),
        type_name(value.dtype())
    );
    check!(
        query.device() == key.device() && query.device() == value.device(),
        "Expected query, key, and value to have the same device type, but got query.device: {} key.device: {} and \
         value.device: {} instead.",
        query.device(),
        key.device(),
        value.device()
    );
    check!(
        query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2,
        "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {} key.dim: {} and \
         value.dim: {} instead.",
        query.dim(),
        key.dim(),
        value.dim()
    );
    if let Some(mask) = mask {
        check!(
            [ScalarType::Bool, ScalarType::Float, query.dtype()].contains(&mask.dtype()),
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {} and  \
             query.dtype: {} instead.",
            type_name(mask.dtype()),
            type_name(query.dtype())
        );
    }
    Ok(())
}

/// A mask that says which keys a query sees becomes one that is added to scores.
fn added_mask(mask: Option<&Tensor>, dtype: ScalarType) -> Result<Option<Tensor>> {
    let Some(mask) = mask else { return Ok(None) };
    if mask.dtype() != ScalarType::Bool {
        return Ok(Some(mask.clone()));
    }
    let zeros = at::zeros_like(mask, Some(dtype), None, None, None, None)?;
    let hidden = at::logical_not(mask)?;
    at::masked_fill__scalar(&zeros, &hidden, &Scalar::Float(f64::NEG_INFINITY)).map(Some)
}

/// `aten::scaled_dot_product_attention`
#[allow(clippy::too_many_arguments)] // The operator has that many.
pub fn scaled_dot_product_attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    attn_mask: Option<&Tensor>,
    dropout_p: f64,
    is_causal: bool,
    scale: Option<f64>,
    enable_gqa: bool,
) -> Result<Tensor> {
    check_input(query, key, value, attn_mask)?;
    let choice =
        at::_fused_sdp_choice(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)?;
    let mask = added_mask(attn_mask, query.dtype())?;
    if choice == SdpBackend::Flash as i64 {
        let (output, _) = at::_scaled_dot_product_flash_attention_for_cpu(
            query,
            key,
            value,
            dropout_p,
            is_causal,
            mask.as_ref(),
            scale,
        )?;
        return Ok(output);
    }
    check!(
        choice == SdpBackend::Math as i64,
        "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both the math \
         kernel and the fused kernels."
    );
    let (output, _) = at::_scaled_dot_product_attention_math(
        query,
        key,
        value,
        mask.as_ref(),
        dropout_p,
        is_causal,
        None,
        scale,
        enable_gqa,
    )?;
    Ok(output)
}

/// `aten::_fused_sdp_choice`
#[allow(clippy::too_many_arguments)] // The operator has that many.
pub fn _fused_sdp_choice(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    attn_mask: Option<&Tensor>,
    dropout_p: f64,
    _is_causal: bool,
    _scale: Option<f64>,
    enable_gqa: bool,
) -> Result<i64> {
    let (flash, math) = (SdpBackend::Flash.is_enabled(), SdpBackend::Math.is_enabled());
    let operands = [query, key, value];
    if flash && dropout_p == 0.0 && takes_blocks(operands, attn_mask, enable_gqa)? {
        return Ok(SdpBackend::Flash as i64);
    }
    if math {
        return Ok(SdpBackend::Math as i64);
    }
    if flash {
        bail!(Runtime, "No available kernel. Aborting execution.");
    }
    Ok(SdpBackend::Error as i64)
}

/// Whether the kernel in blocks takes these operands.
fn takes_blocks(operands: [&Tensor; 3], mask: Option<&Tensor>, enable_gqa: bool) -> Result<bool> {
    let [query, key, value] = operands;
    if !query.is_cpu() || !DTYPES.contains(&query.dtype()) || operands.iter().any(|tensor| tensor.dim() != 4)
    {
        return Ok(false);
    }
    if let Some(mask) = mask {
        // Scores of halves are computed in float32, so such a mask need not be rounded; the formula adds it as it is.
        let is_wide = mask.dtype() != ScalarType::Bool && mask.dtype() != query.dtype();
        if is_wide || mask.requires_grad() || !mask_fits(query, key, mask)? {
            return Ok(false);
        }
    }
    let (q, k, v) = (query.sym_sizes(), key.sym_sizes(), value.sym_sizes());
    let same_heads = if enable_gqa {
        k[1].guard_eq(&v[1])? && !k[1].is_zero()? && q[1].sym_mod(&k[1])?.is_zero()?
    } else {
        q[1].guard_eq(&k[1])? && q[1].guard_eq(&v[1])?
    };
    let fits = same_heads
        && q[0].guard_eq(&k[0])?
        && q[0].guard_eq(&v[0])?
        && q[3].guard_eq(&k[3])?
        && q[3].guard_eq(&v[3])?
        && k[2].guard_eq(&v[2])?;
    if !fits || q[2].is_zero()? || k[2].is_zero()? {
        return Ok(false);
    }
    for tensor in operands {
        if !(tensor.sym_sizes()[3].is_one()? || tensor.sym_strides()[3].is_one()?) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a mask has two or four dimensions that go with those of the scores.
fn mask_fits(query: &Tensor, key: &Tensor, mask: &Tensor) -> Result<bool> {
    let (q, k) = (query.sym_sizes(), key.sym_sizes());
    let sizes = mask.sym_sizes();
    let ndim = mask.dim();
    let [row, col] = [wrap_dim(-2, ndim, true)? as usize, wrap_dim(-1, ndim, true)? as usize];
    let goes = |size: &SymInt, with: &SymInt| Ok::<_, c10::Error>(size.is_one()? || size.guard_eq(with)?);
    if !goes(&sizes[row], &q[2])? || !goes(&sizes[col], &k[2])? {
        return Ok(false);
    }
    Ok(ndim == 2 || ndim == 4 && goes(&sizes[0], &q[0])? && goes(&sizes[1], &q[1])?)
}

/// Heads of keys and values, repeated for the queries that share them.
fn repeat_heads(query: &Tensor, key: &Tensor, value: &Tensor) -> Result<(Tensor, Tensor)> {
    let heads = |tensor: &Tensor| -> Result<SymInt> {
        let dim = wrap_dim(-3, tensor.dim(), true)?;
        Ok(tensor.sym_sizes()[dim as usize].clone())
    };
    let [of_query, of_key, of_value] = [heads(query)?, heads(key)?, heads(value)?];
    if of_query.guard_eq(&of_key)? && of_query.guard_eq(&of_value)? {
        return Ok((key.clone(), value.clone()));
    }
    let divides =
        |heads: &SymInt| -> Result<bool> { Ok(!heads.is_zero()? && of_query.sym_mod(heads)?.is_zero()?) };
    check!(
        divides(&of_key)? && divides(&of_value)?,
        "Number of heads in key and value must divide the number of heads in query, got {of_key} and {of_value} for \
         {of_query}"
    );
    let repeated = |tensor: &Tensor, heads: &SymInt| {
        at::repeat_interleave_self_int(tensor, &of_query.sym_floordiv(heads)?, Some(-3), None)
    };
    Ok((repeated(key, &of_key)?, repeated(value, &of_value)?))
}

/// `aten::_scaled_dot_product_attention_math`: what the queries attend to, and with which weights.
#[allow(clippy::too_many_arguments)] // The operator has that many.
pub fn _scaled_dot_product_attention_math(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    attn_mask: Option<&Tensor>,
    dropout_p: f64,
    is_causal: bool,
    dropout_mask: Option<&Tensor>,
    scale: Option<f64>,
    enable_gqa: bool,
) -> Result<(Tensor, Tensor)> {
    let dtype = query.dtype();
    let cast = |tensor: &Tensor, dtype: ScalarType| at::to_dtype(tensor, dtype, false, false, None);
    // Halves are computed in float32.
    let compute = if dtype.is_reduced_floating_point() { ScalarType::Float } else { dtype };
    let [query, key, value] = [cast(query, compute)?, cast(key, compute)?, cast(value, compute)?];
    // Both operands take the root of the scale, so that neither overflows.
    let width = query.sym_sizes().last().map(SymInt::guard_int).transpose()?.unwrap_or(1);
    let scale = scale.unwrap_or_else(|| 1.0 / (width as f64).sqrt());
    let root = scale.abs().sqrt();
    let query = at::mul_scalar(&query, &Scalar::Float(root.copysign(scale)))?;
    let mut mask = attn_mask.cloned();
    if is_causal {
        check!(
            attn_mask.is_none(),
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
        );
        let length = |tensor: &Tensor| -> Result<SymInt> {
            Ok(tensor.sym_sizes()[wrap_dim(-2, tensor.dim(), true)? as usize].clone())
        };
        let sizes = [length(&query)?, length(&key)?];
        let options = query.options();
        let ones = at::ones(&sizes, Some(ScalarType::Bool), None, options.device, None)?;
        mask = added_mask(Some(&at::tril(&ones, &SymInt::from(0))?), query.dtype())?;
    }
    let (key, value) =
        if enable_gqa { repeat_heads(&query, &key, &value)? } else { (key.clone(), value.clone()) };
    let key = at::mul_scalar(&at::transpose_int(&key, -2, -1)?, &Scalar::Float(root))?;
    let mut scores = at::matmul(&query, &key)?;
    if let Some(mask) = &mask {
        scores = at::add__tensor(&scores, mask, &ONE)?;
    }
    let mut weights = at::_safe_softmax(&scores, -1, None)?;
    if dropout_p > 0.0 {
        if let Some(kept) = dropout_mask {
            let masked = at::masked_fill_scalar(&weights, &at::logical_not(kept)?, &Scalar::Float(0.0))?;
            let value = at::mul_scalar(&value, &Scalar::Float(1.0 / (1.0 - dropout_p)))?;
            return Ok((cast(&at::matmul(&masked, &value)?, dtype)?, cast(&weights, dtype)?));
        }
        weights = at::dropout(&weights, dropout_p, true)?;
    }
    Ok((cast(&at::matmul(&weights, &value)?, dtype)?, cast(&weights, dtype)?))
}

/// `aten::_safe_softmax`: the softmax, but zeros where everything is minus infinity.
pub fn _safe_softmax(self_: &Tensor, dim: i64, dtype: Option<ScalarType>) -> Result<Tensor> {
    let result = at::softmax_int(self_, dim, dtype)?;
    let hidden = at::eq_scalar(self_, &Scalar::Float(f64::NEG_INFINITY))?;
    let blind = at::all_dim(&hidden, dim, true)?;
    at::masked_fill_scalar(&result, &blind, &Scalar::Float(0.0))
}
