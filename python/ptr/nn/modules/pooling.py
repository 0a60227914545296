"""Pooling as modules."""

from __future__ import annotations

import ptr as torch
from ptr.nn import functional as F
from ptr.nn.modules.module import Module
from ptr.nn.modules.utils import _pair, _single, _triple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


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


class MaxPool1d(_MaxPoolNd):
    """Takes the maximum over windows of a sequence.

    Args:
        kernel_size: length of the window; a number or a tuple of one, here and below.
        stride: step of the window. Default: ``kernel_size``.
        padding: positions of minus infinity added to both sides. Default: 0.
        dilation: distance between the elements of a window. Default: 1.
        return_indices: also return where the maxima are, for unpooling. Default: ``False``.
        ceil_mode: keep windows that reach past the end. Default: ``False``.

    Shape:
        - Input: :math:`(N, C, L)` or :math:`(C, L)`
        - Output: :math:`(N, C, L')` or :math:`(C, L')` with
          ``L' = (L + 2 * padding[0] - dilation[0] * (kernel_size[0] - 1) - 1) // stride[0] + 1``

    Example::

        >>> nn.MaxPool1d(3, stride=2)(torch.randn(20, 16, 50)).shape
        torch.Size([20, 16, 24])
    """

    def forward(self, input: torch.Tensor) -> Any:
        """Pool ``input``; returns the maxima, with ``return_indices`` a pair of maxima and indices."""
        return F.max_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
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


class MaxPool3d(_MaxPoolNd):
    """Takes the maximum over windows of a volume.

    Args:
        kernel_size: depth, height and width of the window; one number for all, here and below.
        stride: step of the window. Default: ``kernel_size``.
        padding: positions of minus infinity added to both sides. Default: 0.
        dilation: distance between the elements of a window. Default: 1.
        return_indices: also return where the maxima are, for unpooling. Default: ``False``.
        ceil_mode: keep windows that reach past the end. Default: ``False``.

    Shape:
        - Input: :math:`(N, C, D, H, W)` or :math:`(C, D, H, W)`
        - Output: :math:`(N, C, D', H', W')` or :math:`(C, D', H', W')` with
          ``D' = (D + 2 * padding[0] - dilation[0] * (kernel_size[0] - 1) - 1) // stride[0] + 1`` and so on

    Example::

        >>> nn.MaxPool3d(3, stride=2)(torch.randn(20, 16, 9, 9, 9)).shape
        torch.Size([20, 16, 4, 4, 4])
    """

    def forward(self, input: torch.Tensor) -> Any:
        """Pool ``input``; returns the maxima, with ``return_indices`` a pair of maxima and indices."""
        return F.max_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class _AvgPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """Averages windows of a sequence.

    Args:
        kernel_size: length of the window.
        stride: step of the window. Default: ``kernel_size``.
        padding: zeros added to both sides. Default: 0.
        ceil_mode: keep windows that reach past the end. Default: ``False``.
        count_include_pad: whether the padding counts. Default: ``True``.
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(stride if stride is not None else kernel_size)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Pool ``input``."""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPoolOverPlanes(_AvgPoolNd):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"]
    _function: Any

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Pool ``input``."""
        return self._function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


_AVG_DOC = """Averages windows of {what}.

    Args:
        kernel_size: size of the window, one number for all dimensions, here and below.
        stride: step of the window. Default: ``kernel_size``.
        padding: zeros added to both sides. Default: 0.
        ceil_mode: keep windows that reach past the end. Default: ``False``.
        count_include_pad: whether the padding counts. Default: ``True``.
        divisor_override: what sums are divided by, rather than the window's size.
    """


class AvgPool2d(_AvgPoolOverPlanes):
    __doc__ = _AVG_DOC.format(what="an image")
    _function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPoolOverPlanes):
    __doc__ = _AVG_DOC.format(what="a volume")
    _function = staticmethod(F.avg_pool3d)


class _LPPoolNd(Module):
    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]
    _name: str

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Pool ``input``."""
        return getattr(F, self._name)(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


_LP_DOC = """Takes the p-norm over windows of {what}.

    Args:
        norm_type: the exponent :math:`p`.
        kernel_size: size of the window.
        stride: step of the window. Default: ``kernel_size``.
        ceil_mode: keep windows that reach past the end. Default: ``False``.
    """


class _AdaptivePoolNd(Module):
    __constants__ = ["output_size"]
    _name: str

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"

    def forward(self, input: torch.Tensor) -> Any:
        """Pool ``input``."""
        return getattr(F, self._name)(input, self.output_size)


class _AdaptiveMaxPoolNd(_AdaptivePoolNd):
    __constants__ = ["output_size", "return_indices"]

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: torch.Tensor) -> Any:
        """Pool ``input``; returns the maxima, with ``return_indices`` a pair of maxima and indices."""
        return getattr(F, self._name)(input, self.output_size, self.return_indices)


_ADAPTIVE_DOC = """{does} windows of {what}, so many that the output has a given size.

    Args:
        output_size: the size, one number for all dimensions; ``None`` for the input's.{more}
    """
_INDICES = "\n        return_indices: also return where the maxima are. Default: ``False``."


class _MaxUnpoolNd(Module):
    _name: str
    _tuple: Any

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = self._tuple(kernel_size)
        self.stride = self._tuple(stride if stride is not None else kernel_size)
        self.padding = self._tuple(padding)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"

    def forward(self, input: torch.Tensor, indices: torch.Tensor, output_size: Any = None) -> torch.Tensor:
        """Put ``input`` where ``indices`` say; ``output_size`` picks one of the sizes that pooling leaves open."""
        return getattr(F, self._name)(input, indices, self.kernel_size, self.stride, self.padding, output_size)


_UNPOOL_DOC = """Undoes :class:`{of}`: maxima go back to where they were, all else is zero.

    Args:
        kernel_size: size of the window.
        stride: step of the window. Default: ``kernel_size``.
        padding: that was added to both sides. Default: 0.
    """


class LPPool1d(_LPPoolNd):
    __doc__ = _LP_DOC.format(what="a sequence")
    _name = "lp_pool1d"


class LPPool2d(_LPPoolNd):
    __doc__ = _LP_DOC.format(what="an image")
    _name = "lp_pool2d"


class LPPool3d(_LPPoolNd):
    __doc__ = _LP_DOC.format(what="a volume")
    _name = "lp_pool3d"


class AdaptiveAvgPool1d(_AdaptivePoolNd):
    __doc__ = _ADAPTIVE_DOC.format(does="Averages", what="a sequence", more="")
    _name = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_AdaptivePoolNd):
    __doc__ = _ADAPTIVE_DOC.format(does="Averages", what="an image", more="")
    _name = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_AdaptivePoolNd):
    __doc__ = _ADAPTIVE_DOC.format(does="Averages", what="a volume", more="")
    _name = "adaptive_avg_pool3d"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    __doc__ = _ADAPTIVE_DOC.format(does="Takes the maxima of", what="a sequence", more=_INDICES)
    _name = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    __doc__ = _ADAPTIVE_DOC.format(does="Takes the maxima of", what="an image", more=_INDICES)
    _name = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    __doc__ = _ADAPTIVE_DOC.format(does="Takes the maxima of", what="a volume", more=_INDICES)
    _name = "adaptive_max_pool3d"


class MaxUnpool1d(_MaxUnpoolNd):
    __doc__ = _UNPOOL_DOC.format(of="MaxPool1d")
    _name = "max_unpool1d"
    _tuple = staticmethod(_single)


class MaxUnpool2d(_MaxUnpoolNd):
    __doc__ = _UNPOOL_DOC.format(of="MaxPool2d")
    _name = "max_unpool2d"
    _tuple = staticmethod(_pair)


class MaxUnpool3d(_MaxUnpoolNd):
    __doc__ = _UNPOOL_DOC.format(of="MaxPool3d")
    _name = "max_unpool3d"
    _tuple = staticmethod(_triple)
