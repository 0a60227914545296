"""Dropout as modules."""

from __future__ import annotations

import ptr as torch
from ptr.nn import functional as F
from ptr.nn.modules.module import Module

__all__ = ["Dropout"]


class _DropoutNd(Module):
    __constants__ = ["p", "inplace"]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """In training, zeroes each element with probability ``p`` and scales the rest by :math:`1 / (1 - p)`.

    In evaluation mode it returns its input.

    Args:
        p: the probability. Default: 0.5.
        inplace: write into the input. Default: ``False``.

    Shape:
        - Input: any
        - Output: the same

    Raises:
        ValueError: ``p`` is outside of [0, 1].

    Example::

        >>> nn.Dropout(0.2)(torch.randn(20, 16))
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Drop elements of ``input``."""
        return F.dropout(input, self.p, self.training, self.inplace)
