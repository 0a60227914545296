"""RMSprop."""

from __future__ import annotations

import ptr as torch
from ptr.optim._lists import (
    ListOptimizer,
    Scratch,
    add_quotients,
    add_scaled,
    average,
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

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(ListOptimizer):
    """RMSprop: steps in units of the running root mean square of gradients.

    With gradient :math:`g` (plus ``weight_decay`` times the parameter; negated if ``maximize``), a step is

    .. math::
        v &\\leftarrow \\alpha v + (1 - \\alpha) g^2, \\qquad
        d = \\frac{g}{\\sqrt{v} + \\text{eps}} \\\\
        p &\\leftarrow p - \\text{lr} \\cdot d, \\quad \\text{or with momentum } b \\leftarrow \\mu b + d, \\;
        p \\leftarrow p - \\text{lr} \\cdot b

    after Hinton's lecture 6 of "Neural Networks for Machine Learning" (2012). ``centered`` takes the square of the
    running mean from :math:`v`, which makes it a variance: Graves, "Generating Sequences With Recurrent Neural
    Networks" (2013).

    Args:
        params: see :class:`~ptr.optim.Optimizer`.
        lr: the learning rate; may be a tensor of one element. Default: 1e-2.
        alpha: the coefficient of the running means. Default: 0.99.
        eps: keeps the denominator from zero. Default: 1e-8.
        weight_decay: Default: 0.
        momentum: Default: 0.
        centered: Default: ``False``.
        capturable: keep all numbers on the device, so that a graph can capture the step. Default: ``False``.
        foreach: step all parameters together (``True``) or one by one (``False``). Default: what is cheapest.
        maximize: go uphill. Default: ``False``.
        differentiable: record steps in the graph. Default: ``False``.

    Raises:
        ValueError: an option is out of its range.
    Example::

        >>> optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2)
        >>> optimizer.zero_grad()
        >>> loss_fn(model(input), target).backward()
        >>> optimizer.step()
    """

    _later_options = {**ListOptimizer._later_options, "momentum": 0, "centered": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative("epsilon", eps)
        check_not_negative("momentum", momentum)
        check_not_negative("weight_decay", weight_decay)
        check_not_negative("alpha", alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = {
            "step": self._counter(param, group),
            "square_avg": torch.zeros_like(param, memory_format=torch.preserve_format),
        }
        if group["momentum"] > 0:
            state["momentum_buffer"] = torch.zeros_like(param, memory_format=torch.preserve_format)
        if group["centered"]:
            state["grad_avg"] = torch.zeros_like(param, memory_format=torch.preserve_format)
        return state

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        mean = "grad_avg" if group["centered"] else None
        buffer = "momentum_buffer" if group["momentum"] > 0 else None
        return ("square_avg", mean, buffer, "step")

    def _update(self, group: dict[str, Any], rows: list[list[Any]]) -> None:
        rmsprop(*rows, **options_of(group, "lr", "alpha", "eps", "weight_decay", "momentum", "centered"))


@over_lists()
def rmsprop(
    params: Tensors,
    grads: Tensors,
    square_avgs: Tensors,
    grad_avgs: Tensors,
    momentum_buffer_list: Tensors,
    state_steps: Tensors,
    *,
    lr: float | Tensor,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
) -> None:
    """Make one step of RMSprop; see :class:`RMSprop`, and :func:`~ptr.optim._lists.over_lists` for more options."""
    lr = number(lr, capturable)
    scratch = Scratch(differentiable)
    torch._foreach_add_(state_steps, 1)
    grads = descent(params, grads, weight_decay, maximize)
    average_squares(square_avgs, grads, alpha)
    if centered:
        average(grad_avgs, grads, alpha)
        spreads = scratch.sqrt(torch._foreach_addcmul(square_avgs, grad_avgs, grad_avgs, value=-1))
    else:
        spreads = torch._foreach_sqrt(square_avgs)
    spreads = scratch.add(spreads, eps)
    if momentum > 0:
        torch._foreach_mul_(momentum_buffer_list, momentum)
        torch._foreach_addcdiv_(momentum_buffer_list, grads, spreads)
        add_scaled(params, momentum_buffer_list, -lr)
    else:
        add_quotients(params, grads, spreads, [-lr] * len(params))
