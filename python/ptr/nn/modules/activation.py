"""Activation functions as modules.

All take an input of any shape and return one of that shape, except where they say otherwise.
"""

from __future__ import annotations

import warnings

import ptr as torch
from ptr.nn import functional as F
from ptr.nn import init as _init
from ptr.nn.modules.module import Module
from ptr.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _Inplace(Module):
    """A function that may write into its input."""

    __constants__ = ["inplace"]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def _options(self) -> list[str]:
        """What the printed form says of the options."""
        return []

    def extra_repr(self) -> str:
        return ", ".join([*self._options(), *(["inplace=True"] if self.inplace else [])])


class ReLU(_Inplace):
    """Applies :math:`\\max(0, x)` to each element.

    Args:
        inplace: write into the input. Default: ``False``.

    Example::

        >>> nn.ReLU()(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.relu(input, inplace=self.inplace)


class Threshold(_Inplace):
    """Replaces elements that are not above a threshold by a value.

    Args:
        threshold: the threshold.
        value: what replaces them.
        inplace: write into the input. Default: ``False``.
    """

    __constants__ = ["threshold", "value", "inplace"]

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def _options(self) -> list[str]:
        return [f"threshold={self.threshold}", f"value={self.value}"]


class RReLU(_Inplace):
    """Multiplies negative elements by a factor: a random one for each in training, the mean of the bounds otherwise.

    After Xu et al., "Empirical Evaluation of Rectified Activations in Convolutional Network" (2015).

    Args:
        lower, upper: bounds of the factor. Defaults: 1/8, 1/3.
        inplace: write into the input. Default: ``False``.
    """

    __constants__ = ["lower", "upper", "inplace"]

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def _options(self) -> list[str]:
        return [f"lower={self.lower}", f"upper={self.upper}"]


class Hardtanh(_Inplace):
    """Clamps elements to a range.

    Args:
        min_val, max_val: the range. Defaults: -1, 1.
        inplace: write into the input. Default: ``False``.
        min_value, max_value: deprecated names of ``min_val`` and ``max_val``.

    Raises:
        AssertionError: the range is empty.
    """

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__(inplace)
        for name, old, value in (("min_val", "min_value", min_value), ("max_val", "max_value", max_value)):
            if value is not None:
                warnings.warn(
                    f"keyword argument `{old}` is deprecated and rename to `{name}`", FutureWarning, stacklevel=2
                )
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        if self.max_val <= self.min_val:
            raise AssertionError("max_val must be larger than min_val")

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def _options(self) -> list[str]:
        return [f"min_val={self.min_val}", f"max_val={self.max_val}"]


class ReLU6(Hardtanh):
    """Applies :math:`\\min(\\max(0, x), 6)` to each element.

    Args:
        inplace: write into the input. Default: ``False``.
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def _options(self) -> list[str]:
        return []


class Hardsigmoid(_Inplace):
    """Applies :math:`\\min(\\max(0, x + 3), 6) / 6`, a piecewise linear sigmoid.

    Args:
        inplace: write into the input. Default: ``False``.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_Inplace):
    """Applies :math:`x \\min(\\max(0, x + 3), 6) / 6`.

    After Howard et al., "Searching for MobileNetV3" (2019).

    Args:
        inplace: write into the input. Default: ``False``.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class SiLU(_Inplace):
    """Applies :math:`x \\sigma(x)` with the sigmoid :math:`\\sigma`, also known as swish.

    After Hendrycks and Gimpel, "Gaussian Error Linear Units (GELUs)" (2016).

    Args:
        inplace: write into the input. Default: ``False``.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.silu(input, self.inplace)


class Mish(_Inplace):
    """Applies :math:`x \\tanh(\\log(1 + e^x))`.

    After Misra, "Mish: A Self Regularized Non-Monotonic Neural Activation Function" (2019).

    Args:
        inplace: write into the input. Default: ``False``.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.mish(input, self.inplace)


class SELU(_Inplace):
    """Applies :math:`s (\\max(0, x) + \\min(0, \\alpha (e^x - 1)))`, whose constants keep mean and variance.

    After Klambauer et al., "Self-Normalizing Neural Networks" (2017).

    Args:
        inplace: write into the input. Default: ``False``.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.selu(input, self.inplace)


class ELU(_Inplace):
    """Applies :math:`x` where positive, and :math:`\\alpha (e^x - 1)` elsewhere.

    After Clevert et al., "Fast and Accurate Deep Network Learning by Exponential Linear Units (ELUs)" (2015).

    Args:
        alpha: the factor of negative elements. Default: 1.0.
        inplace: write into the input. Default: ``False``.
    """

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.elu(input, self.alpha, self.inplace)

    def _options(self) -> list[str]:
        return [f"alpha={self.alpha}"]


class CELU(_Inplace):
    """Applies :math:`\\max(0, x) + \\min(0, \\alpha (e^{x / \\alpha} - 1))`.

    After Barron, "Continuously Differentiable Exponential Linear Units" (2017).

    Args:
        alpha: the scale of negative elements. Default: 1.0.
        inplace: write into the input. Default: ``False``.
    """

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.celu(input, self.alpha, self.inplace)

    def _options(self) -> list[str]:
        return [f"alpha={self.alpha}"]


class LeakyReLU(_Inplace):
    """Multiplies negative elements by a small factor.

    Args:
        negative_slope: the factor. Default: 1e-2.
        inplace: write into the input. Default: ``False``.
    """

    __constants__ = ["negative_slope", "inplace"]

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def _options(self) -> list[str]:
        return [f"negative_slope={self.negative_slope}"]


class Sigmoid(Module):
    """Applies :math:`1 / (1 + e^{-x})` to each element."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return torch.sigmoid(input)


class Tanh(Module):
    """Applies the hyperbolic tangent to each element."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return torch.tanh(input)


class LogSigmoid(Module):
    """Applies :math:`-\\log(1 + e^{-x})` to each element."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.logsigmoid(input)


class Softsign(Module):
    """Applies :math:`x / (1 + |x|)` to each element."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.softsign(input)


class Tanhshrink(Module):
    """Applies :math:`x - \\tanh(x)` to each element."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.tanhshrink(input)


class GELU(Module):
    """Applies :math:`x \\Phi(x)` with the distribution function :math:`\\Phi` of the standard normal.

    After Hendrycks and Gimpel, "Gaussian Error Linear Units (GELUs)" (2016).

    Args:
        approximate: "none", or "tanh" for an approximation. Default: "none".
    """

    __constants__ = ["approximate"]

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class GLU(Module):
    """Halves a dimension, and returns the first half times the sigmoid of the second.

    After Dauphin et al., "Language Modeling with Gated Convolutional Networks" (2016).

    Args:
        dim: the dimension, of even size; the output's has half of it. Default: -1.
    """

    __constants__ = ["dim"]

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Hardshrink(Module):
    """Sets elements within ``[-lambd, lambd]`` to zero.

    Args:
        lambd: the bound. Default: 0.5.
    """

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Module):
    """Moves elements by ``lambd`` towards zero, and to zero those that are nearer.

    Args:
        lambd: the distance, not negative. Default: 0.5.
    """

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softplus(Module):
    """Applies :math:`\\log(1 + e^{\\beta x}) / \\beta`, a smooth :class:`ReLU`.

    Args:
        beta: the sharpness. Default: 1.0.
        threshold: where ``beta * x`` is above it, the function is ``x``. Default: 20.0.
    """

    __constants__ = ["beta", "threshold"]

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class PReLU(Module):
    """Multiplies negative elements by a learned factor.

    After He et al., "Delving Deep into Rectifiers" (2015).

    Args:
        num_parameters: 1, or the number of channels (dimension 1) for a factor each. Default: 1.
        init: the first value of the factor. Default: 0.25.
        device, dtype: of the parameter.

    Attributes:
        weight: parameter of shape ``(num_parameters,)``.
    """

    __constants__ = ["num_parameters"]

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(torch.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the factors to their first value."""
        _init.constant_(self.weight, self.init)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


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


class Softmin(_SoftmaxBase):
    """:class:`Softmax` of the negative input.

    Args:
        dim: the dimension. Leaving it out is deprecated: it is then chosen by the number of dimensions.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """:class:`Softmax` over the channels of images.

    Shape:
        - Input: :math:`(N, C, H, W)` or :math:`(C, H, W)`
        - Output: the same

    Raises:
        ValueError: the input has another number of dimensions.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the function to ``input``."""
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)
