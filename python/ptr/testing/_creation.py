"""Random tensors for tests."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import ptr as torch

__all__ = ["make_tensor"]


def _bounds(
    dtype: Any,
    low: float | None,
    high: float | None,
    *,
    lowest: float,
    highest: float,
    default: tuple[float, float],
) -> tuple[float, float]:
    """Return the interval to draw from: the given one, checked and cut to what ``dtype`` holds."""
    low = default[0] if low is None else low
    high = default[1] if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low!r} and high={high!r}")
    if low == high and (dtype.is_floating_point or dtype.is_complex):
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated. "
            "Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=4,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < lowest or low >= highest:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports "
            f"[{lowest}, {highest})"
        )
    low = min(max(low, lowest), highest)
    high = min(max(high, lowest), highest)
    if dtype.is_floating_point or dtype.is_complex:
        return low, high
    return math.ceil(low), math.ceil(high)


def _fill_uniform(tensor: Any, low: float, high: float) -> None:
    if high - low >= torch.finfo(tensor.dtype).max:
        # The width itself would overflow.
        tensor.uniform_(low / 2, high / 2).mul_(2)
    else:
        tensor.uniform_(low, high)


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Any:
    """Return a tensor of random values.

    Args:
        *shape: the sizes, or one sequence of them.
        dtype: any boolean, integer, floating or complex dtype.
        device: where the tensor is.
        low, high: values lie in ``[low, high)``; cut to what the dtype holds. Default: ``[0, 2)`` for booleans,
            ``[-9, 10)`` for integers, ``[-9, 9)`` otherwise (both parts of complex numbers).
        requires_grad: whether the result is part of a graph.
        noncontiguous: whether the result has gaps in its last dimension; needs two elements or more.
        exclude_zero: replace zeros by the smallest positive number of the dtype (1 for integers).
        memory_format: of the result.

    Raises:
        ValueError: an empty interval, ``requires_grad`` for integers, or ``noncontiguous`` with ``memory_format``.
        TypeError: the dtype is not supported.

    Example::

        >>> make_tensor((2,), dtype=torch.float32, low=-1, high=1).shape
        torch.Size([2])
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"noncontiguous={noncontiguous!r} and memory_format={memory_format!r}"
        )
    continuous = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not continuous:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype!r}"
        )
    noncontiguous = noncontiguous and math.prod(sizes) > 1
    if noncontiguous:
        # Every other element of the last dimension is kept below.
        sizes = (*sizes[:-1], 2 * sizes[-1])

    if dtype is torch.bool:
        first, last = _bounds(dtype, low, high, lowest=0, highest=2, default=(0, 2))
        result = torch.randint(first, last, sizes, device=device, dtype=dtype)
    elif not continuous:
        info = torch.iinfo(dtype)
        # One past the greatest value does not fit where that is int64's.
        highest = info.max + (0 if dtype is torch.int64 else 1)
        first, last = _bounds(dtype, low, high, lowest=info.min, highest=highest, default=(-9, 10))
        result = torch.randint(first, last, sizes, device=device, dtype=dtype)
    elif dtype.itemsize == 1:
        raise TypeError(f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor().")
    else:
        info = torch.finfo(dtype)
        first, last = _bounds(dtype, low, high, lowest=info.min, highest=info.max, default=(-9, 9))
        result = torch.empty(sizes, device=device, dtype=dtype)
        _fill_uniform(torch.view_as_real(result) if dtype.is_complex else result, first, last)

    if noncontiguous:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = torch.finfo(dtype).tiny if continuous else 1
    if continuous:
        result.requires_grad = requires_grad
    return result
