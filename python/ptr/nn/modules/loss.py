"""Losses as modules."""

from __future__ import annotations

import ptr as torch
from ptr.nn import _reduction as _Reduction
from ptr.nn import functional as F
from ptr.nn.modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class _Loss(Module):
    reduction: str

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = _Reduction.legacy_get_string(size_average, reduce)
        self.reduction = reduction


class _WeightedLoss(_Loss):
    weight: torch.Tensor | None

    def __init__(
        self, weight: torch.Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class NLLLoss(_WeightedLoss):
    """The negative of the log-probability that the input gives to the target class.

    Args:
        weight: a weight per class, shape ``(C,)``.
        size_average, reduce: deprecated, see ``reduction``.
        ignore_index: a target value that counts nothing. Default: -100.
        reduction: ``"none"``; ``"mean"``, weighted by ``weight``; or ``"sum"``. Default: ``"mean"``.

    Shape:
        - Input: log-probabilities, :math:`(C)`, :math:`(N, C)` or :math:`(N, C, d_1, ..., d_k)`
        - Target: classes, :math:`()`, :math:`(N)` or :math:`(N, d_1, ..., d_k)`
        - Output: a scalar; with ``"none"`` the shape of the target

    Example::

        >>> loss = nn.NLLLoss()
        >>> loss(nn.LogSoftmax(dim=1)(torch.randn(3, 5)), torch.tensor([1, 0, 4]))
    """

    __constants__ = ["ignore_index", "reduction"]
    ignore_index: int

    def __init__(
        self,
        weight: torch.Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss of ``input`` against ``target``."""
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """The cross entropy between scores and a class, or a distribution over classes.

    It is :class:`~ptr.nn.LogSoftmax` followed by :class:`NLLLoss`, in one step.

    Args:
        weight: a weight per class, shape ``(C,)``.
        size_average, reduce: deprecated, see ``reduction``.
        ignore_index: a target class that counts nothing. Default: -100.
        reduction: ``"none"``; ``"mean"``, weighted by ``weight``; or ``"sum"``. Default: ``"mean"``.
        label_smoothing: the share of the target spread evenly over all classes, in [0, 1]. Default: 0.

    Shape:
        - Input: scores, :math:`(C)`, :math:`(N, C)` or :math:`(N, C, d_1, ..., d_k)`
        - Target: classes, :math:`()`, :math:`(N)` or :math:`(N, d_1, ..., d_k)`; or probabilities of the input's shape
        - Output: a scalar; with ``"none"`` the shape of a target of classes

    Example::

        >>> loss = nn.CrossEntropyLoss()
        >>> loss(torch.randn(3, 5, requires_grad=True), torch.tensor([1, 0, 4])).backward()
    """

    __constants__ = ["ignore_index", "reduction", "label_smoothing"]
    ignore_index: int
    label_smoothing: float

    def __init__(
        self,
        weight: torch.Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss of ``input`` against ``target``."""
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class L1Loss(_Loss):
    """The absolute difference :math:`|x - y|`.

    Args:
        size_average, reduce: deprecated, see ``reduction``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.
    """

    __constants__ = ["reduction"]

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return F.l1_loss(
            input,
            target,
            reduction=self.reduction,
        )


class MSELoss(_Loss):
    """The squared difference :math:`(x - y)^2`.

    Args:
        size_average, reduce: deprecated, see ``reduction``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.
    """

    __constants__ = ["reduction"]

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return F.mse_loss(
            input,
            target,
            reduction=self.reduction,
        )


class SmoothL1Loss(_Loss):
    """A loss of the difference that is quadratic below ``beta`` and linear above.

    Args:
        beta: the threshold; 0 makes it :class:`L1Loss`. Default: 1.
        size_average, reduce: deprecated, see ``reduction``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.
    """

    __constants__ = ["reduction"]

    def __init__(
        self,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return F.smooth_l1_loss(
            input,
            target,
            beta=self.beta,
            reduction=self.reduction,
        )


class HuberLoss(_Loss):
    """A loss of the difference that is quadratic below ``delta`` and linear above.

    Args:
        delta: the threshold, positive. Default: 1.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.
    """

    __constants__ = ["reduction", "delta"]

    def __init__(
        self,
        reduction: str = "mean",
        delta: float = 1.0,
    ) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return F.huber_loss(
            input,
            target,
            delta=self.delta,
            reduction=self.reduction,
        )


class KLDivLoss(_Loss):
    """The divergence of a target distribution from log-probabilities.

    Args:
        log_target: whether the target is log-probabilities. Default: ``False``.
        size_average, reduce: deprecated, see ``reduction``.
        reduction: ``"none"``, ``"mean"``, ``"batchmean"`` or ``"sum"``. Default: ``"mean"``.
    """

    __constants__ = ["reduction"]

    def __init__(
        self,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return F.kl_div(
            input,
            target,
            log_target=self.log_target,
            reduction=self.reduction,
        )


class BCELoss(_WeightedLoss):
    """The cross entropy between probabilities and targets of two classes.

    Args:
        weight: a weight per element, or class.
        size_average, reduce: deprecated, see ``reduction``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.
    """

    __constants__ = ["reduction"]

    def __init__(
        self,
        weight: torch.Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return F.binary_cross_entropy(
            input,
            target,
            weight=self.weight,
            reduction=self.reduction,
        )


class PoissonNLLLoss(_Loss):
    """The negative log-likelihood of counts under Poisson distributions.

    Args:
        log_input: whether the input is logarithms of rates. Default: ``True``.
        full: whether an approximation of the constant is added. Default: ``False``.
        eps: keeps logarithms from zero. Default: 1e-8.
        size_average, reduce: deprecated, see ``reduction``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.
    """

    __constants__ = ["log_input", "full", "eps", "reduction"]

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: Any = None,
        eps: float = 1e-8,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return F.poisson_nll_loss(
            input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class GaussianNLLLoss(_Loss):
    """The negative log-likelihood of targets under normal distributions of given means and variances.

    Args:
        full: whether the constant is added. Default: ``False``.
        eps: the least variance. Default: 1e-6.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.
    """

    __constants__ = ["full", "eps", "reduction"]

    def __init__(
        self,
        *,
        full: bool = False,
        eps: float = 1e-6,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: torch.Tensor, target: torch.Tensor, var: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return F.gaussian_nll_loss(
            input,
            target,
            var,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class HingeEmbeddingLoss(_Loss):
    """A loss of distances between what is alike (target 1) and what is not (-1).

    Args:
        margin: how far apart what is not alike should be. Default: 1.
        size_average, reduce: deprecated, see ``reduction``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.
    """

    __constants__ = ["margin", "reduction"]

    def __init__(
        self,
        margin: float = 1.0,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return F.hinge_embedding_loss(
            input,
            target,
            margin=self.margin,
            reduction=self.reduction,
        )


class CosineEmbeddingLoss(_Loss):
    """A loss of angles between what is alike (target 1) and what is not (-1).

    Args:
        margin: the cosine that what is not alike may have. Default: 0.
        size_average, reduce: deprecated, see ``reduction``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.
    """

    __constants__ = ["margin", "reduction"]

    def __init__(
        self,
        margin: float = 0.0,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: torch.Tensor, input2: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return F.cosine_embedding_loss(
            input1,
            input2,
            target,
            margin=self.margin,
            reduction=self.reduction,
        )


class CTCLoss(_Loss):
    """The loss of connectionist temporal classification: sequences whose alignment with their labels is not known.

    The negative log of the probability of a labelling: the sum over all paths of classes, one per step, that give it
    when repetitions are merged and blanks then removed. From A. Graves et al., "Connectionist Temporal Classification:
    Labelling Unsegmented Sequence Data with Recurrent Neural Networks", ICML 2006.

    Args:
        blank: the class of the blank. Default: 0.
        reduction: ``"none"``, ``"mean"`` (each loss is divided by the length of its target first) or ``"sum"``.
            Default: ``"mean"``.
        zero_infinity: whether infinite losses, of targets that do not fit into their inputs, are zero and have no
            gradient.

    Shape:
        - Log probabilities: :math:`(T, N, C)` or :math:`(T, C)`, as ``log_softmax`` gives them.
        - Targets: :math:`(N, S)`, or all of them one after the other, int64 or int32.
        - Lengths of inputs and targets: :math:`(N)`, tensors or tuples.
        - Output: a scalar, or :math:`(N)` without reduction.

    Raises:
        RuntimeError: lengths, targets or the blank are out of bounds.

    Example::

        >>> scores = torch.randn(50, 16, 20).log_softmax(2)
        >>> labels = torch.randint(1, 20, (16, 30))
        >>> nn.CTCLoss()(scores, labels, (50,) * 16, (20,) * 16).shape
        torch.Size([])
    """

    __constants__ = ["blank", "reduction"]

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self,
        log_probs: torch.Tensor,
        targets: torch.Tensor,
        input_lengths: torch.Tensor,
        target_lengths: torch.Tensor,
    ) -> torch.Tensor:
        """Return the loss."""
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )


class MarginRankingLoss(_Loss):
    """How far two values are from their order, which the target (1 or -1) gives.

    Args:
        margin: how far apart they should be. Default: 0.
        size_average, reduce: deprecated, see ``reduction``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.
    """

    __constants__ = ["margin", "reduction"]

    def __init__(
        self,
        margin: float = 0.0,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: torch.Tensor, input2: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return F.margin_ranking_loss(
            input1,
            input2,
            target,
            margin=self.margin,
            reduction=self.reduction,
        )


class SoftMarginLoss(_Loss):
    """The logistic loss of targets 1 and -1.

    Args:
        size_average, reduce: deprecated, see ``reduction``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.
    """

    __constants__ = ["reduction"]

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return F.soft_margin_loss(
            input,
            target,
            reduction=self.reduction,
        )


class MultiLabelMarginLoss(_Loss):
    """The margins between target classes, listed up to the first negative number, and the others.

    Args:
        size_average, reduce: deprecated, see ``reduction``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.
    """

    __constants__ = ["reduction"]

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return F.multilabel_margin_loss(
            input,
            target,
            reduction=self.reduction,
        )


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean over classes of the cross entropy between the sigmoid of scores and targets.

    Args:
        weight: a weight per element, or class.
        size_average, reduce: deprecated, see ``reduction``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.
    """

    __constants__ = ["reduction"]

    def __init__(
        self,
        weight: torch.Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return F.multilabel_soft_margin_loss(
            input,
            target,
            weight=self.weight,
            reduction=self.reduction,
        )


class MultiMarginLoss(_WeightedLoss):
    """The margins between the target class and the others.

    Args:
        p: the exponent, 1 or 2. Default: 1.
        margin: the margin. Default: 1.
        weight: a weight per element, or class.
        size_average, reduce: deprecated, see ``reduction``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.
    """

    __constants__ = ["p", "margin", "reduction"]

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: torch.Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p = p
        self.margin = margin

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return F.multi_margin_loss(
            input,
            target,
            p=self.p,
            margin=self.margin,
            weight=self.weight,
            reduction=self.reduction,
        )


class TripletMarginLoss(_Loss):
    """How much nearer to the anchor the positive should be than the negative.

    Args:
        margin: how much nearer, positive. Default: 1.
        p: of the norm of the distances. Default: 2.
        eps: added to differences. Default: 1e-6.
        swap: whether the negative may be near the positive instead. Default: ``False``.
        size_average, reduce: deprecated, see ``reduction``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.
    """

    __constants__ = ["margin", "p", "eps", "swap", "reduction"]

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """:class:`TripletMarginLoss` with any distance.

    Args:
        distance_function: of two tensors. Default: :class:`PairwiseDistance`.
        margin: how much nearer, positive. Default: 1.
        swap: whether the negative may be near the positive instead. Default: ``False``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.
    """

    __constants__ = ["margin", "swap", "reduction"]

    def __init__(
        self,
        *,
        distance_function: Any = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead"
            )
        if distance_function is None:
            from ptr.nn.modules.distance import PairwiseDistance

            distance_function = PairwiseDistance()
        self.distance_function = distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class BCEWithLogitsLoss(_Loss):
    """The cross entropy between the sigmoid of logits and targets, in one step.

    Args:
        weight: a weight per element.
        size_average, reduce: deprecated, see ``reduction``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.
        pos_weight: a weight of the positive targets, per class.
    """

    def __init__(
        self,
        weight: torch.Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        pos_weight: torch.Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )
