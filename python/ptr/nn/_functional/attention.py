"""Attention as functions."""

from __future__ import annotations

import math
import warnings

import ptr as torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Tensor = torch.Tensor
_nn = torch._C._nn
_overridable = torch._C._overridable


def _canonical_mask(
    mask: Tensor | None, name: str, other_type: Any, other_name: str, target_type: Any, check_other: bool = True
) -> Tensor | None:
    """A mask of truth values becomes one of numbers to add: minus infinity where it is true."""
    if mask is None:
        return None
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=3,
        )
    if mask.is_floating_point():
        return mask
    return torch.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _is_batched(
    query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None, num_heads: int
) -> bool:
    """Whether there is a dimension of a batch; all arguments must agree on it."""
    ndim = query.dim()
    _require(ndim in (2, 3), f"query should be unbatched 2D or batched 3D tensor but received {ndim}-D query tensor")
    kind = "batched (3-D)" if ndim == 3 else "unbatched (2-D)"
    _require(
        key.dim() == ndim and value.dim() == ndim,
        f"For {kind} `query`, expected `key` and `value` to be {ndim}-D but found {key.dim()}-D and {value.dim()}-D "
        "tensors respectively",
    )
    _require(
        padding is None or padding.dim() == ndim - 1,
        f"For {kind} `query`, expected `key_padding_mask` to be `None` or {ndim - 1}-D but found "
        f"{0 if padding is None else padding.dim()}-D tensor instead",
    )
    _require(
        mask is None or mask.dim() in (2, 3),
        f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
        f"{0 if mask is None else mask.dim()}-D tensor instead",
    )
    if ndim == 2 and mask is not None and mask.dim() == 3:
        expected = (num_heads, query.shape[0], key.shape[0])
        _require(tuple(mask.shape) == expected, f"Expected `attn_mask` shape to be {expected} but got {mask.shape}")
    return ndim == 3


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """A linear map of sequences, laid out like them: those with the batch first are not copied into another order."""
    if not x.is_contiguous() and x.transpose(0, 1).is_contiguous():
        return _nn.linear(x.transpose(0, 1), weight, bias).transpose(0, 1)
    return _nn.linear(x, weight, bias)


def _project_together(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value times the parts of one weight, in as few products as they allow."""
    width = query.shape[-1]
    if key is value and query is key:
        return _linear(query, weight, bias).split(width, -1)
    if key is value:
        biases = (None, None) if bias is None else bias.split([width, 2 * width])
        weights = weight.split([width, 2 * width])
        both = _linear(key, weights[1], biases[1])
        return (_linear(query, weights[0], biases[0]), *both.split(width, -1))
    biases = (None, None, None) if bias is None else bias.chunk(3)
    return tuple(map(_linear, (query, key, value), weight.chunk(3), biases))


def _project_apart(
    operands: tuple[Tensor, Tensor, Tensor], weights: tuple[Tensor | None, ...], bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value times weights of their own."""
    for name, weight in zip("qkv", weights, strict=True):
        _require(weight is not None, f"use_separate_proj_weight is True but {name}_proj_weight is None")
    width = operands[0].shape[-1]
    biases = (None, None, None) if bias is None else bias.chunk(3)
    for name, weight, operand in zip("qkv", weights, operands, strict=True):
        _require(
            tuple(weight.shape) == (width, operand.shape[-1]),
            f"expecting {name}_proj_weight shape of {(width, operand.shape[-1])}, but got {weight.shape}",
        )
    return tuple(map(_linear, operands, weights, biases))


def _static(name: str, given: Tensor, count: int, width: int) -> Tensor:
    _require(given.shape[0] == count, f"expecting {name}.size(0) of {count}, but got {given.shape[0]}")
    _require(given.shape[2] == width, f"expecting {name}.size(2) of {width}, but got {given.shape[2]}")
    return given


def _extend(mask: Tensor | None) -> Tensor | None:
    """A mask with one more key, which every query sees."""
    return None if mask is None else _nn.pad(mask, (0, 1), "constant", None)


def _check_mask_shape(mask: Tensor, batch: int, heads: int, length: int, keys: int) -> Tensor:
    expected = {2: (length, keys), 3: (batch * heads, length, keys)}.get(mask.dim())
    if expected is None:
        raise RuntimeError(f"attn_mask's dimension {mask.dim()} is not supported")
    if tuple(mask.shape) != expected:
        raise RuntimeError(f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {expected}.")
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


@_overridable
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attend with several heads; see :class:`~ptr.nn.MultiheadAttention`.

    Args:
        query, key, value: of shapes ``(L, N, E)``, ``(S, N, E)`` and ``(S, N, E)``, or without ``N``.
        embed_dim_to_check: ``E``.
        num_heads: number of heads, which divides ``E``.
        in_proj_weight, in_proj_bias: of the projections of query, key and value, one above the other.
        bias_k, bias_v: one more key and value of every sequence.
        add_zero_attn: whether there is one more key and value of zeros.
        dropout_p: probability to drop a weight, while ``training``.
        out_proj_weight, out_proj_bias: of the last projection.
        key_padding_mask: ``(N, S)``: true, or minus infinity, for keys that nothing attends to.
        need_weights: whether the weights are wanted, which takes longer.
        attn_mask: ``(L, S)`` or ``(N * num_heads, L, S)``: true, or minus infinity, for keys that a query does not see.
        use_separate_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight: in place of ``in_proj_weight``.
        static_k, static_v: ``(N * num_heads, S, E / num_heads)``: keys and values that are projected already.
        average_attn_weights: whether the weights are averaged over heads.
        is_causal: a hint that ``attn_mask`` hides later keys.

    Returns:
        What the queries attend to, and the weights or ``None``.
    """
    batched = _is_batched(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        # One object stays one object: it is projected once.
        same_key, same_value = key is query, value is key
        query = query.unsqueeze(1)
        key = query if same_key else key.unsqueeze(1)
        value = key if same_value else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    other = None if attn_mask is None else attn_mask.dtype
    key_padding_mask = _canonical_mask(key_padding_mask, "key_padding_mask", other, "attn_mask", query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        is_causal = is_causal and key_padding_mask is None
    _require(width == embed_dim_to_check, f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    head_width = width // num_heads
    _require(head_width * num_heads == width, f"embed_dim {width} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        _require(
            key.shape[:2] == value.shape[:2],
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}",
        )
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _project_apart((query, key, value), weights, in_proj_bias)
    else:
        _require(key.shape == value.shape, f"key shape {key.shape} does not match value shape {value.shape}")
        _require(in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _project_together(query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None:
        attn_mask = _check_mask_shape(attn_mask, batch, num_heads, length, key.shape[0])
    if bias_k is not None and bias_v is not None:
        _require(static_k is None, "bias cannot be added to static key.")
        _require(static_v is None, "bias cannot be added to static value.")
        k = torch.cat([k, bias_k.repeat(1, batch, 1)])
        v = torch.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _extend(attn_mask), _extend(key_padding_mask)
    else:
        _require(bias_k is None, "bias_k is set but bias_v is None")
        _require(bias_v is None, "bias_v is set but bias_k is None")

    def heads(projected: Tensor) -> Tensor:
        return projected.view(projected.shape[0], batch, num_heads, head_width).permute(1, 2, 0, 3)

    def static(name: str, given: Tensor) -> Tensor:
        return _static(name, given, batch * num_heads, head_width).view(batch, num_heads, -1, head_width)

    q = heads(q)
    k = heads(k) if static_k is None else static("static_k", static_k)
    v = heads(v) if static_v is None else static("static_v", static_v)
    if add_zero_attn:
        zeros = torch.zeros((batch, num_heads, 1, head_width), dtype=k.dtype, device=k.device)
        k, v = torch.cat([k, zeros], 2), torch.cat([v, zeros], 2)
        attn_mask, key_padding_mask = _extend(attn_mask), _extend(key_padding_mask)
    keys = k.shape[2]
    if attn_mask is not None:
        # For all heads alike, or for each of every sample.
        attn_mask = attn_mask.unsqueeze(0) if attn_mask.shape[0] == 1 else attn_mask.view(batch, num_heads, -1, keys)
    if key_padding_mask is not None:
        for dim, size in enumerate((batch, keys)):
            found = key_padding_mask.shape[dim]
            _require(found == size, f"Expected key_padded_mask.shape[{dim}] to be {size}, but got {found}")
        padding = key_padding_mask.view(batch, 1, 1, keys)
        attn_mask = padding if attn_mask is None else attn_mask + padding
    if not training:
        dropout_p = 0.0
    weights = None
    if need_weights:
        scores = (q * math.sqrt(1.0 / head_width)) @ k.transpose(-2, -1)
        if attn_mask is not None:
            scores = scores + attn_mask
        weights = scores.softmax(-1)
        if dropout_p > 0.0:
            weights = torch.nn.functional.dropout(weights, dropout_p)
        attended = weights @ v
        if average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            weights = weights.squeeze(0)
    else:
        attended = _nn.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)
    output = _linear(attended.permute(2, 0, 1, 3).flatten(2), out_proj_weight, out_proj_bias)
    return (output if batched else output.squeeze(1)), weights
