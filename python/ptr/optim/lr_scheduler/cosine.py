"""Learning rates along a cosine.

After Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts" (2017).
"""

from __future__ import annotations

import math

from ptr.optim.lr_scheduler.scheduler import LRScheduler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ptr.optim.lr_scheduler.scheduler import Rate
    from ptr.optim.optimizer import Optimizer


class CosineAnnealingLR(LRScheduler):
    """The learning rate follows half a cosine down to ``eta_min`` in ``T_max`` epochs, and up again in as many.

    .. math::
        \\eta_t = \\eta_{min} + \\tfrac{1}{2} (\\eta_0 - \\eta_{min}) (1 + \\cos(\\pi t / T_{max}))

    Args:
        optimizer: the optimizer.
        T_max: epochs of half a period.
        eta_min: the lowest learning rate. Default: 0.
        last_epoch: see :class:`LRScheduler`.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Compute the learning rates."""
        self._warn_get_lr_called_within_step()
        if self._is_initial:
            return self._lrs()
        if self._step_count == 1 and self.last_epoch > 0:
            # A schedule that goes on begins with the closed form.
            cosine = math.cos(self.last_epoch * math.pi / self.T_max)
            return [self.eta_min + (base_lr - self.eta_min) * (1 + cosine) / 2 for base_lr in self.base_lrs]
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # At the lowest point the ratio is undefined.
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [
                lr + (base_lr - self.eta_min) * rise for base_lr, lr in zip(self.base_lrs, self._lrs(), strict=True)
            ]
        ratio = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / (
            1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        )
        return [ratio * (lr - self.eta_min) + self.eta_min for lr in self._lrs()]

    def _get_closed_form_lr(self) -> list[Rate]:
        cosine = math.cos(math.pi * self.last_epoch / self.T_max)
        return [self.eta_min + (base_lr - self.eta_min) * (1 + cosine) / 2 for base_lr in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """The learning rate follows half a cosine down to ``eta_min`` and starts anew.

    Args:
        optimizer: the optimizer.
        T_0: epochs until the first restart.
        T_mult: by this factor each period is longer than the last. Default: 1.
        eta_min: the lowest learning rate. Default: 0.
        last_epoch: see :class:`LRScheduler`.

    Raises:
        ValueError: a period that is no positive integer, or a factor below 1.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Compute the learning rates."""
        self._warn_get_lr_called_within_step()
        cosine = math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base_lr - self.eta_min) * (1 + cosine) / 2 for base_lr in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:  # type: ignore[override]
        """Set the learning rates of the next epoch.

        Args:
            epoch: go to this point of the schedule instead; may lie between epochs, to step after each batch.

        Raises:
            ValueError: ``epoch`` is negative.
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur = self.T_cur + 1
            if self.T_cur >= self.T_i:
                self.T_cur = self.T_cur % self.T_i
                self.T_i = self.T_i * self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            if epoch < self.T_0:
                self.T_i = self.T_0
                self.T_cur = epoch
            elif self.T_mult == 1:
                self.T_cur = epoch % self.T_0
            else:
                period = int(math.log((epoch / self.T_0 * (self.T_mult - 1) + 1), self.T_mult))
                self.T_cur = epoch - self.T_0 * (self.T_mult**period - 1) / (self.T_mult - 1)
                self.T_i = self.T_0 * self.T_mult**period
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            values = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._set_lrs(values)
