"""Learning rates by functions of the epoch."""

from __future__ import annotations

from ptr.optim.lr_scheduler.scheduler import LRScheduler, pickled_callables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ptr.optim.lr_scheduler.scheduler import Rate
    from ptr.optim.optimizer import Optimizer

    Function = Callable[[int], float]


class _ByFunction(LRScheduler):
    """A scheduler with one function per parameter group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Function | list[Function], last_epoch: int = -1) -> None:
        groups = len(optimizer.param_groups)
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != groups:
                raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas: list[Any] = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * groups
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimizer; of the functions, the attributes of those that are callable objects."""
        state = super().state_dict()
        state["lr_lambdas"] = list(pickled_callables(self.lr_lambdas))
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` returned."""
        rest = {key: value for key, value in state_dict.items() if key != "lr_lambdas"}
        self.__dict__.update(rest)
        for function, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if attributes is not None:
                function.__dict__.update(attributes)


class LambdaLR(_ByFunction):
    """The initial learning rate times a function of the epoch.

    Args:
        optimizer: the optimizer.
        lr_lambda: ``epoch -> factor``, or a list with one such function per parameter group.
        last_epoch: see :class:`LRScheduler`.

    Raises:
        ValueError: the number of functions is not that of the groups.

    Example::

        >>> scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.95**epoch)
    """

    def get_lr(self) -> list[Rate]:
        """Compute the learning rates."""
        self._warn_get_lr_called_within_step()
        return [
            base_lr * function(self.last_epoch)
            for function, base_lr in zip(self.lr_lambdas, self.base_lrs, strict=True)
        ]


class MultiplicativeLR(_ByFunction):
    """The last learning rate times a function of the epoch.

    Args:
        optimizer: the optimizer.
        lr_lambda: ``epoch -> factor``, or a list with one such function per parameter group.
        last_epoch: see :class:`LRScheduler`.

    Raises:
        ValueError: the number of functions is not that of the groups.

    Example::

        >>> scheduler = torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.95)
    """

    def get_lr(self) -> list[Rate]:
        """Compute the learning rates."""
        self._warn_get_lr_called_within_step()
        if self._is_initial:
            return self._lrs()
        return [lr * function(self.last_epoch) for function, lr in zip(self.lr_lambdas, self._lrs(), strict=True)]
