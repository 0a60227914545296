"""Stochastic gradient descent."""

from __future__ import annotations

import ptr as torch
from ptr.optim.optimizer import Optimizer, _check_fused, _is_plain, _to_scalar, _use_grad_for_differentiable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ptr.optim.optimizer import ParamsT

    Tensor = torch.Tensor
    Tensors = list[Tensor]
    Buffers = list[Tensor | None]

__all__ = ["SGD", "sgd"]


class SGD(Optimizer):
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
        if isinstance(lr, torch.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        if fused:
            if differentiable:
                raise RuntimeError("`fused` does not support `differentiable`")
            if foreach:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
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

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("nesterov", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("differentiable", False)
            group.setdefault("fused", False)

    def _init_group(self, group: dict[str, Any], params: Tensors, grads: Tensors, buffers: Buffers) -> bool:
        """Fill the lists with the group's parameters that have gradients; returns whether any gradient is sparse."""
        has_sparse_grad = False
        momentum = group["momentum"] != 0
        state = self.state
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            params.append(param)
            grads.append(grad)
            if grad.is_sparse:
                has_sparse_grad = True
            if momentum:
                buffers.append(state[param].get("momentum_buffer"))
        return has_sparse_grad

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters once.

        Args:
            closure: recomputes the loss and its gradients.

        Returns:
            the closure's loss, or ``None``.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            params: Tensors = []
            grads: Tensors = []
            buffers: Buffers = []
            has_sparse_grad = self._init_group(group, params, grads, buffers)
            fresh = [i for i, buffer in enumerate(buffers) if buffer is None]
            sgd(
                params,
                grads,
                buffers,
                has_sparse_grad=has_sparse_grad,
                foreach=group["foreach"],
                # In a differentiable step the choice is made here; sgd itself records nothing.
                fused=False if group["differentiable"] and group["fused"] is None else group["fused"],
                grad_scale=getattr(self, "grad_scale", None),
                found_inf=getattr(self, "found_inf", None),
                weight_decay=group["weight_decay"],
                momentum=group["momentum"],
                lr=group["lr"],
                dampening=group["dampening"],
                nesterov=group["nesterov"],
                maximize=group["maximize"],
            )
            # Buffers that were there are updated in place.
            for i in fresh:
                self.state[params[i]]["momentum_buffer"] = buffers[i]
        return loss


def sgd(
    params: Tensors,
    d_p_list: Tensors,
    momentum_buffer_list: Buffers,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float | Tensor,
    momentum: float,
    lr: float | Tensor,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """Make one step of stochastic gradient descent; see :class:`SGD`.

    Args:
        params: the parameters, updated in place.
        d_p_list: their gradients.
        momentum_buffer_list: their momentum buffers; ``None`` where there is none yet, replaced by a new one.
        has_sparse_grad: whether a gradient is sparse.
        foreach, fused: the form; by default the cheapest that fits.
        grad_scale, found_inf: of a gradient scaler, for the fused form.
        weight_decay, momentum, lr, dampening, nesterov, maximize: the options.
    """
    if not params:
        return
    func: Any = _multi_tensor_sgd if foreach else _fused_sgd if fused else _single_tensor_sgd
    if foreach is None and fused is None and grad_scale is None and found_inf is None:
        if not has_sparse_grad and _fits_fused(params, d_p_list, momentum_buffer_list, lr, weight_decay):
            func = _fused_sgd_group
    func(
        params,
        d_p_list,
        momentum_buffer_list,
        grad_scale,
        found_inf,
        weight_decay=weight_decay,
        momentum=momentum,
        lr=lr,
        dampening=dampening,
        nesterov=nesterov,
        maximize=maximize,
        has_sparse_grad=has_sparse_grad,
    )


def _fits_fused(params: Tensors, grads: Tensors, buffers: Buffers, lr: Any, weight_decay: Any) -> bool:
    """Whether one call of the fused operator gives what the loop gives: plain dense CPU tensors of one floating
    dtype."""
    if isinstance(lr, torch.Tensor) or isinstance(weight_decay, torch.Tensor) or not hasattr(torch, "_fused_sgd_"):
        return False
    dtype = params[0].dtype
    if not dtype.is_floating_point:
        return False
    strided = torch.strided
    for param, grad in zip(params, grads, strict=True):
        if not (
            param.dtype is dtype
            and grad.dtype is dtype
            and param.is_cpu
            and grad.layout is strided
            and _is_plain(param)
            and _is_plain(grad)
        ):
            return False
    # The operator starts all momentum buffers together.
    absent = sum(buf is None for buf in buffers)
    return absent == 0 or absent == len(buffers)


def _reject_scaler(grad_scale: Tensor | None, found_inf: Tensor | None) -> None:
    if grad_scale is not None or found_inf is not None:
        raise AssertionError("Expected grad_scale and found_inf to be None")


def _single_tensor_sgd(
    params: Tensors,
    grads: Tensors,
    momentum_buffer_list: Buffers,
    grad_scale: Tensor | None,
    found_inf: Tensor | None,
    *,
    weight_decay: Any,
    momentum: float,
    lr: Any,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    has_sparse_grad: bool,
) -> None:
    _reject_scaler(grad_scale, found_inf)
    lr = _to_scalar(lr)
    # A tensor that needs a gradient has to stay a tensor: alpha would take its value.
    lr_in_graph = isinstance(lr, torch.Tensor) and lr.requires_grad
    decay_in_graph = isinstance(weight_decay, torch.Tensor) and weight_decay.requires_grad
    for i, param in enumerate(params):
        grad = -grads[i] if maximize else grads[i]
        if decay_in_graph:
            grad = grad.addcmul(param.clone(), weight_decay)
        elif weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        if momentum != 0:
            buf = momentum_buffer_list[i]
            if buf is None:
                buf = momentum_buffer_list[i] = grad.detach().clone()
            else:
                buf.mul_(momentum).add_(grad, alpha=1 - dampening)
            grad = grad.add(buf, alpha=momentum) if nesterov else buf
        if lr_in_graph:
            param.addcmul_(grad, lr, value=-1)
        else:
            param.add_(grad, alpha=-lr)


def _multi_tensor_sgd(
    params: Tensors,
    grads: Tensors,
    momentum_buffer_list: Buffers,
    grad_scale: Tensor | None,
    found_inf: Tensor | None,
    *,
    weight_decay: Any,
    momentum: float,
    lr: Any,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    has_sparse_grad: bool,
) -> None:
    _reject_scaler(grad_scale, found_inf)
    lr = _to_scalar(lr)
    rows: list[list[Any]] = [params, grads, momentum_buffer_list] if momentum != 0 else [params, grads]
    for lists, indices in Optimizer._group_tensors_by_device_and_dtype(rows, with_indices=True).values():
        ps, gs = lists[0], lists[1]
        own = False  # Whether gs are ours, not the gradients themselves, and may be written to.
        if maximize:
            gs, own = torch._foreach_neg(gs), True
        if weight_decay != 0:
            if own:
                torch._foreach_add_(gs, ps, alpha=weight_decay)
            else:
                gs, own = torch._foreach_add(gs, ps, alpha=weight_decay), True
        if momentum != 0:
            bufs = lists[2]
            if all(buf is not None for buf in bufs):
                torch._foreach_mul_(bufs, momentum)
                torch._foreach_add_(bufs, gs, alpha=1 - dampening)
            else:
                for i, buf in enumerate(bufs):
                    if buf is None:
                        bufs[i] = momentum_buffer_list[indices[i]] = gs[i].detach().clone()
                    else:
                        buf.mul_(momentum).add_(gs[i], alpha=1 - dampening)
            if not nesterov:
                gs = bufs
            elif own:
                torch._foreach_add_(gs, bufs, alpha=momentum)
            else:
                gs = torch._foreach_add(gs, bufs, alpha=momentum)
        if has_sparse_grad and any(grad.is_sparse for grad in gs):
            for param, grad in zip(ps, gs, strict=True):
                param.add_(grad, alpha=-lr)
        else:
            torch._foreach_add_(ps, gs, alpha=-lr)


def _fused_sgd(
    params: Tensors,
    grads: Tensors,
    momentum_buffer_list: Buffers,
    grad_scale: Tensor | None,
    found_inf: Tensor | None,
    *,
    weight_decay: Any,
    momentum: float,
    lr: Any,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    has_sparse_grad: bool,
) -> None:
    if has_sparse_grad:
        raise RuntimeError("`_fused_sgd` does not support sparse gradients")
    for param in params:
        _check_fused(param)
    rows: list[list[Any]] = [params, grads]
    is_first_step = momentum != 0 and _start_buffers(grads, momentum_buffer_list)
    if momentum != 0:
        rows.append(momentum_buffer_list)
    for (device, _), (lists, _) in Optimizer._group_tensors_by_device_and_dtype(rows).items():
        torch._fused_sgd_(
            lists[0],
            lists[1],
            lists[2] if momentum != 0 else [],
            weight_decay=weight_decay,
            momentum=momentum,
            lr=lr,
            dampening=dampening,
            nesterov=nesterov,
            maximize=maximize,
            is_first_step=is_first_step,
            grad_scale=None if grad_scale is None else grad_scale.to(device),
            found_inf=None if found_inf is None else found_inf.to(device),
        )


def _start_buffers(grads: Tensors, buffers: Buffers) -> bool:
    """Make the momentum buffers if there are none; returns whether the operator has to fill them."""
    if not all(buf is None for buf in buffers):
        return False
    buffers[:] = [torch.empty_like(grad) for grad in grads]
    return True


def _fused_sgd_group(
    params: Tensors,
    grads: Tensors,
    momentum_buffer_list: Buffers,
    grad_scale: Tensor | None,
    found_inf: Tensor | None,
    *,
    momentum: float,
    has_sparse_grad: bool,
    **options: Any,
) -> None:
    # Chosen by _fits_fused: nothing is left to check or to sort.
    is_first_step = momentum != 0 and _start_buffers(grads, momentum_buffer_list)
    torch._fused_sgd_(params, grads, momentum_buffer_list, momentum=momentum, is_first_step=is_first_step, **options)
