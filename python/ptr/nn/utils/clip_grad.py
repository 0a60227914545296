"""Clipping of gradients."""

from __future__ import annotations

import warnings

import ptr as torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Tensors = torch.Tensor | Iterable[torch.Tensor]

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _as_list(tensors: Any) -> list[Any]:
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def _groups(tensors: list[Any]) -> dict[Any, list[Any]]:
    """Sort tensors by device and dtype: one multi-tensor call each."""
    groups: dict[Any, list[Any]] = {}
    for tensor in tensors:
        groups.setdefault((tensor.device, tensor.dtype), []).append(tensor)
    return groups


def _check_foreach(device: Any, foreach: bool | None) -> None:
    if foreach and device.type not in ("cpu", "cuda"):
        raise RuntimeError(f"foreach=True was passed, but can't use the foreach API on {device.type} tensors")


def _use_foreach(tensors: list[Any], device: Any, foreach: bool | None) -> bool:
    _check_foreach(device, foreach)
    if foreach is None:
        return all(type(t) is torch.Tensor or type(t) is torch.nn.Parameter for t in tensors)
    return foreach


def _norms(tensors: list[Any], p: float) -> Any:
    """Return the p-norms of all elements of each tensor, as a vector of their dtype (of their real part's, where
    complex)."""
    if p == 2 and tensors[0].dtype in (torch.float32, torch.float64):
        # One pass over the elements, where `norm` makes several.
        vectors = [tensor.reshape(-1) for tensor in tensors]
        return torch.stack([vector.dot(vector) for vector in vectors]).sqrt_()
    return torch.stack([torch.norm(tensor, p) for tensor in tensors])


def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> torch.Tensor:
    """Return the norm of all ``tensors``, as if they were one vector.

    Args:
        tensors: a tensor or an iterable of them.
        norm_type: the order of the norm; may be ``inf``.
        error_if_nonfinite: raise if the norm is infinite or not a number.
        foreach: use multi-tensor operations. Default: where they are cheaper.

    Raises:
        RuntimeError: the norm is not finite and ``error_if_nonfinite`` is set.
    """
    tensors = _as_list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return torch.tensor(0.0)
    with torch.no_grad():
        norms = []
        for (device, _), group in _groups(tensors).items():
            _check_foreach(device, foreach)  # Norms have no form over lists.
            norms.append(_norms(group, norm_type).to(tensors[0].device))
        total = _norms([norms[0] if len(norms) == 1 else torch.cat(norms)], norm_type).squeeze(0)
    if error_if_nonfinite and not torch.isfinite(total):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: torch.Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients of ``parameters`` by ``max_norm / total_norm`` where that is below 1.

    Args:
        parameters: a tensor or an iterable of them.
        max_norm: the greatest norm allowed.
        total_norm: the norm they have, see :func:`get_total_norm`.
        foreach: use multi-tensor operations. Default: where they are cheaper.
    """
    grads = [p.grad for p in _as_list(parameters) if p.grad is not None]
    if not grads:
        return
    with torch.no_grad():
        # Always multiplied, by at most 1, which spares a device the round trip of a comparison.
        factor = torch.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
        for (device, _), group in _groups(grads).items():
            local = factor.to(device)
            if _use_foreach(group, device, foreach):
                torch._foreach_mul_(group, local)
            else:
                for grad in group:
                    grad.mul_(local)


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> torch.Tensor:
    """Scale the gradients of ``parameters``, in place, so that their common norm is at most ``max_norm``.

    Args:
        parameters: a tensor or an iterable of them.
        max_norm: the greatest norm allowed.
        norm_type: the order of the norm; may be ``inf``.
        error_if_nonfinite: raise if the norm is infinite or not a number.
        foreach: use multi-tensor operations. Default: where they are cheaper.

    Returns:
        the norm before clipping.

    Example::

        >>> loss.backward()
        >>> nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        >>> optimizer.step()
    """
    params = _as_list(parameters)
    if not params and hasattr(parameters, "send"):  # A generator that something else has already used up.
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    grads = [p.grad for p in params if p.grad is not None]
    total_norm = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(params, max_norm, total_norm, foreach)
    return total_norm


def clip_grad_norm(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> torch.Tensor:
    """Deprecated name of :func:`clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp each element of the gradients of ``parameters`` to ``[-clip_value, clip_value]``, in place.

    Args:
        parameters: a tensor or an iterable of them.
        clip_value: the greatest magnitude allowed.
        foreach: use multi-tensor operations. Default: where they are cheaper.
    """
    clip_value = float(clip_value)
    grads = [p.grad for p in _as_list(parameters) if p.grad is not None]
    with torch.no_grad():
        for (device, _), group in _groups(grads).items():
            # On request only: a tensor's own operator does both in one pass.
            if _use_foreach(group, device, bool(foreach)):
                torch._foreach_clamp_min_(group, -clip_value)
                torch._foreach_clamp_max_(group, clip_value)
            else:
                for grad in group:
                    grad.clamp_(min=-clip_value, max=clip_value)
