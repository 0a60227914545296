"""Learning rates that fall when nothing gets better any more."""

from __future__ import annotations

import math
import warnings

from ptr.optim.lr_scheduler.scheduler import EPOCH_DEPRECATION_WARNING, LRScheduler, set_value
from ptr.optim.optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import SupportsFloat


class ReduceLROnPlateau(LRScheduler):
    """The learning rate is multiplied by ``factor`` when a measured value has not improved for ``patience`` epochs.

    Args:
        optimizer: the optimizer.
        mode: ``"min"`` if lower values are better, ``"max"`` if higher ones are. Default: ``"min"``.
        factor: below 1. Default: 0.1.
        patience: so many epochs without improvement are allowed. Default: 10.
        threshold: what counts as improvement: in mode ``"min"`` a value below ``best * (1 - threshold)``, or below
            ``best - threshold`` if ``threshold_mode`` is ``"abs"``. Default: 1e-4.
        threshold_mode: ``"rel"`` or ``"abs"``. Default: ``"rel"``.
        cooldown: epochs after a change in which nothing counts. Default: 0.
        min_lr: the lowest learning rate, or one per parameter group. Default: 0.
        eps: smaller changes are not made. Default: 1e-8.

    Raises:
        ValueError: an option is out of its range.
        TypeError: ``optimizer`` is none.

    Example::

        >>> scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        >>> for epoch in range(10):
        ...     train(...)
        ...     scheduler.step(validate(...))
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        self.factor = factor
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        groups = len(optimizer.param_groups)
        self.default_min_lr: float | None = None
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != groups:
                raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * groups
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = self._lrs()
        if mode not in ("min", "max"):
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self._reset()

    def _reset(self) -> None:
        """Forget what has been measured."""
        self.mode_worse = math.inf if self.mode == "min" else -math.inf
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: SupportsFloat, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take a measured value into account.

        Args:
            metrics: the value.
            epoch: deprecated; the number of the epoch.
        """
        current = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            warnings.warn(EPOCH_DEPRECATION_WARNING, stacklevel=2)
        self.last_epoch = epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._lrs()

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param group "
                    "being added to the optimizer. Please modify the `min_lrs` field to match the length of the "
                    "`optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, lowest in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, lowest)
            if old - new > self.eps:
                set_value(group, "lr", new)

    @property
    def in_cooldown(self) -> bool:
        """Whether a change was made so recently that nothing counts."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float, best: float) -> bool:
        if self.mode == "min":
            return value < (best * (1.0 - self.threshold) if self.threshold_mode == "rel" else best - self.threshold)
        return value > (best * (self.threshold + 1.0) if self.threshold_mode == "rel" else best + self.threshold)

    is_better = _is_better
