"""Convolutions."""

from __future__ import annotations

import math

import ptr as torch
from ptr.nn import functional as F
from ptr.nn import init
from ptr.nn.modules.linear import _linear_members
from ptr.nn.modules.module import Module
from ptr.nn.modules.utils import _pair, _reverse_repeat_tuple, _single, _triple
from ptr.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What convolutions of any dimension have in common: checks, parameters and their initialization, printing."""

    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]
    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: str | tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    output_padding: tuple[int, ...]
    groups: int
    padding_mode: str
    weight: torch.Tensor
    bias: torch.Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of 'same', 'valid'")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {_PADDING_MODES}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        # The padding as F.pad takes it, for the modes that the convolution itself does not know: last dimension first,
        # before and after.
        self._reversed_padding_repeated_twice: Any
        if isinstance(padding, str):
            self._reversed_padding_repeated_twice = [0, 0] * len(kernel_size)
            if padding == "same":
                pads = []
                for d, k in zip(reversed(dilation), reversed(kernel_size), strict=False):
                    total = d * (k - 1)
                    pads += [total // 2, total - total // 2]
                self._reversed_padding_repeated_twice = pads
        else:
            self._reversed_padding_repeated_twice = _reverse_repeat_tuple(padding, 2)

        outer, inner = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        self.weight = Parameter(torch.empty((outer, inner // groups, *kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(torch.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        with torch.no_grad():
            # Values are drawn in the order of a contiguous weight, whatever its memory format.
            weight = self.weight
            if not weight.is_contiguous():
                weight = torch.empty_like(weight, memory_format=torch.contiguous_format)
            # a=sqrt(5) makes the bound of the weight 1/sqrt(fan_in).
            init.kaiming_uniform_(weight, a=math.sqrt(5))
            if weight is not self.weight:
                self.weight.copy_(weight)
            if self.bias is not None:
                fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
                bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        parts = [
            str(self.in_channels),
            str(self.out_channels),
            f"kernel_size={self.kernel_size}",
            f"stride={self.stride}",
        ]
        n = len(self.kernel_size)
        for name, default in (
            ("padding", (0,) * n),
            ("dilation", (1,) * n),
            ("output_padding", (0,) * n),
            ("groups", 1),
        ):
            value = getattr(self, name)
            if value != default:
                parts.append(f"{name}={value}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "padding_mode" not in self.__dict__:
            self.padding_mode = "zeros"


class Conv1d(_ConvNd):
    """Cross-correlates sequences of several channels with learned kernels.

    .. math::
        \\text{out}(n, c) = \\text{bias}(c) + \\sum_k \\text{weight}(c, k) \\star \\text{input}(n, k)

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output.
        kernel_size: length of the kernel; a number or a tuple of one, here and below.
        stride: step of the kernel. Default: 1.
        padding: added to both sides, or ``"valid"`` (none) or ``"same"`` (so that sizes stay, stride 1 only). Default:
            0.
        dilation: distance between kernel elements. Default: 1.
        groups: number of groups that channels are divided into; each group of outputs sees one group of inputs.
            Default: 1.
        bias: whether a bias is added. Default: ``True``.
        padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``. Default: ``"zeros"``.
        device, dtype: of the parameters.

    Shape:
        - Input: :math:`(N, C_{in}, L)` or :math:`(C_{in}, L)`
        - Output: :math:`(N, C_{out}, L')` or :math:`(C_{out}, L')` with
          ``L' = (L + 2 * padding[0] - dilation[0] * (kernel_size[0] - 1) - 1) // stride[0] + 1``

    Attributes:
        weight: parameter of shape ``(out_channels, in_channels / groups, *kernel_size)``, drawn from
            :math:`U(-\\sqrt k, \\sqrt k)` with ``k = groups / (in_channels * kernel_size[0])``.
        bias: parameter of shape ``(out_channels,)`` drawn likewise, or ``None``.

    Raises:
        ValueError: channels not divisible by groups, an unknown padding, or ``"same"`` with a stride.

    Example::

        >>> nn.Conv1d(16, 33, 3, stride=2)(torch.randn(20, 16, 50)).shape
        torch.Size([20, 33, 24])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int],
        stride: int | tuple[int] = 1,
        padding: str | int | tuple[int] = 0,
        dilation: int | tuple[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            _single(kernel_size),
            _single(stride),
            padding if isinstance(padding, str) else _single(padding),
            _single(dilation),
            False,
            _single(0),
            groups,
            bias,
            padding_mode,
            device=device,
            dtype=dtype,
        )

    def _conv_forward(self, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        if self.padding_mode == "zeros":
            return F.conv1d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return F.conv1d(padded, weight, bias, self.stride, 0, self.dilation, self.groups)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Convolve ``input``."""
        weight, bias = _linear_members(self)
        return self._conv_forward(input, weight, bias)


class Conv2d(_ConvNd):
    """Cross-correlates images of several channels with learned kernels.

    .. math::
        \\text{out}(n, c) = \\text{bias}(c) + \\sum_k \\text{weight}(c, k) \\star \\text{input}(n, k)

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output.
        kernel_size: height and width of the kernel; one number for both, here and below.
        stride: step of the kernel. Default: 1.
        padding: added to both sides, or ``"valid"`` (none) or ``"same"`` (so that sizes stay, stride 1 only). Default:
            0.
        dilation: distance between kernel elements. Default: 1.
        groups: number of groups that channels are divided into; each group of outputs sees one group of inputs.
            Default: 1.
        bias: whether a bias is added. Default: ``True``.
        padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``. Default: ``"zeros"``.
        device, dtype: of the parameters.

    Shape:
        - Input: :math:`(N, C_{in}, H, W)` or :math:`(C_{in}, H, W)`
        - Output: :math:`(N, C_{out}, H', W')` or :math:`(C_{out}, H', W')` with
          ``H' = (H + 2 * padding[0] - dilation[0] * (kernel_size[0] - 1) - 1) // stride[0] + 1``, likewise ``W'``

    Attributes:
        weight: parameter of shape ``(out_channels, in_channels / groups, *kernel_size)``, drawn from
            :math:`U(-\\sqrt k, \\sqrt k)` with ``k = groups / (in_channels * kernel_size[0] * kernel_size[1])``.
        bias: parameter of shape ``(out_channels,)`` drawn likewise, or ``None``.

    Raises:
        ValueError: channels not divisible by groups, an unknown padding, or ``"same"`` with a stride.

    Example::

        >>> nn.Conv2d(16, 33, 3, stride=2)(torch.randn(20, 16, 50, 100)).shape
        torch.Size([20, 33, 24, 49])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: str | int | tuple[int, int] = 0,
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            _pair(kernel_size),
            _pair(stride),
            padding if isinstance(padding, str) else _pair(padding),
            _pair(dilation),
            False,
            _pair(0),
            groups,
            bias,
            padding_mode,
            device=device,
            dtype=dtype,
        )

    def _conv_forward(self, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        if self.padding_mode == "zeros":
            return F.conv2d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return F.conv2d(padded, weight, bias, self.stride, 0, self.dilation, self.groups)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Convolve ``input``."""
        weight, bias = _linear_members(self)
        return self._conv_forward(input, weight, bias)


class Conv3d(_ConvNd):
    """Cross-correlates volumes of several channels with learned kernels.

    .. math::
        \\text{out}(n, c) = \\text{bias}(c) + \\sum_k \\text{weight}(c, k) \\star \\text{input}(n, k)

    Args:
        in_channels: number of channels of the input.
        out_channels: number of channels of the output.
        kernel_size: depth, height and width of the kernel; one number for all, here and below.
        stride: step of the kernel. Default: 1.
        padding: added to both sides, or ``"valid"`` (none) or ``"same"`` (so that sizes stay, stride 1 only). Default:
            0.
        dilation: distance between kernel elements. Default: 1.
        groups: number of groups that channels are divided into; each group of outputs sees one group of inputs.
            Default: 1.
        bias: whether a bias is added. Default: ``True``.
        padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``. Default: ``"zeros"``.
        device, dtype: of the parameters.

    Shape:
        - Input: :math:`(N, C_{in}, D, H, W)` or :math:`(C_{in}, D, H, W)`
        - Output: :math:`(N, C_{out}, D', H', W')` or :math:`(C_{out}, D', H', W')` with
          ``D' = (D + 2 * padding[0] - dilation[0] * (kernel_size[0] - 1) - 1) // stride[0] + 1`` and so on

    Attributes:
        weight: parameter of shape ``(out_channels, in_channels / groups, *kernel_size)``, drawn from
            :math:`U(-\\sqrt k, \\sqrt k)` with ``k = groups / (in_channels * prod(kernel_size))``.
        bias: parameter of shape ``(out_channels,)`` drawn likewise, or ``None``.

    Raises:
        ValueError: channels not divisible by groups, an unknown padding, or ``"same"`` with a stride.

    Example::

        >>> nn.Conv3d(16, 33, 3, stride=2)(torch.randn(20, 16, 9, 9, 9)).shape
        torch.Size([20, 33, 4, 4, 4])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int, int],
        stride: int | tuple[int, int, int] = 1,
        padding: str | int | tuple[int, int, int] = 0,
        dilation: int | tuple[int, int, int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            _triple(kernel_size),
            _triple(stride),
            padding if isinstance(padding, str) else _triple(padding),
            _triple(dilation),
            False,
            _triple(0),
            groups,
            bias,
            padding_mode,
            device=device,
            dtype=dtype,
        )

    def _conv_forward(self, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        if self.padding_mode == "zeros":
            return F.conv3d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return F.conv3d(padded, weight, bias, self.stride, 0, self.dilation, self.groups)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Convolve ``input``."""
        weight, bias = _linear_members(self)
        return self._conv_forward(input, weight, bias)


class _ConvTransposeNd(_ConvNd):
    """What transposed convolutions have in common."""

    _tuple: Any
    _function: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {self.__class__.__name__}')
        sizes = [self._tuple(value) for value in (kernel_size, stride, padding, dilation)]
        extra = self._tuple(output_padding)
        super().__init__(
            in_channels, out_channels, *sizes, True, extra, groups, bias, padding_mode, device=device, dtype=dtype
        )

    def _output_padding(
        self,
        input: torch.Tensor,
        output_size: Any,
        stride: Any,
        padding: Any,
        kernel_size: Any,
        num_spatial_dims: int,
        dilation: Any = None,
    ) -> list[int]:
        """Return the output padding that gives ``output_size``; without one, the module's own."""
        n = num_spatial_dims
        if output_size is None:
            return list(self.output_padding)
        lead = 2 if input.dim() == n + 2 else 1
        if len(output_size) == lead + n:
            output_size = output_size[lead:]
        if len(output_size) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {lead + n} elements (got "
                f"{len(output_size)})"
            )
        gaps = dilation if dilation is not None else [1] * n
        least = [
            (input.size(d + lead) - 1) * stride[d] - 2 * padding[d] + gaps[d] * (kernel_size[d] - 1) + 1
            for d in range(n)
        ]
        most = [low + step - 1 for low, step in zip(least, stride, strict=True)]
        if any(not low <= size <= high for size, low, high in zip(output_size, least, most, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {least} to {most} (for "
                "an input of "
                f"{input.size()[2:]})"
            )
        return [size - low for size, low in zip(output_size, least, strict=True)]

    def forward(self, input: torch.Tensor, output_size: Any = None) -> torch.Tensor:
        """Convolve ``input``; ``output_size`` picks one of the sizes that a stride leaves open."""
        n = len(self.kernel_size)
        extra = self._output_padding(input, output_size, self.stride, self.padding, self.kernel_size, n, self.dilation)
        weight, bias = _linear_members(self)
        return self._function(input, weight, bias, self.stride, self.padding, extra, self.groups, self.dilation)


_TRANSPOSED_DOC = """The gradient of a convolution with respect to its input, as a layer that makes {what} larger.

    Args:
        in_channels, out_channels: numbers of channels of input and output.
        kernel_size: of the kernel, one number for all dimensions, here and below.
        stride: step of the convolution. Default: 1.
        padding: what the convolution would add to both sides. Default: 0.
        output_padding: added to one side of the output's size. Default: 0.
        groups: number of groups that channels are divided into. Default: 1.
        bias: whether a bias is added. Default: ``True``.
        dilation: distance between kernel elements. Default: 1.
        padding_mode: ``"zeros"``.
        device, dtype: of the parameters.

    Each dimension of the output has size ``(L - 1) * stride - 2 * padding + dilation * (kernel_size - 1) +
    output_padding + 1``.

    Attributes:
        weight: parameter of shape ``(in_channels, out_channels / groups, *kernel_size)``.
        bias: parameter of shape ``(out_channels,)``, or ``None``.
    """


class ConvTranspose1d(_ConvTransposeNd):
    __doc__ = _TRANSPOSED_DOC.format(what="sequences")
    _tuple = staticmethod(_single)
    _function = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTransposeNd):
    __doc__ = _TRANSPOSED_DOC.format(what="images")
    _tuple = staticmethod(_pair)
    _function = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTransposeNd):
    __doc__ = _TRANSPOSED_DOC.format(what="volumes")
    _tuple = staticmethod(_triple)
    _function = staticmethod(F.conv_transpose3d)
