"""Pooling as functions, and the windows of an image as columns."""

from __future__ import annotations

import ptr as torch
from ptr.nn.modules.utils import _pair, _single, _triple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

Tensor = torch.Tensor
_nn = torch._C._nn
_VF = torch._C._VariableFunctions
_overridable = torch._C._overridable


def _list_with_default(out_size: Any, defaults: Sequence[int]) -> Any:
    """Return a wanted size in which ``None`` stands for the input's."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [d if v is None else v for v, d in zip(out_size, defaults[-len(out_size) :], strict=False)]


@_overridable
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Average an image over windows that make it ``output_size``; see :class:`~ptr.nn.AdaptiveAvgPool2d`."""
    return _nn.adaptive_avg_pool2d(input, _list_with_default(output_size, input.size()))


@_overridable
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Average a volume over windows that make it ``output_size``; see :class:`~ptr.nn.AdaptiveAvgPool3d`."""
    return _nn.adaptive_avg_pool3d(input, _list_with_default(output_size, input.size()))


def _power_mean(out: Tensor, norm_type: float, count: int) -> Tensor:
    return (torch.sign(out) * torch.relu(torch.abs(out))).mul(count).pow(1.0 / norm_type)


@_overridable
def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Take the ``norm_type``-norm over windows of a sequence; see :class:`~ptr.nn.LPPool1d`."""
    from ptr.nn import functional as F

    out = F.avg_pool1d(input.pow(norm_type), kernel_size, kernel_size if stride is None else stride, 0, ceil_mode)
    size = kernel_size if isinstance(kernel_size, int) else kernel_size[0]
    return _power_mean(out, norm_type, size)


@_overridable
def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Take the ``norm_type``-norm over windows of an image; see :class:`~ptr.nn.LPPool2d`."""
    from ptr.nn import functional as F

    kw, kh = _pair(kernel_size)
    out = F.avg_pool2d(input.pow(norm_type), kernel_size, kernel_size if stride is None else stride, 0, ceil_mode)
    return _power_mean(out, norm_type, kw * kh)


@_overridable
def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Take the ``norm_type``-norm over windows of a volume; see :class:`~ptr.nn.LPPool3d`."""
    from ptr.nn import functional as F

    kd, kw, kh = _triple(kernel_size)
    out = F.avg_pool3d(input.pow(norm_type), kernel_size, kernel_size if stride is None else stride, 0, ceil_mode)
    return _power_mean(out, norm_type, kd * kw * kh)


@_overridable
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Return the windows of an image as columns; see :class:`~ptr.nn.Unfold`."""
    return _nn.im2col(input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


@_overridable
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Sum columns into the windows of an image; see :class:`~ptr.nn.Fold`."""
    sizes = (_pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))
    return _nn.col2im(input, *sizes)


@_overridable
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maxima over windows and where they are; see :class:`~ptr.nn.MaxPool1d`."""
    stride = [] if stride is None else stride
    return _VF.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


@_overridable
def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maxima over windows, with ``return_indices`` also where they are; see :class:`~ptr.nn.MaxPool1d`."""
    if return_indices:
        return max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
    return _VF.max_pool1d(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)


@_overridable
def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maxima over windows and where they are; see :class:`~ptr.nn.MaxPool3d`."""
    stride = [] if stride is None else stride
    return _nn.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


@_overridable
def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maxima over windows, with ``return_indices`` also where they are; see :class:`~ptr.nn.MaxPool3d`."""
    if return_indices:
        return max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
    return _VF.max_pool3d(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)


@_overridable
def adaptive_max_pool1d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return the maxima over windows that make the output ``output_size``, and where they are."""
    return _VF.adaptive_max_pool1d(input, output_size)


@_overridable
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return the maxima over windows that make the output ``output_size``; see :class:`~ptr.nn.AdaptiveMaxPool1d`."""
    pair = adaptive_max_pool1d_with_indices(input, output_size)
    return pair if return_indices else pair[0]


@_overridable
def adaptive_max_pool2d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return the maxima over windows that make the output ``output_size``, and where they are."""
    return _nn.adaptive_max_pool2d(input, _list_with_default(output_size, input.size()))


@_overridable
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return the maxima over windows that make the output ``output_size``; see :class:`~ptr.nn.AdaptiveMaxPool2d`."""
    pair = adaptive_max_pool2d_with_indices(input, output_size)
    return pair if return_indices else pair[0]


@_overridable
def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return the maxima over windows that make the output ``output_size``, and where they are."""
    return _nn.adaptive_max_pool3d(input, _list_with_default(output_size, input.size()))


@_overridable
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return the maxima over windows that make the output ``output_size``; see :class:`~ptr.nn.AdaptiveMaxPool3d`."""
    pair = adaptive_max_pool3d_with_indices(input, output_size)
    return pair if return_indices else pair[0]


def _unpool_output_size(input: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any) -> list[int]:
    """Return the size that unpooling gives, which may be wanted a little larger or smaller than the default."""
    sizes = input.size()
    n = len(kernel_size)
    default = [(sizes[-n + d] - 1) * stride[d] + kernel_size[d] - 2 * padding[d] for d in range(n)]
    if output_size is None:
        return default
    if len(output_size) == n + 2:
        output_size = output_size[2:]
    if len(output_size) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of "
            f"'{len(output_size)}'"
        )
    for d in range(n):
        low, high = default[d] - stride[d], default[d] + stride[d]
        if not low < output_size[d] < high:
            raise ValueError(f'invalid output_size "{output_size}" (dim {d} must be between {low} and {high})')
    return list(output_size)


@_overridable
def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Undo :func:`max_pool1d`; see :class:`~ptr.nn.MaxUnpool1d`."""
    kernel_size, padding = _single(kernel_size), _single(padding)
    stride = kernel_size if stride is None else _single(stride)
    size = _unpool_output_size(input, kernel_size, stride, padding, output_size)
    return _nn.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1]).squeeze(-1)


@_overridable
def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Undo :func:`max_pool2d`; see :class:`~ptr.nn.MaxUnpool2d`."""
    kernel_size, padding = _pair(kernel_size), _pair(padding)
    stride = kernel_size if stride is None else _pair(stride)
    size = _unpool_output_size(input, kernel_size, stride, padding, output_size)
    return _nn.max_unpool2d(input, indices, size)


@_overridable
def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Undo :func:`max_pool3d`; see :class:`~ptr.nn.MaxUnpool3d`."""
    kernel_size, padding = _triple(kernel_size), _triple(padding)
    stride = kernel_size if stride is None else _triple(stride)
    size = _unpool_output_size(input, kernel_size, stride, padding, output_size)
    return _nn.max_unpool3d(input, indices, size, stride, padding)
