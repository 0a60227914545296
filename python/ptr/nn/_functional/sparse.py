"""Tables of vectors as functions."""

from __future__ import annotations

import ptr as torch

Tensor = torch.Tensor
_VF = torch._C._VariableFunctions
_overridable = torch._C._overridable


@_overridable
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return the rows of ``weight`` that ``input`` numbers; see :class:`~ptr.nn.Embedding`.

    Args:
        input: indices.
        weight: the table, ``(num_embeddings, embedding_dim)``.
        padding_idx: a row that gets no gradient.
        max_norm: rows that are longer are shortened first, in place.
        norm_type: of which norm. Default: 2.
        scale_grad_by_freq: divide a row's gradient by how often it was used.
        sparse: whether the gradient is sparse.
    """
    if padding_idx is not None:
        rows = weight.size(0)
        if padding_idx > 0:
            assert padding_idx < rows, "Padding_idx must be within num_embeddings"
        elif padding_idx < 0:
            assert padding_idx >= -rows, "Padding_idx must be within num_embeddings"
            padding_idx = rows + padding_idx
    else:
        padding_idx = -1
    if max_norm is not None:
        input = input.contiguous()
        with torch.no_grad():
            _VF.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    return _VF.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)
