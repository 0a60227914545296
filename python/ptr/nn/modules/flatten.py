"""Changes of shape as modules."""

from __future__ import annotations

import ptr as torch
from ptr.nn.modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Joins neighbouring dimensions into one; by default all but the first.

    Args:
        start_dim: first dimension joined. Default: 1.
        end_dim: last dimension joined. Default: -1.

    Shape:
        - Input: :math:`(*, S_{start}, ..., S_{end}, *)`
        - Output: :math:`(*, \\prod S_i, *)`

    Example::

        >>> nn.Flatten()(torch.randn(32, 5, 5)).shape
        torch.Size([32, 25])
    """

    __constants__ = ["start_dim", "end_dim"]

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return ``input`` with the dimensions joined."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits one dimension into several; the inverse of :class:`Flatten`.

    Args:
        dim: the dimension to split.
        unflattened_size: the sizes it is split into; one may be -1.

    Shape:
        - Input: :math:`(*, S_{dim}, *)` with :math:`S_{dim} = \\prod U_i`
        - Output: :math:`(*, U_1, ..., U_n, *)`

    Raises:
        TypeError: ``unflattened_size`` is no tuple or list of ints.

    Example::

        >>> nn.Unflatten(1, (2, 5, 5))(torch.randn(32, 50)).shape
        torch.Size([32, 2, 5, 5])
    """

    __constants__ = ["dim", "unflattened_size"]

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}"
            )
        for pos, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type {type(size).__name__} at pos "
                    f"{pos}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return ``input`` with the dimension split."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
