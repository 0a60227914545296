"""Dropout of channels, and for self-normalizing networks, as functions."""

from __future__ import annotations

import warnings

import ptr as torch

Tensor = torch.Tensor
_VF = torch._C._VariableFunctions
_overridable = torch._C._overridable


def _check(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


@_overridable
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Drop elements so that mean and variance stay; see :class:`~ptr.nn.AlphaDropout`."""
    _check(p)
    return _VF.alpha_dropout_(input, p, training) if inplace else _VF.alpha_dropout(input, p, training)


@_overridable
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Drop channels so that mean and variance stay; see :class:`~ptr.nn.FeatureAlphaDropout`."""
    _check(p)
    return _VF.feature_alpha_dropout_(input, p, training) if inplace else _VF.feature_alpha_dropout(input, p, training)


@_overridable
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Drop channels of sequences, 3-dimensional or unbatched; see :class:`~ptr.nn.Dropout1d`."""
    _check(p)
    ndim = input.dim()
    if ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input. Note that dropout1d exists to provide "
            "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch "
            "dimension (i.e. 2D or 3D inputs)."
        )
    return _drop_channels(input, p, training, inplace, batched=ndim == 3)


@_overridable
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Drop channels of images; see :class:`~ptr.nn.Dropout2d`."""
    _check(p)
    ndim = input.dim()
    if ndim not in (3, 4):
        warnings.warn(
            f"dropout2d: Received a {ndim}-D input to dropout2d, which is deprecated and will result in an error in a "
            "future release. To retain the behavior and silence this warning, please use dropout instead. Note that "
            "dropout2d exists to provide channel-wise dropout on inputs with 2 spatial dimensions, a "
            "channel dimension, "
            "and an optional batch dimension (i.e. 3D or 4D inputs).",
            stacklevel=2,
        )
    if ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior "
            "is desired - "
            "input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change "
            "in a future "
            "release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D "
            "channel-wise dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    return _drop_channels(input, p, training, inplace, batched=True)


@_overridable
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Drop channels of volumes; see :class:`~ptr.nn.Dropout3d`."""
    _check(p)
    ndim = input.dim()
    if ndim not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {ndim}-D input to dropout3d, which is deprecated and will result in an error in a "
            "future release. To retain the behavior and silence this warning, please use dropout instead. Note that "
            "dropout3d exists to provide channel-wise dropout on inputs with 3 spatial dimensions, a "
            "channel dimension, "
            "and an optional batch dimension (i.e. 4D or 5D inputs).",
            stacklevel=2,
        )
    return _drop_channels(input, p, training, inplace, batched=ndim != 4)


def _drop_channels(input: Tensor, p: float, training: bool, inplace: bool, batched: bool) -> Tensor:
    if not batched:
        input = input.unsqueeze_(0) if inplace and hasattr(input, "unsqueeze_") else input.unsqueeze(0)
    result = _VF.feature_dropout_(input, p, training) if inplace else _VF.feature_dropout(input, p, training)
    if batched:
        return result
    return result.squeeze_(0) if inplace and hasattr(result, "squeeze_") else result.squeeze(0)
