"""The functions that modules are made of.

Functions with nothing to add are the engine's own. The others check arguments, fill in defaults and call it; where the
engine would not offer the call to modes and to an argument's ``__torch_function__`` under the function's own name,
``_overridable`` does.
"""

from __future__ import annotations

import warnings

import ptr as torch
from ptr.nn import _reduction as _Reduction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

# Families of functions that are imported when one of them is touched: `import ptr` stays small.
_FAMILIES = {
    "attention": "multi_head_attention_forward",
    "dropout": "alpha_dropout dropout1d dropout2d dropout3d feature_alpha_dropout",
    "loss": (
        "binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss gaussian_nll_loss "
        "hinge_embedding_loss huber_loss kl_div margin_ranking_loss multi_margin_loss multilabel_margin_loss "
        "multilabel_soft_margin_loss poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss "
        "triplet_margin_with_distance_loss"
    ),
    "norm": "batch_norm group_norm instance_norm layer_norm local_response_norm normalize rms_norm",
    "pooling": (
        "adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool1d_with_indices "
        "adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d "
        "adaptive_max_pool3d_with_indices fold lp_pool1d lp_pool2d lp_pool3d max_pool1d "
        "max_pool1d_with_indices max_pool3d max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d "
        "unfold"
    ),
    "resize": "interpolate upsample upsample_bilinear upsample_nearest",
    "sparse": "embedding embedding_bag",
}
_FAMILY_OF = {name: family for family, names in _FAMILIES.items() for name in names.split()}

__all__ = [
    "adaptive_avg_pool1d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "bilinear",
    "celu",
    "celu_",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "l1_loss",
    "leaky_relu",
    "leaky_relu_",
    "linear",
    "log_softmax",
    "logsigmoid",
    "max_pool2d",
    "max_pool2d_with_indices",
    "mish",
    "mse_loss",
    "native_channel_shuffle",
    "nll_loss",
    "one_hot",
    "pad",
    "prelu",
    "pairwise_distance",
    "pixel_shuffle",
    "pixel_unshuffle",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "scaled_dot_product_attention",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
    *_FAMILY_OF,
]

Tensor = torch.Tensor
_nn = torch._C._nn
_VF = torch._C._VariableFunctions
_overridable = torch._C._overridable

# linear(input, weight, bias=None): y = input @ weight.T + bias
linear = _nn.linear
# conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1); likewise for sequences and volumes
conv1d = _VF.conv1d
conv2d = _VF.conv2d
conv3d = _VF.conv3d
# conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1)
conv_transpose1d = _VF.conv_transpose1d
conv_transpose2d = _VF.conv_transpose2d
conv_transpose3d = _VF.conv_transpose3d
# avg_pool2d(input, kernel_size, stride=[], padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None)
avg_pool1d = _VF.avg_pool1d
avg_pool2d = _nn.avg_pool2d
avg_pool3d = _nn.avg_pool3d
# adaptive_avg_pool1d(input, output_size)
adaptive_avg_pool1d = _VF.adaptive_avg_pool1d
# pixel_shuffle(input, upscale_factor), pixel_unshuffle(input, downscale_factor), channel_shuffle(input, groups)
pixel_shuffle = _VF.pixel_shuffle
pixel_unshuffle = _VF.pixel_unshuffle
channel_shuffle = _VF.channel_shuffle
native_channel_shuffle = _VF.native_channel_shuffle
# cosine_similarity(x1, x2, dim=1, eps=1e-8), pairwise_distance(x1, x2, p=2, eps=1e-6, keepdim=False)
cosine_similarity = _VF.cosine_similarity
pairwise_distance = _VF.pairwise_distance
# scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None,
# enable_gqa=False): softmax(query @ key.T * scale + attn_mask) @ value
scaled_dot_product_attention = _nn.scaled_dot_product_attention
# one_hot(input, num_classes=-1)
one_hot = _nn.one_hot
# relu_(input): relu, written into the input
relu_ = _VF.relu_
# In-place forms: written into the input.
celu_ = _VF.celu_
elu_ = _nn.elu_
hardtanh_ = _nn.hardtanh_
leaky_relu_ = _nn.leaky_relu_
rrelu_ = _VF.rrelu_
selu_ = _VF.selu_
threshold_ = _VF.threshold_

# gelu(input, approximate='none'): x times the normal distribution function of x; 'tanh' approximates it
gelu = _nn.gelu
# hardshrink(input, lambd=0.5): 0 where |x| <= lambd
hardshrink = _VF.hardshrink
# logsigmoid(input): log(sigmoid(x))
logsigmoid = _nn.log_sigmoid
# prelu(input, weight): x, or weight * x below zero
prelu = _VF.prelu
# softplus(input, beta=1, threshold=20): log(1 + exp(beta * x)) / beta, and x above the threshold
softplus = _nn.softplus
# softshrink(input, lambd=0.5): x moved towards zero by lambd
softshrink = _nn.softshrink


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Apply :math:`y = x_1^T A x_2 + b`; see :class:`~ptr.nn.Bilinear`."""
    return _VF.bilinear(input1, input2, weight, bias)


@_overridable
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return :math:`\\max(0, x)` of each element; see :class:`~ptr.nn.ReLU`."""
    return _VF.relu_(input) if inplace else _VF.relu(input)


@_overridable
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return ``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``."""
    return _VF.celu_(input, alpha) if inplace else _VF.celu(input, alpha)


@_overridable
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return ``x`` above zero and ``alpha * (exp(x) - 1)`` below."""
    return _nn.elu_(input, alpha) if inplace else _nn.elu(input, alpha)


@_overridable
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return the first half of ``input`` along ``dim``, times the sigmoid of the second."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return _nn.glu(input, dim)


@_overridable
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``min(max(x + 3, 0), 6) / 6``."""
    return _nn.hardsigmoid_(input) if inplace else _nn.hardsigmoid(input)


@_overridable
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``x * min(max(x + 3, 0), 6) / 6``."""
    return _nn.hardswish_(input) if inplace else _nn.hardswish(input)


@_overridable
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Return ``x`` brought into ``[min_val, max_val]``."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _nn.hardtanh_(input, min_val, max_val) if inplace else _nn.hardtanh(input, min_val, max_val)


@_overridable
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return ``x`` above zero and ``negative_slope * x`` below."""
    return _nn.leaky_relu_(input, negative_slope) if inplace else _nn.leaky_relu(input, negative_slope)


@_overridable
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``x * tanh(softplus(x))``."""
    return _nn.mish_(input) if inplace else _nn.mish(input)


@_overridable
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``min(max(x, 0), 6)``."""
    return _nn.relu6_(input) if inplace else _nn.relu6(input)


@_overridable
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Return ``x`` above zero and ``a * x`` below, with a slope ``a`` drawn for each element while training."""
    return (_VF.rrelu_ if inplace else _VF.rrelu)(input, lower, upper, training)


@_overridable
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``scale * (max(0, x) + min(0, alpha * (exp(x) - 1)))`` with the constants of self-normalizing networks."""
    return _VF.selu_(input) if inplace else _VF.selu(input)


@_overridable
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``x * sigmoid(x)``."""
    return _nn.silu_(input) if inplace else _nn.silu(input)


@_overridable
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return the softmax of ``-input``; see :class:`~ptr.nn.Softmin`."""
    if dim is None:
        dim = _get_softmax_dim("softmin", input.dim(), _stacklevel)
    return (-input).softmax(dim) if dtype is None else (-input).softmax(dim, dtype=dtype)


@_overridable
def softsign(input: Tensor) -> Tensor:
    """Return ``x / (1 + |x|)``."""
    return input / (input.abs() + 1)


@_overridable
def tanhshrink(input: Tensor) -> Tensor:
    """Return ``x - tanh(x)``."""
    return input - input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """Return ``1 / (1 + exp(-x))``."""
    return input.sigmoid()


def tanh(input: Tensor) -> Tensor:
    """Return the hyperbolic tangent."""
    return input.tanh()


@_overridable
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return ``x`` above ``threshold`` and ``value`` elsewhere."""
    return (_VF.threshold_ if inplace else _VF.threshold)(input, threshold, value)


@_overridable
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero elements with probability ``p`` and scale the rest; see :class:`~ptr.nn.Dropout`.

    Args:
        input: any tensor.
        p: the probability.
        training: do nothing if false.
        inplace: write into ``input``.

    Raises:
        ValueError: ``p`` is outside of [0, 1].
    """
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return _VF.dropout_(input, p, training) if inplace else _VF.dropout(input, p, training)


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


@_overridable
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Scale slices along ``dim`` to positive values that sum to 1; see :class:`~ptr.nn.Softmax`.

    Args:
        input: any floating tensor.
        dim: the dimension; leaving it out is deprecated.
        dtype: cast ``input`` to it first, which avoids overflow of narrow types.
    """
    if dim is None:
        dim = _get_softmax_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


@_overridable
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return the logarithm of :func:`softmax`; see :class:`~ptr.nn.LogSoftmax`.

    Args:
        input: any floating tensor.
        dim: the dimension; leaving it out is deprecated.
        dtype: cast ``input`` to it first.
    """
    if dim is None:
        dim = _get_softmax_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


@_overridable
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Extend the last dimensions of ``input``.

    Args:
        input: any tensor.
        pad: amounts before and after, last dimension first; negative ones cut.
        mode: ``"constant"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
        value: the constant. Default: 0.

    Example::

        >>> F.pad(torch.ones(2), (1, 2))
        tensor([0., 1., 1., 0., 0.])
    """
    return _nn.pad(input, pad, mode, value)


@_overridable
def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maxima over windows and where they are; see :class:`~ptr.nn.MaxPool2d`."""
    # The operator takes no stride, rather than the kernel's size, as an empty list.
    stride = [] if stride is None else stride
    return _nn.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


@_overridable
def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maxima over windows, with ``return_indices`` also where they are; see :class:`~ptr.nn.MaxPool2d`."""
    if return_indices:
        return max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
    return _VF.max_pool2d(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)


@_overridable
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log-likelihood of ``target``; see :class:`~ptr.nn.NLLLoss`.

    Raises:
        ValueError: ``reduction`` is unknown.
    """
    return _nn.nll_loss_nd(input, target, weight, _Reduction.enum_of(size_average, reduce, reduction), ignore_index)


@_overridable
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the cross entropy between scores and ``target``; see :class:`~ptr.nn.CrossEntropyLoss`.

    Raises:
        ValueError: ``reduction`` is unknown.
    """
    number = _Reduction.enum_of(size_average, reduce, reduction)
    return _nn.cross_entropy_loss(input, target, weight, number, ignore_index, label_smoothing)


@_overridable
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the squared difference of ``input`` and ``target``, reduced.

    Args:
        input, target: tensors of one shape.
        size_average, reduce: deprecated, see ``reduction``.
        reduction: ``"none"``, ``"mean"`` (weighted by ``weight``) or ``"sum"``.
        weight: a weight per element.

    Raises:
        ValueError: ``reduction`` is unknown, or ``weight`` has another shape.
    """
    _Reduction.warn_of_sizes(input, target)
    reduction = _Reduction.string_of(size_average, reduce, reduction)
    return _Reduction.elementwise(_nn.mse_loss, input, target, reduction, weight)


@_overridable
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the absolute difference of ``input`` and ``target``, reduced; arguments as in :func:`mse_loss`."""
    _Reduction.warn_of_sizes(input, target)
    reduction = _Reduction.string_of(size_average, reduce, reduction)
    return _Reduction.elementwise(_nn.l1_loss, input, target, reduction, weight)


def __getattr__(name: str) -> Any:
    family = _FAMILY_OF.get(name)
    if family is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from importlib import import_module

    # The next access finds the function itself.
    function = globals()[name] = getattr(import_module(f"ptr.nn._functional.{family}"), name)
    return function


def __dir__() -> list[str]:
    return sorted({*globals(), *_FAMILY_OF})
