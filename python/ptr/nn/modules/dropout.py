"""Dropout as modules."""

from __future__ import annotations

import ptr as torch
from ptr.nn import functional as F
from ptr.nn.modules.module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


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


class Dropout1d(_DropoutNd):
    """In training, zeroes each channel of a sequence with probability ``p`` and scales the rest.

    Args:
        p: the probability. Default: 0.5.
        inplace: write into the input. Default: ``False``.

    Raises:
        ValueError: ``p`` is outside of [0, 1].
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Drop parts of ``input``."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """In training, zeroes each channel of an image with probability ``p`` and scales the rest.

    Args:
        p: the probability. Default: 0.5.
        inplace: write into the input. Default: ``False``.

    Raises:
        ValueError: ``p`` is outside of [0, 1].
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Drop parts of ``input``."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """In training, zeroes each channel of a volume with probability ``p`` and scales the rest.

    Args:
        p: the probability. Default: 0.5.
        inplace: write into the input. Default: ``False``.

    Raises:
        ValueError: ``p`` is outside of [0, 1].
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Drop parts of ``input``."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """In training, drops elements so that the mean and variance of what SELU gives stay.

    Args:
        p: the probability. Default: 0.5.
        inplace: write into the input. Default: ``False``.

    Raises:
        ValueError: ``p`` is outside of [0, 1].
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Drop parts of ``input``."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """In training, drops channels so that the mean and variance of what SELU gives stay.

    Args:
        p: the probability. Default: 0.5.
        inplace: write into the input. Default: ``False``.

    Raises:
        ValueError: ``p`` is outside of [0, 1].
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Drop parts of ``input``."""
        return F.feature_alpha_dropout(input, self.p, self.training)
