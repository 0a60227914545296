"""Initialization of parameters, in place and outside of any graph.

Each function draws from the generator in the same order as PyTorch's, so that a seed gives the same parameters.
"""

from __future__ import annotations

import math
import warnings

import ptr as torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Tensor = torch.Tensor

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

_GAINS = {
    **dict.fromkeys(
        (
            "linear",
            "conv1d",
            "conv2d",
            "conv3d",
            "conv_transpose1d",
            "conv_transpose2d",
            "conv_transpose3d",
            "sigmoid",
        ),
        1,
    ),
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """Return the factor by which weights before a nonlinearity are scaled to keep the variance.

    Args:
        nonlinearity: name of a function of :mod:`ptr.nn.functional`: a linear or convolution one, ``"sigmoid"`` (1),
            ``"tanh"`` (5/3), ``"relu"`` (:math:`\\sqrt 2`), ``"leaky_relu"`` or ``"selu"`` (3/4).
        param: the negative slope of ``"leaky_relu"``. Default: 0.01.

    Raises:
        ValueError: the name is unknown, or the slope is no number.

    Example::

        >>> nn.init.calculate_gain("leaky_relu", 0.2)
        1.3867504905630728
    """
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        elif isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + param**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def _overridable(func: Any) -> Any:
    # Handlers are given the arguments by name, as PyTorch's are.
    func.__all_by_name__ = True
    return torch._C._overridable(func)


@_overridable
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill ``tensor`` from the uniform distribution :math:`U(a, b)` and return it.

    Args:
        tensor: any floating tensor.
        a, b: the bounds.
        generator: the source of randomness. Default: the global one.
    """
    with torch.no_grad():
        return tensor.uniform_(a, b, generator=generator)


@_overridable
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill ``tensor`` from the normal distribution of the given mean and deviation and return it."""
    with torch.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Fill ``tensor`` from a normal distribution whose values outside of :math:`[a, b]` are drawn again, and return it.

    Where a fair share of the normal distribution falls inside of the bounds, values are drawn from it and kept if
    inside; otherwise they are drawn uniformly and kept with the probability that the density gives them.

    Args:
        tensor: any floating tensor.
        mean, std: of the normal distribution before the cut.
        a, b: the bounds.
        generator: the source of randomness. Default: the global one.
    """
    if tensor.is_meta:
        return tensor
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
            stacklevel=2,
        )

    def cdf(x: float) -> float:
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    with torch.no_grad():
        if cdf((b - mean) / std) - cdf((a - mean) / std) > 0.3:
            _redraw_outside(tensor, mean, std, a, b, generator)
        else:
            _rejection_sample(tensor, mean, std, a, b, generator)
    return tensor


def _redraw_outside(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> None:
    # Compared with the bounds as the dtype rounds them.
    low = tensor.new_tensor(a, device="cpu").item()
    high = tensor.new_tensor(b, device="cpu").item()
    result = tensor.normal_(mean, std, generator=generator)
    while True:
        outside = (result < low) | (result > high)
        if not outside.any():
            break
        fresh = torch.empty_like(result).normal_(mean, std, generator=generator)
        result = torch.where(outside, fresh, result)
    if result is not tensor:
        tensor.copy_(result)


def _rejection_sample(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> None:
    # The density relative to its peak inside of the bounds.
    mode = max(a, min(mean, b))
    log_peak = -0.5 * ((mode - mean) / std) ** 2
    uniform = torch.empty_like(tensor)

    def rejected(values: Tensor) -> Tensor:
        log_density = values.sub(mean).div_(std).pow_(2).mul_(-0.5).sub_(log_peak)
        return uniform.uniform_(generator=generator).log_().gt(log_density)

    tensor.uniform_(a, b, generator=generator)
    pending = rejected(tensor)
    result = tensor
    while pending.any():
        candidates = torch.empty_like(tensor).uniform_(a, b, generator=generator)
        result = torch.where(pending, candidates, result)
        pending = torch.where(pending, rejected(candidates), pending)
    if result is not tensor:
        tensor.copy_(result)


@_overridable
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill ``tensor`` with ``val`` and return it."""
    with torch.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill ``tensor`` with ones and return it."""
    with torch.no_grad():
        return tensor.fill_(1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill ``tensor`` with zeros and return it."""
    with torch.no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Fill the matrix ``tensor`` with the identity and return it.

    Raises:
        ValueError: ``tensor`` is no matrix.
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with torch.no_grad():
        torch.eye(*tensor.shape, out=tensor, requires_grad=tensor.requires_grad)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the convolution kernel ``tensor`` so that it passes its input on, and return it.

    Args:
        tensor: a kernel of 3, 4 or 5 dimensions.
        groups: fill each group of output channels likewise.

    Raises:
        ValueError: the number of dimensions is another, or the output channels are not divisible by ``groups``.
    """
    if tensor.ndimension() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.size()
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    if tensor.is_meta:
        return tensor
    per_group = sizes[0] // groups
    center = tuple(size // 2 for size in sizes[2:])
    with torch.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, sizes[1])):
                tensor[(group * per_group + channel, channel, *center)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Return how many inputs feed an output of a weight, and how many outputs an input feeds."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    outputs, inputs, *field = tensor.shape
    receptive_field = math.prod(field)
    return inputs * receptive_field, outputs * receptive_field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill ``tensor`` from :math:`U(-a, a)`, :math:`a = \\text{gain} \\sqrt{6 / (fan_{in} + fan_{out})}`, and return
    it.

    The method of Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks" (2010).

    Args:
        tensor: a weight of two dimensions or more.
        gain: see :func:`calculate_gain`.
        generator: the source of randomness. Default: the global one.

    Raises:
        ValueError: ``tensor`` has fewer than two dimensions.
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    with torch.no_grad():
        return tensor.uniform_(-bound, bound, generator=generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill ``tensor`` from a normal distribution of deviation :math:`\\text{gain} \\sqrt{2 / (fan_{in} + fan_{out})}`.

    Arguments and errors as in :func:`xavier_uniform_`.
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    with torch.no_grad():
        return tensor.normal_(0.0, std, generator=generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def _is_empty(tensor: Tensor) -> bool:
    if 0 not in tensor.shape:
        return False
    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
    return True


@_overridable
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fill ``tensor`` from :math:`U(-b, b)`, :math:`b = \\text{gain} \\sqrt{3 / fan}`, and return it.

    The method of He et al., "Delving deep into rectifiers" (2015).

    Args:
        tensor: a weight of two dimensions or more.
        a: the negative slope, for ``nonlinearity="leaky_relu"``.
        mode: ``"fan_in"`` keeps the variance in the forward pass, ``"fan_out"`` in the backward pass.
        nonlinearity: see :func:`calculate_gain`.
        generator: the source of randomness. Default: the global one.

    Raises:
        ValueError: ``tensor`` has fewer than two dimensions, or a name is unknown.
    """
    if _is_empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    with torch.no_grad():
        return tensor.uniform_(-bound, bound, generator=generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fill ``tensor`` from a normal distribution of deviation :math:`\\text{gain} / \\sqrt{fan}` and return it.

    Arguments and errors as in :func:`kaiming_uniform_`.
    """
    if _is_empty(tensor):
        return tensor
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    with torch.no_grad():
        return tensor.normal_(0, std, generator=generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fill ``tensor``, seen as a matrix of its first dimension by all others, with a (semi-)orthogonal one; return it.

    The method of Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks"
    (2013).

    Args:
        tensor: a tensor of two dimensions or more.
        gain: factor of the result.
        generator: the source of randomness. Default: the global one.

    Raises:
        ValueError: ``tensor`` has fewer than two dimensions.
    """
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    with torch.no_grad():
        normal = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
        if rows < cols:
            normal.t_()
        q, r = torch.linalg.qr(normal)
        # Signs that make the decomposition unique make q uniform over all orthogonal matrices.
        q *= torch.diag(r, 0).sign()
        if rows < cols:
            q.t_()
        tensor.view_as(q).copy_(q)
        tensor.mul_(gain)
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fill the matrix ``tensor`` from a normal distribution, with a share of each column zero, and return it.

    Args:
        tensor: a matrix.
        sparsity: the share of zeros.
        std: deviation of the others.
        generator: the source of the values. Default: the global one. The places of zeros always come from the global
            one.

    Raises:
        ValueError: ``tensor`` is no matrix.
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    if tensor.is_meta:
        return tensor
    rows, cols = tensor.shape
    num_zeros = math.ceil(sparsity * rows)
    with torch.no_grad():
        tensor.normal_(0, std, generator=generator)
        for col in range(cols):
            tensor[torch.randperm(rows)[:num_zeros], col] = 0
    return tensor


def _deprecated(func: Callable[..., Tensor]) -> Callable[..., Tensor]:
    new_name = func.__name__
    old_name = new_name[:-1]

    def deprecated_init(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"`nn.init.{old_name}` is now deprecated in favor of `nn.init.{new_name}`.", FutureWarning, stacklevel=2
        )
        return func(*args, **kwargs)

    deprecated_init.__name__ = deprecated_init.__qualname__ = old_name
    deprecated_init.__doc__ = f"Deprecated name of :func:`{new_name}`."
    return deprecated_init


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
