"""Adadelta."""

from __future__ import annotations

import ptr as torch
from ptr.optim._lists import (
    ListOptimizer,
    Scratch,
    add_scaled,
    average_squares,
    check_lr,
    check_not_negative,
    descent,
    number,
    options_of,
    over_lists,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ptr.optim.optimizer import ParamsT

    Tensor = torch.Tensor
    Tensors = list[Tensor]

__all__ = ["Adadelta", "adadelta"]


class Adadelta(ListOptimizer):
    """Adadelta: steps whose size follows that of the latest ones, in units of the latest gradients.

    With gradient :math:`g` (plus ``weight_decay`` times the parameter; negated if ``maximize``) and :math:`\\rho`, a
    step is

    .. math::
        v &\\leftarrow \\rho v + (1 - \\rho) g^2, \\qquad
        d = \\frac{\\sqrt{u + \\text{eps}}}{\\sqrt{v + \\text{eps}}} g \\\\
        u &\\leftarrow \\rho u + (1 - \\rho) d^2, \\qquad p \\leftarrow p - \\text{lr} \\cdot d

    after Zeiler, "ADADELTA: An Adaptive Learning Rate Method" (2012).

    Args:
        params: see :class:`~ptr.optim.Optimizer`.
        lr: multiplies the step; may be a tensor of one element. Default: 1.
        rho: the coefficient of the running means of squares. Default: 0.9.
        eps: keeps the roots from zero. Default: 1e-6.
        weight_decay: Default: 0.
        foreach: step all parameters together (``True``) or one by one (``False``). Default: what is cheapest.
        capturable: keep all numbers on the device, so that a graph can capture the step. Default: ``False``.
        maximize: go uphill. Default: ``False``.
        differentiable: record steps in the graph. Default: ``False``.

    Raises:
        ValueError: an option is out of its range.
    Example::

        >>> optimizer = torch.optim.Adadelta(model.parameters())
        >>> optimizer.zero_grad()
        >>> loss_fn(model(input), target).backward()
        >>> optimizer.step()
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative("epsilon", eps)
        check_not_negative("weight_decay", weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": self._counter(param, group),
            "square_avg": torch.zeros_like(param, memory_format=torch.preserve_format),
            "acc_delta": torch.zeros_like(param, memory_format=torch.preserve_format),
        }

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return ("square_avg", "acc_delta", "step")

    def _update(self, group: dict[str, Any], rows: list[list[Any]]) -> None:
        adadelta(*rows, **options_of(group, "lr", "rho", "eps", "weight_decay"))


@over_lists()
def adadelta(
    params: Tensors,
    grads: Tensors,
    square_avgs: Tensors,
    acc_deltas: Tensors,
    state_steps: Tensors,
    *,
    lr: float | Tensor,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
    differentiable: bool = False,
    capturable: bool = False,
) -> None:
    """Make one step of Adadelta; see :class:`Adadelta`, and :func:`~ptr.optim._lists.over_lists` for more options."""
    lr = number(lr, capturable)
    scratch = Scratch(differentiable)
    torch._foreach_add_(state_steps, 1)
    grads = descent(params, grads, weight_decay, maximize)
    average_squares(square_avgs, grads, rho)
    spreads = scratch.sqrt(torch._foreach_add(square_avgs, eps))
    deltas = scratch.sqrt(torch._foreach_add(acc_deltas, eps))
    deltas = scratch.mul(scratch.div(deltas, spreads), grads)
    average_squares(acc_deltas, deltas, rho)
    add_scaled(params, deltas, -lr)
