"""Padding as modules."""

from __future__ import annotations

import ptr as torch
from ptr.nn import functional as F
from ptr.nn.modules.module import Module
from ptr.nn.modules.utils import _ntuple, _pair, _quadruple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]

_AMOUNTS = {1: _pair, 2: _quadruple, 3: _ntuple(6, "_sextuple")}
_SHAPES = {1: "(C, L)", 2: "(C, H, W)", 3: "(C, D, H, W)"}
_DOC = """Pads the last {n} dimension(s) {how}.

    Args:
        padding: amounts before and after, last dimension first, or one for all; negative ones cut.{more}

    Shape:
        - Input: :math:`{shape}` with or without a batch dimension before it
        - Output: likewise
    """


def _doc(n: int, how: str, more: str = "") -> str:
    return _DOC.format(n=n, how=how, more=more, shape=_SHAPES[n])


class _Pad(Module):
    __constants__ = ["padding"]
    _spatial: int
    padding: tuple[int, ...]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _AMOUNTS[self._spatial](padding)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    __constants__ = ["padding", "value"]
    value: float

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Pad ``input``."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ReflectionPadNd(_Pad):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Pad ``input``."""
        return F.pad(input, self.padding, "reflect")


class _ReplicationPadNd(_Pad):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Pad ``input``."""
        return F.pad(input, self.padding, "replicate")


class _CircularPadNd(_Pad):
    def _check_input_dim(self, input: torch.Tensor) -> None:
        low, high = self._spatial + 1, self._spatial + 2
        if input.dim() not in (low, high):
            raise ValueError(f"expected {low}D or {high}D input (got {input.dim()}D input)")

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Pad ``input``."""
        self._check_input_dim(input)
        return F.pad(input, self.padding, "circular")


class CircularPad1d(_CircularPadNd):
    __doc__ = _doc(1, "with what the other side ends with")
    _spatial = 1


class CircularPad2d(_CircularPadNd):
    __doc__ = _doc(2, "with what the other side ends with")
    _spatial = 2


class CircularPad3d(_CircularPadNd):
    __doc__ = _doc(3, "with what the other side ends with")
    _spatial = 3


class ConstantPad1d(_ConstantPadNd):
    __doc__ = _doc(1, "with a constant", "\n        value: the constant.")
    _spatial = 1


class ConstantPad2d(_ConstantPadNd):
    __doc__ = _doc(2, "with a constant", "\n        value: the constant.")
    _spatial = 2


class ConstantPad3d(_ConstantPadNd):
    __doc__ = _doc(3, "with a constant", "\n        value: the constant.")
    _spatial = 3


class ReflectionPad1d(_ReflectionPadNd):
    __doc__ = _doc(1, "with its mirror image; the edges are not repeated")
    _spatial = 1


class ReflectionPad2d(_ReflectionPadNd):
    __doc__ = _doc(2, "with its mirror image; the edges are not repeated")
    _spatial = 2


class ReflectionPad3d(_ReflectionPadNd):
    __doc__ = _doc(3, "with its mirror image; the edges are not repeated")
    _spatial = 3


class ReplicationPad1d(_ReplicationPadNd):
    __doc__ = _doc(1, "with the values at the edges")
    _spatial = 1


class ReplicationPad2d(_ReplicationPadNd):
    __doc__ = _doc(2, "with the values at the edges")
    _spatial = 2


class ReplicationPad3d(_ReplicationPadNd):
    __doc__ = _doc(3, "with the values at the edges")
    _spatial = 3


class ZeroPad1d(_ZeroPadNd):
    __doc__ = _doc(1, "with zeros")
    _spatial = 1


class ZeroPad2d(_ZeroPadNd):
    __doc__ = _doc(2, "with zeros")
    _spatial = 2


class ZeroPad3d(_ZeroPadNd):
    __doc__ = _doc(3, "with zeros")
    _spatial = 3
