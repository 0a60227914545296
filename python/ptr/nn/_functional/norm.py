"""Normalization as functions."""

from __future__ import annotations

import ptr as torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

Tensor = torch.Tensor
_VF = torch._C._VariableFunctions
_overridable = torch._C._overridable


def _verify_batch_size(size: Sequence[int]) -> None:
    product = size[0]
    for n in size[2:]:
        product *= n
    if product == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def _verify_spatial_size(size: Sequence[int]) -> None:
    product = 1
    for n in size[2:]:
        product *= n
    if product == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {size}")


@_overridable
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize each channel over the batch; see :class:`~ptr.nn.BatchNorm1d`.

    Raises:
        ValueError: in training, one value per channel.
    """
    if training:
        _verify_batch_size(input.size())
    return _VF.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


@_overridable
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize each channel of each sample; see :class:`~ptr.nn.InstanceNorm1d`.

    Raises:
        ValueError: with the input's own statistics, one place per channel.
    """
    if use_input_stats:
        _verify_spatial_size(input.size())
    return _VF.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


@_overridable
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize the last dimensions; see :class:`~ptr.nn.LayerNorm`."""
    return _VF.layer_norm(input, normalized_shape, weight, bias, eps, False)


@_overridable
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divide the last dimensions by the root of their mean square; see :class:`~ptr.nn.RMSNorm`."""
    return _VF.rms_norm(input, normalized_shape, weight, eps)


@_overridable
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalize groups of channels of each sample; see :class:`~ptr.nn.GroupNorm`.

    Raises:
        RuntimeError: fewer than two dimensions.
        ValueError: one value per group.
    """
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    size = input.size()
    _verify_batch_size([size[0] * size[1] // num_groups, num_groups, *size[2:]])
    return _VF.group_norm(input, num_groups, weight, bias, eps, False)


@_overridable
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Divide by a mean square over neighbouring channels; see :class:`~ptr.nn.LocalResponseNorm`.

    Raises:
        ValueError: fewer than three dimensions.
    """
    from ptr.nn import functional as F

    dim = input.dim()
    if dim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {dim} dimensions)")
    if input.numel() == 0:
        return input
    div = input.mul(input)
    before, after = size // 2, (size - 1) // 2
    if dim == 3:
        div = div.unsqueeze(1)
        div = F.pad(div, (0, 0, before, after))
        div = F.avg_pool2d(div, (size, 1), stride=1).squeeze(1)
    else:
        sizes = input.size()
        div = div.view(sizes[0], 1, sizes[1], sizes[2], -1)
        div = F.pad(div, (0, 0, 0, 0, before, after))
        div = F.avg_pool3d(div, (size, 1, 1), stride=1).squeeze(1)
        div = div.view(sizes)
    return input / div.mul(alpha).add(k).pow(beta)


@_overridable
def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """Divide by the ``p``-norm along ``dim``, or by ``eps`` where that is larger.

    Args:
        input: any tensor.
        p: the exponent of the norm.
        dim: the dimension or dimensions.
        eps: the least divisor.
        out: where to write the result; it is then not differentiable.
    """
    denominator = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    if out is None:
        return input / denominator
    return torch.div(input, denominator, out=out)
