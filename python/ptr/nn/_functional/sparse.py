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


@_overridable
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return the sum, mean or maximum of the rows of each bag; see :class:`~ptr.nn.EmbeddingBag`.

    Args:
        input: indices: ``(bags, length)``, or ``(N)`` for bags that ``offsets`` bound.
        weight: the table, ``(num_embeddings, embedding_dim)``.
        offsets: where in ``input`` each bag begins; of a one-dimensional input only.
        max_norm: rows that are longer are shortened first, in place.
        norm_type: of which norm. Default: 2.
        scale_grad_by_freq: divide a row's gradient by how often it was used; not for the maximum.
        mode: ``"sum"``, ``"mean"`` or ``"max"``. Default: ``"mean"``.
        sparse: whether the gradient is sparse.
        per_sample_weights: a factor for each index, of the shape of ``input``; for the sum only.
        include_last_offset: whether the last offset is where the last bag ends.
        padding_idx: a row that does not count and gets no gradient.

    Returns:
        ``(bags, embedding_dim)``; zeros for a bag without indices.

    Raises:
        ValueError: for shapes that do not fit, or an unknown mode.

    Example::

        >>> table = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> F.embedding_bag(torch.tensor([0, 2, 1]), table, torch.tensor([0, 2]), mode="sum")
        tensor([[6., 8.],
                [3., 4.]])
    """
    if weight.dtype == torch.long and input.is_floating_point():
        # The order of the arguments in old code.
        input, weight = weight, input
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, "
            f"then it must have the same shape as the input ({input.shape})"
        )
    if not weight.dim() == 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        bags, length = input.shape
        offsets = torch.arange(bags, dtype=input.dtype, device=input.device) * length
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if mode not in _MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max":
        if scale_grad_by_freq:
            raise ValueError("max mode does not support scaling the gradient by the frequency")
        if sparse:
            raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        with torch.no_grad():
            _VF.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}'). Please open a feature request on GitHub."
        )
    return _VF.embedding_bag(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        _MODES.index(mode),
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )[0]


# In the order of the operator's numbers.
_MODES = ("sum", "mean", "max")
