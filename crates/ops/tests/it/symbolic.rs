//! Operators on tensors with symbolic sizes.
//!
//! Every structured operator and every view, taken from the dispatcher's list, runs on symbolic tensors and on plain ones
//! of the sizes that the symbols stand for: shapes, strides, offsets and dtypes are the same. An operator whose arguments
//! cannot be made up from its schema has an entry in [`EXAMPLES`]; one without is a failure.

use std::collections::BTreeMap;

use c10::{
    empty_strided_symint_meta, AutoDispatchBelowADInplaceOrView, DispatchKey, DispatchKeySet, Error, Result,
    Scalar, ScalarType, SizeInt, SymDimVector, SymInt, Tensor,
};
use dispatch::schema::{Argument, DefaultValue, FunctionSchema, Type};
use dispatch::{IValue, OperatorHandle, Stack};
use ops::at;

use crate::shape_env::{hint, hints, ShapeEnv};

/// The symbols of the examples and what they stand for.
const SYMBOLS: &[(&str, i64)] =
    &[("n", 4), ("c", 3), ("m", 2), ("h", 8), ("w", 7), ("b", 5), ("p", 4), ("q", 3)];

/// Arguments of operators, separated by commas; arguments that are not given take their defaults.
///
/// `f[n c]` is a row-major tensor (f float, l int64, i int32, o bool, z complex), `f'[n c]` a column-major one;
/// `(…)` is a list of tensors, `{…}` one of integers; `n` alone is the symbol.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "_conv_forward",
        &[
            "f[n 4 h w], f[6 4 3 3], f[6], {2 1}, {1 1}, {1 1}, 1",
            "f[n c h w], f[m c 3 3], None, {1 1}, {0 0}, {2 2}, 1",
        ],
    ),
    ("_conv_input_backward", &["f[n 6 h w], f[6 4 3 3], {n 4 h w}, {1 1}, {1 1}, {1 1}, 1"]),
    ("_conv_weight_backward", &["f[n 6 h w], f[n 4 h w], {6 4 3 3}, {1 1}, {1 1}, {1 1}, 1"]),
    ("arange.start_out", &["0, n, 1, l[0]", "h, 0, -2, l[0]"]),
    ("linspace.out", &["0, 1, 5, f[n]"]),
    ("index.Tensor", &["f[n c h], (l[m])", "f[n c h], (None l[m 1] l[w])", "f[n c h], (l[m] None l[m])"]),
    ("_index_put_impl_", &["f[n c], (l[m]), f[m c]", "f[n c], (None l[m]), f[]"]),
    ("index_select", &["f[n c], 1, l[m]"]),
    ("index_add", &["f[n c], 0, l[m], f[m c]"]),
    (
        "_embedding_bag",
        &[
            "f[n c], l[m], l[h], false, 2, false, None, true",
            "f[n c], l[m], l[h], false, 0, false, f[m], false",
        ],
    ),
    ("gather", &["f[n c], 1, l[n m]"]),
    ("scatter.src", &["f[n c], 1, l[n m], f[n m]"]),
    ("scatter.value", &["f[n c], 1, l[n m], 2"]),
    ("scatter.reduce", &["f[n c], 1, l[n m], f[n m], multiply"]),
    ("scatter.value_reduce", &["f[n c], 1, l[n m], 2, add"]),
    ("scatter_add", &["f[n c], 1, l[n m], f[n m]"]),
    ("scatter.reduce", &["f[n c], 1, l[n m], f[n m], add"]),
    ("scatter.value_reduce", &["f[n c], 1, l[n m], 2, multiply"]),
    ("scatter_reduce.two", &["f[n c], 1, l[n m], f[n m], amax", "f[n c], 0, l[m c], f[m c], mean, false"]),
    ("cumsum", &["f[n c], 1", "f'[n c], -2"]),
    ("cumprod", &["f[n c], 0"]),
    ("cummax", &["f[n c], 1"]),
    ("cummin", &["f[n c], 0"]),
    ("logcumsumexp", &["f[n c], 1"]),
    ("kthvalue", &["f[n c], 2, 1", "f[n c], 1, 0, true"]),
    ("median.dim", &["f[n c], 1"]),
    ("nanmedian.dim", &["f[n c], 0, true"]),
    ("topk", &["f[n c], 2, 1", "f[h c], m, 0, false"]),
    ("masked_fill_.Scalar", &["f[n c], o[n c], 1", "f[n c], o[c], 1"]),
    ("searchsorted.Tensor", &["f[n], f[c m]", "f[n c], f[n m]", "f[n], f[c], 1, 1"]),
    ("gelu", &["f[n c], none", "f'[n c], tanh"]),
    ("gelu_backward", &["f[n c], f[n c], none", "f'[n c], f[c], tanh"]),
    ("elu_backward", &["f[n c], 1, 1.5, 1, true, f[n c]", "f'[n c], 1, 1, 1, false, f[c]"]),
    ("leaky_relu_backward", &["f[n c], f[n c], 0.5, false", "f'[n c], f[c], 2, true"]),
    ("geometric_", &["f[n c], 0.5"]),
    (
        "_rnn_layer",
        &[
            "f[n c h], f[c h], None, f[h h], None, 1, true",
            "f[n c 8], f[c 2], f[c 2], f[8 2], f[8], 2, false",
            "f[n c 6], f[c 2], None, f[6 2], f[6], 3, false",
        ],
    ),
    (
        "_rnn_layer_backward",
        &[
            "f[n c h], None, f[c h], None, f[h h], f[n c h], f[0], f[0], 1, true",
            "f[n c 2], None, f[c 2], f[c 2], f[8 2], f[n c 2], f[n c 2], f[n c 8], 2, false",
            "f[n c 2], None, f[c 2], None, f[6 2], f[n c 2], f[0], f[n c 8], 3, false",
        ],
    ),
    ("polygamma", &["1, f[n c]", "0, f'[n c]"]),
    ("mm", &["f[n c], f[c m]", "f'[n c], f[c 2]"]),
    ("addmm", &["f[n m], f[n c], f[c m]", "f[m], f[n c], f[c m]"]),
    ("bmm", &["f[b n c], f[b c m]"]),
    ("baddbmm", &["f[b n m], f[b n c], f[b c m]"]),
    ("dot", &["f[n], f[n]"]),
    (
        "nll_loss_forward",
        &["f[n c], l[n], None, 1, -100", "f[n c], l[n], f[c], 0, -100", "f[c], l[], None, 2, 1"],
    ),
    (
        "_ctc_loss",
        &["f[n c h], l[c h], {2 1 1}, {1 2 0}, 0, false", "f[n c h], l[3], {2 1 1}, {1 2 0}, 0, false"],
    ),
    ("_ctc_loss_backward", &["f[c], f[n c h], l[c h], {2 1 1}, {1 2 0}, f[c], f[c n 5], 0, false"]),
    (
        "nll_loss_backward",
        &["f[], f[n c], l[n], None, 1, -100, f[]", "f[n], f[n c], l[n], None, 0, -100, f[]"],
    ),
    ("native_layer_norm", &["f[n c h], {c h}, f[c h], f[c h], 1e-5", "f[n c], {c}, None, None, 1e-5"]),
    ("clamp", &["f[n c], 0, 1", "l'[n c], 0.5"]),
    ("where.self", &["o[n c], f[n c], f[c]"]),
    ("random_.from", &["l[n c], 0, 5"]),
    (
        "max_pool2d_with_indices",
        &["f[n 4 h w], {2 2}, {2 2}", "f[n c h w], {3 2}, {1 2}, {1 0}, {1 1}, true"],
    ),
    (
        "max_pool2d_with_indices_backward",
        &["f[n 4 p q], f[n 4 h w], {2 2}, {2 2}, {0 0}, {1 1}, false, l[n 4 p q]"],
    ),
    ("reflection_pad1d", &["f[n c h], {1 2}"]),
    ("reflection_pad2d", &["f[n 4 h w], {1 2 0 3}"]),
    ("reflection_pad3d", &["f[n 4 c h w], {1 2 0 3 1 1}"]),
    ("reflection_pad1d_backward", &["f[n c 11], f[n c h], {1 2}"]),
    ("reflection_pad2d_backward", &["f[n 4 11 10], f[n 4 h w], {1 2 0 3}"]),
    ("reflection_pad3d_backward", &["f[n 4 5 11 10], f[n 4 c h w], {1 2 0 3 1 1}"]),
    ("replication_pad1d", &["f[n c h], {1 2}"]),
    ("replication_pad2d", &["f[n 4 h w], {1 2 0 3}"]),
    ("replication_pad3d", &["f[n 4 c h w], {1 2 0 3 1 1}"]),
    ("replication_pad1d_backward", &["f[n c 11], f[n c h], {1 2}"]),
    ("replication_pad2d_backward", &["f[n 4 11 10], f[n 4 h w], {1 2 0 3}"]),
    ("replication_pad3d_backward", &["f[n 4 5 11 10], f[n 4 c h w], {1 2 0 3 1 1}"]),
    ("avg_pool2d", &["f[n 4 h w], {2 2}, {2 2}"]),
    ("avg_pool3d", &["f[n 4 c h w], {2 2 2}, {1 2 2}"]),
    ("avg_pool2d_backward", &["f[n 4 p q], f[n 4 h w], {2 2}, {2 2}, {0 0}, false, true, None"]),
    ("avg_pool3d_backward", &["f[n 4 m p q], f[n 4 c h w], {2 2 2}, {1 2 2}, {0 0 0}, false, true, None"]),
    ("_adaptive_avg_pool2d", &["f[n 4 h w], {p q}"]),
    ("_adaptive_avg_pool3d", &["f[n 4 c h w], {m p q}"]),
    ("_adaptive_avg_pool2d_backward", &["f[n 4 p q], f[n 4 h w]"]),
    ("_adaptive_avg_pool3d_backward", &["f[n 4 m p q], f[n 4 c h w]"]),
    ("max_pool3d_with_indices", &["f[n 4 c h w], {2 2 2}, {1 2 2}"]),
    (
        "max_pool3d_with_indices_backward",
        &["f[n 4 m p q], f[n 4 c h w], {2 2 2}, {1 2 2}, {0 0 0}, {1 1 1}, false, l[n 4 m p q]"],
    ),
    ("adaptive_max_pool2d", &["f[n 4 h w], {4 3}"]),
    ("adaptive_max_pool3d", &["f[n 4 c h w], {2 4 3}"]),
    ("adaptive_max_pool2d_backward", &["f[n 4 p q], f[n 4 h w], l[n 4 p q]"]),
    ("adaptive_max_pool3d_backward", &["f[n 4 m p q], f[n 4 c h w], l[n 4 m p q]"]),
    ("upsample_nearest1d", &["f[n c h], {p}"]),
    ("upsample_nearest1d_backward", &["f[n c p], {p}, {n c h}"]),
    ("_upsample_nearest_exact1d", &["f[n c h], {p}"]),
    ("_upsample_nearest_exact1d_backward", &["f[n c p], {p}, {n c h}"]),
    ("upsample_nearest2d", &["f[n c h w], {p q}"]),
    ("upsample_nearest2d_backward", &["f[n c p q], {p q}, {n c h w}"]),
    ("_upsample_nearest_exact2d", &["f[n c h w], {p q}"]),
    ("_upsample_nearest_exact2d_backward", &["f[n c p q], {p q}, {n c h w}"]),
    ("upsample_nearest3d", &["f[n c m h w], {m p q}"]),
    ("upsample_nearest3d_backward", &["f[n c m p q], {m p q}, {n c m h w}"]),
    ("_upsample_nearest_exact3d", &["f[n c m h w], {m p q}"]),
    ("_upsample_nearest_exact3d_backward", &["f[n c m p q], {m p q}, {n c m h w}"]),
    ("upsample_linear1d", &["f[n c h], {p}, false"]),
    ("upsample_linear1d_backward", &["f[n c p], {p}, {n c h}, true"]),
    ("upsample_bilinear2d", &["f[n c h w], {p q}, false"]),
    ("upsample_bilinear2d_backward", &["f[n c p q], {p q}, {n c h w}, true"]),
    ("upsample_trilinear3d", &["f[n c m h w], {m p q}, false"]),
    ("upsample_trilinear3d_backward", &["f[n c m p q], {m p q}, {n c m h w}, true"]),
    ("upsample_bicubic2d", &["f[n c h w], {p q}, false"]),
    ("upsample_bicubic2d_backward", &["f[n c p q], {p q}, {n c h w}, true"]),
    ("_upsample_bilinear2d_aa", &["f[n c h w], {p q}, false"]),
    ("_upsample_bilinear2d_aa_backward", &["f[n c p q], {p q}, {n c h w}, true"]),
    ("_upsample_bicubic2d_aa", &["f[n c h w], {p q}, false"]),
    ("_upsample_bicubic2d_aa_backward", &["f[n c p q], {p q}, {n c h w}, true"]),
    ("randperm.generator_out", &["n, None, l[0]"]),
    ("sum.dim_IntList", &["f[n c h], {1}", "l[n c h], {0 -1}, true", "f[n c], None"]),
    ("nansum", &["f[n c h], {1}", "f[n c], None, true, Long", "l[n c]"]),
    ("prod.dim_int", &["l[n c], 1"]),
    ("max.dim", &["f[n c], 1"]),
    ("min.dim", &["f[n c], 0, true"]),
    ("amax", &["f[n c], {1}", "f[n c]"]),
    ("amin", &["f[n c], {0 1}, true"]),
    ("argmax", &["f[n c]", "f[n c], 1"]),
    ("argmin", &["f[n c], 0, true"]),
    ("any.dim", &["o[n c], 1"]),
    ("any.dims", &["o[n c], {1}"]),
    ("all.dim", &["o[n c], 1"]),
    ("all.dims", &["o[n c], {0}"]),
    ("_softmax", &["f[n c], 1, false"]),
    ("_log_softmax", &["f[n c], 0, false"]),
    ("_softmax_backward_data", &["f[n c], f[n c], 1, Float"]),
    ("_log_softmax_backward_data", &["f[n c], f[n c], 1, Float"]),
    ("cat", &["(f[n c] f[m c] f[0])", "(f[n c] l[n m]), 1"]),
    ("sort.stable", &["f[n c], None, 0, true", "f'[n c], true, 1, false"]),
    ("as_strided", &["f[n c], {c n}, {1 c}", "f[n c], {2 2}, {2 1}, 1"]),
    ("view", &["f[n c h], {n -1}", "f[n c h], {-1 h}", "f'[n c], {n 3 1}", "f[n 6], {n 2 3}"]),
    ("view.dtype", &["f[n c], Int", "f[n 4], Double", "f[n c], Half"]),
    ("_reshape_alias", &["f[n c], {c n}, {n 1}"]),
    ("transpose.int", &["f[n c h], 0, -1"]),
    ("permute", &["f[n c h], {2 0 1}"]),
    (
        "slice.Tensor",
        &["f[n c], 0, 1", "f[n c], 1, None, -1", "f[h c], 0, 1, m, 1", "f[h c], 0, -6, 100, 3", "f[h c]"],
    ),
    ("select.int", &["f[n c], 0, 1", "f[n c], 1, -1"]),
    ("diagonal", &["f[n c]", "f[n c h], 1, 2, 0", "f[n c], -1"]),
    ("expand", &["f[n 1], {n c}", "f[c], {n -1}", "f[n 1 c], {b n 2 c}"]),
    ("squeeze", &["f[n 1 c]"]),
    ("squeeze.dim", &["f[n 1 c], 1", "f[n 1 c], 0"]),
    ("squeeze.dims", &["f[n 1 c], {0 1}"]),
    ("unsqueeze", &["f[n c], 0", "f[n c], 1", "f'[n c], -1"]),
    ("unfold", &["f[n h], 1, 3, 2"]),
    ("unbind.int", &["f[3 c]", "f[n c], 1"]),
    ("split.Tensor", &["f[h c], 3", "f[n c], n", "f[n c], 100, 1"]),
    ("split_with_sizes", &["f[6 c], {2 4}", "f[n c], {1 2}, 1"]),
    ("view_as_real", &["z[n c]"]),
    ("view_as_complex", &["f[n 2]"]),
    ("_conj", &["z[n c]"]),
    (
        "_scaled_dot_product_flash_attention_for_cpu",
        &["f[n c h w], f[n c b w], f[n c b w]", "f[n 4 h w], f[n m b w], f[n m b w], 0.0, false, f[h b]"],
    ),
    (
        "_scaled_dot_product_flash_attention_for_cpu_backward",
        &["f[n c h w], f[n c h w], f[n c b w], f[n c b w], f[n c h w], f[n c h], 0.0, true"],
    ),
];

/// Composites, which are symbolic because what they are made of is: those that look at sizes themselves.
const COMPOSITES: &[(&str, &[&str])] = &[
    ("glu", &["f[n 4 h], 1", "f'[n 6], -1"]),
    ("glu_backward", &["f[n 2 h], f[n 4 h], 1"]),
    ("prelu", &["f[n c h], f[c]", "f[n c], f[1]", "f[n], f[]"]),
    ("mvlgamma", &["f[n c], 3"]),
    ("bucketize.Tensor", &["f[n c], f[m]"]),
    ("isin.Tensor_Tensor", &["f[n c], f[m]"]),
    ("reshape", &["f[n c h], {n -1}", "f'[n c], {-1}", "f[n c], {c n}"]),
    ("flatten.using_ints", &["f[n c h], 1"]),
    ("unflatten.int", &["f[n 6], 1, {2 -1}"]),
    ("narrow", &["f[n c], 0, 1, 2", "f[h c], 0, m, 3"]),
    ("chunk", &["f[h c], 3"]),
    ("tensor_split.sections", &["f[h c], 3", "f[n c], 3, 1"]),
    ("tensor_split.indices", &["f[h c], {1 n}", "f[n c], {m -1}"]),
    ("stack", &["(f[n c] f[n c]), 1"]),
    ("movedim.int", &["f[n c h], 0, 2"]),
    ("repeat", &["f[n c], {2 1 m}"]),
    ("roll", &["f[n c], {1}, {0}", "f[n c], {2}"]),
    ("flip", &["f[n c], {0 1}"]),
    ("diag_embed", &["f[n c], 1"]),
    ("slice_scatter", &["f[h c], f[2 c], 0, 1, 3"]),
    ("kron", &["f[n c], f[m 2]"]),
    ("tensordot", &["f[n c h], f[c h m], {1 2}, {0 1}"]),
    ("linalg_vector_norm", &["f[n c], 3, {1}"]),
    ("logsumexp", &["f[n c], {1}"]),
    ("diff", &["f[n c], 1, 0"]),
    ("column_stack", &["(f[n] f[n c])"]),
    ("repeat_interleave.self_int", &["f[n c], 2, 1"]),
    (
        "matmul",
        &["f[n c], f[c m]", "f[b n c], f[c m]", "f[b n c], f[b c m]", "f[n c], f[c]", "f[c], f[b c m]"],
    ),
    ("matmul", &["f[1 b n c], f[h 1 c m]"]),
    ("linear", &["f[n c], f[m c], f[m]", "f[b n c], f[m c], f[m]", "f[b n c], f[m c]"]),
    ("mean", &["f[n c]"]),
    ("mean.dim", &["f[n c], {1}"]),
    ("sum", &["f[n c]"]),
    ("sum_to_size", &["f[n c], {c}", "f[n c], {n 1}"]),
    ("conv2d", &["f[n 4 h w], f[6 2 3 3], f[6], {1 1}, {1 1}, {1 1}, 2", "f[c h w], f[m c 3 3]"]),
    ("conv2d.padding", &["f[n c h w], f[m c 2 3], None, {1 1}, same"]),
    ("max_pool2d", &["f[n c h w], {2 2}"]),
    ("cross_entropy_loss", &["f[n c], l[n]", "f[n c h], l[n h], None, 0", "f[n c], f[n c]"]),
    ("mse_loss", &["f[n c], f[n c]", "f[n c], f[n c], 0"]),
    ("layer_norm", &["f[n c], {c}, f[c], f[c]"]),
    ("dropout", &["f[n c], 0.5, true"]),
    ("masked_fill.Scalar", &["f[n c], o[c], 1"]),
    ("empty_like", &["f[n c]", "f'[n c]"]),
    ("zeros_like", &["f'[n c]"]),
    ("clone", &["f[n c]", "f'[n c]"]),
    ("contiguous", &["f'[n c]"]),
    ("expand_as", &["f[c], f[n c]"]),
    ("new_zeros", &["f[n], {n c 2}"]),
    ("new_empty_strided", &["f[n], {n c}, {1 n}"]),
    ("resize_", &["f[n c], {c}"]),
    ("slice_backward", &["f[2 c], {n c}, 0, 1, 3, 1"]),
    ("select_backward", &["f[c], {n c}, 0, 1"]),
    ("outer", &["f[n], f[m]"]),
    ("mv", &["f[n c], f[c]"]),
    ("to.dtype", &["f'[n c], Double"]),
    (
        "scaled_dot_product_attention",
        &[
            "f[n c h w], f[n c b w], f[n c b w], None, 0.0, true",
            "f[n c h w], f[n c b w], f[n c b 2], o[h b]",
        ],
    ),
];

/// Where examples get their tensors from.
struct World {
    env: ShapeEnv,
    /// `None`: plain sizes.
    symbols: Option<BTreeMap<&'static str, SymInt>>,
}

impl World {
    fn plain() -> Self {
        Self { env: ShapeEnv::new(), symbols: None }
    }

    fn symbolic() -> Self {
        let env = ShapeEnv::new();
        let symbols = SYMBOLS.iter().map(|&(name, value)| (name, env.size(name, value))).collect();
        Self { env, symbols: Some(symbols) }
    }

    fn int(&self, text: &str) -> Result<SymInt> {
        if let Ok(value) = text.parse::<i64>() {
            return Ok(SymInt::from(value));
        }
        if let Some(symbol) = self.symbols.as_ref().and_then(|symbols| symbols.get(text)) {
            return Ok(symbol.clone());
        }
        let known = SYMBOLS.iter().find(|(name, _)| *name == text);
        known.map(|&(_, value)| value.into()).ok_or_else(|| Error::value(format!("no symbol {text}")))
    }

    fn ints(&self, text: &str) -> Result<SymDimVector> {
        text.split_whitespace().map(|item| self.int(item)).collect()
    }

    /// `f[n c]`
    fn tensor(&self, text: &str) -> Result<Tensor> {
        let (head, dims) = text.trim_end_matches(']').split_once('[').unwrap();
        let dtype = match &head[..1] {
            "f" => ScalarType::Float,
            "l" => ScalarType::Long,
            "i" => ScalarType::Int,
            "o" => ScalarType::Bool,
            _ => ScalarType::ComplexFloat,
        };
        let sizes = self.ints(dims)?;
        let mut strides = SymDimVector::new();
        if head.ends_with('\'') {
            let mut stride = SymInt::ONE;
            for size in &sizes {
                strides.push(stride.clone());
                stride = stride.sym_mul(size)?;
            }
        }
        empty_strided_symint_meta(&sizes, &strides, DispatchKeySet::from_key(DispatchKey::Meta), dtype)
    }

    fn optional_tensor(&self, text: &str) -> Result<Option<Tensor>> {
        (text != "None").then(|| self.tensor(text)).transpose()
    }

    fn value(&self, text: &str, ty: &Type) -> Result<IValue> {
        if text == "None" {
            return Ok(IValue::None);
        }
        let inner = text.trim_matches(['(', ')', '{', '}']);
        // Tensors contain spaces, too.
        let tensors = || inner.split_inclusive(']').map(str::trim).filter(|item| !item.is_empty());
        Ok(match ty.unwrap_optional() {
            Type::Tensor => IValue::Tensor(self.tensor(text)?),
            Type::Bool => IValue::Bool(text == "true"),
            Type::Float => IValue::Double(text.parse().unwrap()),
            Type::Str => text.into(),
            Type::Int => IValue::Int(text.parse().unwrap()),
            Type::SymInt => IValue::SymInt(self.int(text)?),
            Type::ScalarType => IValue::ScalarType(
                ScalarType::ALL.into_iter().find(|dtype| dtype.short_name() == text).unwrap(),
            ),
            Type::Scalar => match text.parse::<f64>() {
                Ok(value) if text.contains('.') => IValue::Double(value),
                _ => IValue::SymInt(self.int(text)?),
            },
            other => match other.as_list() {
                Some((Type::SymInt, _)) => IValue::SymIntList(self.ints(inner)?.into_iter().collect()),
                Some((Type::Int, _)) => IValue::IntList(
                    self.ints(inner)?.iter().map(SymInt::guard_int).collect::<Result<Vec<_>>>()?.into(),
                ),
                Some((Type::Tensor, _)) => {
                    IValue::TensorList(tensors().map(|t| self.tensor(t)).collect::<Result<Vec<_>>>()?.into())
                }
                Some((element, _)) if element.contains_tensor() => {
                    let mut list = Vec::new();
                    for item in tensors() {
                        // `None l[m]` comes as one piece.
                        let mut rest = item;
                        while let Some(after) = rest.strip_prefix("None") {
                            list.push(None);
                            rest = after.trim_start();
                        }
                        if !rest.is_empty() {
                            list.push(self.optional_tensor(rest)?);
                        }
                    }
                    IValue::OptionalTensorList(list.into())
                }
                _ => return Err(Error::value(format!("no example of {ty:?}"))),
            },
        })
    }

    /// The arguments of a call. `outs` are the dtypes of outputs that the example leaves out.
    fn arguments(&self, schema: &FunctionSchema, example: &str, outs: &str) -> Result<Stack> {
        let mut outs = outs.chars();
        let mut given = example.split(", ").filter(|text| !text.is_empty());
        let mut stack = Stack::new();
        for argument in &schema.arguments {
            let value = match given.next() {
                Some(text) => self.value(text, &argument.ty)?,
                None if argument.is_out => {
                    IValue::Tensor(self.tensor(&format!("{}[0]", outs.next().unwrap_or('f')))?)
                }
                None => default(argument)?,
            };
            stack.push(value);
        }
        assert!(given.next().is_none(), "{}: too many arguments in `{example}`", schema.name);
        Ok(stack)
    }
}

fn default(argument: &Argument) -> Result<IValue> {
    Ok(match &argument.default {
        Some(DefaultValue::Bool(value)) => IValue::Bool(*value),
        Some(DefaultValue::Int(value)) => match argument.ty.as_list() {
            Some((Type::SymInt, size)) => {
                IValue::SymIntList(vec![SymInt::from(*value); size.unwrap_or(1) as usize].into())
            }
            Some((_, size)) => IValue::IntList(vec![*value; size.unwrap_or(1) as usize].into()),
            None if argument.ty.unwrap_optional() == &Type::Float => IValue::Double(*value as f64),
            None => IValue::Int(*value),
        },
        Some(DefaultValue::Float(value)) => IValue::Double(*value),
        Some(DefaultValue::List(items)) if items.is_empty() => match argument.ty.as_list() {
            Some((Type::SymInt, _)) => IValue::SymIntList([].into()),
            _ => IValue::IntList([].into()),
        },
        Some(DefaultValue::Symbol(name)) => match DefaultValue::symbol_value(&argument.ty, name) {
            Some(value) if argument.ty == Type::MemoryFormat => {
                assert_eq!(value, 0, "only contiguous_format is a default");
                IValue::MemoryFormat(c10::MemoryFormat::Contiguous)
            }
            Some(value) => IValue::Int(value),
            None => IValue::None,
        },
        Some(DefaultValue::None) => IValue::None,
        None if argument.ty.is_optional() => IValue::None,
        _ => return Err(Error::value(format!("no example of `{argument}`"))),
    })
}

/// An operator's results, and for one that writes its first argument that, too.
fn run(op: OperatorHandle, world: &World, example: &str) -> Result<Vec<Tensor>> {
    // Outputs have to be of the right dtypes: the first that are accepted.
    let mut outcome = Ok(Stack::new());
    for outs in ["ff", "fl", "fi", "ll", "oo", "zz"] {
        let mut stack = world.arguments(op.schema()?, example, outs)?;
        outcome = op.call_boxed(&mut stack).map(|()| stack);
        if outcome.is_ok() || !op.schema()?.is_out() {
            break;
        }
    }
    let stack = outcome?;
    let mut results = Vec::new();
    for value in &stack {
        value.for_each_tensor(&mut |tensor| results.push(tensor.clone()));
    }
    Ok(results)
}

/// What is compared of a tensor.
fn describe(tensor: &Tensor) -> (ScalarType, Vec<i64>, Vec<i64>, i64) {
    (
        tensor.dtype(),
        hints(&tensor.sym_sizes()),
        hints(&tensor.sym_strides()),
        hint(&tensor.sym_storage_offset()),
    )
}

/// Runs an example both ways; the failure as text.
fn check(op: OperatorHandle, example: &str) -> std::result::Result<(), String> {
    let name = op.name();
    let plain = run(op, &World::plain(), example);
    let symbolic = run(op, &World::symbolic(), example);
    match (plain, symbolic) {
        (Ok(plain), Ok(symbolic)) => {
            let (plain, symbolic): (Vec<_>, Vec<_>) =
                (plain.iter().map(describe).collect(), symbolic.iter().map(describe).collect());
            if plain != symbolic {
                return Err(format!("{name}({example}): {symbolic:?}, expected {plain:?}"));
            }
            Ok(())
        }
        (Err(error), _) => Err(format!("{name}({example}): {error}")),
        (Ok(_), Err(error)) => Err(format!("{name}({example}), symbolic: {error}")),
    }
}

/// Examples made up from a schema of tensors and numbers: equal shapes, another layout, broadcasting.
fn made_up(schema: &FunctionSchema) -> Vec<String> {
    let mut examples = Vec::new();
    for dtype in ["f", "l", "o"] {
        for (first, rest) in [("[n c]", "[n c]"), ("'[n c]", "[n c]"), ("'[n c]", "'[n c]"), ("[n c]", "[c]")]
        {
            let mut tensors = 0;
            let mut texts: Vec<String> = Vec::new();
            for argument in schema.arguments.iter().filter(|a| !a.is_out) {
                match argument.ty.unwrap_optional() {
                    Type::Tensor => {
                        texts.push(format!("{dtype}{}", if tensors == 0 { first } else { rest }));
                        tensors += 1;
                    }
                    Type::Scalar if argument.default.is_none() && !argument.ty.is_optional() => {
                        texts.push("2".to_owned());
                    }
                    _ => break,
                }
            }
            examples.push(texts.join(", "));
        }
    }
    examples
}

/// What variants of an operator have in common: the name and the arguments that are not outputs.
fn family(schema: &FunctionSchema) -> String {
    let inputs: Vec<String> =
        schema.arguments.iter().filter(|a| !a.is_out).map(|a| format!("{}:{:?}", a.name, a.ty)).collect();
    format!("{}({})", schema.name.base_name().trim_end_matches('_'), inputs.join(","))
}

fn full_name(op: OperatorHandle) -> String {
    let name = op.name();
    match name.overload.as_str() {
        "" => name.base_name().to_owned(),
        overload => format!("{}.{overload}", name.base_name()),
    }
}

fn examples_of(name: &str) -> Option<Vec<String>> {
    let found = EXAMPLES.iter().find(|(known, _)| *known == name)?;
    Some(found.1.iter().map(|&example| example.to_owned()).collect())
}

fn aten() -> Vec<OperatorHandle> {
    dispatch::list_operators().into_iter().filter(|op| op.name().namespace() == Some("aten")).collect()
}

fn start() -> Result<AutoDispatchBelowADInplaceOrView> {
    ops::init()?;
    Ok(AutoDispatchBelowADInplaceOrView::new())
}

#[test]
fn every_structured_operator_and_view() -> Result<()> {
    let _guard = start()?;
    let is_structured = |op: &OperatorHandle| op.has_kernel_for_dispatch_key(DispatchKey::Meta);
    let is_view = |op: &OperatorHandle| {
        op.has_kernel_for_dispatch_key(DispatchKey::CompositeExplicitAutograd)
            && op.schema().is_ok_and(|schema| schema.is_view())
    };
    let operators: Vec<OperatorHandle> =
        aten().into_iter().filter(|op| is_structured(op) || is_view(op)).collect();
    assert!(operators.len() > 250, "only {} operators", operators.len());

    let mut by_family: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for op in &operators {
        if let Some(examples) = examples_of(&full_name(*op)) {
            by_family.insert(family(op.schema()?), examples);
        }
    }
    let mut failures = Vec::new();
    let mut calls = 0;
    for &op in &operators {
        let schema = op.schema()?;
        let own = examples_of(&full_name(op)).or_else(|| by_family.get(&family(schema)).cloned());
        let tabled = own.is_some();
        let mut passed = 0;
        for example in own.unwrap_or_else(|| made_up(schema)) {
            calls += 1;
            // Made-up arguments may be of a dtype or shape that the operator refuses, and a variant may refuse what
            // broadcasts or changes its dtype; then it refuses both.
            let lenient = !tabled || schema.is_mutable();
            if lenient && run(op, &World::plain(), &example).is_err() {
                if run(op, &World::symbolic(), &example).is_ok() {
                    failures.push(format!("{}({example}): refused for plain sizes only", op.name()));
                }
                continue;
            }
            match check(op, &example) {
                Ok(()) => passed += 1,
                Err(failure) => failures.push(failure),
            }
        }
        if passed == 0 {
            failures.push(format!("{}: no example works; add one to EXAMPLES", schema));
        }
    }
    assert!(failures.is_empty(), "{} failures in {calls} calls:\n{}", failures.len(), failures.join("\n"));
    Ok(())
}

#[test]
fn composites() -> Result<()> {
    let _guard = start()?;
    let mut failures = Vec::new();
    for (name, examples) in COMPOSITES {
        let Some(op) = aten().into_iter().find(|op| full_name(*op) == *name) else {
            failures.push(format!("{name}: no such operator"));
            continue;
        };
        failures.extend(examples.iter().filter_map(|example| check(op, example).err()));
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    Ok(())
}

/// What an operator decides and expects of the examples' symbols.
fn asked(name: &str, example: &str) -> Result<(Vec<String>, Vec<String>)> {
    let world = World::symbolic();
    let op = aten().into_iter().find(|op| full_name(*op) == name).unwrap();
    run(op, &world, example)?;
    Ok((world.env.guards(), world.env.expectations()))
}

#[test]
fn guards_are_only_those_that_decide() -> Result<()> {
    let _guard = start()?;
    for (name, example) in [
        ("add.Tensor", "f[n c], f[n c]"),
        ("add.Tensor", "f[n c], f[c]"),
        ("mul.Tensor", "f'[n c], f'[n c]"),
        ("exp", "f[n c h w]"),
        ("sum.dim_IntList", "f[n c h], {1}"),
        ("mm", "f[n c], f[c m]"),
        ("view", "f[n c h], {-1 h}"),
        ("view", "f[n c h], {n -1}"),
        ("reshape", "f[n c h], {-1}"),
        ("expand", "f[c], {n c}"),
        ("transpose.int", "f[n c], 0, 1"),
        ("permute", "f[n c h], {2 0 1}"),
        ("unsqueeze", "f[n c], 0"),
        ("squeeze", "f[n 1 c]"),
        ("select.int", "f[n c], 0, 1"),
        ("slice.Tensor", "f[n c]"),
        ("cat", "(f[n c] f[m c])"),
        ("_softmax", "f[n c], 1, false"),
        ("native_layer_norm", "f[n c], {c}, f[c], f[c], 1e-5"),
        ("linear", "f[n c], f[m c], f[m]"),
        ("matmul", "f[b n c], f[b c m]"),
        ("flatten.using_ints", "f[n c h], 0"),
        ("empty_like", "f'[n c]"),
        ("index_select", "f[n c], 0, l[m]"),
        ("max_pool2d", "f[n c h w], {2 2}"),
    ] {
        let (guards, expectations) = asked(name, example)?;
        assert!(guards.is_empty(), "{name}({example}) decides {guards:?}");
        // What holds for every size of at least 2 is no expectation either, but windows have to fit.
        assert!(
            expectations.is_empty() || name == "max_pool2d",
            "{name}({example}) expects {expectations:?}"
        );
    }
    // Sizes that may differ are expected to be equal; nothing is decided.
    assert_eq!(asked("add.Tensor", "f[n c], f[p c]")?, (vec![], vec!["n == p".to_owned()]));
    assert_eq!(asked("mm", "f[m c], f[q n]")?, (vec![], vec!["c == q".to_owned()]));
    // The number of results is a decision.
    assert_eq!(asked("unbind.int", "f[n c]")?.0, ["n == 4"]);
    assert_eq!(asked("split.Tensor", "f[n c], n")?.0, Vec::<String>::new());
    // Python's slices clamp.
    assert_eq!(asked("slice.Tensor", "f[h c], 0, 1, m")?.0, ["h < m"]);
    Ok(())
}

#[test]
fn broadcasting_decides_about_ones() -> Result<()> {
    let _guard = start()?;
    let env = ShapeEnv::new();
    let (one, n) = (env.symbol("one", 1, 0), env.size("n", 4));
    let meta = |sizes: &[SymInt]| {
        empty_strided_symint_meta(sizes, &[], DispatchKeySet::from_key(DispatchKey::Meta), ScalarType::Float)
    };
    let sum =
        at::add_tensor(&meta(&[n.clone(), one.clone()])?, &meta(&[n.clone(), n.clone()])?, &Scalar::Int(1))?;
    assert_eq!(sum.sym_sizes().as_slice(), [n.clone(), n.clone()]);
    assert_eq!(env.guards(), ["one == 1"]);
    env.clear();
    let squeezed = at::squeeze(&meta(&[n.clone(), one])?)?;
    assert_eq!(
        (squeezed.sym_sizes().as_slice(), env.guards()),
        ([n].as_slice(), vec!["one == 1".to_owned()])
    );
    Ok(())
}

#[test]
fn factories_keep_symbols() -> Result<()> {
    let _guard = start()?;
    let env = ShapeEnv::new();
    let (n, c) = (env.size("n", 4), env.size("c", 3));
    let device = Some(c10::Device::META);
    let shape = [n.clone(), c.clone()];
    for made in [
        at::empty_memory_format(&shape, None, None, device, None, None)?,
        at::zeros(&shape, None, None, device, None)?,
        at::full(&shape, &Scalar::Int(1), None, None, device, None)?,
        at::eye_m(&n, &c, None, None, device, None)?,
        at::empty_strided(&shape, &[c.clone(), SymInt::ONE], None, None, device, None)?,
    ] {
        assert_eq!(made.sym_sizes().as_slice(), shape);
        assert!(made.is_contiguous());
    }
    assert!(env.guards().is_empty(), "{:?}", env.guards());
    let range = at::arange(&Scalar::SymInt(n.clone()), None, None, device, None)?;
    assert_eq!((range.sym_sizes()[0].to_string(), range.dtype()), ("n".to_owned(), ScalarType::Long));
    // Memory has a size: on the CPU the symbol is decided.
    env.clear();
    let plain = at::empty_memory_format(&shape, None, None, Some(c10::Device::CPU), None, None)?;
    assert_eq!(
        (plain.sizes()?, env.guards()),
        ([4, 3].as_slice(), vec!["n == 4".to_owned(), "c == 3".to_owned()])
    );
    let viewed = at::view(&plain, &[c, n])?;
    assert!(!viewed.has_symbolic_sizes_strides());
    Ok(())
}

#[test]
fn views_stay_inside_a_symbolic_storage() -> Result<()> {
    let _guard = start()?;
    let env = ShapeEnv::new();
    let n = env.size("n", 4);
    let base = at::empty_memory_format(&[n.clone()], None, None, Some(c10::Device::META), None, None)?;
    let int = |value: i64| [SymInt::from(value)];
    at::as_strided(&base, &int(4), &int(1), None)?;
    assert_eq!(env.expectations(), ["16 <= 4*n"]);
    let wild = at::as_strided(&base, &int(5), &int(1), None);
    assert!(wild.is_err_and(|error| error.message().contains("out of bounds for storage of size 4*n")));
    assert!(n.expect_eq(&SymInt::from(4))?);
    Ok(())
}
