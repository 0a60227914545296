"""Making one batch of many samples."""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import ptr as torch
from ptr import _shared_memory
from ptr.utils.data._utils.worker_info import get_worker_info

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

_UNSUPPORTED = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def _is_text_or_object(dtype: Any) -> bool:
    """Whether a NumPy dtype holds strings, bytes or objects, for which there is no tensor."""
    return dtype.kind in "SUO" or any(kind in dtype.str for kind in "SaUO")


def _rebuild_mapping(original: Any, values: dict[Any, Any]) -> Any:
    """Return a mapping of the class of ``original``; a plain dictionary if the class cannot be made of one."""
    try:
        if isinstance(original, MutableMapping):
            # A copy keeps what else the object holds.
            clone = copy.copy(original)
            clone.update(values)
            return clone
        return type(original)(values)
    except TypeError:
        return values


def _rebuild_sequence(original: Any, values: list[Any]) -> Any:
    """Return a sequence of the class of ``original``; a plain list if the class cannot be made of one."""
    try:
        if isinstance(original, MutableSequence):
            clone = copy.copy(original)
            for i, value in enumerate(values):
                clone[i] = value
            return clone
        return type(original)(values)
    except TypeError:
        return values


def default_convert(data: Any) -> Any:
    """Turn NumPy arrays and scalars within ``data`` into tensors.

    Args:
        data: anything; mappings and sequences are gone through, what is not known stays.

    Example::

        >>> default_convert([np.array([0, 1]), 2])
        [tensor([0, 1]), 2]
    """
    cls = type(data)
    if isinstance(data, torch.Tensor):
        return data
    if cls.__module__ == "numpy" and cls.__name__ not in ("str_", "bytes_", "string_"):
        if cls.__name__ == "ndarray" and _is_text_or_object(data.dtype):
            return data
        return torch.as_tensor(data)
    if isinstance(data, Mapping):
        return _rebuild_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return cls(*(default_convert(element) for element in data))
    if isinstance(data, tuple):
        return [default_convert(element) for element in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuild_sequence(data, [default_convert(element) for element in data])
    return data


def collate(batch: Any, *, collate_fn_map: dict[Any, Callable[..., Any]] | None = None) -> Any:
    """Make a batch by the functions of ``collate_fn_map``, going through mappings and sequences.

    Args:
        batch: the samples, alike in structure.
        collate_fn_map: functions ``fn(batch, *, collate_fn_map)`` by the class of samples; classes not in it are
            looked for by ``isinstance``, in order.

    Raises:
        TypeError: there is no function for a class.
        RuntimeError: sequences differ in length.
    """
    elem = batch[0]
    cls = type(elem)
    if collate_fn_map is not None:
        func = collate_fn_map.get(cls)
        if func is None:
            func = next((fn for known, fn in collate_fn_map.items() if isinstance(elem, known)), None)
        if func is not None:
            return func(batch, collate_fn_map=collate_fn_map)

    def recurse(samples: Any) -> Any:
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(elem, Mapping):
        return _rebuild_mapping(elem, {key: recurse([sample[key] for sample in batch]) for key in elem})
    if isinstance(elem, tuple) and hasattr(elem, "_fields"):
        return cls(*(recurse(samples) for samples in zip(*batch, strict=False)))
    if isinstance(elem, Sequence):
        size = len(elem)
        if any(len(sample) != size for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [recurse(samples) for samples in zip(*batch, strict=False)]
        return columns if isinstance(elem, tuple) else _rebuild_sequence(elem, columns)
    raise TypeError(_UNSUPPORTED.format(cls))


def collate_tensor_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Stack tensors."""
    if batch[0].layout is not torch.strided:
        raise RuntimeError(
            "Batches of sparse tensors are not currently supported by the default collate_fn; please provide a custom "
            "collate_fn to handle them appropriately."
        )
    out = None
    first = batch[0]
    if get_worker_info() is not None and first.device.type == "cpu":
        dtype = first.dtype
        if all(tensor.dtype is dtype and not tensor.requires_grad for tensor in batch):
            out = shared_output((len(batch), *first.size()), dtype)
    return torch.stack(batch, 0, out=out)


def shared_output(size: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor | None:
    """Return an uninitialized tensor for a batch in memory shared with the loader, so that it need not be copied there;
    ``None`` where there is no loader in another process, or the batch is so small that copies are faster."""
    if get_worker_info() is None:
        return None
    nbytes = math.prod(size) * dtype.itemsize
    if nbytes < _shared_memory.MAP_FROM:
        return None
    storage = _shared_memory.new_shared_storage(nbytes)
    return torch.empty((0,), dtype=dtype).set_(storage, 0, size)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Stack NumPy arrays to a tensor."""
    if _is_text_or_object(batch[0].dtype):
        raise TypeError(_UNSUPPORTED.format(batch[0].dtype))
    return collate([torch.as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Make a vector of NumPy scalars."""
    return torch.as_tensor(batch)


def collate_float_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Make a vector of Python floats, in their precision."""
    return torch.tensor(batch, dtype=torch.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Make a vector of Python integers."""
    return torch.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Leave strings as they are."""
    return batch


class _IfImported(type):
    """Metaclass of stand-ins for NumPy's classes. A sample can only be one of NumPy's if NumPy has been imported, so
    nobody else has to import it."""

    names: tuple[str, ...]

    def __instancecheck__(cls, instance: Any) -> bool:
        numpy = sys.modules.get("numpy")
        return numpy is not None and isinstance(instance, tuple(getattr(numpy, name) for name in cls.names))


class _NumpyArray(metaclass=_IfImported):
    names = ("ndarray",)


class _NumpyScalar(metaclass=_IfImported):
    names = ("bool_", "number", "object_")


default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    torch.Tensor: collate_tensor_fn,
    # Before float, of which NumPy's float64 is a subclass.
    _NumpyArray: collate_numpy_array_fn,
    _NumpyScalar: collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """Make a batch of samples: tensors are stacked, numbers become vectors, strings a list.

    Args:
        batch: the samples, alike in structure; mappings, named tuples and sequences are gone through. Tuples become
            lists.

    Raises:
        TypeError: a sample holds something that cannot be batched.
        RuntimeError: sequences differ in length.

    Example::

        >>> default_collate([(0, 1.5), (2, 3.5)])
        [tensor([0, 2]), tensor([1.5000, 3.5000], dtype=torch.float64)]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
