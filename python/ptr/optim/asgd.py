"""Averaged stochastic gradient descent."""

from __future__ import annotations

import ptr as torch
from ptr.optim._lists import (
    ListOptimizer,
    check_lr,
    check_not_negative,
    count,
    counter_dtype,
    descent,
    number,
    options_of,
    over_lists,
    values,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ptr.optim.optimizer import ParamsT

    Tensor = torch.Tensor
    Tensors = list[Tensor]

__all__ = ["ASGD", "asgd"]


class ASGD(ListOptimizer):
    """Averaged stochastic gradient descent: the state ``ax`` holds the average of parameters from step ``t0`` on.

    With gradient :math:`g` (plus ``weight_decay`` times the parameter; negated if ``maximize``) and :math:`\\lambda`
    for ``lambd``, step :math:`t` is

    .. math::
        p &\\leftarrow (1 - \\lambda \\eta) p - \\eta g, \\qquad a \\leftarrow a + \\mu (p - a) \\\\
        \\eta &\\leftarrow \\text{lr} / (1 + \\lambda \\cdot \\text{lr} \\cdot t)^\\alpha, \\qquad
        \\mu \\leftarrow 1 / \\max(1, t - t_0)

    after Polyak and Juditsky, "Acceleration of Stochastic Approximation by Averaging" (1992).

    Args:
        params: see :class:`~ptr.optim.Optimizer`.
        lr: the learning rate; may be a tensor of one element. Default: 1e-2.
        lambd: the decay of parameters. Default: 1e-4.
        alpha: the power with which the learning rate falls. Default: 0.75.
        t0: the step from which on parameters are averaged. Default: 1e6.
        weight_decay: Default: 0.
        foreach: step all parameters together (``True``) or one by one (``False``). Default: what is cheapest.
        maximize: go uphill. Default: ``False``.
        differentiable: record steps in the graph. Default: ``False``.
        capturable: keep all numbers on the device, so that a graph can capture the step. Default: ``False``.

    Raises:
        ValueError: an option is out of its range.
    Example::

        >>> optimizer = torch.optim.ASGD(model.parameters(), lr=1e-2)
        >>> optimizer.zero_grad()
        >>> loss_fn(model(input), target).backward()
        >>> optimizer.step()
    """

    _counters = ("step", "eta", "mu")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative("weight_decay", weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _counter(self, param: Tensor, group: dict[str, Any], value: Any = 0.0) -> Tensor:
        # They multiply the parameter, so they are where it is.
        return torch.tensor(value, dtype=counter_dtype(), device=param.device)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": self._counter(param, group),
            "eta": self._counter(param, group, float(group["lr"])),
            "mu": self._counter(param, group, 1.0),
            "ax": torch.zeros_like(param, memory_format=torch.preserve_format),
        }

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return ("ax", "mu", "eta", "step")

    def _update(self, group: dict[str, Any], rows: list[list[Any]]) -> None:
        asgd(*rows, **options_of(group, "lambd", "lr", "t0", "alpha", "weight_decay"))


@over_lists()
def asgd(
    params: Tensors,
    grads: Tensors,
    axs: Tensors,
    mus: Tensors,
    etas: Tensors,
    state_steps: Tensors,
    *,
    lambd: float,
    lr: float | Tensor,
    t0: float,
    alpha: float,
    weight_decay: float,
    maximize: bool = False,
    capturable: bool = False,
) -> None:
    """Make one step of ASGD; see :class:`ASGD`, and :func:`~ptr.optim._lists.over_lists` for more options."""
    lr = number(lr, capturable)
    steps = count(state_steps, capturable)
    grads = descent(params, grads, weight_decay, maximize)
    rates = values(etas, capturable)
    torch._foreach_mul_(params, [1 - lambd * rate for rate in rates])
    torch._foreach_sub_(params, torch._foreach_mul(grads, rates))
    torch._foreach_add_(axs, torch._foreach_mul(torch._foreach_sub(params, axs), values(mus, capturable)))
    for eta, mu, step in zip(etas, mus, steps, strict=True):
        eta.copy_(torch.as_tensor(lr / (1 + lambd * lr * step) ** alpha))
        late = step - t0
        mu.copy_(torch.as_tensor(1 / (late.clamp(min=1) if capturable else max(1, late))))
