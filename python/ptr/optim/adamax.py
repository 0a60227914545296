"""Adamax."""

from __future__ import annotations

import ptr as torch
from ptr.optim._lists import (
    ListOptimizer,
    Scratch,
    add_quotients,
    average,
    check_betas,
    check_lr,
    check_not_negative,
    count,
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

__all__ = ["Adamax", "adamax"]


class Adamax(ListOptimizer):
    """Adamax: :class:`~ptr.optim.Adam` in units of a decaying maximum of gradients.

    With gradient :math:`g` (plus ``weight_decay`` times the parameter; negated if ``maximize``), step :math:`t` is

    .. math::
        m &\\leftarrow \\beta_1 m + (1 - \\beta_1) g, \\qquad u \\leftarrow \\max(\\beta_2 u, |g| + \\text{eps}) \\\\
        p &\\leftarrow p - \\frac{\\text{lr}}{1 - \\beta_1^t} \\cdot \\frac{m}{u}

    after Kingma and Ba, "Adam: A Method for Stochastic Optimization" (2014).

    Args:
        params: see :class:`~ptr.optim.Optimizer`.
        lr: the learning rate; may be a tensor of one element. Default: 2e-3.
        betas: the coefficients of the running mean and of the maximum. Default: (0.9, 0.999).
        eps: keeps the denominator from zero. Default: 1e-8.
        weight_decay: Default: 0.
        foreach: step all parameters together (``True``) or one by one (``False``). Default: what is cheapest.
        maximize: go uphill. Default: ``False``.
        differentiable: record steps in the graph. Default: ``False``.
        capturable: keep all numbers on the device, so that a graph can capture the step. Default: ``False``.

    Raises:
        ValueError: an option is out of its range.
    Example::

        >>> optimizer = torch.optim.Adamax(model.parameters(), lr=2e-3)
        >>> optimizer.zero_grad()
        >>> loss_fn(model(input), target).backward()
        >>> optimizer.step()
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative("epsilon", eps)
        check_betas(betas)
        check_not_negative("weight_decay", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": self._counter(param, group),
            "exp_avg": torch.zeros_like(param, memory_format=torch.preserve_format),
            "exp_inf": torch.zeros_like(param, memory_format=torch.preserve_format),
        }

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return ("exp_avg", "exp_inf", "step")

    def _update(self, group: dict[str, Any], rows: list[list[Any]]) -> None:
        beta1, beta2 = group["betas"]
        adamax(*rows, beta1=beta1, beta2=beta2, **options_of(group, "lr", "eps", "weight_decay"))


@over_lists()
def adamax(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_infs: Tensors,
    state_steps: Tensors,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    weight_decay: float,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
) -> None:
    """Make one step of Adamax; see :class:`Adamax`, and :func:`~ptr.optim._lists.over_lists` for more options."""
    lr = number(lr, capturable)
    steps = count(state_steps, capturable)
    grads = descent(params, grads, weight_decay, maximize)
    average(exp_avgs, grads, beta1)
    torch._foreach_mul_(exp_infs, beta2)
    torch._foreach_maximum_(exp_infs, Scratch(differentiable).add(torch._foreach_abs(grads), eps))
    add_quotients(params, exp_avgs, exp_infs, [-lr / (1 - beta1**step) for step in steps])
