"""Adam for sparse gradients."""

from __future__ import annotations

import ptr as torch
from ptr.optim._lists import check_betas, check_one_element
from ptr.optim.optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ptr.optim.optimizer import ParamsT

    Tensor = torch.Tensor

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """:class:`~ptr.optim.Adam` of the elements that sparse gradients hold; all others stay as they are.

    Sparse tensors do not exist yet, so that there are no gradients to step along: :meth:`step` raises.

    Args:
        params: see :class:`~ptr.optim.Optimizer`; dense and real.
        lr: the learning rate; may be a tensor of one element. Default: 1e-3.
        betas: the coefficients of the running means. Default: (0.9, 0.999).
        eps: keeps the denominator from zero. Default: 1e-8.
        maximize: go uphill. Default: ``False``.

    Raises:
        ValueError: an option is out of its range, or a parameter is sparse or complex.

    Example::

        >>> optimizer = torch.optim.SparseAdam(model.parameters(), lr=1e-3)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_one_element("lr", lr)
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        places = [(i, j, p) for i, group in enumerate(self.param_groups) for j, p in enumerate(group["params"])]
        sparse = [[i, j] for i, j, param in places if param.is_sparse]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        complex_ = [[i, j] for i, j, param in places if param.is_complex()]
        if complex_:
            raise ValueError(f"Complex params at indices {complex_}: SparseAdam does not support complex parameters")

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters once.

        Args:
            closure: recomputes the loss and its gradients.

        Returns:
            the closure's loss, or ``None``.

        Raises:
            RuntimeError: a gradient is dense.
            NotImplementedError: a gradient is sparse.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                if not param.grad.is_sparse:
                    raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
                raise NotImplementedError("SparseAdam: sparse tensors are not supported yet")
        return loss
