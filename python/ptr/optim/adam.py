"""Adam."""

from __future__ import annotations

import ptr as torch
from ptr.optim._lists import (
    ListOptimizer,
    Scratch,
    add_quotients,
    average,
    average_squares,
    check_betas,
    check_fused_alone,
    check_lr,
    check_not_negative,
    check_one_element,
    count,
    descent,
    number,
    options_of,
    over_lists,
    run_fused,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ptr.optim.optimizer import ParamsT

    Tensor = torch.Tensor
    Tensors = list[Tensor]

__all__ = ["Adam", "adam"]


class Adam(ListOptimizer):
    """Adam: steps along the running mean of gradients, in units of their running root mean square.

    With gradient :math:`g` (plus ``weight_decay`` times the parameter; negated if ``maximize``), step :math:`t` is

    .. math::
        m &\\leftarrow \\beta_1 m + (1 - \\beta_1) g, \\qquad v \\leftarrow \\beta_2 v + (1 - \\beta_2) g^2 \\\\
        p &\\leftarrow p - \\text{lr} \\frac{m / (1 - \\beta_1^t)}{\\sqrt{v / (1 - \\beta_2^t)} + \\text{eps}}

    after Kingma and Ba, "Adam: A Method for Stochastic Optimization" (2014). ``amsgrad`` puts the largest :math:`v` so
    far in its place: Reddi et al., "On the Convergence of Adam and Beyond" (2018).

    Args:
        params: see :class:`~ptr.optim.Optimizer`.
        lr: the learning rate; may be a tensor of one element. Default: 1e-3.
        betas: the coefficients of the running means, both floats or both tensors of one element.
            Default: (0.9, 0.999).
        eps: keeps the denominator from zero. Default: 1e-8.
        weight_decay: Default: 0.
        amsgrad: Default: ``False``.
        foreach: step all parameters together (``True``) or one by one (``False``). Default: what is cheapest.
        maximize: go uphill. Default: ``False``.
        capturable: keep all numbers on the device, so that a graph can capture the step. Default: ``False``.
        differentiable: record steps in the graph. Default: ``False``.
        fused: step in one operator. ``None``, together with ``foreach=None``, does so where the parameters allow it.
        decoupled_weight_decay: weight decay shrinks parameters and leaves gradients alone, see
            :class:`~ptr.optim.AdamW`. Default: ``False``.

    Raises:
        ValueError: an option is out of its range, or a tensor where ``foreach=True`` without ``capturable`` needs a
            number.
        RuntimeError: ``fused`` together with ``foreach`` or ``differentiable``, or for parameters that are not
        floating.

    Example::

        >>> optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        >>> optimizer.zero_grad()
        >>> loss_fn(model(input), target).backward()
        >>> optimizer.step()
    """

    _later_options = {
        **ListOptimizer._later_options,
        "amsgrad": False,
        "decoupled_weight_decay": False,
        "fused": None,
    }
    _sparse_hint = ", please consider SparseAdam instead"

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        _check_tensor("lr", lr, foreach, capturable)
        check_lr(lr)
        check_not_negative("epsilon", eps)
        check_betas(betas)
        check_not_negative("weight_decay", weight_decay)
        if isinstance(betas[0], torch.Tensor) != isinstance(betas[1], torch.Tensor) or not all(
            isinstance(beta, (float, torch.Tensor)) for beta in betas
        ):
            raise ValueError("betas must be either both floats or both Tensors")
        for i, beta in enumerate(betas):
            _check_tensor(f"betas[{i}]", beta, foreach, capturable)
            check_one_element(f"betas[{i}]", beta)
        check_fused_alone(fused, foreach, differentiable)
        defaults = {
            "lr": lr,
            "betas": tuple(beta.squeeze() if isinstance(beta, torch.Tensor) else beta for beta in betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        if fused:
            # Gradient scalers may leave unscaling and the check for infinities to the step.
            self._step_supports_amp_scaling = True

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = {
            "step": self._counter(param, group),
            "exp_avg": torch.zeros_like(param, memory_format=torch.preserve_format),
            "exp_avg_sq": torch.zeros_like(param, memory_format=torch.preserve_format),
        }
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = torch.zeros_like(param, memory_format=torch.preserve_format)
        return state

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq" if group["amsgrad"] else None, "step")

    def _update(self, group: dict[str, Any], rows: list[list[Any]]) -> None:
        if group["foreach"] and isinstance(group["lr"], torch.Tensor) and not group["capturable"]:
            raise RuntimeError("lr as a Tensor is not supported for capturable=False and foreach=True")
        beta1, beta2 = group["betas"]
        adam(
            *rows,
            beta1=beta1,
            beta2=beta2,
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
            **options_of(group, "lr", "weight_decay", "eps", "amsgrad", "fused", "decoupled_weight_decay"),
        )


def _check_tensor(name: str, value: Any, foreach: bool | None, capturable: bool) -> None:
    if isinstance(value, torch.Tensor) and foreach and not capturable:
        raise ValueError(f"{name} as a Tensor is not supported for capturable=False and foreach=True")


def _fused_adam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    max_exp_avg_sqs: Tensors,
    state_steps: Tensors,
    *,
    grad_scale: Tensor | None,
    found_inf: Tensor | None,
    beta1: float | Tensor,
    beta2: float | Tensor,
    weight_decay: float,
    decoupled_weight_decay: bool = False,
    **options: Any,
) -> None:
    operator = torch._fused_adamw_ if decoupled_weight_decay else torch._fused_adam_
    rows = [params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps]
    run_fused(
        operator,
        rows,
        state_steps,
        grad_scale,
        found_inf,
        beta1=float(beta1),
        beta2=float(beta2),
        weight_decay=float(weight_decay),
        **options,
    )


@over_lists(fused=_fused_adam)
def adam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    max_exp_avg_sqs: Tensors,
    state_steps: Tensors,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
    differentiable: bool = False,
    capturable: bool = False,
    decoupled_weight_decay: bool = False,
) -> None:
    """Make one step of Adam; see :class:`Adam`, and :func:`~ptr.optim._lists.over_lists` for more options."""
    lr, beta1, beta2 = (number(value, capturable) for value in (lr, beta1, beta2))
    scratch = Scratch(differentiable)
    steps = count(state_steps, capturable)
    if decoupled_weight_decay and weight_decay != 0:
        torch._foreach_mul_(params, 1 - lr * weight_decay)
    grads = descent(params, grads, 0 if decoupled_weight_decay else weight_decay, maximize)
    average(exp_avgs, grads, beta1)
    average_squares(exp_avg_sqs, grads, beta2)
    if amsgrad:
        torch._foreach_maximum_(max_exp_avg_sqs, exp_avg_sqs)
        exp_avg_sqs = max_exp_avg_sqs
    spreads = torch._foreach_sqrt(exp_avg_sqs)
    spreads = scratch.div(spreads, [(1 - beta2**step) ** 0.5 for step in steps])
    spreads = scratch.add(spreads, eps)
    add_quotients(params, exp_avgs, spreads, [-lr / (1 - beta1**step) for step in steps])
