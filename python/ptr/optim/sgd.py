"""Stochastic gradient descent."""

from __future__ import annotations

import ptr as torch
from ptr.optim._lists import (
    ListOptimizer,
    add_scaled,
    check_fused_alone,
    check_lr,
    check_not_negative,
    descent,
    number,
    options_of,
    over_lists,
    scaler_on,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ptr.optim.optimizer import ParamsT

    Tensor = torch.Tensor
    Tensors = list[Tensor]
    Buffers = list[Tensor | None]

__all__ = ["SGD", "sgd"]


class SGD(ListOptimizer):
    """Stochastic gradient descent, optionally with momentum.

    With gradient :math:`g` (plus ``weight_decay`` times the parameter; negated if ``maximize``) and momentum
    :math:`\\mu`, a step is

    .. math::
        b &\\leftarrow \\mu b + (1 - \\text{dampening}) g \\quad (b \\leftarrow g \\text{ at first}) \\\\
        p &\\leftarrow p - \\text{lr} \\cdot b, \\quad \\text{or } p - \\text{lr} (g + \\mu b) \\text{ with nesterov}

    after Sutskever et al., "On the importance of initialization and momentum in deep learning" (2013); unlike there,
    the learning rate multiplies the whole step.

    Args:
        params: see :class:`~ptr.optim.Optimizer`.
        lr: the learning rate; may be a tensor of one element. Default: 1e-3.
        momentum: Default: 0.
        dampening: Default: 0.
        weight_decay: Default: 0.
        nesterov: needs a momentum and no dampening. Default: ``False``.
        maximize: go uphill. Default: ``False``.
        foreach: use multi-tensor operations.
        differentiable: record steps in the graph. Default: ``False``.
        fused: update all parameters in one pass. ``None``, together with ``foreach=None``, does so where the parameters
            allow it; the values are the same.

    Raises:
        ValueError: an option is out of its range.
        RuntimeError: ``fused`` together with ``foreach`` or ``differentiable``, or for parameters that are not
            floating.

    Example::

        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        >>> optimizer.zero_grad()
        >>> loss_fn(model(input), target).backward()
        >>> optimizer.step()
    """

    _later_options = {
        "nesterov": False,
        "maximize": False,
        "foreach": None,
        "differentiable": False,
        "fused": False,
    }
    _counters = ()

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_not_negative("momentum", momentum)
        check_not_negative("weight_decay", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_fused_alone(fused, foreach, differentiable)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        if fused:
            # Gradient scalers may leave unscaling and the check for infinities to the step.
            self._step_supports_amp_scaling = True

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {}  # The buffer comes into being with the first step.

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return ("momentum_buffer" if group["momentum"] != 0 else None,)

    def _update(self, group: dict[str, Any], rows: list[list[Any]]) -> None:
        params, _, buffers = rows
        fresh = [i for i, buffer in enumerate(buffers) if buffer is None]
        sgd(
            *rows,
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
            **options_of(group, "weight_decay", "momentum", "lr", "dampening", "nesterov", "fused"),
        )
        # Buffers that were there are updated in place.
        for i in fresh:
            self.state[params[i]]["momentum_buffer"] = buffers[i]


def sgd(
    params: Tensors,
    d_p_list: Tensors,
    momentum_buffer_list: Buffers,
    has_sparse_grad: bool = False,
    *,
    momentum: float,
    **options: Any,
) -> None:
    """Make one step of stochastic gradient descent; see :class:`SGD`.

    Args:
        params: the parameters, updated in place.
        d_p_list: their gradients.
        momentum_buffer_list: their momentum buffers; ``None`` where there is none yet, replaced by a new one.
        has_sparse_grad: whether a gradient is sparse.
        weight_decay, momentum, lr, dampening, nesterov, maximize: the options.
        options: those of :func:`~ptr.optim._lists.over_lists`.

    Raises:
        NotImplementedError: a gradient is sparse.
    """
    if has_sparse_grad:
        raise NotImplementedError("sgd: sparse gradients are not supported yet")
    rows: list[list[Any]] = [params, d_p_list, momentum_buffer_list]
    if momentum == 0:
        _sgd(params, d_p_list, [], momentum=momentum, is_first_step=False, **options)
        return
    fresh = [i for i, buffer in enumerate(momentum_buffer_list) if buffer is None]
    for i in fresh:
        momentum_buffer_list[i] = torch.empty_like(d_p_list[i])
    if not fresh or len(fresh) == len(params):
        _sgd(*rows, momentum=momentum, is_first_step=bool(fresh), **options)
        return
    old = sorted({*range(len(params))} - {*fresh})
    for indices in (fresh, old):
        some = [[row[i] for i in indices] for row in rows]
        _sgd(*some, momentum=momentum, is_first_step=indices is fresh, **options)


def _fused_sgd(
    params: Tensors,
    grads: Tensors,
    momentum_buffers: Tensors,
    *,
    grad_scale: Tensor | None,
    found_inf: Tensor | None,
    **options: Any,
) -> None:
    scaler = scaler_on(params[0].device, grad_scale, found_inf)
    torch._fused_sgd_(params, grads, momentum_buffers, **scaler, **options)


@over_lists(fused=_fused_sgd)
def _sgd(
    params: Tensors,
    grads: Tensors,
    momentum_buffers: Tensors,
    *,
    weight_decay: float | Tensor,
    momentum: float,
    lr: float | Tensor,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
) -> None:
    lr = number(lr)
    grads = descent(params, grads, number(weight_decay), maximize)
    if momentum_buffers:
        if is_first_step:
            torch._foreach_copy_(momentum_buffers, [grad.detach() for grad in grads])
        else:
            torch._foreach_mul_(momentum_buffers, momentum)
            torch._foreach_add_(momentum_buffers, grads, alpha=1 - dampening)
        grads = torch._foreach_add(grads, momentum_buffers, alpha=momentum) if nesterov else momentum_buffers
    add_scaled(params, grads, -lr)
