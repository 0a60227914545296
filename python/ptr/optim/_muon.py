"""Muon."""

from __future__ import annotations

import math

import ptr as torch
from ptr.optim._lists import check_one_element, number
from ptr.optim.optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ptr.optim.optimizer import ParamsT

    Tensor = torch.Tensor
    Tensors = list[Tensor]

__all__ = ["Muon"]

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)


class Muon(Optimizer):
    """Muon: momentum, made orthogonal; for the matrices of hidden layers.

    With gradient :math:`g` of an :math:`A \\times B` matrix and momentum :math:`\\mu`, a step is

    .. math::
        b &\\leftarrow \\mu b + (1 - \\mu) g, \\qquad
        u = \\text{NS}(b), \\quad \\text{or } \\text{NS}(\\mu b + (1 - \\mu) g) \\text{ with nesterov} \\\\
        p &\\leftarrow (1 - \\text{lr} \\cdot \\text{weight\\_decay}) p - \\text{lr} \\cdot s u

    where NS makes all singular values about one by a Newton-Schulz iteration in bfloat16, and :math:`s` is
    :math:`\\sqrt{\\max(1, A / B)}`, after Jordan, "Muon: An optimizer for hidden layers in neural networks" (2024), or
    :math:`0.2 \\sqrt{\\max(A, B)}`, after Liu et al., "Muon is Scalable for LLM Training" (2025).

    Args:
        params: see :class:`~ptr.optim.Optimizer`; real matrices. Others are for another optimizer.
        lr: the learning rate; may be a tensor of one element. Default: 1e-3.
        weight_decay: Default: 0.1.
        momentum: Default: 0.95.
        nesterov: Default: ``True``.
        ns_coefficients: the coefficients of the iteration's first, third and fifth power.
            Default: (3.4445, -4.7750, 2.0315).
        eps: the least norm that a matrix is divided by. Default: 1e-7.
        ns_steps: the number of iterations, below 100. Default: 5.
        adjust_lr_fn: ``"original"`` or ``"match_rms_adamw"``: which :math:`s`. Default: the first.

    Raises:
        ValueError: an option is out of its range, or a parameter is no matrix.

    Example::

        >>> muon = torch.optim.Muon([p for p in model.parameters() if p.ndim == 2], lr=0.02)
        >>> adamw = torch.optim.AdamW([p for p in model.parameters() if p.ndim != 2])
        >>> loss_fn(model(input), target).backward()
        >>> muon.step()
        >>> adamw.step()
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = _COEFFICIENTS,
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_one_element("lr", lr)
        for name, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if not value >= 0.0:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}"
                    )

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters once.

        Args:
            closure: recomputes the loss and its gradients.

        Returns:
            the closure's loss, or ``None``.

        Raises:
            RuntimeError: a parameter is complex, or a gradient sparse.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            rows: list[Tensors] = [[], [], []]
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if param.is_complex():
                    raise RuntimeError("Muon does not support complex parameters")
                if grad.is_sparse:
                    raise RuntimeError("Muon does not support sparse gradients")
                state = self.state[param]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(grad, memory_format=torch.preserve_format)
                for row, tensor in zip(rows, (param, grad, state["momentum_buffer"]), strict=True):
                    row.append(tensor)
            names = ("lr", "weight_decay", "momentum", "nesterov", "ns_coefficients", "ns_steps", "eps", "adjust_lr_fn")
            muon(*rows, has_complex=False, **{name: group[name] for name in names})
        return loss


def _orthogonal(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Return about ``u @ v.T``, where the matrix is ``u @ diag(s) @ v.T``, in bfloat16.

    Each iteration applies an odd polynomial of degree five to the singular values. Its slope at zero is steep, so that
    small ones grow fast; it does not converge, but ends between about 0.5 and 1.5.
    """
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if matrix.ndim != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    first, third, fifth = coefficients
    # The Gram matrix is the smaller one.
    is_tall = matrix.size(0) > matrix.size(1)
    x = matrix.bfloat16()
    if is_tall:
        x = x.T
    # No singular value is larger than the root of the sum of their squares.
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=third, alpha=fifth), x, beta=first)
    return x.T if is_tall else x


def _scale(kind: str | None, shape: torch.Size) -> float:
    height, width = shape[:2]
    if kind is None or kind == "original":
        return math.sqrt(max(1, height / width))
    return 0.2 * math.sqrt(max(height, width)) if kind == "match_rms_adamw" else 1.0


def muon(
    params: Tensors,
    grads: Tensors,
    muon_momentum_bufs: Tensors,
    *,
    foreach: bool | None = None,
    lr: float | Tensor,
    weight_decay: float,
    momentum: float,
    nesterov: bool,
    ns_coefficients: tuple[float, float, float],
    ns_steps: int,
    eps: float,
    adjust_lr_fn: str | None,
    has_complex: bool,
) -> None:
    """Make one step of Muon; see :class:`Muon`."""
    if foreach:
        raise RuntimeError("Foreach is not supported for Muon yet")
    if has_complex:
        raise ValueError("Complex parameters are not supported")
    lr = number(lr)
    # One by one: what takes time are products of matrices, which have no form over lists.
    for param, grad, buffer in zip(params, grads, muon_momentum_bufs, strict=True):
        if grad.ndim != 2:
            raise ValueError("Param gradient must be a 2D matrix")
        buffer.lerp_(grad, 1 - momentum)
        update = grad.lerp(buffer, momentum) if nesterov else buffer
        update = _orthogonal(update, ns_coefficients, ns_steps, eps)
        param.mul_(1 - lr * weight_decay)
        param.add_(update, alpha=-lr * _scale(adjust_lr_fn, param.shape))
