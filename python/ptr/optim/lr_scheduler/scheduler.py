"""The base class of all learning-rate schedulers."""

from __future__ import annotations

import warnings
from functools import wraps
from weakref import ref

import ptr as torch
from ptr.optim.optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Rate = float | torch.Tensor

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case."
)

_ORDER_WARNING = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should call them in the opposite order: "
    "`optimizer.step()` before `lr_scheduler.step()`. Failure to do this will result in PyTorch skipping the first "
    "value of the learning rate schedule. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)

_OVERRIDDEN_WARNING = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, make sure "
    "to call `optimizer.step()` before `lr_scheduler.step()`. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)


def copy_value(value: Any) -> Any:
    """Return ``value``, or a copy of its own of a tensor."""
    return value.clone().detach() if isinstance(value, torch.Tensor) else value


def set_value(group: dict[str, Any], key: str, value: Any) -> None:
    """Set an option of a parameter group; one that is a tensor is filled, as the optimizer may have captured it."""
    if isinstance(group[key], torch.Tensor):
        group[key].fill_(value)
    else:
        group[key] = value


def per_group(optimizer: Optimizer, value: Any, name: str) -> list[Any]:
    """Return one value per parameter group, from a number for all or a list with one for each."""
    groups = len(optimizer.param_groups)
    if isinstance(value, (list, tuple)):
        if len(value) != groups:
            raise ValueError(
                f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
                f"param_groups has {groups}."
            )
        return list(value)
    return [value] * groups


def _track_steps(optimizer: Optimizer) -> None:
    """Make the optimizer remember that it has stepped."""
    step = optimizer.step
    if hasattr(step, "_wrapped_by_lr_sched"):
        return
    # The method is kept by its function and a weak reference: the optimizer must not keep itself alive.
    function, owner = step.__func__, ref(optimizer)

    @wraps(function)
    def step_and_note(*args: Any, **kwargs: Any) -> Any:
        optimizer = owner()
        if optimizer is None:
            raise ReferenceError("the optimizer of this step() is gone")
        optimizer._opt_called = True  # type: ignore[attr-defined]
        return function.__get__(optimizer, type(optimizer))(*args, **kwargs)

    step_and_note._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = step_and_note  # type: ignore[method-assign]


class LRScheduler:
    """Base class of all learning-rate schedulers.

    A subclass defines :meth:`get_lr`, which says what the learning rates are at ``last_epoch``, usually from what they
    are now (so that schedulers can be chained), and may define ``_get_closed_form_lr``, which goes by ``base_lrs``.

    Args:
        optimizer: the optimizer whose groups' ``"lr"`` is changed.
        last_epoch: the number of the last epoch; -1 begins a schedule, anything else goes on with one, whose groups
            have ``"initial_lr"``. Default: -1.

    Attributes:
        base_lrs: the learning rates at the beginning, one per group.
        last_epoch: how often the scheduler has stepped.

    Raises:
        TypeError: ``optimizer`` is none.
        KeyError: a schedule is to go on, but a group has no ``"initial_lr"``.
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copy_value(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an optimizer")
        self.base_lrs: list[Any] = [copy_value(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        _track_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Rate]:
        """Return the learning rates that the last step has set, one per group."""
        return self._last_lr

    def get_lr(self) -> list[Rate]:
        """Compute the learning rates at ``last_epoch``, one per group."""
        raise NotImplementedError

    def _warn_get_lr_called_within_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", stacklevel=3
            )

    def _lrs(self) -> list[Any]:
        """Return the learning rates as they are."""
        return [copy_value(group["lr"]) for group in self.optimizer.param_groups]

    def step(self, epoch: int | None = None) -> None:
        """Set the learning rates of the next epoch.

        Args:
            epoch: deprecated; go to this epoch instead.
        """
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warnings.warn(_OVERRIDDEN_WARNING, stacklevel=2)
            elif not getattr(self.optimizer, "_opt_called", False):
                warnings.warn(_ORDER_WARNING, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        compute: Callable[[], list[Any]] = self.get_lr
        if epoch is None:
            self.last_epoch += 1
        else:
            self.last_epoch = epoch
            compute = getattr(self, "_get_closed_form_lr", self.get_lr)
        self._get_lr_called_within_step = True
        try:
            values = compute()
        finally:
            self._get_lr_called_within_step = False
        self._set_lrs(values)

    def _set_lrs(self, values: list[Any]) -> None:
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            set_value(group, "lr", lr)
        self._last_lr: list[Any] = self._lrs()


def pickled_callables(functions: list[Any]) -> Iterator[dict[str, Any] | None]:
    """What a scheduler's state has of its functions: the attributes of callable objects; functions are not saved."""
    import types

    for function in functions:
        yield None if isinstance(function, types.FunctionType) else function.__dict__.copy()
