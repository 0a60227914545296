"""Losses as functions."""

from __future__ import annotations

import math
import warnings

import ptr as torch
from ptr.nn import _reduction as _Reduction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

Tensor = torch.Tensor
_nn = torch._C._nn
_VF = torch._C._VariableFunctions
_overridable = torch._C._overridable


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


@_overridable
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Return a loss that is quadratic below ``beta`` and linear above; see :class:`~ptr.nn.SmoothL1Loss`."""
    _Reduction.warn_of_sizes(input, target)
    number = _Reduction.enum_of(size_average, reduce, reduction)
    input, target = torch.broadcast_tensors(input, target)
    if beta == 0.0:
        return _nn.l1_loss(input, target, number)
    return _nn.smooth_l1_loss(input, target, number, beta)


@_overridable
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Return a loss that is quadratic below ``delta`` and linear above; see :class:`~ptr.nn.HuberLoss`."""
    _Reduction.warn_of_sizes(input, target)
    return _Reduction.elementwise(
        lambda input, target, number: _nn.huber_loss(input, target, number, delta), input, target, reduction, weight
    )


@_overridable
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Return the divergence of ``target`` from log-probabilities ``input``; see :class:`~ptr.nn.KLDivLoss`."""
    if size_average is not None or reduce is not None:
        number = _Reduction.legacy_get_enum(size_average, reduce)
    else:
        if reduction == "mean":
            warnings.warn(
                "reduction: 'mean' divides the total loss by both the batch size and the support size. "
                "'batchmean' divides "
                "only by the batch size, and aligns with the KL div math definition. 'mean' will be changed to "
                "behave the "
                "same as 'batchmean' in the next major release.",
                stacklevel=2,
            )
        number = _Reduction.get_enum("sum" if reduction == "batchmean" else reduction)
    result = _VF.kl_div(input, target, number, log_target=log_target)
    if reduction == "batchmean" and input.dim() != 0:
        result = result / input.size()[0]
    return result


@_overridable
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the cross entropy between probabilities and targets; see :class:`~ptr.nn.BCELoss`.

    Raises:
        ValueError: input and target have different sizes.
    """
    number = _Reduction.enum_of(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is "
            "deprecated. "
            "Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(torch.broadcast_tensors(weight, target)[0].size())
    return _nn.binary_cross_entropy(input, target, weight, number)


@_overridable
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Return the cross entropy between logits and targets; see :class:`~ptr.nn.BCEWithLogitsLoss`.

    Raises:
        ValueError: input and target have different sizes.
    """
    number = _Reduction.enum_of(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return _VF.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


@_overridable
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log-likelihood of counts; see :class:`~ptr.nn.PoissonNLLLoss`.

    Raises:
        ValueError: ``reduction`` is unknown.
    """
    reduction = _Reduction.string_of(size_average, reduce, reduction)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not a valid value for reduction")
    return _VF.poisson_nll_loss(input, target, log_input, full, eps, _Reduction.get_enum(reduction))


@_overridable
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Return the negative log-likelihood under normal distributions; see :class:`~ptr.nn.GaussianNLLLoss`.

    Raises:
        ValueError: ``var`` has a size that does not fit or a negative element, or ``reduction`` is unknown.
    """
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * torch.ones_like(input)
    elif torch.any(var < 0):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = torch.unsqueeze(var, -1)
        else:
            # One dimension may be one to broadcast; what counts is the sum of the sizes that differ.
            differing = [v for x, v in zip(input.size(), var.size(), strict=False) if x != v]
            if input.ndim != var.ndim or sum(differing) != 1:
                raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    # Kept from zero, but not in the graph.
    var = var.clone()
    with torch.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var)
    if full:
        loss += 0.5 * math.log(2 * math.pi)
    return _reduced(loss, reduction)


@_overridable
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return how far pairs are from the order that ``target`` asks for; see :class:`~ptr.nn.MarginRankingLoss`."""
    number = _Reduction.enum_of(size_average, reduce, reduction)
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{input1.size()}, "
            f"input2: {input2.size()}, target: {target.size()} "
        )
    return _VF.margin_ranking_loss(input1, input2, target, margin, number)


@_overridable
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return a loss of distances between what is alike or not; see :class:`~ptr.nn.HingeEmbeddingLoss`."""
    return _VF.hinge_embedding_loss(input, target, margin, _Reduction.enum_of(size_average, reduce, reduction))


@_overridable
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the margins between several target classes and the others; see :class:`~ptr.nn.MultiLabelMarginLoss`."""
    return _nn.multilabel_margin_loss(input, target, _Reduction.enum_of(size_average, reduce, reduction))


@_overridable
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the logistic loss of targets 1 and -1; see :class:`~ptr.nn.SoftMarginLoss`."""
    return _nn.soft_margin_loss(input, target, _Reduction.enum_of(size_average, reduce, reduction))


@_overridable
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the logistic loss of several classes; see :class:`~ptr.nn.MultiLabelSoftMarginLoss`.

    Raises:
        ValueError: ``reduction`` is unknown.
    """
    reduction = _Reduction.string_of(size_average, reduce, reduction)
    loss = -(target * _nn.log_sigmoid(input) + (1 - target) * _nn.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(dim=input.dim() - 1) / input.size(input.dim() - 1)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    return _reduced(loss, reduction)


@_overridable
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return a loss of the angle between what is alike or not; see :class:`~ptr.nn.CosineEmbeddingLoss`."""
    return _VF.cosine_embedding_loss(
        input1, input2, target, margin, _Reduction.enum_of(size_average, reduce, reduction)
    )


@_overridable
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return the negative log probability of labellings of sequences; see :class:`~ptr.nn.CTCLoss`."""
    number = _Reduction.get_enum(reduction)
    return _VF.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, number, zero_infinity)


@_overridable
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the margins between the target class and the others; see :class:`~ptr.nn.MultiMarginLoss`.

    Raises:
        ValueError: ``p`` is not 1 or 2, or ``weight`` is not one-dimensional.
    """
    number = _Reduction.enum_of(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return _nn.multi_margin_loss(input, target, p, margin, weight, number)


@_overridable
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return how much nearer the positive should be than the negative; see :class:`~ptr.nn.TripletMarginLoss`.

    Raises:
        ValueError: ``margin`` is not positive.
    """
    number = _Reduction.enum_of(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return _VF.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


@_overridable
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return :func:`triplet_margin_loss` with any distance; see :class:`~ptr.nn.TripletMarginWithDistanceLoss`.

    Raises:
        ValueError: ``reduction`` is unknown, or ``margin`` is not positive.
        RuntimeError: the inputs have different numbers of dimensions.
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if distance_function is None:
        distance_function = torch.pairwise_distance
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    near = distance_function(anchor, positive)
    far = distance_function(anchor, negative)
    if swap:
        far = torch.minimum(far, distance_function(positive, negative))
    return _reduced(torch.clamp_min(margin + near - far, 0), reduction)
