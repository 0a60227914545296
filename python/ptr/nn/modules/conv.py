"""Convolutions."""

from __future__ import annotations

import math

import ptr as torch
from ptr.nn import functional as F
from ptr.nn import init
from ptr.nn.modules.linear import _linear_members
from ptr.nn.modules.module import Module
from ptr.nn.modules.utils import _pair, _reverse_repeat_tuple
from ptr.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Conv2d"]

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
