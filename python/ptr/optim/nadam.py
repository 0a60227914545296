"""Adam with Nesterov momentum."""

from __future__ import annotations

import ptr as torch
from ptr.optim._lists import (
    ListOptimizer,
    Scratch,
    add_quotients,
    average,
    average_squares,
    check_betas,
    check_lr,
    check_not_negative,
    count,
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

__all__ = ["NAdam", "nadam"]


class NAdam(ListOptimizer):
    """NAdam: :class:`~ptr.optim.Adam` with Nesterov momentum, whose coefficient :math:`\\mu_t` grows with the steps.

    With gradient :math:`g` (plus ``weight_decay`` times the parameter; negated if ``maximize``), step :math:`t` is

    .. math::
        \\mu_t &= \\beta_1 (1 - \\tfrac12 \\cdot 0.96^{t \\cdot \\text{momentum\\_decay}}), \\qquad
        M_t = \\mu_1 \\cdots \\mu_t \\\\
        m &\\leftarrow \\beta_1 m + (1 - \\beta_1) g, \\qquad v \\leftarrow \\beta_2 v + (1 - \\beta_2) g^2 \\\\
        p &\\leftarrow p - \\text{lr} \\frac{\\mu_{t+1} m / (1 - M_{t+1}) + (1 - \\mu_t) g / (1 - M_t)}
        {\\sqrt{v / (1 - \\beta_2^t)} + \\text{eps}}

    after Dozat, "Incorporating Nesterov Momentum into Adam" (2016).

    Args:
        params: see :class:`~ptr.optim.Optimizer`.
        lr: the learning rate; may be a tensor of one element. Default: 2e-3.
        betas: the coefficients of the running means. Default: (0.9, 0.999).
        eps: keeps the denominator from zero. Default: 1e-8.
        weight_decay: Default: 0.
        momentum_decay: Default: 4e-3.
        decoupled_weight_decay: weight decay shrinks parameters and leaves gradients alone, see
            :class:`~ptr.optim.AdamW`. Default: ``False``.
        foreach: step all parameters together (``True``) or one by one (``False``). Default: what is cheapest.
        maximize: go uphill. Default: ``False``.
        capturable: keep all numbers on the device, so that a graph can capture the step. Default: ``False``.
        differentiable: record steps in the graph. Default: ``False``.

    Raises:
        ValueError: an option is out of its range.
    Example::

        >>> optimizer = torch.optim.NAdam(model.parameters(), lr=2e-3)
        >>> optimizer.zero_grad()
        >>> loss_fn(model(input), target).backward()
        >>> optimizer.step()
    """

    _later_options = {**ListOptimizer._later_options, "decoupled_weight_decay": False}
    _counters = ("step", "mu_product")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative("epsilon", eps)
        check_betas(betas)
        check_not_negative("weight_decay", weight_decay)
        check_not_negative("momentum_decay", momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": self._counter(param, group),
            "mu_product": self._counter(param, group, 1.0),
            "exp_avg": torch.zeros_like(param, memory_format=torch.preserve_format),
            "exp_avg_sq": torch.zeros_like(param, memory_format=torch.preserve_format),
        }

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return ("exp_avg", "exp_avg_sq", "mu_product", "step")

    def _update(self, group: dict[str, Any], rows: list[list[Any]]) -> None:
        beta1, beta2 = group["betas"]
        names = ("lr", "weight_decay", "momentum_decay", "eps", "decoupled_weight_decay")
        nadam(*rows, beta1=beta1, beta2=beta2, **options_of(group, *names))


@over_lists()
def nadam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    mu_products: Tensors,
    state_steps: Tensors,
    *,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
    decoupled_weight_decay: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
) -> None:
    """Make one step of NAdam; see :class:`NAdam`, and :func:`~ptr.optim._lists.over_lists` for more options."""
    lr = number(lr, capturable)
    scratch = Scratch(differentiable)
    steps = count(state_steps, capturable)
    if decoupled_weight_decay and weight_decay != 0:
        torch._foreach_mul_(params, 1 - lr * weight_decay)
    grads = descent(params, grads, 0 if decoupled_weight_decay else weight_decay, maximize)
    average(exp_avgs, grads, beta1)
    average_squares(exp_avg_sqs, grads, beta2)
    spreads = torch._foreach_sqrt(exp_avg_sqs)
    spreads = scratch.div(spreads, [(1 - beta2**step) ** 0.5 for step in steps])
    spreads = scratch.add(spreads, eps)

    def mu(step: Any) -> Any:
        return beta1 * (1 - 0.5 * 0.96 ** (step * momentum_decay))

    torch._foreach_mul_(mu_products, [mu(step) for step in steps])
    products = values(mu_products, capturable)
    of_grads = [-lr * (1 - mu(step)) / (1 - product) for step, product in zip(steps, products, strict=True)]
    of_means = [
        -lr * mu(step + 1) / (1 - product * mu(step + 1)) for step, product in zip(steps, products, strict=True)
    ]
    add_quotients(params, grads, spreads, of_grads)
    add_quotients(params, exp_avgs, spreads, of_means)
