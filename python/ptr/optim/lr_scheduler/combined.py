"""Schedulers made of others."""

from __future__ import annotations

from bisect import bisect_right

from ptr.optim.lr_scheduler.plateau import ReduceLROnPlateau
from ptr.optim.lr_scheduler.scheduler import LRScheduler, set_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ptr.optim.optimizer import Optimizer


def _check(name: str, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> Optimizer:
    """Return the optimizer that all of them have.

    Raises:
        ValueError: there is none, or one has another optimizer or needs arguments to step.
        TypeError: one has no optimizer.
    """
    if len(schedulers) < 1:
        raise ValueError(f"{name} expects at least one scheduler to be chained, but got no scheduler.")
    optimizer = optimizer or schedulers[0].optimizer
    for i, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                f"specified when calling `step`, but got one at index {i} in the given schedulers sequence."
            )
        if scheduler.optimizer is not optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                f"{type(scheduler).__name__} at index {i} has {scheduler.optimizer}, which is different from "
                f"{type(optimizer).__name__}."
            )
    return optimizer


class _Combined(LRScheduler):
    """A scheduler that has others."""

    _schedulers: list[Any]

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimizer; of the schedulers, their states."""
        state = {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` returned."""
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


def _undo(scheduler: Any) -> None:
    """Take the first step of a scheduler, or of those it is made of, back."""
    for inner in getattr(scheduler, "_schedulers", ()):
        _undo(inner)
    if not hasattr(scheduler, "_schedulers"):
        scheduler.last_epoch -= 1


class SequentialLR(_Combined):
    """Schedulers one after the other.

    Args:
        optimizer: their optimizer.
        schedulers: the schedulers, in order.
        milestones: the epochs where the second begins, the third, and so on.
        last_epoch: see :class:`LRScheduler`.

    Raises:
        ValueError: there is no scheduler, one has another optimizer or is a :class:`ReduceLROnPlateau`, or the number
            of milestones is not one less than that of the schedulers.

    Example::

        >>> warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=20)
        >>> decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
        >>> scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, decay], milestones=[20])
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        _check(type(self).__name__, schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each scheduler has made its first step: all but the first one's are taken back.
        for group in optimizer.param_groups:
            set_value(group, "lr", group["initial_lr"])
        for scheduler in schedulers:
            _undo(scheduler)
        schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Set the learning rates of the next epoch."""
        self.last_epoch += 1
        at = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[at]
        if at > 0 and self._milestones[at - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Combined):
    """Schedulers that step together, each going by the learning rate that the last one has set.

    Args:
        schedulers: the schedulers, in order.
        optimizer: their optimizer; by default the first one's.

    Raises:
        ValueError: there is no scheduler, or one has another optimizer or is a :class:`ReduceLROnPlateau`.
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self.optimizer = _check(type(self).__name__, schedulers, optimizer)
        self._schedulers = list(schedulers)
        self._last_lr = self._lrs()

    def step(self) -> None:  # type: ignore[override]
        """Set the learning rates of the next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._lrs()

    def _initial_step(self) -> None:
        for scheduler in self._schedulers:
            scheduler._initial_step()
        self._last_lr = self._lrs()
