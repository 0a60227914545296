"""Files in the safetensors format: tensors by name, and nothing that could be executed.

The functions are those of ``safetensors.torch``. Loading maps the file: a tensor's pages are read when it is used, and
writing to it changes the process's copy, never the file. Saving replaces a file when everything is written.
"""

from __future__ import annotations

import itertools
import os

import ptr as torch
from ptr import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["load", "load_file", "safe_open", "save", "save_file"]

_DTYPES = {
    "F4": torch.float4_e2m1fn_x2,
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "F8_E5M2": torch.float8_e5m2,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E8M0": torch.float8_e8m0fnu,
    "F8_E4M3FNUZ": torch.float8_e4m3fnuz,
    "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
    "I16": torch.int16,
    "U16": torch.uint16,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I32": torch.int32,
    "U32": torch.uint32,
    "F32": torch.float32,
    "C64": torch.complex64,
    "F64": torch.float64,
    "I64": torch.int64,
    "U64": torch.uint64,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


def _unpacked(dtype: torch.dtype, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes that a file says: there, an element of a tensor of packed pairs is two."""
    return (*shape[:-1], 2 * shape[-1]) if dtype is torch.float4_e2m1fn_x2 and shape else shape


def _packed(name: str, dtype: torch.dtype, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes of the tensor for which a file says ``shape``."""
    if dtype is not torch.float4_e2m1fn_x2:
        return shape
    if not shape or shape[-1] % 2:
        raise ValueError(f"`{name}` has sizes {shape}: elements of dtype F4 come in pairs")
    return (*shape[:-1], shape[-1] // 2)


# ---- saving


class _Plan:
    """What a file will hold.

    Args:
        tensors: the tensors by name.
        metadata: texts by name.
    """

    def __init__(self, tensors: dict[str, torch.Tensor], metadata: dict[str, str] | None) -> None:
        if not isinstance(tensors, dict):
            raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
        for key, value in (metadata or {}).items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise TypeError(f"metadata maps str to str, got {key!r}: {value!r}")
        _check_apart(tensors)
        entries = []
        for name, tensor in tensors.items():
            shape = _unpacked(tensor.dtype, tuple(tensor.shape))
            entries.append((name, _NAMES[tensor.dtype], shape, tensor.numel() * tensor.itemsize))
        self.header, self.order = _C._safetensors_header(entries, metadata)
        self.tensors = tensors

    def chunks(self) -> Iterator[tuple[Any, int, int]]:
        """The bytes of the tensors in order: a storage, where they start in it, and how many they are."""
        for name in self.order:
            tensor = self.tensors[name].detach().resolve_conj().resolve_neg().cpu()
            start = tensor.storage_offset() * tensor.itemsize
            yield tensor.untyped_storage(), start, tensor.numel() * tensor.itemsize


def _check_apart(tensors: dict[Any, Any]) -> None:
    """Raise for what the format cannot express."""
    seen: dict[int, list[tuple[int, int, str]]] = {}
    for name, tensor in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"tensors are named by str, got {name!r}")
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}")
        if tensor.layout is not torch.strided:
            raise ValueError(
                f"You are trying to save a sparse tensor: `{name}` which this library does not support. You can make "
                "it a dense tensor before saving with `.to_dense()` but be aware this might make a much larger file "
                "than needed."
            )
        if tensor.dtype not in _NAMES:
            raise ValueError(f"`{name}` has dtype {tensor.dtype}, which the safetensors format does not have")
        if tensor.is_meta:
            raise ValueError(f"`{name}` is a meta tensor, which has no values to save")
        if not tensor.is_contiguous():
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. It either means you "
                "are trying to save tensors which are reference of each other in which case it's recommended to save "
                "only the full tensors, and reslice at load time, or simply call `.contiguous()` on your tensor to "
                "pack it before saving."
            )
        if tensor.numel():
            begin = tensor.storage_offset() * tensor.itemsize
            end = begin + tensor.numel() * tensor.itemsize
            seen.setdefault(tensor.untyped_storage()._cdata, []).append((begin, end, name))
    for ranges in seen.values():
        ranges.sort()
        for (_, end, first), (begin, _, second) in itertools.pairwise(ranges):
            if begin < end:
                raise RuntimeError(
                    f"Some tensors share memory, this will lead to duplicate memory on disk and potential differences "
                    f"when loading them again: {{{first!r}, {second!r}}}. Save one of them, or a clone."
                )


def save_file(
    tensors: dict[str, torch.Tensor], filename: str | os.PathLike[str], metadata: dict[str, str] | None = None
) -> None:
    """Save tensors to a file, which replaces the one of that name when it is complete.

    Args:
        tensors: contiguous tensors by name, none of which shares memory with another.
        filename: the path of the file.
        metadata: texts to save beside them.

    Raises:
        ValueError: a tensor is not contiguous, or of a kind or dtype that the format does not have.
        RuntimeError: tensors share memory.

    Example::

        >>> save_file({"weight": torch.zeros(512, 1024)}, "model.safetensors", {"format": "pt"})
    """
    plan = _Plan(tensors, metadata)
    file = _C._AtomicFile(os.fspath(filename))
    try:
        file.write(plan.header)
        for storage, start, nbytes in plan.chunks():
            file.write_storage(storage, start, nbytes)
    except BaseException:
        file.abandon()
        raise
    file.commit()


def save(tensors: dict[str, torch.Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """Return the bytes of a file with the tensors.

    Args:
        tensors, metadata: as for :func:`save_file`.
    """
    plan = _Plan(tensors, metadata)
    parts = [plan.header]
    parts += [bytes(storage[start : start + nbytes]) for storage, start, nbytes in plan.chunks()]
    return b"".join(parts)


# ---- loading


def _index(reader: Any) -> dict[str, tuple[Any, tuple[int, ...], int, int]]:
    return {name: (dtype, shape, start, end) for name, dtype, shape, start, end in reader.tensors()}


def _tensor(reader: Any, name: str, entry: tuple[Any, tuple[int, ...], int, int]) -> torch.Tensor:
    dtype_name, shape, start, end = entry
    dtype = _DTYPES.get(dtype_name)
    if dtype is None:
        raise ValueError(f"`{name}` has the dtype {dtype_name} of the safetensors format, for which there is none here")
    storage = reader.storage(start, end, dtype.itemsize, True)
    return torch.empty((0,), dtype=dtype).set_(storage, 0, _packed(name, dtype, shape))


def load_file(filename: str | os.PathLike[str], device: Any = "cpu") -> dict[str, torch.Tensor]:
    """Load all tensors of a file.

    Args:
        filename: the path of the file.
        device: where the tensors go. On the host they are views of the mapped file. Default: the host.

    Raises:
        ValueError: the file is not what it should be.

    Example::

        >>> load_file("model.safetensors")["weight"].shape
        torch.Size([512, 1024])
    """
    with safe_open(filename, framework="pt", device=device) as file:
        return {name: file.get_tensor(name) for name in file.offset_keys()}


def load(data: bytes) -> dict[str, torch.Tensor]:
    """Load all tensors of a file that is in memory.

    Args:
        data: the bytes of the file.

    Raises:
        ValueError: they are not what they should be.
    """
    reader = _C._SafetensorsReader.from_bytes(data)
    return {name: _tensor(reader, name, entry) for name, entry in _index(reader).items()}


class _Slice:
    """A tensor of a file that has not been read: indexing gives a part of it.

    Args:
        file: the file.
        name: the name of the tensor.
    """

    def __init__(self, file: safe_open, name: str) -> None:
        self._file = file
        self._name = name

    def get_shape(self) -> list[int]:
        """Return the sizes."""
        return list(self._file._entry(self._name)[1])

    def get_dtype(self) -> str:
        """Return the format's name of the dtype, such as ``"F32"``."""
        return self._file._entry(self._name)[0]

    def __getitem__(self, index: Any) -> torch.Tensor:
        # Only the pages that are indexed are read.
        return self._file._on_host(self._name)[index].to(self._file._device)


class safe_open:
    """An opened file, whose tensors are loaded one by one; a context.

    Args:
        filename: the path of the file.
        framework: ``"pt"``.
        device: where tensors go. Default: the host.

    Raises:
        ValueError: the file is not what it should be.

    Example::

        >>> with safe_open("model.safetensors", framework="pt") as f:
        ...     names = f.keys()
        ...     top = f.get_slice("weight")[:10]
    """

    def __init__(self, filename: str | os.PathLike[str], framework: str = "pt", device: Any = "cpu") -> None:
        if framework not in ("pt", "pytorch", "torch"):
            raise ValueError(f"safe_open(): framework {framework!r} is not available, expected 'pt'")
        self._device = torch.device(device)
        self._reader: Any = _C._SafetensorsReader.open(os.fspath(filename))
        self._entries = _index(self._reader)

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *exc: object) -> None:
        self._reader = None

    def _open_reader(self) -> Any:
        if self._reader is None:
            raise ValueError("safe_open: the file is closed")
        return self._reader

    def _entry(self, name: str) -> tuple[Any, tuple[int, ...], int, int]:
        try:
            return self._entries[name]
        except KeyError:
            raise KeyError(f"File does not contain tensor {name}") from None

    def _on_host(self, name: str) -> torch.Tensor:
        return _tensor(self._open_reader(), name, self._entry(name))

    def keys(self) -> list[str]:
        """Return the names of the tensors, sorted."""
        return sorted(self._entries)

    def offset_keys(self) -> list[str]:
        """Return the names of the tensors in the order of the file."""
        return list(self._entries)

    def metadata(self) -> dict[str, str] | None:
        """Return the texts that the file carries."""
        return self._open_reader().metadata()

    def get_tensor(self, name: str) -> torch.Tensor:
        """Return a tensor.

        Args:
            name: its name.

        Raises:
            KeyError: there is none of that name.
        """
        return self._on_host(name).to(self._device)

    def get_slice(self, name: str) -> _Slice:
        """Return an object whose indexing reads a part of a tensor.

        Args:
            name: the name of the tensor.
        """
        self._entry(name)
        return _Slice(self, name)
