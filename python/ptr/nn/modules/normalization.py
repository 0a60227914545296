"""Normalization without a batch as modules."""

from __future__ import annotations

import numbers

import ptr as torch
from ptr.nn import functional as F
from ptr.nn import init
from ptr.nn.modules.module import Module
from ptr.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LocalResponseNorm(Module):
    """Divides each element by a mean square over neighbouring channels.

    .. math::
        b_c = a_c \\left(k + \\frac{\\alpha}{n} \\sum_{c' \\in n(c)} a_{c'}^2 \\right)^{-\\beta}

    Args:
        size: number of neighbouring channels :math:`n`.
        alpha, beta, k: as above. Default: 1e-4, 0.75 and 1.

    Shape:
        - Input: :math:`(N, C, *)`
        - Output: the same
    """

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Normalize ``input``."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


def _shape(normalized_shape: Any) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, numbers.Integral) else tuple(normalized_shape)


class LayerNorm(Module):
    """Normalizes the last dimensions of each sample by their own mean and deviation.

    Args:
        normalized_shape: sizes of the last dimensions, or of the last one.
        eps: added to the variance. Default: 1e-5.
        elementwise_affine: whether elements are scaled and shifted. Default: ``True``.
        bias: whether they are shifted, if ``elementwise_affine``. Default: ``True``.
        device, dtype: of the parameters.

    Shape:
        - Input: :math:`(*, \\text{normalized\\_shape})`
        - Output: the same

    Example::

        >>> nn.LayerNorm(10)(torch.randn(20, 5, 10)).shape
        torch.Size([20, 5, 10])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(torch.empty(self.normalized_shape, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)
        if elementwise_affine and bias:
            self.bias = Parameter(torch.empty(self.normalized_shape, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight one and bias zero."""
        if self.elementwise_affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Normalize ``input``."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(Module):
    """Normalizes groups of channels of each sample by their own mean and deviation.

    Args:
        num_groups: number of groups.
        num_channels: number of channels, divisible by it.
        eps: added to the variance. Default: 1e-5.
        affine: whether channels are scaled and shifted. Default: ``True``.
        device, dtype: of the parameters.
        bias: whether they are shifted, if ``affine``. Default: ``True``.

    Shape:
        - Input: :math:`(N, C, *)`
        - Output: the same

    Raises:
        ValueError: ``num_channels`` is not divisible by ``num_groups``.
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        if affine:
            self.weight = Parameter(torch.empty(num_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)
        if affine and bias:
            self.bias = Parameter(torch.empty(num_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight one and bias zero."""
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Normalize ``input``."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divides the last dimensions of each sample by the root of their mean square.

    Args:
        normalized_shape: sizes of the last dimensions, or of the last one.
        eps: added to the mean square. Default: the resolution of the dtype.
        elementwise_affine: whether elements are scaled. Default: ``True``.
        device, dtype: of the parameter.

    Shape:
        - Input: :math:`(*, \\text{normalized\\_shape})`
        - Output: the same
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(torch.empty(self.normalized_shape, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight one."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalize ``x``."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
