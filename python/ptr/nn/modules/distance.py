"""Distances as modules."""

from __future__ import annotations

import ptr as torch
from ptr.nn import functional as F
from ptr.nn.modules.module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """The p-norm of the difference of vectors, the last dimension of two tensors.

    Args:
        p: the exponent of the norm. Default: 2.
        eps: added to differences. Default: 1e-6.
        keepdim: whether the last dimension stays, with size one. Default: ``False``.
    """

    __constants__ = ["norm", "eps", "keepdim"]

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        """Return the distances between ``x1`` and ``x2``."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between the vectors along a dimension of two tensors.

    Args:
        dim: the dimension. Default: 1.
        eps: the least norm. Default: 1e-8.
    """

    __constants__ = ["dim", "eps"]

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        """Return the similarities of ``x1`` and ``x2``."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
