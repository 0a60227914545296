"""Folding a batch norm, as it is in evaluation, into the convolution or linear layer before it."""

from __future__ import annotations

import copy

import ptr as torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]

_Fused = tuple[torch.nn.Parameter, torch.nn.Parameter]


def _check_eval(*modules: Any) -> None:
    if any(module.training for module in modules):
        raise AssertionError("Fusion only for eval!")
    if modules[-1].running_mean is None or modules[-1].running_var is None:
        raise AssertionError("Only support fusing with batch norms that track statistics")


def _fuse(
    weight: Any, bias: Any, mean: Any, var: Any, eps: float, bn_weight: Any, bn_bias: Any, channel_dim: int
) -> _Fused:
    """Scale the output channels of ``weight`` and shift ``bias``, each in the dtype that it has."""
    bias_dtype = weight.dtype if bias is None else bias.dtype
    bias = torch.zeros_like(mean) if bias is None else bias
    scale = torch.rsqrt(var + eps)
    if bn_weight is not None:
        scale = bn_weight * scale
    shift = (bias - mean) * scale
    if bn_bias is not None:
        shift = shift + bn_bias
    shape = [1] * weight.dim()
    shape[channel_dim] = -1
    fused_weight = (weight * scale.reshape(shape)).to(dtype=weight.dtype)
    return (
        torch.nn.Parameter(fused_weight, weight.requires_grad),
        torch.nn.Parameter(shift.to(dtype=bias_dtype), bias.requires_grad),
    )


def fuse_conv_bn_weights(
    conv_w: torch.Tensor,
    conv_b: torch.Tensor | None,
    bn_rm: torch.Tensor,
    bn_rv: torch.Tensor,
    bn_eps: float,
    bn_w: torch.Tensor | None,
    bn_b: torch.Tensor | None,
    transpose: bool = False,
) -> _Fused:
    """Return weight and bias of a convolution that does what a convolution and a batch norm do.

    Args:
        conv_w: the weight of the convolution.
        conv_b: its bias.
        bn_rm: the running mean of the batch norm.
        bn_rv: its running variance.
        bn_eps: its ``eps``.
        bn_w: its weight.
        bn_b: its bias.
        transpose: whether the convolution is a transposed one.
    """
    return _fuse(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, channel_dim=1 if transpose else 0)


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return a copy of ``conv`` that does what ``bn(conv(x))`` does.

    Args:
        conv: a convolution in evaluation mode.
        bn: a batch norm in evaluation mode, with running statistics.
        transpose: whether the convolution is a transposed one.

    Raises:
        AssertionError: a module is in training mode.

    Example::

        >>> fused = fuse_conv_bn_eval(model.conv1.eval(), model.bn1.eval())
    """
    _check_eval(conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: torch.Tensor,
    linear_b: torch.Tensor | None,
    bn_rm: torch.Tensor,
    bn_rv: torch.Tensor,
    bn_eps: float,
    bn_w: torch.Tensor,
    bn_b: torch.Tensor,
) -> _Fused:
    """Return weight and bias of a linear layer that does what a linear layer and a batch norm do.

    Args:
        linear_w: the weight of the linear layer.
        linear_b: its bias.
        bn_rm, bn_rv, bn_eps, bn_w, bn_b: as for :func:`fuse_conv_bn_weights`.
    """
    return _fuse(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, channel_dim=0)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Return a copy of ``linear`` that does what ``bn(linear(x))`` does.

    Args:
        linear: a linear layer in evaluation mode.
        bn: a batch norm in evaluation mode over as many features, or over one.

    Raises:
        AssertionError: a module is in training mode, or the sizes do not fit.
    """
    _check_eval(linear, bn)
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused
