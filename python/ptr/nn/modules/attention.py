"""Attention with several heads."""

from __future__ import annotations

import ptr as torch
from ptr.nn import functional as F
from ptr.nn import init
from ptr.nn.modules.linear import NonDynamicallyQuantizableLinear
from ptr.nn.modules.module import Module
from ptr.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Lets each query attend to keys and values, in several heads side by side (Vaswani et al., *Attention Is All You
    Need*, 2017).

    .. math::
        \\text{MultiHead}(Q, K, V) = \\text{Concat}(h_1, …, h_n) W^O
        \\quad h_i = \\text{Attention}(Q W_i^Q, K W_i^K, V W_i^V)

    Args:
        embed_dim: width of queries and of the result, a multiple of ``num_heads``.
        num_heads: number of heads.
        dropout: probability to drop a weight while training.
        bias: whether the projections have a bias. Default: ``True``.
        add_bias_kv: whether every sequence gets one more key and value, which are parameters.
        add_zero_attn: whether every sequence gets one more key and value of zeros.
        kdim, vdim: widths of keys and values. Default: ``embed_dim``.
        batch_first: whether sequences are ``(batch, length, width)`` rather than ``(length, batch, width)``.
        device, dtype: of the parameters.

    Shape:
        - Query: ``(L, N, E)``, ``(N, L, E)`` with ``batch_first``, or ``(L, E)``; keys and values alike with ``S``
        - Output: as the query, and weights ``(N, L, S)``, ``(N, heads, L, S)`` if not averaged, or without ``N``

    Raises:
        ValueError: ``embed_dim`` or ``num_heads`` is not positive.
        AssertionError: ``num_heads`` does not divide ``embed_dim``.

    Example::

        >>> attention = nn.MultiheadAttention(16, 4)
        >>> attended, weights = attention(torch.randn(5, 2, 16), torch.randn(7, 2, 16), torch.randn(7, 2, 16))
        >>> attended.shape, weights.shape
        (torch.Size([5, 2, 16]), torch.Size([2, 5, 7]))
    """

    __constants__ = ["batch_first"]
    bias_k: torch.Tensor | None
    bias_v: torch.Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        def parameter(*sizes: int) -> Parameter:
            return Parameter(torch.empty(sizes, device=device, dtype=dtype))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = parameter(3 * embed_dim, embed_dim)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = parameter(embed_dim, embed_dim)
            self.k_proj_weight = parameter(embed_dim, self.kdim)
            self.v_proj_weight = parameter(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = parameter(3 * embed_dim)
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        if add_bias_kv:
            self.bias_k = parameter(1, 1, embed_dim)
            self.bias_v = parameter(1, 1, embed_dim)
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            init.xavier_uniform_(self.q_proj_weight)
            init.xavier_uniform_(self.k_proj_weight)
            init.xavier_uniform_(self.v_proj_weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
        if self.bias_v is not None:
            init.xavier_normal_(self.bias_v)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Old files have no such attribute: all widths were the same.
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        key_padding_mask: torch.Tensor | None = None,
        need_weights: bool = True,
        attn_mask: torch.Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return what the queries attend to, and the weights or ``None``.

        The arguments are those of :func:`~ptr.nn.functional.multi_head_attention_forward`.
        """
        swap = self.batch_first and query.dim() == 3
        if swap:
            # One object stays one object: it is projected once.
            same_key, same_value = key is query, value is key
            query = query.transpose(1, 0)
            key = query if same_key else key.transpose(1, 0)
            value = key if same_value else value.transpose(1, 0)
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (output.transpose(1, 0) if swap else output), weights

    def merge_masks(
        self, attn_mask: torch.Tensor | None, key_padding_mask: torch.Tensor | None, query: torch.Tensor
    ) -> tuple[torch.Tensor | None, int | None]:
        """Return one mask for both and its kind: 0 of attention, 1 of padding, 2 of both, ``None`` if there is none."""
        if key_padding_mask is None and attn_mask is None:
            return None, None
        if attn_mask is None:
            return key_padding_mask, 1
        batch, length = query.shape[:2]
        merged = attn_mask
        if attn_mask.dim() != 3:
            merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        else:
            merged = attn_mask.view(batch, self.num_heads, length, length)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
        return merged, 0 if key_padding_mask is None else 2
