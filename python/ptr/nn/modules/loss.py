"""Losses as modules."""

from __future__ import annotations

import ptr as torch
from ptr.nn import _reduction as _Reduction
from ptr.nn import functional as F
from ptr.nn.modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["CrossEntropyLoss", "NLLLoss"]


class _Loss(Module):
    reduction: str

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = _Reduction.legacy_get_string(size_average, reduce)
        self.reduction = reduction


class _WeightedLoss(_Loss):
    weight: torch.Tensor | None

    def __init__(
        self, weight: torch.Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class NLLLoss(_WeightedLoss):
    """The negative of the log-probability that the input gives to the target class.

    Args:
        weight: a weight per class, shape ``(C,)``.
        size_average, reduce: deprecated, see ``reduction``.
        ignore_index: a target value that counts nothing. Default: -100.
        reduction: ``"none"``; ``"mean"``, weighted by ``weight``; or ``"sum"``. Default: ``"mean"``.

    Shape:
        - Input: log-probabilities, :math:`(C)`, :math:`(N, C)` or :math:`(N, C, d_1, ..., d_k)`
        - Target: classes, :math:`()`, :math:`(N)` or :math:`(N, d_1, ..., d_k)`
        - Output: a scalar; with ``"none"`` the shape of the target

    Example::

        >>> loss = nn.NLLLoss()
        >>> loss(nn.LogSoftmax(dim=1)(torch.randn(3, 5)), torch.tensor([1, 0, 4]))
    """

    __constants__ = ["ignore_index", "reduction"]
    ignore_index: int

    def __init__(
        self,
        weight: torch.Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss of ``input`` against ``target``."""
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """The cross entropy between scores and a class, or a distribution over classes.

    It is :class:`~ptr.nn.LogSoftmax` followed by :class:`NLLLoss`, in one step.

    Args:
        weight: a weight per class, shape ``(C,)``.
        size_average, reduce: deprecated, see ``reduction``.
        ignore_index: a target class that counts nothing. Default: -100.
        reduction: ``"none"``; ``"mean"``, weighted by ``weight``; or ``"sum"``. Default: ``"mean"``.
        label_smoothing: the share of the target spread evenly over all classes, in [0, 1]. Default: 0.

    Shape:
        - Input: scores, :math:`(C)`, :math:`(N, C)` or :math:`(N, C, d_1, ..., d_k)`
        - Target: classes, :math:`()`, :math:`(N)` or :math:`(N, d_1, ..., d_k)`; or probabilities of the input's shape
        - Output: a scalar; with ``"none"`` the shape of a target of classes

    Example::

        >>> loss = nn.CrossEntropyLoss()
        >>> loss(torch.randn(3, 5, requires_grad=True), torch.tensor([1, 0, 4])).backward()
    """

    __constants__ = ["ignore_index", "reduction", "label_smoothing"]
    ignore_index: int
    label_smoothing: float

    def __init__(
        self,
        weight: torch.Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss of ``input`` against ``target``."""
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )
