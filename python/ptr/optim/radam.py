"""Rectified Adam."""

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
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ptr.optim.optimizer import ParamsT

    Tensor = torch.Tensor
    Tensors = list[Tensor]

__all__ = ["RAdam", "radam"]


class RAdam(ListOptimizer):
    """RAdam: :class:`~ptr.optim.Adam` that trusts its denominator only as far as enough gradients went into it.

    With gradient :math:`g` (plus ``weight_decay`` times the parameter; negated if ``maximize``), step :math:`t` is

    .. math::
        m &\\leftarrow \\beta_1 m + (1 - \\beta_1) g, \\qquad v \\leftarrow \\beta_2 v + (1 - \\beta_2) g^2 \\\\
        \\rho_\\infty &= \\frac{2}{1 - \\beta_2} - 1, \\qquad
        \\rho_t = \\rho_\\infty - \\frac{2 t \\beta_2^t}{1 - \\beta_2^t} \\\\
        r &= \\sqrt{\\frac{(\\rho_t - 4)(\\rho_t - 2) \\rho_\\infty}{(\\rho_\\infty - 4)(\\rho_\\infty - 2) \\rho_t}}
        \\\\
        p &\\leftarrow p - \\frac{\\text{lr} \\cdot m}{1 - \\beta_1^t} \\cdot
        \\begin{cases} r \\sqrt{1 - \\beta_2^t} / (\\sqrt v + \\text{eps}) & \\rho_t > 5 \\\\ 1 \\end{cases}

    after Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond" (2019).

    Args:
        params: see :class:`~ptr.optim.Optimizer`.
        lr: the learning rate; may be a tensor of one element. Default: 1e-3.
        betas: the coefficients of the running means. Default: (0.9, 0.999).
        eps: keeps the denominator from zero. Default: 1e-8.
        weight_decay: Default: 0.
        decoupled_weight_decay: weight decay shrinks parameters and leaves gradients alone, as in the paper and in
            :class:`~ptr.optim.AdamW`. Default: ``False``.
        foreach: step all parameters together (``True``) or one by one (``False``). Default: what is cheapest.
        maximize: go uphill. Default: ``False``.
        capturable: keep all numbers on the device, so that a graph can capture the step. Default: ``False``.
        differentiable: record steps in the graph. Default: ``False``.

    Raises:
        ValueError: an option is out of its range.
    Example::

        >>> optimizer = torch.optim.RAdam(model.parameters(), lr=1e-3)
        >>> optimizer.zero_grad()
        >>> loss_fn(model(input), target).backward()
        >>> optimizer.step()
    """

    _later_options = {**ListOptimizer._later_options, "decoupled_weight_decay": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
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
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": self._counter(param, group),
            "exp_avg": torch.zeros_like(param, memory_format=torch.preserve_format),
            "exp_avg_sq": torch.zeros_like(param, memory_format=torch.preserve_format),
        }

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return ("exp_avg", "exp_avg_sq", "step")

    def _update(self, group: dict[str, Any], rows: list[list[Any]]) -> None:
        beta1, beta2 = group["betas"]
        names = ("lr", "weight_decay", "eps", "decoupled_weight_decay")
        radam(*rows, beta1=beta1, beta2=beta2, **options_of(group, *names))


def _factors(step: Any, lr: Any, beta1: float, beta2: float, capturable: bool) -> tuple[Any, Any]:
    """Return what multiplies the mean over its spread, and the mean: one of them, but both if both are tensors."""
    far = 2 / (1 - beta2) - 1
    correction = 1 - beta2**step
    length = far - 2 * step * beta2**step / correction
    plain = -lr / (1 - beta1**step)

    def rectified() -> Any:
        square = (length - 4) * (length - 2) * far / ((far - 4) * (far - 2) * length)
        return (correction * square) ** 0.5 * plain

    if capturable:
        is_long = length > 5
        return torch.where(is_long, rectified(), 0.0), torch.where(is_long, 0.0, plain)
    return (rectified(), None) if length > 5 else (None, plain)


def _pick(factors: Any, *rows: Tensors) -> list[Any]:
    """Return the columns that have a factor, then the factors."""
    there = [i for i, factor in enumerate(factors) if factor is not None]
    return [[row[i] for i in there] for row in (*rows, factors)]


@over_lists()
def radam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    state_steps: Tensors,
    *,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    decoupled_weight_decay: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
) -> None:
    """Make one step of RAdam; see :class:`RAdam`, and :func:`~ptr.optim._lists.over_lists` for more options."""
    lr = number(lr, capturable)
    scratch = Scratch(differentiable)
    steps = count(state_steps, capturable)
    if decoupled_weight_decay and weight_decay != 0:
        torch._foreach_mul_(params, 1 - lr * weight_decay)
    grads = descent(params, grads, 0 if decoupled_weight_decay else weight_decay, maximize)
    average(exp_avgs, grads, beta1)
    average_squares(exp_avg_sqs, grads, beta2)
    rectified, plain = zip(*(_factors(step, lr, beta1, beta2, capturable) for step in steps), strict=True)
    some, means, squares, factors = _pick(rectified, params, exp_avgs, exp_avg_sqs)
    if some:
        add_quotients(some, means, scratch.add(torch._foreach_sqrt(squares), eps), factors)
    some, means, factors = _pick(plain, params, exp_avgs)
    if some:
        torch._foreach_add_(some, torch._foreach_mul(means, factors))
