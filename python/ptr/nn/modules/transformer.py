"""Transformers: stacks of attention and feed-forward networks."""

from __future__ import annotations

import copy
import warnings

import ptr as torch
from ptr.nn import functional as F
from ptr.nn import init
from ptr.nn._functional.attention import _canonical_mask
from ptr.nn.modules.attention import MultiheadAttention
from ptr.nn.modules.container import ModuleList
from ptr.nn.modules.dropout import Dropout
from ptr.nn.modules.linear import Linear
from ptr.nn.modules.module import Module
from ptr.nn.modules.normalization import LayerNorm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

Tensor = torch.Tensor


def _square_mask(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    """Minus infinity for later keys, zero for the others."""
    return torch.triu(torch.full((size, size), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _clones(module: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _activation(name: str) -> Callable[[Tensor], Tensor]:
    functions = {"relu": F.relu, "gelu": F.gelu}
    if name not in functions:
        raise RuntimeError(f"activation should be relu/gelu, not {name}")
    return functions[name]


def _length(source: Tensor, batch_first: bool) -> int:
    return source.shape[1 if source.dim() == 3 and batch_first else 0]


def _is_causal(mask: Tensor | None, is_causal: bool | None, size: int) -> bool:
    """Whether a mask hides later keys and no others: what the caller says, else what the mask is."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    causal = _square_mask(size, device=mask.device, dtype=mask.dtype)
    return mask.shape == causal.shape and bool((mask == causal).all())


class TransformerEncoderLayer(Module):
    """Self-attention and a feed-forward network, around each of which the input passes.

    Args:
        d_model: width of the input.
        nhead: number of heads.
        dim_feedforward: width of the feed-forward network's middle. Default: 2048.
        dropout: probability. Default: 0.1.
        activation: ``"relu"``, ``"gelu"`` or a function. Default: ReLU.
        layer_norm_eps: of the layer norms.
        batch_first: whether sequences are ``(batch, length, width)`` rather than ``(length, batch, width)``.
        norm_first: whether layer norms stand before attention and the network, rather than after.
        bias: whether the linear maps and norms have a bias.
        device, dtype: of the parameters.

    Shape:
        - Source: :math:`(L, N, E)`, :math:`(N, L, E)` with ``batch_first``, or :math:`(L, E)`
        - Output: the same

    Example::

        >>> layer = nn.TransformerEncoderLayer(16, 4)
        >>> layer(torch.randn(10, 2, 16)).shape
        torch.Size([10, 2, 16])
    """

    __constants__ = ["norm_first"]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        where = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **where
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **where)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **where)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        if isinstance(activation, str):
            activation = _activation(activation)
        # What PyTorch's layers have: 1 for ReLU, 2 for GELU.
        self.activation_relu_or_gelu = 1 if activation is F.relu else 2 if activation is F.gelu else 0
        self.activation = activation

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Return ``src``, attended to itself and passed through the network.

        Args:
            src: the sequence.
            src_mask: which places a place does not see, see :class:`~ptr.nn.MultiheadAttention`.
            src_key_padding_mask: places that none sees.
            is_causal: a hint that ``src_mask`` hides later places.
        """
        other = None if src_mask is None else src_mask.dtype
        padding = _canonical_mask(src_key_padding_mask, "src_key_padding_mask", other, "src_mask", src.dtype)
        mask = _canonical_mask(src_mask, "src_mask", None, "", src.dtype, check_other=False)
        if self.norm_first:
            src = src + self._sa_block(self.norm1(src), mask, padding, is_causal=is_causal)
            return src + self._ff_block(self.norm2(src))
        src = self.norm1(src + self._sa_block(src, mask, padding, is_causal=is_causal))
        return self.norm2(src + self._ff_block(src))

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        masks = {"attn_mask": attn_mask, "key_padding_mask": key_padding_mask}
        x = self.self_attn(x, x, x, **masks, need_weights=False, is_causal=is_causal)[0]
        return self.dropout1(x)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(Module):
    """Self-attention, attention to another sequence and a feed-forward network, around each of which the input passes.

    The arguments are those of :class:`TransformerEncoderLayer`.

    Shape:
        - Target and memory: :math:`(T, N, E)` and :math:`(S, N, E)`, with ``N`` first for ``batch_first``, or without
        - Output: as the target
    """

    __constants__ = ["norm_first"]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        where = {"device": device, "dtype": dtype}
        attention = {"dropout": dropout, "batch_first": batch_first, "bias": bias, **where}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **where)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **where)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _activation(activation) if isinstance(activation, str) else activation

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("activation", F.relu)
        super().__setstate__(state)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return ``tgt``, attended to itself and to ``memory`` and passed through the network.

        Args:
            tgt: the sequence.
            memory: what an encoder made of another sequence.
            tgt_mask, memory_mask: which places of each a place does not see.
            tgt_key_padding_mask, memory_key_padding_mask: places that none sees.
            tgt_is_causal, memory_is_causal: hints that the masks hide later places.
        """
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        others = (memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *others)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *others))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        masks = {"attn_mask": attn_mask, "key_padding_mask": key_padding_mask}
        return self.dropout1(self.self_attn(x, x, x, **masks, is_causal=is_causal, need_weights=False)[0])

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        masks = {"attn_mask": attn_mask, "key_padding_mask": key_padding_mask}
        return self.dropout2(self.multihead_attn(x, mem, mem, **masks, is_causal=is_causal, need_weights=False)[0])

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


def _why_not_nested(layer: Module) -> str:
    """Why PyTorch's encoder would not use nested tensors for padded batches; empty if it would."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    if layer.norm_first:
        return "encoder_layer.norm_first was True"
    if not attention.batch_first:
        return "encoder_layer.self_attn.batch_first was not True(use batch_first for better inference performance)"
    if not attention._qkv_same_embed_dim:
        return "encoder_layer.self_attn._qkv_same_embed_dim was not True"
    if attention.in_proj_bias is None:
        return "encoder_layer.self_attn was passed bias=False"
    if not layer.activation_relu_or_gelu:
        return "encoder_layer.activation_relu_or_gelu was not True"
    if layer.norm1.eps != layer.norm2.eps:
        return "encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps"
    if attention.num_heads % 2 == 1:
        return "encoder_layer.self_attn.num_heads is odd"
    return ""


class TransformerEncoder(Module):
    """A stack of encoder layers.

    Args:
        encoder_layer: the layer, of which each of the stack is a copy.
        num_layers: how many.
        norm: a normalization of the result.
        enable_nested_tensor, mask_check: accepted; padded batches are computed as they are.

    Example::

        >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, batch_first=True), 6)
        >>> encoder(torch.randn(2, 10, 16)).shape
        torch.Size([2, 10, 16])
    """

    __constants__ = ["norm"]

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        why_not = _why_not_nested(encoder_layer)
        if enable_nested_tensor and why_not:
            warnings.warn(
                f"enable_nested_tensor is True, but self.use_nested_tensor is False because {why_not}", stacklevel=2
            )
            self.use_nested_tensor = False

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Pass ``src`` through the layers.

        Args:
            src: the sequence.
            mask: which places a place does not see.
            src_key_padding_mask: places that none sees.
            is_causal: a hint that ``mask`` hides later places. Default: found out.
        """
        other = None if mask is None else mask.dtype
        padding = _canonical_mask(src_key_padding_mask, "src_key_padding_mask", other, "mask", src.dtype)
        mask = _canonical_mask(mask, "mask", None, "", src.dtype, check_other=False)
        output = src
        if len(self.layers):
            first = self.layers[0]
            batch_first = bool(getattr(getattr(first, "self_attn", None), "batch_first", False))
            is_causal = _is_causal(mask, is_causal, _length(src, batch_first))
            for layer in self.layers:
                output = layer(output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=padding)
        return output if self.norm is None else self.norm(output)


class TransformerDecoder(Module):
    """A stack of decoder layers.

    Args:
        decoder_layer: the layer, of which each of the stack is a copy.
        num_layers: how many.
        norm: a normalization of the result.

    Example::

        >>> decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 4), 6)
        >>> decoder(torch.randn(20, 2, 16), torch.randn(10, 2, 16)).shape
        torch.Size([20, 2, 16])
    """

    __constants__ = ["norm"]

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Pass ``tgt`` and ``memory`` through the layers; see :meth:`TransformerDecoderLayer.forward`."""
        output = tgt
        if len(self.layers):
            batch_first = bool(getattr(getattr(self.layers[0], "self_attn", None), "batch_first", False))
            tgt_is_causal = _is_causal(tgt_mask, tgt_is_causal, _length(tgt, batch_first))
            for layer in self.layers:
                output = layer(
                    output,
                    memory,
                    tgt_mask=tgt_mask,
                    memory_mask=memory_mask,
                    tgt_key_padding_mask=tgt_key_padding_mask,
                    memory_key_padding_mask=memory_key_padding_mask,
                    tgt_is_causal=tgt_is_causal,
                    memory_is_causal=memory_is_causal,
                )
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder and a decoder (Vaswani et al., *Attention Is All You Need*, 2017).

    Args:
        d_model: width of the sequences. Default: 512.
        nhead: number of heads. Default: 8.
        num_encoder_layers, num_decoder_layers: how many layers each has. Default: 6.
        dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype: of the
            layers, see :class:`TransformerEncoderLayer`.
        custom_encoder, custom_decoder: modules to take in place of the stacks.

    Example::

        >>> transformer = nn.Transformer(16, 4, 2, 2)
        >>> transformer(torch.randn(10, 2, 16), torch.randn(20, 2, 16)).shape
        torch.Size([20, 2, 16])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        where = {"device": device, "dtype": dtype}
        arguments = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
        )
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            layer = TransformerEncoderLayer(*arguments, **where)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            layer = TransformerDecoderLayer(*arguments, **where)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
            self.decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Encode ``src`` and decode ``tgt``.

        Args:
            src, tgt: the sequences.
            src_mask, tgt_mask, memory_mask: which places of each a place does not see.
            src_key_padding_mask, tgt_key_padding_mask, memory_key_padding_mask: places that none sees.
            src_is_causal, tgt_is_causal, memory_is_causal: hints that the masks hide later places.

        Raises:
            RuntimeError: the sequences are of different batches, or not ``d_model`` wide.
        """
        if src.dim() == 3:
            batch = 0 if self.batch_first else 1
            if src.shape[batch] != tgt.shape[batch]:
                raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Return a mask that hides later places: minus infinity above the diagonal, zero elsewhere."""
        return _square_mask(sz, device=device, dtype=dtype)

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)
