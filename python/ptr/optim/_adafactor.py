"""Adafactor."""

from __future__ import annotations

import ptr as torch
from ptr.optim._lists import ListOptimizer, check_one_element, count, descent, number, options_of, over_lists

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ptr.optim.optimizer import ParamsT

    Tensor = torch.Tensor
    Tensors = list[Tensor]

__all__ = ["Adafactor", "adafactor"]


class Adafactor(ListOptimizer):
    """Adafactor: of the second moments of a matrix only the means of rows and columns are kept.

    With gradient :math:`g` of a matrix (negated if ``maximize``), step :math:`t` is

    .. math::
        \\hat\\beta &= 1 - t^{\\text{beta2\\_decay}}, \\qquad \\rho = \\min(\\text{lr}, 1 / \\sqrt t), \\qquad
        \\alpha = \\max(\\epsilon_2, \\text{RMS}(p)) \\rho \\\\
        R &\\leftarrow \\hat\\beta R + (1 - \\hat\\beta) \\text{mean}_\\text{columns}(g^2), \\qquad
        C \\leftarrow \\hat\\beta C + (1 - \\hat\\beta) \\text{mean}_\\text{rows}(g^2), \\qquad
        V = \\frac{R C}{\\max(\\text{mean}(R), \\epsilon_1)} \\\\
        u &= \\frac{g}{\\max(\\sqrt V, \\epsilon_1)}, \\qquad
        p \\leftarrow p - \\text{lr} \\cdot \\text{weight\\_decay} \\cdot p - \\frac{\\alpha u}{\\max(1, \\text{RMS}(u)
        / d)}

    after Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost" (2018); there ``lr`` is
    0.01, and :math:`\\epsilon_1` is added to squared gradients. Of a vector, :math:`V` is the running mean itself; of
    a tensor with more dimensions the last two count as the matrix's.

    Args:
        params: see :class:`~ptr.optim.Optimizer`; real.
        lr: the greatest step relative to the parameter; may be a tensor of one element. Default: 1e-2.
        beta2_decay: the power with which running means take in less, not positive. Default: -0.8.
        eps: :math:`\\epsilon_1`, by default the machine's for the dtype, and :math:`\\epsilon_2`. Default: (None,
        1e-3). d: the threshold of clipping, at least 1. Default: 1.
        weight_decay: Default: 0.
        foreach: step all parameters together; by default one by one, as memory is what counts here.
        maximize: go uphill. Default: ``False``.

    Raises:
        ValueError: an option is out of its range.

    Example::

        >>> optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-2)
        >>> optimizer.zero_grad()
        >>> loss_fn(model(input), target).backward()
        >>> optimizer.step()
    """

    _later_options = {"foreach": None}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_one_element("lr", lr)
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if param.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        grad = param.grad
        state = {"step": self._counter(param, group)}
        if grad.dim() > 1:
            *outer, rows, columns = grad.shape
            state["row_var"] = grad.new_zeros([*outer, rows, 1])
            state["col_var"] = grad.new_zeros([*outer, 1, columns])
        else:
            state["variance"] = torch.zeros_like(grad, memory_format=torch.preserve_format)
        return state

    def _state_names(self, group: dict[str, Any]) -> tuple[str | None, ...]:
        return ("row_var", "col_var", "variance", "step")

    def _update(self, group: dict[str, Any], rows: list[list[Any]]) -> None:
        eps1, eps2 = group["eps"]
        adafactor(
            *rows,
            eps1=eps1,
            eps2=eps2,
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
            **{**options_of(group, "d", "lr", "beta2_decay", "weight_decay"), "foreach": bool(group["foreach"])},
        )


def _root_mean_square(tensor: Tensor) -> float:
    return tensor.norm(2).item() / tensor.numel() ** 0.5


def _mean_square(grad: Tensor, dim: int) -> Tensor:
    # Without the squares of all elements.
    return torch.norm(grad, dim=dim, keepdim=True).square_().div_(grad.size(dim))


def _factored(row_var: Tensor, col_var: Tensor, eps: float) -> Tensor:
    return (row_var @ col_var).div_(row_var.mean(dim=-2, keepdim=True).clamp_(min=eps))


@over_lists()
def adafactor(
    params: Tensors,
    grads: Tensors,
    row_vars: list[Tensor | None],
    col_vars: list[Tensor | None],
    variances: list[Tensor | None],
    state_steps: Tensors,
    *,
    d: float,
    lr: float | Tensor,
    beta2_decay: float,
    weight_decay: float,
    eps1: float | None,
    eps2: float,
    maximize: bool,
) -> None:
    """Make one step of Adafactor; see :class:`Adafactor`, and :func:`~ptr.optim._lists.over_lists` for more options."""
    lr = number(lr)
    if eps1 is None:
        eps1 = torch.finfo(params[0].dtype).eps
    steps = count(state_steps, keep=False)
    fresh = [step**beta2_decay for step in steps]
    sizes = [
        max(eps2, _root_mean_square(param)) * min(lr, 1 / step**0.5) for param, step in zip(params, steps, strict=True)
    ]
    if weight_decay != 0:
        torch._foreach_mul_(params, 1 - lr * weight_decay)
    grads = descent(params, grads, 0, maximize)

    matrices = [i for i, row_var in enumerate(row_vars) if row_var is not None]
    vectors = [i for i, row_var in enumerate(row_vars) if row_var is None]
    updates: list[Any] = [None] * len(params)
    if matrices:
        weights = [fresh[i] for i in matrices]
        for variables, dim in ((row_vars, -1), (col_vars, -2)):
            means = [_mean_square(grads[i], dim) for i in matrices]
            torch._foreach_lerp_([variables[i] for i in matrices], means, weights)
        for i in matrices:
            updates[i] = _factored(row_vars[i], col_vars[i], eps1)
    if vectors:
        of_vectors = [grads[i] for i in vectors]
        means = [variances[i] for i in vectors]
        torch._foreach_lerp_(means, torch._foreach_mul(of_vectors, of_vectors), [fresh[i] for i in vectors])
        for i, mean in zip(vectors, torch._foreach_clone(means), strict=True):
            updates[i] = mean
    # Squared, as the root comes after.
    torch._foreach_clamp_min_(updates, eps1 * eps1)
    torch._foreach_rsqrt_(updates)
    torch._foreach_mul_(updates, grads)
    clipped = [-size / max(1.0, _root_mean_square(update) / d) for size, update in zip(sizes, updates, strict=True)]
    torch._foreach_mul_(updates, clipped)
    torch._foreach_add_(params, updates)
