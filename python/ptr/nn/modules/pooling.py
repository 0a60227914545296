"""Pooling as modules."""

from __future__ import annotations

import ptr as torch
from ptr.nn import functional as F
from ptr.nn.modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["MaxPool2d"]


class _MaxPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool2d(_MaxPoolNd):
    """Takes the maximum over windows of an image.

    Args:
        kernel_size: height and width of the window; one number for both, here and below.
        stride: step of the window. Default: ``kernel_size``.
        padding: positions of minus infinity added to both sides. Default: 0.
        dilation: distance between the elements of a window. Default: 1.
        return_indices: also return where the maxima are, for unpooling. Default: ``False``.
        ceil_mode: keep windows that reach past the end. Default: ``False``.

    Shape:
        - Input: :math:`(N, C, H, W)` or :math:`(C, H, W)`
        - Output: :math:`(N, C, H', W')` or :math:`(C, H', W')` with
          ``H' = (H + 2 * padding[0] - dilation[0] * (kernel_size[0] - 1) - 1) // stride[0] + 1``, likewise ``W'``

    Example::

        >>> nn.MaxPool2d(3, stride=2)(torch.randn(20, 16, 50, 32)).shape
        torch.Size([20, 16, 24, 15])
    """

    def forward(self, input: torch.Tensor) -> Any:
        """Pool ``input``; returns the maxima, with ``return_indices`` a pair of maxima and indices."""
        return F.max_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )
