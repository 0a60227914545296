//! Meta functions of the `attention` operators.

use c10::{check, infer_dense_strides, Result, ScalarType, SizeInt, SizeVector, Tensor};
use iter::StructuredOutputs;

const NAME: &str = "scaled_dot_product_attention_flash_attention";

/// What the kernel takes.
pub const DTYPES: [ScalarType; 4] =
    [ScalarType::Float, ScalarType::Double, ScalarType::Half, ScalarType::BFloat16];

/// The sizes of query, key and value, checked: kernels trust them.
fn check_operands<I: SizeInt>(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    dropout_p: f64,
    mask: Option<&Tensor>,
) -> Result<[SizeVector<I>; 3]> {
    let dtype = query.dtype();
    check!(
        DTYPES.contains(&dtype),
        "{NAME}: Expected data type in FP32, FP64, BF16, FP16, but got {dtype} instead."
    );
    check!(
        query.dim() == 4 && key.dim() == 4 && value.dim() == 4,
        "{NAME}: Accept only 4 dims inputs shape of {{B, H, T, K}}"
    );
    check!(dropout_p == 0.0, "{NAME}: Currently do not support dropout > 0");
    for other in [key, value] {
        check!(other.dtype() == dtype, "expected scalar type {dtype} but found {}", other.dtype());
    }
    let vector = |tensor: &Tensor| -> Result<SizeVector<I>> { Ok(I::to_vector(&I::sizes_of(tensor)?)) };
    let [q, k, v] = [vector(query)?, vector(key)?, vector(value)?];
    check!(q[3].expect_eq(&k[3])? && k[3].expect_eq(&v[3])?, "{NAME}: Q/K/V should have the same head size");
    check!(
        I::expect_same(&k, &v)? && q[0].expect_eq(&k[0])?,
        "{NAME}: expected query, key and value of one batch size, and as many heads and rows of values as of keys, got \
         sizes {q:?}, {k:?} and {v:?}"
    );
    check!(
        I::ONE.expect_le(&k[1])? && q[1].sym_mod(&k[1])?.expect_eq(&I::ZERO)?
            || q[1].is_zero()?
            || q[0].is_zero()?,
        "{NAME}: expected a number of heads of key and value that divides the query's, got {} for {}",
        k[1],
        q[1]
    );
    if let Some(mask) = mask {
        check!(mask.dtype() == dtype, "{NAME}: Attention mask is the same data type as query");
        check!(mask.dim() == 2 || mask.dim() == 4, "{NAME}: Attention mask dim in {{2, 4}}");
        let sizes = I::sizes_of(mask)?;
        let wanted = [&q[0], &q[1], &q[2], &k[2]];
        for (size, (i, wanted)) in sizes.iter().rev().zip(wanted.into_iter().enumerate().rev()) {
            check!(
                size.is_one()? || size.expect_eq(wanted)?,
                "The expanded size of the tensor ({wanted}) must match the existing size ({size}) at non-singleton \
                 dimension {i}.  Tensor sizes: {:?}",
                &sizes[..]
            );
        }
    }
    Ok([q, k, v])
}

/// The dtype of logarithms of sums.
fn sum_dtype(dtype: ScalarType) -> ScalarType {
    if dtype == ScalarType::Double {
        dtype
    } else {
        ScalarType::Float
    }
}

/// Strides of `[batch, heads, length, width]` where the heads of a row lie side by side.
fn strides_by_rows<I: SizeInt>(sizes: &[I]) -> Result<[I; 4]> {
    let row = sizes[1].stride_mul(&sizes[3])?;
    Ok([sizes[2].stride_mul(&row)?, sizes[3].clone(), row, I::ONE])
}

/// `_scaled_dot_product_flash_attention_for_cpu`: the result, laid out like the query, and a number per query.
#[allow(clippy::too_many_arguments)] // The operator has that many.
pub fn flash_attention_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    dropout_p: f64,
    _is_causal: bool,
    attn_mask: Option<&Tensor>,
    _scale: Option<f64>,
) -> Result<()> {
    let [sizes, ..] = check_operands::<I>(query, key, value, dropout_p, attn_mask)?;
    let strides = infer_dense_strides(&sizes, &I::strides_of(query)?)?;
    outs.set_output_strided(0, &sizes, &strides, query.options())?;
    let strides = [sizes[2].stride_mul(&sizes[1])?, I::ONE, sizes[1].clone()];
    outs.set_output_strided(1, &sizes[..3], &strides, query.options().dtype(sum_dtype(query.dtype())))
}

/// `_scaled_dot_product_flash_attention_for_cpu_backward`
#[allow(clippy::too_many_arguments)] // The operator has that many.
pub fn flash_attention_backward_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    grad_out: &Tensor,
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    out: &Tensor,
    logsumexp: &Tensor,
    dropout_p: f64,
    _is_causal: bool,
    attn_mask: Option<&Tensor>,
    _scale: Option<f64>,
) -> Result<()> {
    let sizes = check_operands::<I>(query, key, value, dropout_p, attn_mask)?;
    for (name, tensor, dtype, dims) in [
        ("grad_out", grad_out, query.dtype(), 4),
        ("out", out, query.dtype(), 4),
        ("logsumexp", logsumexp, sum_dtype(query.dtype()), 3),
    ] {
        check!(
            tensor.dtype() == dtype,
            "{NAME}_backward: expected {name} of dtype {dtype}, got {}",
            tensor.dtype()
        );
        check!(
            I::expect_same(&I::sizes_of(tensor)?, &sizes[0][..dims])?,
            "{NAME}_backward: expected {name} of sizes {:?}, got {:?}",
            &sizes[0][..dims],
            tensor.sym_sizes()
        );
    }
    for (i, sizes) in sizes.iter().enumerate() {
        outs.set_output_strided(i, sizes, &strides_by_rows(sizes)?, query.options())?;
    }
    Ok(())
}
