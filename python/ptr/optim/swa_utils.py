"""Averages of a model's parameters, and the learning rate for taking them.

After Izmailov et al., "Averaging Weights Leads to Wider Optima and Better Generalization" (2018).
"""

from __future__ import annotations

import itertools
import math
from copy import deepcopy

import ptr as torch
from ptr.nn import Module
from ptr.optim.lr_scheduler.scheduler import LRScheduler, per_group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ptr.optim.lr_scheduler.scheduler import Rate
    from ptr.optim.optimizer import Optimizer

    Tensor = torch.Tensor
    Average = Callable[[Tensor, Tensor, Tensor | int], Tensor]
    AverageAll = Callable[[list[Tensor], list[Tensor], Tensor | int], None]

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_multi_avg_fn(decay: float = 0.999) -> AverageAll:
    """Return a function that moves averages towards the current values by ``1 - decay``, in place."""
    _check_decay(decay)

    @torch.no_grad()
    def ema_update(averages: list[Tensor], currents: list[Tensor], _: Tensor | int) -> None:
        for average, current in zip(averages, currents, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(current, 1 - decay)
            else:
                average.copy_(average * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> AverageAll:
    """Return a function that takes current values into averages of ``num_averaged`` ones, in place."""

    @torch.no_grad()
    def swa_update(averages: list[Tensor], currents: list[Tensor], num_averaged: Tensor | int) -> None:
        weight = 1 / (float(num_averaged) + 1)
        for average, current in zip(averages, currents, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(current, weight)
            else:
                average.add_((current - average) * weight)

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return a function that gives the average moved towards the current value by ``1 - decay``."""
    _check_decay(decay)

    @torch.no_grad()
    def ema_update(average: Tensor, current: Tensor, num_averaged: Tensor | int) -> Tensor:
        return decay * average + (1 - decay) * current

    return ema_update


def get_swa_avg_fn() -> Average:
    """Return a function that gives the average of ``num_averaged`` values and a current one."""

    @torch.no_grad()
    def swa_update(average: Tensor, current: Tensor, num_averaged: Tensor | int) -> Tensor:
        return average + (current - average) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's at several times.

    Args:
        model: the model.
        device: where the averages are kept.
        avg_fn: ``(average, current, num_averaged) -> average``; by default the mean.
        multi_avg_fn: the same in place, for lists of tensors.
        use_buffers: average the buffers, too; otherwise they are copied.

    Raises:
        AssertionError: both functions are given.

    Example::

        >>> averaged = torch.optim.swa_utils.AveragedModel(model)
        >>> for epoch in range(100):
        ...     train(model)
        ...     averaged.update_parameters(model)
        >>> torch.optim.swa_utils.update_bn(loader, averaged)
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: int | str | torch.device | None = None,
        avg_fn: Average | None = None,
        multi_avg_fn: AverageAll | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", torch.tensor(0, dtype=torch.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the parameters of ``model`` into the averages."""

        def values(module: Module) -> Iterable[Tensor]:
            return itertools.chain(module.parameters(), module.buffers() if self.use_buffers else ())

        averages = [tensor.detach() for tensor in values(self.module)]
        currents = [tensor.detach().to(average.device) for tensor, average in zip(values(model), averages, strict=True)]
        if self.n_averaged == 0:
            for average, current in zip(averages, currents, strict=True):
                average.copy_(current)
        elif self.avg_fn is not None:
            for average, current in zip(averages, currents, strict=True):
                average.copy_(self.avg_fn(average, current, self.n_averaged.to(average.device)))
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(averages, currents, self.n_averaged)
        if not self.use_buffers:
            for ours, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
                ours.detach().copy_(theirs.detach().to(ours.device))
        self.n_averaged += 1


@torch.no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: int | str | torch.device | None = None) -> None:
    """Compute the running statistics of a model's batch norms anew, in one pass over data.

    Args:
        loader: gives batches: tensors, or lists and tuples that begin with the input.
        model: the model.
        device: where the input is moved to.
    """
    from ptr.nn.modules.batchnorm import _BatchNorm

    momenta = {module: module.momentum for module in model.modules() if isinstance(module, _BatchNorm)}
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.reset_running_stats()
        # The mean of all batches.
        module.momentum = None
    for batch in loader:
        input = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(input if device is None else input.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """The learning rate goes to ``swa_lr`` within ``anneal_epochs`` and stays there.

    Args:
        optimizer: the optimizer.
        swa_lr: the learning rate, or one per parameter group.
        anneal_epochs: Default: 10.
        anneal_strategy: ``"cos"`` or ``"linear"``. Default: ``"cos"``.
        last_epoch: see :class:`LRScheduler`.

    Raises:
        ValueError: an option is out of its range.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for lr, group in zip(per_group(optimizer, swa_lr, "swa_lr"), optimizer.param_groups, strict=True):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _weight(self, step: int) -> float:
        """How much of ``swa_lr`` the learning rate has at a step."""
        fraction = max(0, min(1, step / max(1, self.anneal_epochs)))
        return fraction if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * fraction)) / 2

    def get_lr(self) -> list[Rate]:
        """Compute the learning rates."""
        self._warn_get_lr_called_within_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._weight(step - 1), self._weight(step)
        lrs: list[Any] = []
        for group, lr in zip(self.optimizer.param_groups, self._lrs(), strict=True):
            swa_lr = group["swa_lr"]
            first = swa_lr if before == 1 else (lr - before * swa_lr) / (1 - before)
            lrs.append(swa_lr * now + first * (1 - now))
        return lrs
