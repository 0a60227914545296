"""Adagrad."""

from __future__ import annotations

import ptr as torch
from ptr.optim._lists import (
    ListOptimizer,
    Scratch,
    add_quotients,
    check_fused_alone,
    check_lr,
    check_not_negative,
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

__all__ = ["Adagrad", "adagrad"]


class Adagrad(ListOptimizer):
    """Adagrad: each element's learning rate falls with the squares of all its gradients so far.

    With gradient :math:`g` (plus ``weight_decay`` times the parameter; negated if ``maximize``), step :math:`t` is

    .. math::
        s &\\leftarrow s + g^2 \\\\
        p &\\leftarrow p - \\frac{\\text{lr}}{1 + (t - 1) \\text{lr\\_decay}} \\cdot \\frac{g}{\\sqrt{s} + \\text{eps}}

    after Duchi et al., "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization" (2011).

    Args:
        params: see :class:`~ptr.optim.Optimizer`.
        lr: the learning rate; may be a tensor of one element. Default: 1e-2.
        lr_decay: Default: 0.
        weight_decay: Default: 0.
        initial_accumulator_value: what the sums of squares start from. Default: 0.
        eps: keeps the denominator from zero. Default: 1e-10.
        foreach: step all parameters together (``True``) or one by one (``False``). Default: what is cheapest.
        maximize: go uphill. Default: ``False``.
        differentiable: record steps in the graph. Default: ``False``.
        fused: step in one operator. ``None``, together with ``foreach=None``, does so where the parameters allow it.

    Raises:
        ValueError: an option is out of its range.
        RuntimeError: ``fused`` together with ``foreach`` or ``differentiable``, or for parameters that are not
        floating.

    Example::

        >>> optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
        >>> optimizer.zero_grad()
        >>> loss_fn(model(input), target).backward()
        >>> optimizer.step()
    """

    _later_options = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_not_negative("lr_decay", lr_decay)
        check_not_negative("weight_decay", weight_decay)
        check_not_negative("initial_accumulator_value", initial_accumulator_value)
        check_not_negative("epsilon", eps)
        check_fused_alone(fused, foreach, differentiable)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        if fused:
            # Gradient scalers may leave unscaling and the check for infinities to the step.
            self._step_supports_amp_scaling = True
        # Unlike that of other optimizers the state is there before the first step, so that it can be shared.
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param].update(self._new_state(param, group))

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        value = group["initial_accumulator_value"]
        # A complex number is two real ones.
        start = complex(value, value) if param.is_complex() else value
        return {
            "step": self._counter(param, group),
            "sum": torch.full_like(param, start, memory_format=torch.preserve_format),
        }

    def share_memory(self) -> None:
        """Move the sums to memory that processes share."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return ("sum", "step")

    def _update(self, group: dict[str, Any], rows: list[list[Any]]) -> None:
        adagrad(
            *rows,
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
            **options_of(group, "lr", "lr_decay", "weight_decay", "eps", "fused"),
        )


def _fused_adagrad(
    params: Tensors,
    grads: Tensors,
    state_sums: Tensors,
    state_steps: Tensors,
    *,
    grad_scale: Tensor | None,
    found_inf: Tensor | None,
    **options: Any,
) -> None:
    rows = [params, grads, state_sums, state_steps]
    run_fused(torch._fused_adagrad_, rows, state_steps, grad_scale, found_inf, **options)


@over_lists(fused=_fused_adagrad)
def adagrad(
    params: Tensors,
    grads: Tensors,
    state_sums: Tensors,
    state_steps: Tensors,
    *,
    lr: float | Tensor,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
    differentiable: bool = False,
) -> None:
    """Make one step of Adagrad; see :class:`Adagrad`, and :func:`~ptr.optim._lists.over_lists` for more options."""
    lr = number(lr)
    steps = count(state_steps, keep=False)
    grads = descent(params, grads, weight_decay, maximize)
    torch._foreach_addcmul_(state_sums, grads, grads)
    spreads = Scratch(differentiable).add(torch._foreach_sqrt(state_sums), eps)
    add_quotients(params, grads, spreads, [-lr / (1 + (step - 1) * lr_decay) for step in steps])
