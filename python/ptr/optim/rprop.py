"""Resilient backpropagation."""

from __future__ import annotations

import ptr as torch
from ptr.optim._lists import (
    ListOptimizer,
    check_lr,
    descent,
    options_of,
    over_lists,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ptr.optim.optimizer import ParamsT

    Tensor = torch.Tensor
    Tensors = list[Tensor]

__all__ = ["Rprop", "rprop"]


class Rprop(ListOptimizer):
    """Rprop: each element has a step size of its own; of the gradients only the signs count.

    With gradient :math:`g` (negated if ``maximize``), a step is

    .. math::
        s &\\leftarrow \\text{clamp}(s \\cdot \\eta_\\pm), \\quad \\eta_+ \\text{ if } g \\text{ has the sign of the
        last one, }
        \\eta_- \\text{ if it has the other} \\\\
        g &\\leftarrow 0 \\text{ in the latter case} \\\\
        p &\\leftarrow p - s \\cdot \\text{sign}(g)

    after Riedmiller and Braun, "A Direct Adaptive Method for Faster Backpropagation Learning: The RPROP Algorithm"
    (1993).

    Args:
        params: see :class:`~ptr.optim.Optimizer`.
        lr: the first step size; may be a tensor of one element. Default: 1e-2.
        etas: :math:`\\eta_-` and :math:`\\eta_+`. Default: (0.5, 1.2).
        step_sizes: the least and the greatest step size. Default: (1e-6, 50).
        capturable: keep all numbers on the device, so that a graph can capture the step. Default: ``False``.
        foreach: step all parameters together (``True``) or one by one (``False``). Default: what is cheapest.
        maximize: go uphill. Default: ``False``.
        differentiable: record steps in the graph. Default: ``False``.

    Raises:
        ValueError: an option is out of its range.
    Example::

        >>> optimizer = torch.optim.Rprop(model.parameters(), lr=1e-2)
        >>> optimizer.zero_grad()
        >>> loss_fn(model(input), target).backward()
        >>> optimizer.step()
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        lr = float(group["lr"])
        # A complex number is two real ones, each with a step size.
        start = complex(lr, lr) if param.is_complex() else lr
        return {
            "step": self._counter(param, group),
            "prev": torch.zeros_like(param, memory_format=torch.preserve_format),
            "step_size": torch.full_like(param.grad, start),
        }

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return ("prev", "step_size", "step")

    def _update(self, group: dict[str, Any], rows: list[list[Any]]) -> None:
        smallest, largest = group["step_sizes"]
        etaminus, etaplus = group["etas"]
        rprop(
            *rows,
            step_size_min=smallest,
            step_size_max=largest,
            etaminus=etaminus,
            etaplus=etaplus,
            **options_of(group),
        )


@over_lists()
def rprop(
    params: Tensors,
    grads: Tensors,
    prevs: Tensors,
    step_sizes: Tensors,
    state_steps: Tensors,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
    maximize: bool = False,
) -> None:
    """Make one step of Rprop; see :class:`Rprop`, and :func:`~ptr.optim._lists.over_lists` for more options."""
    torch._foreach_add_(state_steps, 1)
    grads = descent(params, grads, 0, maximize)
    signs = torch._foreach_sign(torch._foreach_mul(grads, [prev.clone() for prev in prevs]))
    where = torch.where
    # `sign` is in each `where`, as it gives the result its dtype.
    factors = [where(sign > 0, etaplus, where(sign < 0, etaminus, where(sign == 0, 1, sign))) for sign in signs]
    torch._foreach_mul_(step_sizes, factors)
    torch._foreach_clamp_min_(step_sizes, step_size_min)
    torch._foreach_clamp_max_(step_sizes, step_size_max)
    # Where the sign has changed, the step overshot: nothing moves, and the next step starts afresh.
    grads = [where(sign < 0, 0, grad) for sign, grad in zip(signs, grads, strict=True)]
    torch._foreach_addcmul_(params, torch._foreach_sign(grads), step_sizes, value=-1)
    torch._foreach_copy_(prevs, grads)
