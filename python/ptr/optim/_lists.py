"""What the optimizers that step lists of tensors share.

Such an optimizer writes its step once, as a formula over lists of tensors of one device and dtype, with the operators
``_foreach_*``. :func:`over_lists` makes of the formula the function over any lists: it sorts by device and dtype, takes
complex tensors as pairs of real ones, and decides how much goes through the formula at once. :class:`ListOptimizer`
makes the optimizer: it collects the lists from parameters and state.
"""

from __future__ import annotations

import functools

import ptr as torch
from ptr.optim.optimizer import Optimizer, _check_fused, _to_scalar, _use_grad_for_differentiable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Tensor = torch.Tensor
    Tensors = list[Tensor]

# How many elements go through a formula at once on the CPU: few enough for intermediate values to stay in the cache,
# and enough for many small tensors to share the cost of calls.
_RUN = 1 << 15


# --- options ----------------------------------------------------------------------------------------------------------


def check_lr(lr: Any) -> None:
    """Refuse a learning rate that is negative or a tensor of several elements."""
    check_one_element("lr", lr)
    check_not_negative("learning rate", lr)


def check_one_element(name: str, value: Any) -> None:
    """Refuse a tensor of several elements in a number's place."""
    if isinstance(value, torch.Tensor) and value.numel() != 1:
        raise ValueError(f"Tensor {name} must be 1-element")


def check_not_negative(name: str, value: Any) -> None:
    """Refuse a negative option, or one that is not a number."""
    if not value >= 0.0:
        raise ValueError(f"Invalid {name}{'' if name == 'learning rate' else ' value'}: {value}")


def check_betas(betas: Any) -> None:
    """Refuse coefficients of running averages outside [0, 1)."""
    for i in range(2):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def check_fused_alone(fused: Any, foreach: Any, differentiable: bool) -> None:
    """Refuse ``fused`` together with what it excludes."""
    if fused:
        if differentiable:
            raise RuntimeError("`fused` does not support `differentiable`")
        if foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def number(value: Any, keep: bool = False) -> Any:
    """Return an option as formulas take it: a tensor as its value, unless gradients or a captured graph need it."""
    if not isinstance(value, torch.Tensor):
        return value
    if keep or (value.requires_grad and torch.is_grad_enabled()):
        return _to_scalar(value)
    return value.item()


def counter_dtype(fused: Any = None) -> torch.dtype:
    """Return the dtype that steps are counted in."""
    if not fused and torch.get_default_dtype() == torch.float64:
        return torch.float64
    return torch.float32


# --- parts of formulas ------------------------------------------------------------------------------------------------


class Scratch:
    """Operators ``_foreach_*`` on intermediate values: in place, unless a graph may hold them.

    ``scratch.add(xs, 1)`` returns the result either way.
    """

    def __init__(self, differentiable: bool) -> None:
        self._suffix = "" if differentiable else "_"

    def __getattr__(self, name: str) -> Any:
        operator = getattr(torch, f"_foreach_{name}{self._suffix}")

        def run(xs: Any, *args: Any) -> Any:
            result = operator(xs, *args)
            return xs if result is None else result

        return run


def count(steps: Tensors, keep: bool) -> list[Any]:
    """Count a step and return the numbers; as tensors if ``keep``."""
    torch._foreach_add_(steps, 1)
    return values(steps, keep)


def values(tensors: Tensors, keep: bool) -> list[Any]:
    """Return the values of tensors of one element; the tensors themselves if ``keep``."""
    return tensors if keep else [tensor.item() for tensor in tensors]


def descent(params: Tensors, grads: Tensors, weight_decay: Any, maximize: bool) -> Any:
    """Return the gradients to go down along: negated if ``maximize``, with weight decay."""
    if maximize:
        grads = torch._foreach_neg(grads)
    if isinstance(weight_decay, torch.Tensor):
        return torch._foreach_addcmul(grads, params, [weight_decay] * len(params))
    if weight_decay == 0:
        return grads
    if not maximize:
        return torch._foreach_add(grads, params, alpha=weight_decay)
    torch._foreach_add_(grads, params, alpha=weight_decay)
    return grads


def add_scaled(xs: Tensors, ys: Tensors, factor: Any) -> None:
    """Add ``factor * ys`` to ``xs``."""
    if isinstance(factor, torch.Tensor):
        torch._foreach_addcmul_(xs, ys, [factor] * len(ys))
    else:
        torch._foreach_add_(xs, ys, alpha=factor)


def add_quotients(xs: Tensors, numerators: Tensors, denominators: Tensors, factors: list[Any]) -> None:
    """Add ``factors * numerators / denominators`` to ``xs``."""
    if any(isinstance(factor, torch.Tensor) for factor in factors):
        scaled = [factor * numerator for factor, numerator in zip(factors, numerators, strict=True)]
        torch._foreach_addcdiv_(xs, scaled, denominators)
    else:
        torch._foreach_addcdiv_(xs, numerators, denominators, factors)


def average_squares(squares: Tensors, grads: Tensors, beta: Any) -> None:
    """Update running averages of squared gradients."""
    if isinstance(beta, torch.Tensor):
        torch._foreach_lerp_(squares, torch._foreach_mul(grads, grads), _weights(squares, 1 - beta))
        return
    torch._foreach_mul_(squares, beta)
    torch._foreach_addcmul_(squares, grads, grads, value=1 - beta)


def average(means: Tensors, grads: Tensors, beta: Any) -> None:
    """Update running averages of gradients."""
    weight = 1 - beta
    torch._foreach_lerp_(means, grads, _weights(means, weight) if isinstance(weight, torch.Tensor) else weight)


def _weights(like: Tensors, weight: Tensor) -> Tensors:
    return [weight.to(like[0])] * len(like)


# --- functions over lists ---------------------------------------------------------------------------------------------


def capturable_devices() -> list[str]:
    """Return the types of devices whose graphs can capture a step."""
    return ["cuda", "xpu", "hpu", torch._C._get_privateuse1_backend_name(), "xla"]


def over_lists(fused: Any = None) -> Callable[[Any], Any]:
    """Make of a formula over lists of one device and dtype the function over any lists.

    The formula's positional arguments are the lists: parameters, gradients, states, of which those that an option
    leaves out are empty. It gets ``differentiable`` and ``capturable`` beside its own options. The function takes
    lists by position or name, and these options:

    * ``foreach``: everything at once if true, tensor by tensor if false; by default what is cheapest;
    * ``differentiable``: steps are recorded in the graph;
    * ``capturable``: numbers stay tensors;
    * ``fused``, ``grad_scale``, ``found_inf`` if there is a formula in one operator, ``fused``, which by default runs
      where it gives the same values.
    """

    def decorate(formula: Any) -> Any:
        code = formula.__code__
        names = code.co_varnames[: code.co_argcount]
        step_row = names.index("state_steps") if "state_steps" in names else None
        wanted = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        settings = [name for name in ("differentiable", "capturable") if name in wanted]

        @functools.wraps(formula)
        def function(*given: Any, foreach: bool | None = None, **options: Any) -> None:
            rows = [*given, *(options.pop(name) for name in names[len(given) :])]
            options.pop("has_complex", None)
            options.pop("has_sparse_grad", None)
            scaler = {name: options.pop(name, None) for name in ("grad_scale", "found_inf")}
            is_fused = options.pop("fused", None)
            differentiable = options.pop("differentiable", False)
            capturable = options.pop("capturable", False)
            if step_row is not None and not all(isinstance(step, torch.Tensor) for step in rows[step_row]):
                raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")
            if not rows[0]:
                return
            if is_fused:
                if differentiable:
                    raise RuntimeError(f"{formula.__name__} with fused=True does not support differentiable=True")
                for param in rows[0]:
                    _check_fused(param)
            scaled = any(value is not None for value in scaler.values())
            if fused is not None and is_fused is None and not (foreach is not None or differentiable or capturable):
                if not scaled and _fits_fused(rows, step_row):
                    fused(*rows, **scaler, **options)
                    return
            if is_fused:
                for group in by_device_and_dtype(rows):
                    fused(*group, **scaler, **options)
                return
            if scaled:
                raise AssertionError("Expected grad_scale and found_inf to be None")
            if foreach and differentiable:
                raise AssertionError("_foreach ops don't support autograd")
            if capturable:
                _check_capturable(rows, step_row)
            given_settings = {"differentiable": differentiable, "capturable": capturable}
            options.update({name: given_settings[name] for name in settings})
            for group in by_device_and_dtype(rows):
                if group[0][0].is_complex():
                    group = [[_as_real(tensor) for tensor in row] for row in group]
                for run in _runs(group, foreach):
                    formula(*run, **options)

        return function

    return decorate


def _as_real(tensor: Any) -> Any:
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def by_device_and_dtype(rows: list[Any]) -> list[list[Any]]:
    """Sort the columns of ``rows`` by their first elements' device and dtype; rows that are empty stay so."""
    first = rows[0]
    if len({(tensor.device, tensor.dtype) for tensor in first}) == 1:
        return [rows]
    full = [i for i, row in enumerate(rows) if row]
    groups = []
    for lists, _ in Optimizer._group_tensors_by_device_and_dtype([rows[i] for i in full]).values():
        group: list[Any] = [[] for _ in rows]
        for i, tensors in zip(full, lists, strict=True):
            group[i] = tensors
        groups.append(group)
    return groups


def _runs(rows: list[Any], foreach: bool | None) -> Iterator[list[Any]]:
    """Cut lists into what goes through the formula at once."""
    params = rows[0]
    if foreach or (foreach is None and not params[0].is_cpu):
        yield rows
        return
    start = elements = 0
    for i, param in enumerate(params):
        size = param.numel()
        if i > start and (foreach is False or elements + size > _RUN):
            yield [row[start:i] for row in rows]
            start, elements = i, 0
        elements += size
    yield [row[start:] for row in rows] if start else rows


def _check_capturable(rows: list[Any], step_row: int | None) -> None:
    devices = capturable_devices()
    steps = rows[0] if step_row is None else rows[step_row]
    for param, step in zip(rows[0], steps, strict=True):
        if param.device.type not in devices or step.device.type != param.device.type:
            raise AssertionError(f"If capturable=True, params and state_steps must be on supported devices: {devices}.")


def _fits_fused(rows: list[Any], step_row: int | None) -> bool:
    """Whether the fused operator gives what the formula gives: plain dense CPU tensors of one floating dtype."""
    dtype = rows[0][0].dtype
    if not dtype.is_floating_point:
        return False
    strided = torch.strided
    plain = (torch.nn.Parameter, torch.Tensor)
    for i, row in enumerate(rows):
        if i == step_row:
            continue
        for tensor in row:
            if not (tensor.dtype is dtype and tensor.is_cpu and tensor.layout is strided and type(tensor) in plain):
                return False
    return step_row is None or all(step.is_cpu for step in rows[step_row])


def scaler_on(device: Any, grad_scale: Tensor | None, found_inf: Tensor | None) -> dict[str, Tensor | None]:
    """Return what a gradient scaler says, on the parameters' device."""
    said = {"grad_scale": grad_scale, "found_inf": found_inf}
    return {name: None if value is None else value.to(device) for name, value in said.items()}


def run_fused(
    operator: Any, rows: list[Any], steps: Tensors, grad_scale: Tensor | None, found_inf: Tensor | None, **options: Any
) -> None:
    """Call a fused operator on lists of one device, and count the step unless the scaler found an infinity."""
    scaler = scaler_on(rows[0][0].device, grad_scale, found_inf)
    torch._foreach_add_(steps, 1)
    operator(*rows, **scaler, **options)
    if found_inf is not None:
        torch._foreach_sub_(steps, [scaler["found_inf"]] * len(steps))


# --- optimizers -------------------------------------------------------------------------------------------------------


class ListOptimizer(Optimizer):
    """Base of the optimizers that are a function over lists, made by :func:`over_lists`.

    A subclass says which states a parameter has and what the function gets.
    """

    # Options that states saved by earlier versions lack.
    _later_options: dict[str, Any] = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    # States that are numbers; earlier versions saved them as such.
    _counters: tuple[str, ...] = ("step",)
    _sparse_hint = ""

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, default in self._later_options.items():
                group.setdefault(name, default)
            for param in group["params"]:
                saved = self.state.get(param)
                for name in self._counters if saved else ():
                    if not isinstance(saved[name], torch.Tensor):
                        saved[name] = self._counter(param, group, float(saved[name]))

    def _counter(self, param: Tensor, group: dict[str, Any], value: Any = 0.0) -> Tensor:
        """Return a number that belongs to a parameter: on the CPU, unless kernels on the device need it there."""
        fused = group.get("fused")
        device = param.device if fused or group.get("capturable") else "cpu"
        return torch.tensor(value, dtype=counter_dtype(fused), device=device)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Return the states of a parameter that has none."""
        raise NotImplementedError

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        """Return the states in the order of the function's lists; ``None`` for a list that stays empty."""
        raise NotImplementedError

    def _update(self, group: dict[str, Any], rows: list[list[Any]]) -> None:
        """Call the function."""
        raise NotImplementedError

    def _rows(self, group: dict[str, Any]) -> list[list[Any]]:
        """Collect the lists: of the parameters that have gradients, those, and their states."""
        names = self._state_names(group)
        rows: list[list[Any]] = [[] for _ in range(2 + len(names))]
        params, grads = rows[0], rows[1]
        stateless = not any(names)
        differentiable = group.get("differentiable", False)
        states = self.state
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if grad.is_sparse:
                raise RuntimeError(f"{type(self).__name__} does not support sparse gradients{self._sparse_hint}")
            params.append(param)
            grads.append(grad)
            if stateless:
                continue
            state = states[param]
            if not state:
                if group.get("fused"):
                    _check_fused(param)
                state.update(self._new_state(param, group))
            if differentiable and "step" in state and state["step"].requires_grad:
                raise RuntimeError("`requires_grad` is not supported for `step` in differentiable mode")
            for i, name in enumerate(names, 2):
                if name is not None:
                    rows[i].append(state.get(name))
        return rows

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters once.

        Args:
            closure: recomputes the loss and its gradients.

        Returns:
            the closure's loss, or ``None``.

        Raises:
            RuntimeError: a gradient is sparse.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._update(group, self._rows(group))
        return loss


def options_of(group: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return some of a group's options, and those that every function over lists takes."""
    common = ("foreach", "maximize", "differentiable", "capturable")
    return {name: group[name] for name in (*names, *common) if name in group}
