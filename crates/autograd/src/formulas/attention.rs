//! Derivatives of attention.

use c10::{Result, Tensor};
use ops::at;

/// `_scaled_dot_product_flash_attention_for_cpu`
#[allow(clippy::too_many_arguments)] // The operator has that many.
pub fn flash_attention_backward(
    grad: &Tensor,
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    out: &Tensor,
    logsumexp: &Tensor,
    dropout_p: f64,
    is_causal: bool,
    attn_mask: Option<&Tensor>,
    scale: Option<f64>,
) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
    let (query, key, value) = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        grad, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask, scale,
    )?;
    Ok((Some(query), Some(key), Some(value)))
}
