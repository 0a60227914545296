"""Functions of ``ptr`` that are written in Python over operators."""

from __future__ import annotations

import itertools

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
    "chain_matmul",
    "einsum",
    "meshgrid",
    "nonzero",
    "norm",
    "split",
    "tensordot",
    "unique",
    "unique_consecutive",
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
    given = {"dtype": dtype} if out is None else {"dtype": dtype, "out": out}
    if isinstance(dim, int):
        dim = [dim]
    if isinstance(p, str):
        if p == "fro" and (dim is None or len(dim) <= 2):
            return _C._linalg.linalg_vector_norm(input, 2, dim, keepdim, **given)
        dims = list(range(input.dim())) if dim is None else list(dim)
        return _C._linalg.linalg_matrix_norm(input, p, dims, keepdim, **given)
    if isinstance(p, Tensor) and p.dim() != 0:
        raise TypeError("norm(): argument 'p' must be Number, not Tensor")
    return _C._linalg.linalg_vector_norm(input, 2.0 if p is None else p, dim, keepdim, **given)


def einsum(*args: Any) -> Any:
    """Sum products of the operands' elements, as an equation in Einstein's notation says.

    Args:
        args: the equation and the operands, or each operand followed by a list of its subscripts as numbers, and at the
            end, if wanted, the list of the result's.

    Example::

        >>> torch.einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(3, 2))
        tensor([[3., 3.],
                [3., 3.]])
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    if isinstance(args[0], Tensor):
        operands: Any = args[::2] if len(args) % 2 == 0 else args[:-1:2]
        equation = ",".join(_subscripts(numbers) for numbers in args[1::2])
        if len(args) % 2 == 1:
            equation += "->" + _subscripts(args[-1])
    else:
        equation, operands = args[0], args[1:]
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = operands[0]
    if _has_torch_function(operands):
        return _C._handle_torch_function(einsum, operands, (equation, *operands), {})
    return _functions.einsum(equation, list(operands))


def _subscripts(numbers: Any) -> str:
    """Letters for the numbers of a subscripts list."""
    letters = []
    for number in numbers:
        if number is Ellipsis:
            letters.append("...")
        elif isinstance(number, int) and 0 <= number < 26:
            letters.append(chr(ord("A") + number))
        elif isinstance(number, int) and 26 <= number < 52:
            letters.append(chr(ord("a") + number - 26))
        else:
            raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return "".join(letters)


@_C._overridable
def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Any:
    """Contract dimensions of ``a`` with dimensions of ``b``.

    Args:
        a: the left operand.
        b: the right operand.
        dims: how many of the last dimensions of ``a`` are contracted with the first of ``b``, or two lists that name
            the dimensions, or a tensor of two rows that does.
        out: where to put the result.
    """
    if not isinstance(dims, (tuple, list, Tensor, int)):
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing two lists, "
            f"but got dims={dims}"
        )
    if isinstance(dims, (tuple, list)):
        if len(dims) != 2:
            raise RuntimeError(f"tensordot expects two lists of dimensions, but got dims={dims}")
        dims_a, dims_b = (list(d) if isinstance(d, (tuple, list)) else [d] for d in dims)
    elif isinstance(dims, Tensor) and dims.numel() > 1:
        dims_a, dims_b = dims[0].tolist(), dims[1].tolist()
    else:
        count = int(dims)
        if count < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if count > min(a.dim(), b.dim()):
            raise RuntimeError(
                f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}, ndim_a={a.dim()}, ndim_b={b.dim()}"
            )
        dims_a, dims_b = list(range(-count, 0)), list(range(count))
    if out is None:
        return _functions.tensordot(a, b, dims_a, dims_b)
    return _functions.tensordot(a, b, dims_a, dims_b, out=out)


def _asked(values: Any, inverse: Any, counts: Any, return_inverse: bool, return_counts: bool) -> Any:
    """The results that were asked for: one, or a tuple."""
    results = (values,) + ((inverse,) if return_inverse else ()) + ((counts,) if return_counts else ())
    return results if len(results) > 1 else values


@_C._overridable
def unique(
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return the different elements, or the different slices along a dimension.

    Args:
        input: any tensor.
        sorted: whether the result is sorted. It always is.
        return_inverse: whether to return also where in the result each element is.
        return_counts: whether to return also how often each occurs.
        dim: the dimension of the slices. Default: elements.
    """
    if dim is not None:
        found = _functions.unique_dim(input, dim, sorted, return_inverse, return_counts)
    else:
        found = _functions._unique2(input, sorted, return_inverse, return_counts)
    return _asked(*found, return_inverse, return_counts)


@_C._overridable
def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return the first of each run of equal elements, or of equal slices along a dimension.

    Args:
        input: any tensor.
        return_inverse: whether to return also the number of each element's run.
        return_counts: whether to return also the lengths of the runs.
        dim: the dimension of the slices. Default: elements.
    """
    found = _functions.unique_consecutive(input, return_inverse, return_counts, dim)
    return _asked(*found, return_inverse, return_counts)


def chain_matmul(*matrices: Any, out: Any = None) -> Any:
    """Return the product of matrices, multiplied in the cheapest order.

    Args:
        matrices: two-dimensional tensors.
        out: where to put the result.
    """
    if _has_torch_function(matrices):
        return _C._handle_torch_function(chain_matmul, matrices, matrices, {"out": out})
    if out is None:
        return _functions.chain_matmul(list(matrices))
    return _functions.chain_matmul(list(matrices), out=out)
