"""Adam with decoupled weight decay."""

from __future__ import annotations

import ptr as torch
from ptr.optim.adam import Adam, adam

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ptr.optim.optimizer import ParamsT

    Tensor = torch.Tensor

__all__ = ["AdamW", "adamw"]


class AdamW(Adam):
    """:class:`~ptr.optim.Adam` with weight decay that leaves the running means alone.

    Before each step of Adam a parameter is multiplied by :math:`1 - \\text{lr} \\cdot \\text{weight\\_decay}`, after
    Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (2017).

    Args:
        params: see :class:`~ptr.optim.Optimizer`.
        weight_decay: Default: 1e-2.
        lr, betas, eps, amsgrad, maximize, foreach, capturable, differentiable, fused: see :class:`~ptr.optim.Adam`.

    Raises:
        ValueError, RuntimeError: see :class:`~ptr.optim.Adam`.

    Example::

        >>> optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
        >>> optimizer.zero_grad()
        >>> loss_fn(model(input), target).backward()
        >>> optimizer.step()
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # States of versions that knew no such option.
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


def adamw(*lists: Any, **options: Any) -> None:
    """Make one step of AdamW; see :class:`AdamW` and :func:`~ptr.optim.adam.adam`."""
    adam(*lists, decoupled_weight_decay=True, **options)
