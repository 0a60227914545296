"""The reduction argument of losses, and what losses of single elements do with it."""

from __future__ import annotations

import warnings

import ptr as torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Tensor = torch.Tensor

_ENUM = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """Return the number by which operators know ``reduction``.

    Raises:
        ValueError: ``reduction`` is not one of "none", "mean" and "sum".
    """
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2)
        return _ENUM["mean"]
    try:
        return _ENUM[reduction]
    except (KeyError, TypeError):
        raise ValueError(f"{reduction} is not a valid value for reduction") from None


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """Return the reduction that the deprecated arguments ``size_average`` and ``reduce`` stand for."""
    if reduce is not None and not reduce:
        reduction = "none"
    else:
        reduction = "mean" if size_average is None or size_average else "sum"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=2,
        )
    return reduction


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """Return :func:`get_enum` of :func:`legacy_get_string`."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


def string_of(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Return the reduction, which the deprecated arguments may name."""
    if size_average is not None or reduce is not None:
        return legacy_get_string(size_average, reduce)
    return reduction


def enum_of(size_average: bool | None, reduce: bool | None, reduction: str) -> int:
    """Return :func:`get_enum` of :func:`string_of`."""
    return get_enum(string_of(size_average, reduce, reduction))


def warn_of_sizes(input: Tensor, target: Tensor) -> None:
    """Warn of sizes that broadcast, which is rarely meant."""
    if target.size() != input.size():
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=3,
        )


def elementwise(
    loss: Callable[[Tensor, Tensor, int], Tensor], input: Tensor, target: Tensor, reduction: str, weight: Tensor | None
) -> Tensor:
    """Return ``loss(input, target, reduction)``, or its reduction by the weights of the elements.

    Raises:
        ValueError: ``reduction`` is unknown, or ``weight`` has another shape than ``input``.
    """
    wide_input, wide_target = torch.broadcast_tensors(input, target)
    if weight is None:
        return loss(wide_input, wide_target, get_enum(reduction))
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    weighted = loss(wide_input, wide_target, _ENUM["none"]) * weight
    if reduction == "none":
        return weighted
    if reduction == "sum":
        return weighted.sum()
    if reduction == "mean":
        return weighted.sum() / weight.sum()
    raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")
