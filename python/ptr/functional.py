"""Functions of ``ptr`` that are written in Python over operators."""

from __future__ import annotations

import itertools
import math

from ptr import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "cartesian_prod",
    "meshgrid",
    "nonzero",
    "norm",
    "split",
]

_functions = _C._VariableFunctions
Tensor = _C.Tensor


def _has_torch_function(tensors: Any) -> bool:
    return _C._has_torch_function(tensors)


def broadcast_shapes(*shapes: Any) -> Any:
    """Return the shape that all ``shapes`` broadcast to.

    Args:
        shapes: sizes, each an integer or a sequence of integers.

    Raises:
        RuntimeError: the shapes do not fit together.

    Example::

        >>> torch.broadcast_shapes((2, 1), (3,))
        torch.Size([2, 3])
    """
    sizes = [_shape_to_broadcast(shape) for shape in shapes if shape is not None]
    result = [1] * max(map(len, sizes), default=0)
    for shape in sizes:
        for i in range(-1, -1 - len(shape), -1):
            if shape[i] < 0:
                raise ValueError(
                    f"broadcast_shapes(): Attempting to broadcast a dimension with negative length! Got {shape[i]} in "
                    f"{tuple(shape)}"
                )
            if shape[i] == 1 or shape[i] == result[i]:
                continue
            if result[i] != 1:
                raise RuntimeError(
                    "Shape mismatch: objects cannot be broadcast to a single shape: "
                    f"cannot broadcast {list(sizes)} at dimension {i}"
                )
            result[i] = shape[i]
    return _C.Size(result)


def _shape_to_broadcast(shape: Any) -> Any:
    """Return the sizes that an argument of :func:`broadcast_shapes` stands for."""
    if isinstance(shape, int):
        shape = (shape,)
    if not isinstance(shape, (tuple, list)):
        raise RuntimeError(
            f"broadcast_shapes(): Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape}"
        )
    for size in shape:
        if isinstance(size, int) and size >= 2**63:
            raise ValueError("Overflow when unpacking long long")
    return shape


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """Return views of the tensors that all have the shape they broadcast to.

    Args:
        tensors: any number of tensors, or one sequence of them.

    Example::

        >>> a, b = torch.broadcast_tensors(torch.zeros(2, 1), torch.ones(3))
        >>> a.shape, b.shape
        (torch.Size([2, 3]), torch.Size([2, 3]))
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    if _has_torch_function(tensors):
        return _C._handle_torch_function(broadcast_tensors, tensors, tensors, {})
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, _C.Tensor):
            raise TypeError(f"broadcast_tensors(): expected Tensor as element {i}, but got {type(tensor).__name__}")
    dims = [tensor.shape for tensor in tensors]
    size = _broadcast_size(dims)
    return tuple(tensor if tensor.shape == size else tensor.expand(size) for tensor in tensors)


def _broadcast_size(shapes: list[Any]) -> Any:
    ndim = max(map(len, shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        offset = ndim - len(shape)
        for i, size in enumerate(shape):
            if size == 1 or size == result[offset + i]:
                continue
            if result[offset + i] != 1:
                raise RuntimeError(
                    f"The size of tensor a ({result[offset + i]}) must match the size of tensor b ({size}) "
                    f"at non-singleton dimension {offset + i}"
                )
            result[offset + i] = size
    return _C.Size(result)


@_C._overridable
def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    """Split a tensor into pieces along a dimension. The pieces are views.

    Args:
        tensor: what to split.
        split_size_or_sections: the size of every piece (the last one may be smaller), or a list of all sizes.
        dim: the dimension.

    Example::

        >>> torch.split(torch.arange(5), 2)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if isinstance(split_size_or_sections, (list, tuple)):
        return _functions.split_with_sizes(tensor, list(split_size_or_sections), dim)
    return _functions.split(tensor, int(split_size_or_sections), dim)


def nonzero(input: Any, *, out: Any = None, as_tuple: bool = False) -> Any:
    """Return the indices of the elements that are not zero.

    Args:
        input: any tensor.
        out: where to put the result.
        as_tuple: whether to return one tensor of indices per dimension, fit for indexing, instead of one matrix.

    Example::

        >>> torch.nonzero(torch.tensor([1, 0, 2]))
        tensor([[0],
                [2]])
        >>> torch.nonzero(torch.tensor([1, 0, 2]), as_tuple=True)
        (tensor([0, 2]),)
    """
    if as_tuple:
        return Tensor.nonzero_numpy(input)
    return _functions.nonzero(input) if out is None else _functions.nonzero(input, out=out)


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Any, ...]:
    """Return grids of coordinates from one-dimensional tensors.

    Args:
        tensors: scalars or one-dimensional tensors, or one sequence of them.
        indexing: ``"ij"``, where the first tensor runs along the first dimension, or ``"xy"``, where it runs along the
            second. Default: ``"ij"``.

    Example::

        >>> x, y = torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
        >>> y
        tensor([[0, 1, 2],
                [0, 1, 2]])
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing is None:
        import warnings

        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.", stacklevel=2
        )
        indexing = "ij"
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for tensor in tensors:
        if tensor.dim() > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {tensor.dim()}D")
        if tensor.dtype != tensors[0].dtype:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
        if tensor.device != tensors[0].device:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same device")
    swap = indexing == "xy" and len(tensors) >= 2
    ordered = (tensors[1], tensors[0], *tensors[2:]) if swap else tensors
    shape = [tensor.numel() for tensor in ordered]
    grids = []
    for i, tensor in enumerate(ordered):
        view = [1] * len(shape)
        view[i] = -1
        grids.append(tensor.reshape(view).expand(shape))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def cartesian_prod(*tensors: Any) -> Any:
    """Return all combinations of the elements of one-dimensional tensors, as ``itertools.product`` gives them.

    Args:
        tensors: any number of one-dimensional tensors.

    Example::

        >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
        tensor([[1, 3],
                [1, 4],
                [2, 3],
                [2, 4]])
    """
    for tensor in tensors:
        if tensor.dim() != 1:
            raise RuntimeError("Expect a 1D vector, but got shape " + str(list(tensor.shape)))
    if len(tensors) == 1:
        return tensors[0]
    grids = meshgrid(*tensors, indexing="ij")
    return _functions.stack([grid.flatten() for grid in grids], 1)


def _atleast(tensors: tuple[Any, ...], grow: Any) -> Any:
    if len(tensors) == 1:
        if isinstance(tensors[0], (tuple, list)):
            return tuple(grow(tensor) for tensor in tensors[0])
        return grow(tensors[0])
    return tuple(grow(tensor) for tensor in tensors)


def atleast_1d(*tensors: Any) -> Any:
    """Return views with at least one dimension.

    Args:
        tensors: one or more tensors, or one sequence of them.
    """
    return _atleast(tensors, lambda t: t.reshape(1) if t.dim() == 0 else t)


def atleast_2d(*tensors: Any) -> Any:
    """Return views with at least two dimensions; new ones come first.

    Args:
        tensors: one or more tensors, or one sequence of them.
    """
    return _atleast(tensors, lambda t: t.reshape(1, 1) if t.dim() == 0 else t.unsqueeze(0) if t.dim() == 1 else t)


def atleast_3d(*tensors: Any) -> Any:
    """Return views with at least three dimensions.

    Args:
        tensors: one or more tensors, or one sequence of them.
    """

    def grow(t: Any) -> Any:
        if t.dim() == 0:
            return t.reshape(1, 1, 1)
        if t.dim() == 1:
            return t.unsqueeze(0).unsqueeze(-1)
        return t.unsqueeze(-1) if t.dim() == 2 else t

    return _atleast(tensors, grow)


def block_diag(*tensors: Any) -> Any:
    """Return a matrix with the given matrices along its diagonal and zeros elsewhere.

    Args:
        tensors: scalars, vectors (rows) or matrices.
    """
    matrices = [atleast_2d(tensor) for tensor in tensors]
    for i, tensor in enumerate(tensors):
        if tensor.dim() > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {tensor.dim()}"
            )
    if not matrices:
        return _functions.empty(1, 0)
    dtype = matrices[0].dtype
    for matrix in matrices[1:]:
        dtype = _C.promote_types(dtype, matrix.dtype)
    rows = list(itertools.accumulate((m.shape[0] for m in matrices), initial=0))
    columns = list(itertools.accumulate((m.shape[1] for m in matrices), initial=0))
    result = _functions.zeros(rows[-1], columns[-1], dtype=dtype, device=matrices[0].device)
    for matrix, row, column in zip(matrices, rows, columns, strict=False):
        result[row : row + matrix.shape[0], column : column + matrix.shape[1]] = matrix
    return result


@_C._overridable
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None) -> Any:
    """Return the matrix or vector norm of a tensor.

    Args:
        input: a tensor of a floating or complex dtype.
        p: the order of a vector norm, or ``"fro"``.
        dim: the dimensions to reduce. Default: all.
        keepdim: whether reduced dimensions stay, with size one.
        out: where to put the result.
        dtype: the dtype to compute in.

    Example::

        >>> torch.norm(torch.tensor([3.0, 4.0]))
        tensor(5.)
    """
    if isinstance(p, str) and (p != "fro" or (dim is not None and not isinstance(dim, int) and len(dim) > 2)):
        _refuse_matrix_norm(input, p, dim)
    order = _order_of_norm(p)
    result = _vector_norm(input, order, dim, keepdim, dtype)
    if out is not None:
        if out.dtype != result.dtype:
            raise RuntimeError(f"norm(): Expected out tensor to have dtype {result.dtype}, but got {out.dtype} instead")
        return _functions.add(result, 0, out=out)
    return result


def _order_of_norm(p: Any) -> float:
    if p is None or (isinstance(p, str) and p == "fro"):
        return 2.0
    if isinstance(p, complex):
        raise RuntimeError("linalg.vector_norm: Expected a non-complex scalar as the order of norm.")
    if isinstance(p, _C.Tensor) and p.dim() != 0:
        raise TypeError("norm(): argument 'p' must be Number, not Tensor")
    return float(p)


def _refuse_matrix_norm(input: Any, p: str, dim: Any) -> None:
    """Raise the error for a norm of matrices, of which only the Frobenius norm is a norm of vectors."""
    dims = list(range(input.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    if len(dims) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dims))}")
    if p != "nuc":
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    raise NotImplementedError("norm(): p='nuc' needs a singular value decomposition, which is not available yet")


def _type_name(dtype: Any) -> str:
    """``"Float"`` for ``float32``."""
    return _functions.empty(0, dtype=dtype).type().rsplit(".", 1)[-1].removesuffix("Tensor")


def _check_vector_norm(x: Any, order: float, dim: Any, dtype: Any) -> None:
    name = "linalg.vector_norm"
    if not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {_type_name(x.dtype)}")
    if dtype is not None:
        if not (dtype.is_floating_point or dtype.is_complex):
            raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {_type_name(dtype)}")
        if dtype.is_complex != x.is_complex():
            kind = "complex for complex" if x.is_complex() else "real for real"
            raise RuntimeError(f"{name}: dtype should be {kind} inputs, but got {_type_name(dtype)}")
    if order < 0 or order == math.inf:
        # The smallest or largest of no elements.
        for d in [] if dim is None else [dim] if isinstance(dim, int) else dim:
            if x.size(d) == 0:
                raise RuntimeError(
                    f"{name} cannot compute the {order:g} norm on the dimension {d}because this dimension is empty and "
                    "the operation does not have an identity"
                )
        if dim in (None, (), []) and x.numel() == 0:
            raise RuntimeError(
                f"{name} cannot compute the {order:g} norm on an empty tensor because the operation does not have an "
                "identity"
            )


def _vector_norm(x: Any, order: float, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """The norm, whose gradient is zero where elements or the norm itself are."""
    _check_vector_norm(x, order, dim, dtype)
    dims = () if dim is None else dim
    magnitude = (x if dtype is None else x.to(dtype)).abs()
    result_dtype = magnitude.dtype
    if result_dtype in (_C.float16, _C.bfloat16):
        # Sums of powers leave the range of these long before the norm does.
        magnitude = magnitude.to(_C.float32)
    if order == math.inf:
        result = magnitude.amax(dims, keepdim)
    elif order == -math.inf:
        result = magnitude.amin(dims, keepdim)
    elif order == 0:
        result = magnitude.masked_fill(magnitude != 0, 1).sum(dims, keepdim)
    elif order == 1:
        result = magnitude.sum(dims, keepdim)
    else:
        powers = magnitude.square() if order == 2 else _power(magnitude, order)
        result = _power(powers.sum(dims, keepdim), 1.0 / order)
    return result.to(result_dtype)


def _power(x: Any, exponent: float) -> Any:
    """A power of what is not negative, with the derivative zero at zero."""
    zero = x == 0
    positive = x.masked_fill(zero, 1)
    powers = positive.sqrt() if exponent == 0.5 else positive.pow(exponent)
    return powers.masked_fill(zero, 0 if exponent > 0 else math.inf)
