"""Resizing of images and sequences."""

from __future__ import annotations

import math
import warnings

import ptr as torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Tensor = torch.Tensor
_nn = torch._C._nn
_overridable = torch._C._overridable

# The operator for a mode and a number of dimensions; only modes in the second table take `align_corners`.
_NEAREST = {
    ("nearest", 3): "upsample_nearest1d",
    ("nearest", 4): "upsample_nearest2d",
    ("nearest", 5): "upsample_nearest3d",
    ("nearest-exact", 3): "_upsample_nearest_exact1d",
    ("nearest-exact", 4): "_upsample_nearest_exact2d",
    ("nearest-exact", 5): "_upsample_nearest_exact3d",
}
_SMOOTH = {
    ("linear", 3): "upsample_linear1d",
    ("bilinear", 4): "upsample_bilinear2d",
    ("trilinear", 5): "upsample_trilinear3d",
    ("bicubic", 4): "upsample_bicubic2d",
}
_DIMS = {"linear": 3, "bilinear": 4, "trilinear": 5}


@_overridable
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize the dimensions after batch and channels.

    Args:
        input: a batch of sequences, images or volumes.
        size: the new size, one number for all dimensions or one for each.
        scale_factor: how many times larger, likewise; one of both has to be given.
        mode: ``"nearest"``, ``"nearest-exact"``, ``"area"``, ``"linear"`` (sequences), ``"bilinear"``,
            ``"bicubic"`` (images) or
            ``"trilinear"`` (volumes).
        align_corners: whether the corners' centres, rather than the corners, stay where they are. Default: ``False``.
        recompute_scale_factor: compute the factor anew from the rounded sizes.
        antialias: let every element count when an image shrinks (``"bilinear"`` and ``"bicubic"``).

    Raises:
        ValueError: sizes that do not fit, or arguments that exclude each other.
        NotImplementedError: a mode that does not exist for this number of dimensions.
    """
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic "
                "| trilinear"
            )
    elif align_corners is None:
        align_corners = False

    dim = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    output_size: Any = None
    factors: Any = None
    if size is not None:
        if isinstance(size, (list, tuple)):
            if len(size) != dim:
                raise ValueError(
                    "Input and output must have the same number of spatial dimensions, but got input with spatial "
                    f"dimensions of {list(input.shape[2:])} and output size of {size}. Please provide input tensor in "
                    "(N, C, d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) format."
                )
            output_size = size
        else:
            output_size = [size for _ in range(dim)]
    elif scale_factor is not None:
        if isinstance(scale_factor, (list, tuple)):
            if len(scale_factor) != dim:
                raise ValueError(
                    "Input and scale_factor must have the same number of spatial dimensions, but got input with "
                    "spatial "
                    f"dimensions of {list(input.shape[2:])} and scale_factor of shape {scale_factor}. Please provide "
                    "input "
                    "tensor in (N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
                )
            factors = scale_factor
        else:
            factors = [scale_factor for _ in range(dim)]
    else:
        raise ValueError("either size or scale_factor should be defined")

    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    # Averages take sizes alone.
    if (mode == "area" and output_size is None) or recompute_scale_factor:
        output_size = [math.floor(float(input.size(i + 2)) * factors[i]) for i in range(dim)]
        factors = None
    if antialias and not (mode in ("bilinear", "bicubic") and input.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        )

    key = (mode, input.dim())
    if key in _NEAREST:
        return getattr(_nn, _NEAREST[key])(input, output_size, factors)
    if mode == "area" and 3 <= input.dim() <= 5:
        return _area(input, output_size)
    if key in _SMOOTH:
        name = f"_{_SMOOTH[key]}_aa" if antialias else _SMOOTH[key]
        return getattr(_nn, name)(input, output_size, align_corners, factors)
    if mode in _DIMS and 3 <= input.dim() <= 5:
        raise NotImplementedError(f"Got {input.dim()}D input, but {mode} mode needs {_DIMS[mode]}D input")
    raise NotImplementedError(
        "Input Error: Only 3D, 4D and 5D input Tensors supported"
        f" (got {input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact"
        f" (got {mode})"
    )


def _area(input: Tensor, output_size: Any) -> Tensor:
    from ptr.nn import functional as F

    pool = {3: F.adaptive_avg_pool1d, 4: F.adaptive_avg_pool2d, 5: F.adaptive_avg_pool3d}[input.dim()]
    return pool(input, output_size)


@_overridable
def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """Resize; deprecated in favour of :func:`interpolate`."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


@_overridable
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Resize by repeating; deprecated in favour of :func:`interpolate`."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="nearest")


@_overridable
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Resize bilinearly, corners aligned; deprecated in favour of :func:`interpolate`."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
