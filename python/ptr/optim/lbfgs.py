"""L-BFGS."""

from __future__ import annotations

import ptr as torch
from ptr.optim._lists import check_lr, number
from ptr.optim.optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ptr.optim.optimizer import ParamsT

    Tensor = torch.Tensor

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """L-BFGS: a quasi-Newton method that knows the curvature from the latest changes of gradients.

    A call of :meth:`step` makes up to ``max_iter`` iterations. Each goes along :math:`-H g` for the gradient :math:`g`,
    where :math:`H` is the inverse Hessian that the last ``history_size`` pairs of steps and changes imply, after Liu
    and Nocedal, "On the limited memory BFGS method for large scale optimization" (1989), either by ``lr`` or as far as
    a line search finds that the strong Wolfe conditions hold: Nocedal and Wright, "Numerical Optimization" (2006),
    chapter 3.

    The history takes ``history_size + 1`` times the memory of the parameters, which form one group on one device.

    Args:
        params: see :class:`~ptr.optim.Optimizer`.
        lr: the learning rate; may be a tensor of one element. Default: 1.
        max_iter: iterations per step. Default: 20.
        max_eval: evaluations of the closure per step. Default: ``max_iter * 5 // 4``.
        tolerance_grad: no element of the gradient larger than this ends a step. Default: 1e-7.
        tolerance_change: a change of parameters or of the loss smaller than this ends a step. Default: 1e-9.
        history_size: Default: 100.
        line_search_fn: ``"strong_wolfe"`` or ``None``, for steps of fixed length. Default: ``None``.

    Raises:
        ValueError: an option is out of its range, or there are several groups.

    Example::

        >>> optimizer = torch.optim.LBFGS(model.parameters(), line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = loss_fn(model(input), target)
        ...     loss.backward()
        ...     return loss
        >>> optimizer.step(closure)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_lr(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    # --- all parameters as one vector -------------------------------------------------------------------------------

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    def _flat_grad(self) -> Tensor:
        pieces = []
        for param in self._params:
            grad = param.grad
            if grad is None:
                grad = torch.zeros_like(param)
            elif grad.is_sparse:
                grad = grad.to_dense()
            if grad.is_complex():
                grad = torch.view_as_real(grad)
            pieces.append(grad.reshape(-1))
        return torch.cat(pieces)

    def _move(self, distance: Any, direction: Tensor) -> None:
        start = 0
        for param in self._params:
            real = torch.view_as_real(param) if param.is_complex() else param
            end = start + real.numel()
            real.add_(direction[start:end].view_as(real), alpha=distance)
            start = end

    def _evaluate_at(
        self, closure: Any, origin: list[Tensor], distance: Any, direction: Tensor
    ) -> tuple[float, Tensor]:
        """Return the loss and its gradient so far from the origin, where the parameters are and stay."""
        self._move(distance, direction)
        loss = float(closure())
        grad = self._flat_grad()
        for param, value in zip(self._params, origin, strict=True):
            param.copy_(value)
        return loss, grad

    # --- iterations -------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Update all parameters by up to ``max_iter`` iterations.

        Args:
            closure: recomputes the loss and its gradients.

        Returns:
            the loss before the step.

        Raises:
            RuntimeError: ``line_search_fn`` is unknown.
        """
        closure = torch.enable_grad()(closure)
        group = self.param_groups[0]
        lr = number(group["lr"])
        line_search = group["line_search_fn"]
        tolerance_grad, tolerance_change = group["tolerance_grad"], group["tolerance_change"]
        # There is one state for all; it is the first parameter's, so that loading casts it.
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        first_loss = closure()
        loss = float(first_loss)
        evaluations = 1
        state["func_evals"] += 1
        grad = self._flat_grad()
        if grad.abs().max() <= tolerance_grad:
            return first_loss

        direction, distance = state.get("d"), state.get("t")
        changes, steps, inverses = state.get("old_dirs"), state.get("old_stps"), state.get("ro")
        scale, last_grad, last_loss = state.get("H_diag"), state.get("prev_flat_grad"), state.get("prev_loss")
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            is_first = state["n_iter"] == 1
            if is_first:
                changes, steps, inverses, scale = [], [], [], 1
                direction = grad.neg()
            else:
                change, moved = grad.sub(last_grad), direction.mul(distance)
                curvature = change.dot(moved)
                if curvature > 1e-10:
                    if len(changes) == group["history_size"]:
                        for history in (changes, steps, inverses):
                            history.pop(0)
                    changes.append(change)
                    steps.append(moved)
                    inverses.append(1.0 / curvature)
                    scale = curvature / change.dot(change)
                shares = state.setdefault("al", [None] * group["history_size"])
                direction = _quasi_newton(grad, changes, steps, inverses, scale, shares)
            last_grad, last_loss = grad, loss

            distance = min(1.0, 1.0 / grad.abs().sum()) * lr if is_first else lr
            slope = grad.dot(direction)
            if slope > -tolerance_change:
                break
            is_last = iteration == group["max_iter"]
            fresh = 0
            is_flat = False
            if line_search is None:
                self._move(distance, direction)
                # After the last iteration nobody looks.
                if not is_last:
                    loss = float(closure())
                    grad = self._flat_grad()
                    fresh = 1
            elif line_search == "strong_wolfe":
                origin = [param.clone(memory_format=torch.contiguous_format) for param in self._params]
                loss, grad, distance, fresh = _strong_wolfe(
                    lambda t, origin=origin, direction=direction: self._evaluate_at(closure, origin, t, direction),
                    distance,
                    direction,
                    _Point(0, loss, grad, slope),
                    max_evaluations=group["max_eval"] - evaluations,
                )
                self._move(distance, direction)
            else:
                raise RuntimeError("only 'strong_wolfe' is supported")
            if fresh or line_search is not None:
                is_flat = bool(grad.abs().max() <= tolerance_grad)
            evaluations += fresh
            state["func_evals"] += fresh
            if (
                is_last
                or evaluations >= group["max_eval"]
                or is_flat
                or direction.mul(distance).abs().max() <= tolerance_change
                or abs(loss - last_loss) < tolerance_change
            ):
                break

        state["d"] = direction
        state["t"] = distance
        state["old_dirs"] = changes
        state["old_stps"] = steps
        state["ro"] = inverses
        state["H_diag"] = scale
        state["prev_flat_grad"] = last_grad
        state["prev_loss"] = last_loss
        return first_loss


def _quasi_newton(
    grad: Tensor, changes: list[Tensor], steps: list[Tensor], inverses: list[Any], scale: Any, shares: list[Any]
) -> Tensor:
    """Return minus the inverse Hessian times the gradient, by the recursion in two loops."""
    direction = grad.neg()
    for i in reversed(range(len(changes))):
        shares[i] = steps[i].dot(direction) * inverses[i]
        direction.add_(changes[i], alpha=-shares[i])
    direction = torch.mul(direction, scale)
    for i in range(len(changes)):
        direction.add_(steps[i], alpha=shares[i] - changes[i].dot(direction) * inverses[i])
    return direction


# --- line search ------------------------------------------------------------------------------------------------------


class _Point:
    """A place on the line: how far along, the loss there, its gradient and its slope."""

    def __init__(self, at: Any, loss: float, grad: Tensor, slope: Any) -> None:
        self.at = at
        self.loss = loss
        self.grad = grad
        self.slope = slope


def _cubic_minimum(a: _Point, b: _Point, bounds: tuple[Any, Any] | None = None) -> Any:
    """Return where between the bounds the cubic through two points with their slopes is least."""
    if a.at > b.at:
        a, b = b, a
    low, high = bounds or (a.at, b.at)
    mean = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.at - b.at)
    square = mean**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    root = square.sqrt()
    place = b.at - (b.at - a.at) * ((b.slope + root - mean) / (b.slope - a.slope + 2 * root))
    return min(max(place, low), high)


def _strong_wolfe(
    evaluate: Any,
    distance: Any,
    direction: Tensor,
    start: _Point,
    max_evaluations: int,
    decrease: float = 1e-4,
    flatness: float = 0.9,
    tolerance: float = 1e-9,
) -> tuple[float, Tensor, Any, int]:
    """Search a distance at which the loss has decreased enough and the slope is flat enough.

    Returns:
        the loss, its gradient, the distance, and how often the closure was evaluated.
    """
    longest = direction.abs().max()

    def probe(at: Any) -> _Point:
        loss, grad = evaluate(at)
        return _Point(at, loss, grad, grad.dot(direction))

    def is_too_high(point: _Point) -> bool:
        return bool(point.loss > start.loss + decrease * point.at * start.slope)

    def is_flat(point: _Point) -> bool:
        return bool(abs(point.slope) <= -flatness * start.slope)

    # First go further until two points have one between them that fulfills the conditions.
    point, last = probe(distance), start
    evaluations, rounds = 1, 0
    while rounds < max_evaluations:
        if is_too_high(point) or (rounds > 1 and point.loss >= last.loss):
            bracket = [last, point]
            break
        if is_flat(point):
            return point.loss, point.grad, point.at, evaluations
        if point.slope >= 0:
            bracket = [last, point]
            break
        bounds = (point.at + 0.01 * (point.at - last.at), point.at * 10)
        last, point = point, probe(_cubic_minimum(last, point, bounds))
        evaluations += 1
        rounds += 1
    else:
        bracket = [start, point]

    # Then shrink the bracket around it.
    low, high = sorted(bracket, key=lambda p: p.loss)
    is_stuck = False
    while rounds < max_evaluations and not abs(bracket[1].at - bracket[0].at) * longest < tolerance:
        near, far = min(low.at, high.at), max(low.at, high.at)
        at = _cubic_minimum(low, high)
        margin = 0.1 * (far - near)
        # A place so near to an end would hardly shrink the bracket; twice in a row, or on the end, it is moved inward.
        if min(far - at, at - near) < margin:
            if is_stuck or at >= far or at <= near:
                at = far - margin if abs(at - far) < abs(at - near) else near + margin
                is_stuck = False
            else:
                is_stuck = True
        else:
            is_stuck = False
        point = probe(at)
        evaluations += 1
        rounds += 1
        if is_too_high(point) or point.loss >= low.loss:
            high = point
            if high.loss < low.loss:
                low, high = high, low
        else:
            done = is_flat(point)
            if not done and point.slope * (high.at - low.at) >= 0:
                high = low
            low = point
            if done:
                break
        bracket = [low, high]
    return low.loss, low.grad, low.at, evaluations
