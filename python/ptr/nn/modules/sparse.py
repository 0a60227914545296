"""Tables of vectors as modules."""

from __future__ import annotations

import ptr as torch
from ptr.nn import functional as F
from ptr.nn import init
from ptr.nn.modules.module import Module
from ptr.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Embedding", "EmbeddingBag"]


def _row(number: int | None, rows: int, name: str) -> int | None:
    """Count from the front what may count from the end."""
    if number is None:
        return None
    assert -rows <= number < rows or number == 0, f"{name} must be within num_embeddings"
    return number + rows if number < 0 else number


def _draw(table: torch.Tensor, padding_idx: int | None) -> None:
    init.normal_(table)
    if padding_idx is not None:
        with torch.no_grad():
            table[padding_idx].fill_(0)


class Embedding(Module):
    """A table of vectors, looked up by number.

    Args:
        num_embeddings: number of vectors.
        embedding_dim: their size.
        padding_idx: a vector that starts as zeros and gets no gradient.
        max_norm: vectors that are longer are shortened when they are used.
        norm_type: of which norm. Default: 2.
        scale_grad_by_freq: divide a vector's gradient by how often it is in the batch. Default: ``False``.
        sparse: whether the gradient of the table is sparse. Default: ``False``.
        _weight: the table, rather than a random one.
        _freeze: whether the table is fixed.
        device, dtype: of the table.

    Shape:
        - Input: :math:`(*)`, indices
        - Output: :math:`(*, \\text{embedding\\_dim})`

    Attributes:
        weight: the table, drawn from :math:`N(0, 1)`.

    Example::

        >>> nn.Embedding(10, 3)(torch.tensor([[1, 2, 4, 5], [4, 3, 2, 9]])).shape
        torch.Size([2, 4, 3])
    """

    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "padding_idx",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "sparse",
    ]

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: torch.Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _row(padding_idx, num_embeddings, "Padding_idx")
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if _weight is None:
            table = torch.empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(table, requires_grad=not _freeze)
            self.reset_parameters()
        else:
            assert list(_weight.shape) == [num_embeddings, embedding_dim], (
                "Shape of weight does not match num_embeddings and embedding_dim"
            )
            self.weight = Parameter(_weight, requires_grad=not _freeze)
        self.sparse = sparse

    def reset_parameters(self) -> None:
        """Draw the table anew."""
        _draw(self.weight, self.padding_idx)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Look up the vectors that ``input`` numbers."""
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq is not False:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        if self.sparse is not False:
            parts.append("sparse=True")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: torch.Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """Make a table of given vectors.

        Args:
            embeddings: the vectors, ``(num_embeddings, embedding_dim)``.
            freeze: whether the table is fixed. Default: ``True``.
            padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse: as of the class.
        """
        assert embeddings.dim() == 2, "Embeddings parameter is expected to be 2-dimensional"
        rows, cols = embeddings.shape
        return cls(
            num_embeddings=rows,
            embedding_dim=cols,
            _weight=embeddings,
            _freeze=freeze,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
        )


class EmbeddingBag(Module):
    """A table of vectors, of which bags of rows are summed, averaged or compared without an intermediate copy.

    Args:
        num_embeddings: number of vectors.
        embedding_dim: their size.
        max_norm: vectors that are longer are shortened when they are looked up, in place.
        norm_type: of which norm. Default: 2.
        scale_grad_by_freq: divide the gradient of a vector by how often it was used; not for the maximum.
        mode: ``"sum"``, ``"mean"`` or ``"max"``. Default: ``"mean"``.
        sparse: whether the gradient is sparse; not for the maximum.
        include_last_offset: whether the last offset is where the last bag ends.
        padding_idx: a vector that is zero, does not count and is not trained.

    Attributes:
        weight: the table, drawn from the standard normal distribution.

    Shape:
        - Input: :math:`(B, N)`, or :math:`(N)` with offsets :math:`(B)`, int64 or int32.
        - Output: :math:`(B, \\text{embedding\\_dim})`

    Example::

        >>> bag = nn.EmbeddingBag(10, 3, mode="sum")
        >>> bag(torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 4])).shape
        torch.Size([2, 3])
    """

    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "mode",
        "sparse",
        "include_last_offset",
        "padding_idx",
    ]

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: torch.Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = _row(padding_idx, num_embeddings, "padding_idx")
        if _weight is None:
            self.weight = Parameter(torch.empty((num_embeddings, embedding_dim), device=device, dtype=dtype))
            self.reset_parameters()
        else:
            assert list(_weight.shape) == [num_embeddings, embedding_dim], (
                "Shape of weight does not match num_embeddings and embedding_dim"
            )
            self.weight = Parameter(_weight)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def reset_parameters(self) -> None:
        """Draw the table anew."""
        _draw(self.weight, self.padding_idx)

    def forward(
        self,
        input: torch.Tensor,
        offsets: torch.Tensor | None = None,
        per_sample_weights: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Reduce the vectors of each bag; ``per_sample_weights`` are factors, for ``mode="sum"``."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq is not False:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        parts.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: torch.Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """Make a table of given vectors.

        Args:
            embeddings: the vectors, ``(num_embeddings, embedding_dim)``.
            freeze: whether the table is fixed. Default: ``True``.
            max_norm, norm_type, scale_grad_by_freq, mode, sparse, include_last_offset, padding_idx: as of the class.
        """
        assert embeddings.dim() == 2, "Embeddings parameter is expected to be 2-dimensional"
        rows, cols = embeddings.shape
        bag = cls(
            num_embeddings=rows,
            embedding_dim=cols,
            _weight=embeddings,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        bag.weight.requires_grad = not freeze
        return bag
