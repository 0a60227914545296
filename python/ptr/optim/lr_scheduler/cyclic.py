"""Learning rates that go up and down within bounds."""

from __future__ import annotations

import math

from ptr.optim.lr_scheduler.scheduler import LRScheduler, per_group, pickled_callables, set_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ptr.optim.lr_scheduler.scheduler import Rate
    from ptr.optim.optimizer import Optimizer


def _cycle_momentum(optimizer: Optimizer) -> bool:
    """Whether the optimizer's momentum is the first of its ``betas``.

    Raises:
        ValueError: it has no momentum.
    """
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return "betas" in optimizer.defaults


def _set_momentum(group: dict[str, Any], momentum: float, use_beta1: bool) -> None:
    if use_beta1:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


class CyclicLR(LRScheduler):
    """The learning rate goes up and down between two bounds, changing after each batch.

    After Smith, "Cyclical Learning Rates for Training Neural Networks" (2017): ``"triangular"`` keeps the bounds,
    ``"triangular2"`` halves their distance with each cycle, ``"exp_range"`` shrinks it by ``gamma`` with each step.

    Args:
        optimizer: the optimizer.
        base_lr: the lower bound, or one per parameter group.
        max_lr: the upper bound, or one per parameter group.
        step_size_up: steps from the lower bound to the upper. Default: 2000.
        step_size_down: steps back; as many as up if ``None``.
        mode: see above; ignored if ``scale_fn`` is given. Default: ``"triangular"``.
        gamma: for ``"exp_range"``. Default: 1.
        scale_fn: what the distance of the bounds is multiplied by, as a function of the cycle or the step.
        scale_mode: ``"cycle"`` or ``"iterations"``: what ``scale_fn`` is given. Default: ``"cycle"``.
        cycle_momentum: let the momentum (or the first of the ``betas``) go the opposite way. Default: ``True``.
        base_momentum, max_momentum: its bounds. Defaults: 0.8, 0.9.
        last_epoch: see :class:`LRScheduler`.

    Raises:
        ValueError: an unknown mode, bounds whose number is not that of the groups, or an optimizer without momentum.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        from ptr.optim.optimizer import Optimizer as OptimizerClass

        if not isinstance(optimizer, OptimizerClass):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        base_lrs = per_group(optimizer, base_lr, "base_lr")
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_value(group, "lr", lr)
        self.max_lrs = per_group(optimizer, max_lr, "max_lr")
        step_size_up = float(step_size_up)
        step_size_down = step_size_up if step_size_down is None else float(step_size_down)
        self.total_size = step_size_up + step_size_down
        self.step_ratio = step_size_up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None or mode != "exp_range" else "iterations"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _cycle_momentum(optimizer)
            self.base_momentums = per_group(optimizer, base_momentum, "base_momentum")
            self.max_momentums = per_group(optimizer, max_momentum, "max_momentum")
            if last_epoch == -1:
                for highest, lowest, group in zip(
                    self.max_momentums, self.base_momentums, optimizer.param_groups, strict=True
                ):
                    _set_momentum(group, highest, self.use_beta1)
                    group["max_momentum"] = highest
                    group["base_momentum"] = lowest
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return what the distance of the bounds is multiplied by in a cycle, or at a step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        if self.mode == "triangular2":
            return 1 / (2.0 ** (x - 1))
        return self.gamma**x

    def get_lr(self) -> list[Rate]:
        """Compute the learning rates; the momentum is set, too."""
        self._warn_get_lr_called_within_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for lowest, highest, group in zip(
                self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True
            ):
                _set_momentum(group, highest - (highest - lowest) * height * scale, self.use_beta1)
        return [
            base_lr + (max_lr - base_lr) * height * scale
            for base_lr, max_lr in zip(self.base_lrs, self.max_lrs, strict=True)
        ]

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimizer; of ``scale_fn``, the attributes if it is a callable object."""
        state = super().state_dict()
        function = state.pop("_scale_fn_custom")
        state["_scale_fn_custom"] = None if function is None else next(pickled_callables([function]))
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` returned."""
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        attributes = state_dict.get("_scale_fn_custom")
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)


class OneCycleLR(LRScheduler):
    """The learning rate goes up to a maximum and down to far below its beginning, once, changing after each batch.

    After Smith and Topin, "Super-Convergence: Very Fast Training of Neural Networks Using Large Learning Rates" (2019);
    like the implementation in fastai it has two phases unless ``three_phase``.

    Args:
        optimizer: the optimizer.
        max_lr: the highest learning rate, or one per parameter group.
        total_steps: steps of the cycle; else ``epochs`` times ``steps_per_epoch``.
        epochs, steps_per_epoch: see ``total_steps``.
        pct_start: the fraction of the steps that goes up. Default: 0.3.
        anneal_strategy: ``"cos"`` or ``"linear"``. Default: ``"cos"``.
        cycle_momentum: let the momentum (or the first of the ``betas``) go the opposite way. Default: ``True``.
        base_momentum, max_momentum: its bounds. Defaults: 0.85, 0.95.
        div_factor: the first learning rate is ``max_lr / div_factor``. Default: 25.
        final_div_factor: the last is the first divided by this. Default: 1e4.
        three_phase: go down to the first learning rate as fast as up, and then to the last. Default: ``False``.
        last_epoch: see :class:`LRScheduler`.

    Raises:
        ValueError: an option is out of its range, or the optimizer has no momentum.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        from ptr.optim.optimizer import Optimizer as OptimizerClass

        if not isinstance(optimizer, OptimizerClass):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.total_steps = self._number_of_steps(total_steps, epochs, steps_per_epoch)
        up = float(pct_start * self.total_steps)
        phases = [(up - 1, ("initial_lr", "max_lr"), ("max_momentum", "base_momentum"))]
        if three_phase:
            phases.append((2 * up - 2, ("max_lr", "initial_lr"), ("base_momentum", "max_momentum")))
            phases.append((self.total_steps - 1, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum")))
        else:
            phases.append((self.total_steps - 1, ("max_lr", "min_lr"), ("base_momentum", "max_momentum")))
        self._schedule_phases = [
            {
                "end_step": end,
                "start_lr": lrs[0],
                "end_lr": lrs[1],
                "start_momentum": momentums[0],
                "end_momentum": momentums[1],
            }
            for end, lrs, momentums in phases
        ]
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        max_lrs = per_group(optimizer, max_lr, "max_lr")
        if last_epoch == -1:
            for highest, group in zip(max_lrs, optimizer.param_groups, strict=True):
                group["initial_lr"] = highest / div_factor
                group["max_lr"] = highest
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _cycle_momentum(optimizer)
            max_momentums = per_group(optimizer, max_momentum, "max_momentum")
            base_momentums = per_group(optimizer, base_momentum, "base_momentum")
            if last_epoch == -1:
                for highest, lowest, group in zip(max_momentums, base_momentums, optimizer.param_groups, strict=True):
                    _set_momentum(group, highest, self.use_beta1)
                    group["max_momentum"] = highest
                    group["base_momentum"] = lowest
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _number_of_steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        given = {"total_steps": total_steps}
        if total_steps is None:
            given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        for name, value in given.items():
            if not isinstance(value, int) or value <= 0:
                raise ValueError(f"Expected positive integer {name}, but got {value}")
        return math.prod(given.values())  # type: ignore[arg-type]

    def _anneal(self, start: float, end: float, fraction: float) -> float:
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * fraction) + 1)
        return (end - start) * fraction + start

    def get_lr(self) -> list[Rate]:
        """Compute the learning rates; the momentum is set, too.

        Raises:
            ValueError: the cycle is over.
        """
        self._warn_get_lr_called_within_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        start: Any = 0.0
        for phase in self._schedule_phases:
            end: Any = phase["end_step"]
            if step <= end or phase is self._schedule_phases[-1]:
                break
            start = end
        fraction = (step - start) / (end - start)
        lrs: list[Any] = []
        for group in self.optimizer.param_groups:
            lrs.append(self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], fraction))
            if self.cycle_momentum:
                momentum = self._anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], fraction)
                _set_momentum(group, momentum, self.use_beta1)
        return lrs
