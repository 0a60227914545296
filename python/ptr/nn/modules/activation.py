"""Activation functions as modules."""

from __future__ import annotations

import ptr as torch
from ptr.nn import functional as F
from ptr.nn.modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["LogSoftmax", "ReLU", "Softmax"]


class ReLU(Module):
    """Applies :math:`\\max(0, x)` to each element.

    Args:
        inplace: write into the input. Default: ``False``.

    Shape:
        - Input: any
        - Output: the same

    Example::

        >>> nn.ReLU()(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    __constants__ = ["inplace"]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.relu(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class _SoftmaxBase(Module):
    __constants__ = ["dim"]

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "dim" not in self.__dict__:
            self.dim = None

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_SoftmaxBase):
    """Scales the slices along a dimension to positive values that sum to 1: :math:`e^{x_i} / \\sum_j e^{x_j}`.

    Args:
        dim: the dimension. Leaving it out is deprecated: it is then chosen by the number of dimensions.

    Shape:
        - Input: any
        - Output: the same

    Example::

        >>> nn.Softmax(dim=1)(torch.zeros(1, 2))
        tensor([[0.5000, 0.5000]])
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_SoftmaxBase):
    """The logarithm of :class:`Softmax`, computed without overflow.

    Args:
        dim: the dimension. Leaving it out is deprecated: it is then chosen by the number of dimensions.

    Shape:
        - Input: any
        - Output: the same, with values in :math:`[-\\infty, 0)`

    Example::

        >>> nn.LogSoftmax(dim=1)(torch.zeros(1, 2))
        tensor([[-0.6931, -0.6931]])
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.log_softmax(input, self.dim, _stacklevel=5)
