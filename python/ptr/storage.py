"""The memory behind tensors: ``UntypedStorage`` (bytes) and ``TypedStorage`` (bytes read as elements of a dtype)."""

from __future__ import annotations

import sys

from ptr import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["TypedStorage", "UntypedStorage", "is_storage"]

UntypedStorage = _C.UntypedStorage


class TypedStorage:
    """The memory of a tensor as a sequence of elements. Kept for older programs and for checkpoint files.

    Args:
        size: the number of elements, or their values.
        wrap_storage: the bytes to look at instead.
        dtype: what the elements are. Default: the default dtype.
        device: where the memory is.
    """

    def __init__(
        self, *args: Any, wrap_storage: Any = None, dtype: Any = None, device: Any = None, _internal: bool = False
    ) -> None:
        self.dtype = _C.get_default_dtype() if dtype is None else dtype
        if wrap_storage is not None:
            self._untyped_storage = wrap_storage
        elif not args:
            self._untyped_storage = UntypedStorage(0, device=device)
        elif isinstance(args[0], int):
            self._untyped_storage = UntypedStorage(args[0] * self.dtype.itemsize, device=device)
        else:
            self._untyped_storage = _C.tensor(list(args[0]), dtype=self.dtype, device=device).untyped_storage()

    def _tensor(self) -> Any:
        tensor = _C._VariableFunctions.empty(0, dtype=self.dtype, device=self._untyped_storage.device)
        return tensor.set_(self._untyped_storage, 0, (len(self),), (1,))

    @property
    def device(self) -> Any:
        """Where the memory is."""
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is on a GPU."""
        return self._untyped_storage.is_cuda

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def untyped(self) -> Any:
        """Return the bytes."""
        return self._untyped_storage

    def element_size(self) -> int:
        """Return the bytes per element."""
        return self.dtype.itemsize

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return self._untyped_storage.nbytes()

    def size(self) -> int:
        """Return the number of elements."""
        return len(self)

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self._untyped_storage.data_ptr()

    def tolist(self) -> list[Any]:
        """Return the elements as a list."""
        return self._tensor().tolist()

    def fill_(self, value: Any) -> TypedStorage:
        """Set all elements to ``value``."""
        self._tensor().fill_(value)
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool = False) -> TypedStorage:
        """Copy the elements of another storage.

        Args:
            source: a storage with as many elements.
            non_blocking: whether a copy between devices may go on after the return.
        """
        self._tensor().copy_(source._tensor(), non_blocking)
        return self

    def resize_(self, size: int) -> TypedStorage:
        """Change the number of elements."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def clone(self) -> TypedStorage:
        """Return a copy."""
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def cpu(self) -> TypedStorage:
        """Return the storage on the host; itself if it is there."""
        return (
            self
            if self.device.type == "cpu"
            else TypedStorage(wrap_storage=self._tensor().cpu().untyped_storage(), dtype=self.dtype)
        )

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0, *, dtype: Any = None) -> TypedStorage:
        """Make a storage over the elements of a file; see ``UntypedStorage.from_file``.

        Args:
            filename: the path of the file.
            shared: let writes reach the file.
            size: the number of elements.
            dtype: what they are. Default: the default dtype.
        """
        dtype = _C.get_default_dtype() if dtype is None else dtype
        storage = UntypedStorage.from_file(filename, shared, size * dtype.itemsize)
        return cls(wrap_storage=storage, dtype=dtype, _internal=True)

    def is_shared(self) -> bool:
        """Return whether other processes can see the memory."""
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        """Move the memory, in place, to where other processes can see it."""
        self._untyped_storage.share_memory_()
        return self

    def pickle_storage_type(self) -> str:
        """Return the name that checkpoint files give storages of this dtype."""
        tensor_type = _C._VariableFunctions.empty(0, dtype=self.dtype).type().rsplit(".", 1)[-1]
        return tensor_type.removesuffix("Tensor") + "Storage"

    def __len__(self) -> int:
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        self._check_key(index)
        return self._tensor()[index].item()

    def _check_key(self, index: Any) -> None:
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")

    def __setitem__(self, index: Any, value: Any) -> None:
        self._check_key(index)
        self._tensor()[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TypedStorage)
            and self.dtype == other.dtype
            and self._untyped_storage == other._untyped_storage
        )

    def __hash__(self) -> int:
        return hash(self._untyped_storage)

    def __repr__(self) -> str:
        values = "".join(f" {value}\n" for value in self.tolist())
        return f"{values}[ptr.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_typed_storage_of_bytes, (bytes(self._untyped_storage), self.dtype))


def _typed_storage_of_bytes(data: bytes, dtype: Any) -> TypedStorage:
    """Make a storage; the function named by plain pickles of such."""
    return TypedStorage(wrap_storage=_storage_of_bytes(data), dtype=dtype, _internal=True)


def _storage_of_bytes(data: bytes) -> Any:
    """Make a storage; the function named by plain pickles of such."""
    storage = UntypedStorage(len(data))
    storage._write_bytes(data)
    return storage


def _reduce_untyped(self: Any) -> tuple[Any, ...]:
    return (_storage_of_bytes, (bytes(self),))


def _deepcopy_untyped(self: Any, memo: dict[Any, Any]) -> Any:
    from ptr._tensor import _deepcopy_storage

    return _deepcopy_storage(self, memo)


def _is_shared(self: Any) -> bool:
    """Return whether other processes can see the bytes."""
    from ptr import _shared_memory

    return self.is_cuda or _shared_memory.is_shared(self)


def _share_memory(self: Any) -> Any:
    """Move the bytes, in place, to where other processes can see them; the size is fixed from then on."""
    if not self.is_cuda:
        from ptr import _shared_memory

        _shared_memory.share(self)
    return self


def _new_shared(cls: Any, size: int, *, device: Any = "cpu") -> Any:
    """Make a storage of ``size`` bytes that other processes can see."""
    from ptr import _shared_memory

    if _C.device(device).type != "cpu":
        raise RuntimeError(f"UntypedStorage._new_shared(): expected the CPU as device, got {device}")
    return _shared_memory.new_shared_storage(size)


def _from_file(cls: Any, filename: Any, shared: bool = False, nbytes: int = 0) -> Any:
    """Make a storage over the bytes of a file, which is mapped.

    Args:
        filename: the path of the file.
        shared: let writes reach the file, which is made or made longer if needed; otherwise they stay here.
        nbytes: how many bytes there are.

    Raises:
        RuntimeError: the file cannot be opened, or is shorter and not ``shared``.
    """
    from ptr import _shared_memory

    return _shared_memory.from_file(filename, shared, nbytes)


def _filename(self: Any) -> Any:
    """The path of the file that is written to by writing here, or ``None``."""
    return self.__dict__.get("_filename")


# Checkpoint files name the class by this module.
UntypedStorage.__module__ = __name__
UntypedStorage.__reduce__ = _reduce_untyped
UntypedStorage.__deepcopy__ = _deepcopy_untyped
UntypedStorage.is_shared = _is_shared
UntypedStorage.share_memory_ = _share_memory
UntypedStorage._new_shared = classmethod(_new_shared)
UntypedStorage.from_file = classmethod(_from_file)
UntypedStorage.filename = property(_filename)
UntypedStorage.dtype = _C.uint8


class _LegacyStorageMeta(type):
    dtype: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype == cls.dtype


def _make_storage_class(name: str, dtype: Any) -> type:
    """The class for storages of one dtype, as older programs and checkpoint files name it."""

    def __new__(cls: Any, *args: Any, **kwargs: Any) -> Any:
        return TypedStorage(*args, dtype=dtype, **kwargs)

    namespace = {"__new__": __new__, "__module__": "ptr", "__doc__": f"Storages of {dtype}.", "dtype": dtype}
    return _LegacyStorageMeta(name, (), namespace)


_STORAGE_NAMES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexDoubleStorage": "complex128",
    "ComplexFloatStorage": "complex64",
}

# By dtype. The other dtypes have no class: files describe them as bytes.
_STORAGE_CLASSES = {
    getattr(_C, dtype): _make_storage_class(name, getattr(_C, dtype)) for name, dtype in _STORAGE_NAMES.items()
}
for _class in _STORAGE_CLASSES.values():
    setattr(sys.modules["ptr"], _class.__name__, _class)


def is_storage(obj: Any, /) -> bool:
    """Return whether ``obj`` is a storage.

    Args:
        obj: any object.
    """
    return isinstance(obj, (TypedStorage, UntypedStorage))
