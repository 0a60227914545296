"""Parameters as one vector and back."""

from __future__ import annotations

import ptr as torch
from ptr._utils import typename

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _check_device(param: torch.Tensor, first: torch.device | None) -> torch.device:
    if first is not None and param.device != first:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return param.device


def parameters_to_vector(parameters: Iterable[torch.Tensor]) -> torch.Tensor:
    """Return all ``parameters``, flattened and joined in order, as one vector.

    Raises:
        TypeError: the parameters are on several devices.
    """
    device = None
    flat = []
    for param in parameters:
        device = _check_device(param, device)
        flat.append(param.view(-1))
    return torch.cat(flat)


def vector_to_parameters(vec: torch.Tensor, parameters: Iterable[torch.Tensor]) -> None:
    """Make ``parameters`` views of consecutive slices of ``vec``.

    Raises:
        TypeError: ``vec`` is no tensor, or the parameters are on several devices.
    """
    if not isinstance(vec, torch.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    device = None
    start = 0
    for param in parameters:
        device = _check_device(param, device)
        stop = start + param.numel()
        param.data = vec[start:stop].view_as(param).data
        start = stop
