"""Linear maps."""

from __future__ import annotations

import math

import ptr as torch
from ptr.nn import functional as F
from ptr.nn import init
from ptr.nn.modules.module import Module
from ptr.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Bilinear", "Identity", "Linear", "NonDynamicallyQuantizableLinear"]


class Identity(Module):
    """Returns its input. All arguments are accepted and ignored, so that it can stand in for any module.

    Shape:
        - Input: any
        - Output: the same

    Example::

        >>> nn.Identity(54, unused=True)(torch.ones(2))
        tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return ``input``."""
        return input


def _linear_members(module: Any) -> tuple[Any, Any]:
    """Return weight and bias of ``module``.

    Looked up in the table of parameters, past Module.__getattr__; parametrized or replaced ones are plain attributes.
    """
    params = module._parameters
    try:
        return params["weight"], params["bias"]
    except KeyError:
        return module.weight, module.bias


class Linear(Module):
    """Applies :math:`y = x A^T + b` to the last dimension.

    Args:
        in_features: size of the last dimension of the input.
        out_features: size of the last dimension of the output.
        bias: whether :math:`b` is added. Default: ``True``.
        device, dtype: of the parameters.

    Shape:
        - Input: :math:`(*, \\text{in\\_features})`
        - Output: :math:`(*, \\text{out\\_features})`

    Attributes:
        weight: parameter of shape ``(out_features, in_features)``, drawn from
            :math:`U(-\\sqrt k, \\sqrt k)` with ``k = 1 / in_features``.
        bias: parameter of shape ``(out_features,)`` drawn likewise, or ``None``.

    Example::

        >>> nn.Linear(20, 30)(torch.randn(128, 20)).shape
        torch.Size([128, 30])
    """

    __constants__ = ["in_features", "out_features"]
    in_features: int
    out_features: int
    weight: torch.Tensor
    bias: torch.Tensor | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(torch.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(torch.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        # a=sqrt(5) makes the bound of the weight 1/sqrt(in_features).
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the map to ``input``."""
        weight, bias = _linear_members(self)
        return F.linear(input, weight, bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """A linear map that its owner reads the parameters of, so that it must not be replaced by a quantized one."""


class Bilinear(Module):
    """Applies :math:`y = x_1^T A x_2 + b` to the last dimensions of two inputs.

    Args:
        in1_features, in2_features: sizes of the last dimensions of the inputs.
        out_features: size of the last dimension of the output.
        bias: whether :math:`b` is added. Default: ``True``.
        device, dtype: of the parameters.

    Shape:
        - Input1: :math:`(*, \\text{in1\\_features})`
        - Input2: :math:`(*, \\text{in2\\_features})`, all but the last dimension as in Input1
        - Output: :math:`(*, \\text{out\\_features})`

    Attributes:
        weight: parameter of shape ``(out_features, in1_features, in2_features)``, drawn from
            :math:`U(-\\sqrt k, \\sqrt k)` with ``k = 1 / in1_features``.
        bias: parameter of shape ``(out_features,)`` drawn likewise, or ``None``.

    Raises:
        ValueError: ``in1_features`` is not positive.
    """

    __constants__ = ["in1_features", "in2_features", "out_features"]
    weight: torch.Tensor
    bias: torch.Tensor | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(torch.empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(torch.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        if self.in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={self.in1_features})")
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: torch.Tensor, input2: torch.Tensor) -> torch.Tensor:
        """Apply the map to the two inputs."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
