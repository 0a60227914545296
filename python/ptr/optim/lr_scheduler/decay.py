"""Learning rates that change by steps, by a line, by a power or exponentially."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter

from ptr.optim.lr_scheduler.scheduler import LRScheduler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ptr.optim.lr_scheduler.scheduler import Rate
    from ptr.optim.optimizer import Optimizer


class StepLR(LRScheduler):
    """Every ``step_size`` epochs the learning rate is multiplied by ``gamma``.

    Args:
        optimizer: the optimizer.
        step_size: epochs between changes.
        gamma: the factor. Default: 0.1.
        last_epoch: see :class:`LRScheduler`.

    Example::

        >>> scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.1)
        >>> for epoch in range(100):
        ...     train(...)
        ...     scheduler.step()
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Compute the learning rates."""
        self._warn_get_lr_called_within_step()
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._lrs()
        return [lr * self.gamma for lr in self._lrs()]

    def _get_closed_form_lr(self) -> list[Rate]:
        return [base_lr * self.gamma ** (self.last_epoch // self.step_size) for base_lr in self.base_lrs]


class MultiStepLR(LRScheduler):
    """At each milestone the learning rate is multiplied by ``gamma``.

    Args:
        optimizer: the optimizer.
        milestones: epochs, in increasing order; one that is there twice counts twice.
        gamma: the factor. Default: 0.1.
        last_epoch: see :class:`LRScheduler`.

    Example::

        >>> scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[30, 80])
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones: Any = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Compute the learning rates."""
        self._warn_get_lr_called_within_step()
        if self.last_epoch not in self.milestones:
            return self._lrs()
        return [lr * self.gamma ** self.milestones[self.last_epoch] for lr in self._lrs()]

    def _get_closed_form_lr(self) -> list[Rate]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base_lr * self.gamma**passed for base_lr in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Every epoch the learning rate is multiplied by ``gamma``.

    Args:
        optimizer: the optimizer.
        gamma: the factor.
        last_epoch: see :class:`LRScheduler`.
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Compute the learning rates."""
        self._warn_get_lr_called_within_step()
        if self._is_initial:
            return self._lrs()
        return [lr * self.gamma for lr in self._lrs()]

    def _get_closed_form_lr(self) -> list[Rate]:
        return [base_lr * self.gamma**self.last_epoch for base_lr in self.base_lrs]


class ConstantLR(LRScheduler):
    """For the first ``total_iters`` epochs the learning rate is multiplied by ``factor``.

    Args:
        optimizer: the optimizer.
        factor: between 0 and 1. Default: 1/3.
        total_iters: Default: 5.
        last_epoch: see :class:`LRScheduler`.

    Raises:
        ValueError: ``factor`` is not between 0 and 1.
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Compute the learning rates."""
        self._warn_get_lr_called_within_step()
        if self.last_epoch == 0:
            return [lr * self.factor for lr in self._lrs()]
        if self.last_epoch != self.total_iters:
            return self._lrs()
        return [lr * (1.0 / self.factor) for lr in self._lrs()]

    def _get_closed_form_lr(self) -> list[Rate]:
        factor = self.factor if self.last_epoch < self.total_iters else 1
        return [base_lr * factor for base_lr in self.base_lrs]


class LinearLR(LRScheduler):
    """The learning rate's factor goes in a line from ``start_factor`` to ``end_factor`` in ``total_iters`` epochs.

    Args:
        optimizer: the optimizer.
        start_factor: above 0, at most 1. Default: 1/3.
        end_factor: between 0 and 1. Default: 1.
        total_iters: Default: 5.
        last_epoch: see :class:`LRScheduler`.

    Raises:
        ValueError: a factor is out of its range.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Compute the learning rates."""
        self._warn_get_lr_called_within_step()
        if self.last_epoch == 0:
            return [lr * self.start_factor for lr in self._lrs()]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._lrs()
        # The ratio of this epoch's factor to the last one's.
        slope = self.end_factor - self.start_factor
        last = self.total_iters * self.start_factor + (self.last_epoch - 1) * slope
        return [lr * (1.0 + slope / last) for lr in self._lrs()]

    def _get_closed_form_lr(self) -> list[Rate]:
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        factor = self.start_factor + (self.end_factor - self.start_factor) * done
        return [base_lr * factor for base_lr in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The learning rate falls to zero in ``total_iters`` epochs, as a power of the epochs that are left.

    Args:
        optimizer: the optimizer.
        total_iters: Default: 5.
        power: Default: 1.
        last_epoch: see :class:`LRScheduler`.
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Compute the learning rates."""
        self._warn_get_lr_called_within_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._lrs()
        left = 1.0 - self.last_epoch / self.total_iters
        left_before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return [lr * (left / left_before) ** self.power for lr in self._lrs()]

    def _get_closed_form_lr(self) -> list[Rate]:
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base_lr * (1.0 - done) ** self.power for base_lr in self.base_lrs]
