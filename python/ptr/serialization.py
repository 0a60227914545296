"""Saving and loading: ``ptr.save`` and ``ptr.load``, in PyTorch's file formats.

A checkpoint is a zip archive with one pickle and one record per storage. Loading weights executes nothing that a file
says: the pickle is read by Rust code that accepts a short list of names, and :func:`add_safe_globals` makes the list
longer.
``load(weights_only=False)`` hands the pickle to Python instead, which runs whatever it says.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
import threading
import warnings
from enum import Enum
from tempfile import mkdtemp
from typing import Any

import ptr as torch
from ptr import _C
from ptr._serialization.locations import (
    _package_registry as _package_registry,
)
from ptr._serialization.locations import (
    _restore_function,
    default_restore_location,
    location_tag,
    register_package,
    validate_cuda_device,
    validate_hpu_device,
)
from ptr._serialization.writing import (
    DEFAULT_PROTOCOL,
    _path,
    _pickler_class,
    _StorageTable,
    _write_archive,
    _write_legacy,
)
from ptr._serialization.writing import (
    MAGIC_NUMBER as MAGIC_NUMBER,
)
from ptr._serialization.writing import (
    PROTOCOL_VERSION as PROTOCOL_VERSION,
)
from ptr.storage import TypedStorage, UntypedStorage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "mkdtemp",
    "normalize_storage_type",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "storage_to_tensor_type",
    "validate_cuda_device",
    "validate_hpu_device",
]

MAP_SHARED = 1
MAP_PRIVATE = 2


class SourceChangeWarning(Warning):
    """Was raised when the source of a pickled class had changed. Not used any more."""


class LoadEndianness(Enum):
    """The byte order assumed for files that do not say theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class StorageType:
    """The class of storages of one dtype, as a pickle names it.

    Args:
        name: ``"FloatStorage"``.
    """

    def __init__(self, name: str) -> None:
        self._dtype = getattr(torch.storage if name == "UntypedStorage" else torch, name).dtype

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self._dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


# ---- options


class _Options(threading.local):
    """What the functions below set, per thread where it is a context."""

    skip_data: bool = False


_options = _Options()
_default_load_endianness: LoadEndianness | None = None
_default_mmap_flags = MAP_PRIVATE
_compute_crc32 = True


def get_default_load_endianness() -> LoadEndianness | None:
    """Return the byte order assumed for files that do not say theirs; ``None`` for the machine's."""
    return _default_load_endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the byte order assumed for files that do not say theirs.

    Args:
        endianness: the byte order, or ``None``.
    """
    global _default_load_endianness
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _default_load_endianness = endianness


def get_default_mmap_options() -> int:
    """Return how files are mapped: always ``MAP_PRIVATE``, where writes to tensors do not reach the file."""
    return _default_mmap_flags


class set_default_mmap_options:
    """Set how files are mapped: at once or, as a context, for a block.

    Args:
        flags: ``MAP_PRIVATE`` (2). Shared maps are not supported.
    """

    def __init__(self, flags: int) -> None:
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                f"Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE, got {flags}"
            )
        if flags == MAP_SHARED:
            raise NotImplementedError("set_default_mmap_options: mapping files shared is not supported")
        self.prev = _default_mmap_flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *args: object) -> None:
        pass


def get_crc32_options() -> bool:
    """Return whether checksums of storages are compared when files are loaded."""
    return _compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Accepted for compatibility: checksums are always written.

    Args:
        compute_crc32: remembered for :func:`get_crc32_options`.
    """
    global _compute_crc32
    _compute_crc32 = compute_crc32


class skip_data:
    """Context in which ``load`` makes tensors of the right sizes without reading their values.

    Args:
        materialize_fake_tensors: must be ``False``.
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        if materialize_fake_tensors:
            raise NotImplementedError("skip_data: fake tensors are not available")

    def __enter__(self) -> None:
        self._prev = _options.skip_data
        _options.skip_data = True

    def __exit__(self, *args: object) -> None:
        _options.skip_data = self._prev


# ---- what a file may name

_user_safe_globals: dict[str, Any] = {}


def _full_name(entry: Any) -> tuple[str, Any]:
    """The name under which a pickle mentions an object, and the object. Files call this package ``torch``."""
    obj, name = entry if isinstance(entry, tuple) else (entry, f"{entry.__module__}.{entry.__qualname__}")
    return ("torch" + name[3:] if name.startswith("ptr.") else name), obj


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let weights-only loads accept more classes and functions.

    Args:
        safe_globals: classes and functions, or tuples of one and the full name that files give it.

    Example::

        >>> torch.serialization.add_safe_globals([MyTensor])
        >>> torch.load("file.pt")
    """
    _user_safe_globals.update(map(_full_name, safe_globals))


def get_safe_globals() -> list[Any]:
    """Return what :func:`add_safe_globals` has added."""
    return list(_user_safe_globals.values())


def clear_safe_globals() -> None:
    """Forget what :func:`add_safe_globals` has added."""
    _user_safe_globals.clear()


class safe_globals:
    """Context in which weights-only loads accept more classes and functions.

    Args:
        safe_globals: as for :func:`add_safe_globals`.
    """

    def __init__(self, safe_globals: list[Any]) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        self._prev = dict(_user_safe_globals)
        add_safe_globals(self.safe_globals)

    def __exit__(self, *args: object) -> None:
        _user_safe_globals.clear()
        _user_safe_globals.update(self._prev)


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """Return the names in a checkpoint that a weights-only load would not accept.

    Args:
        f: a path or a file object.
    """
    return [name for name in _open_reader(f, mmap=False).unsafe_globals() if name not in _user_safe_globals]


# ---- classes of storages


def normalize_storage_type(storage_type: Any) -> Any:
    """Return the class of this package that has the name of ``storage_type``."""
    return getattr(torch, storage_type.__name__)


def storage_to_tensor_type(storage: Any) -> Any:
    """Return the legacy tensor type whose elements a storage holds."""
    name = storage.pickle_storage_type() if isinstance(storage, TypedStorage) else type(storage).__name__
    return getattr(torch, name.replace("Storage", "Tensor"))


# ---- saving


def save(
    obj: object,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Save an object to a file.

    A file given by its path is replaced when everything has been written: if saving fails, the old file stays.

    Args:
        obj: what to save: tensors, modules' ``state_dict()``, and anything else that can be pickled.
        f: a path, or a file object with ``write``.
        pickle_module: the module that pickles ``obj``.
        pickle_protocol: the protocol that it uses. What is written is protocol 2 in any case.

    Example::

        >>> torch.save({"weight": torch.ones(2)}, "file.pt")
    """
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if _options.skip_data:
        raise NotImplementedError("save: skip_data is for loading only")
    table = _StorageTable(is_legacy=not _use_new_zipfile_serialization)
    buffer = io.BytesIO()
    _pickler_class(pickle_module, table)(buffer, protocol=pickle_protocol).dump(obj)
    if not _use_new_zipfile_serialization:
        _write_legacy(f, table, buffer.getvalue())
        return
    pickled = _C._normalize_pickle(buffer.getvalue())
    if not isinstance(f, (str, os.PathLike)):
        _write_archive(_C._ArchiveWriter.to_file(f), table, pickled)
        f.flush()
        return
    path = _path(f)
    try:
        _write_archive(_C._ArchiveWriter.to_path(path), table, pickled)
    except OSError as error:
        raise RuntimeError(f"save(): {error}") from error


# ---- loading


_ONLY_ARCHIVES_ARE_MAPPED = (
    "mmap can only be used with files saved with `torch.save({}, _use_new_zipfile_serialization=True)`, please "
    "torch.save your checkpoint with this option in order to use mmap."
)


def _open_reader(f: Any, mmap: bool) -> Any:
    if isinstance(f, (str, os.PathLike)):
        try:
            reader = _C._ArchiveReader.open(_path(f), mmap)
        except pickle.UnpicklingError as error:
            if mmap:
                raise RuntimeError(_ONLY_ARCHIVES_ARE_MAPPED.format(f)) from error
            raise
        if mmap and reader.kind == "legacy":
            raise RuntimeError(_ONLY_ARCHIVES_ARE_MAPPED.format(f))
        return reader
    for method in ("read", "seek", "tell"):
        if not hasattr(f, method):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{method}'. You can only torch.load from a file that is "
                "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
            )
    start = f.tell()
    reader = _C._ArchiveReader.from_bytes(f.read())
    if reader.stream_len is not None:
        # Whatever follows a stream is read by the next call.
        f.seek(start + reader.stream_len)
    return reader


class _StorageLoader:
    """Makes the storages that a pickle refers to, each once."""

    def __init__(self, reader: Any, restore: Callable[[Any, str], Any]) -> None:
        self.reader = reader
        self.restore = restore
        self.loaded: dict[str, Any] = {}

    def persistent_load(self, saved_id: Any) -> Any:
        """Return the storage that a persistent id describes."""
        if not isinstance(saved_id, tuple) or not saved_id or _text(saved_id[0]) != "storage" or len(saved_id) < 5:
            raise AssertionError(f"Unknown persistent id, expected one of a storage, got {saved_id!r}")
        storage_class, key, location, numel = saved_id[1:5]
        key, location = _text(key), _text(location)
        dtype = torch.uint8 if storage_class is UntypedStorage else storage_class.dtype
        storage = self.loaded.get(key)
        if storage is None:
            storage = self.loaded[key] = self._read(storage_class, dtype, key, location, numel)
        if len(saved_id) > 5 and saved_id[5] is not None:
            storage = _view_of(storage, dtype, saved_id[5])
        return TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)

    def _read(self, storage_class: Any, dtype: Any, key: str, location: str, numel: int) -> Any:
        nbytes = numel * dtype.itemsize
        if _options.skip_data or location == "meta":
            storage = UntypedStorage(nbytes)
        else:
            name = str(dtype).rsplit(".", 1)[-1]
            storage = self.reader.read_storage(key, storage_class.__name__, name, numel, name)
        storage = self.restore(storage, location)
        return storage._untyped_storage if isinstance(storage, TypedStorage) else storage


def _view_of(storage: Any, dtype: Any, view: Any) -> Any:
    """The part of a storage that files of early versions call a view; a copy, as storages cannot overlap here."""
    _, offset, size = view
    data = bytes(storage)[offset * dtype.itemsize : (offset + size) * dtype.itemsize]
    part = UntypedStorage(len(data))
    part._write_bytes(data)
    return part


def _text(value: Any) -> str:
    return value.decode("ascii") if isinstance(value, bytes) else str(value)


def _find_global(module: str, name: str) -> Any:
    """Resolve a name of a file. PyTorch's modules are this package's."""
    known = _user_safe_globals.get(f"{module}.{name}")
    if known is not None:
        return known
    if module == "torch" or module.startswith("torch."):
        module = "ptr" + module[5:]
    if module == "ptr.cuda" and name.endswith("Storage"):
        # The location of a storage says where it goes, not its class.
        module = "ptr"
    __import__(module)
    value = sys.modules[module]
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _new_object(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make an object that a weights-only pickle asks for by ``cls.__new__``."""
    if cls is torch.nn.Parameter:
        return cls(*args, **kwargs)
    if cls in _user_safe_globals.values():
        return cls.__new__(cls, *args, **kwargs)
    raise pickle.UnpicklingError(f"Trying to create new object for unrecognized class {cls}")


def _set_state(obj: Any, state: Any) -> None:
    """Give an object of a weights-only pickle its state."""
    from collections import OrderedDict

    cls = type(obj)
    if cls is torch.Tensor:
        obj.set_(*state)
    elif cls is torch.nn.Parameter:
        obj.__setstate__(state)
    elif cls is OrderedDict:
        obj.__dict__.update(state)
    elif cls in _user_safe_globals.values():
        if hasattr(obj, "__setstate__"):
            obj.__setstate__(state)
            return
        state, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
        obj.__dict__.update(state or {})
        for name, value in (slots or {}).items():
            setattr(obj, name, value)
    else:
        raise pickle.UnpicklingError(
            f"Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got {cls}"
        )


_WEIGHTS_ONLY_FAILED = (
    "Weights only load failed. In order to load files whose contents go beyond tensors and plain containers, either "
    "allow the classes that they name with `torch.serialization.add_safe_globals`, or load with `weights_only=False`. "
    "The latter can execute arbitrary code: do it only if the file comes from a source you trust.\n"
)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Load an object that was saved with :func:`save`, by this package or by PyTorch.

    Args:
        f: a path, or a file object with ``read``, ``seek`` and ``tell``.
        map_location: where the storages go: a device or its name, a dict from saved to wanted names, or a function
            ``(storage, location) -> storage or None``. Default: the devices they were saved from.
        pickle_module: the module that reads the pickle, for ``weights_only=False``.
        weights_only: whether to accept only tensors, plain containers and what :func:`add_safe_globals` allows, which
            executes nothing. Default: ``True``.
        mmap: whether to map the file instead of reading it: values are read when they are used. ``f`` must be a path.
        pickle_load_args: arguments of ``pickle_module.Unpickler``.

    Example::

        >>> torch.load("file.pt", map_location="cpu")
    """
    if weights_only is None:
        weights_only = pickle_module is None
    elif weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a string filename in order to use mmap argument")
    if isinstance(f, (str, os.PathLike)) and os.path.isdir(f):
        raise IsADirectoryError(21, "Is a directory", os.fspath(f))
    if not weights_only:
        try:
            reader = _open_reader(f, bool(mmap))
        except EOFError as error:
            if "ends" in str(error):  # in the middle of a pickle
                raise pickle.UnpicklingError(f"pickle data was truncated: {error}") from None
            raise
        loader = _StorageLoader(reader, _restore_function(map_location))
        return _load_with_pickle(reader, loader, pickle_module or pickle, pickle_load_args)
    for name in pickle_load_args:
        if name != "encoding":
            raise TypeError(f"load() got an unexpected keyword argument '{name}' for weights_only=True")
    try:
        reader = _open_reader(f, bool(mmap))
        loader = _StorageLoader(reader, _restore_function(map_location))
        return reader.load_weights(
            list(_user_safe_globals), _find_global, loader.persistent_load, _new_object, _set_state
        )
    except pickle.UnpicklingError as error:
        raise pickle.UnpicklingError(_WEIGHTS_ONLY_FAILED + str(error)) from None


def _load_with_pickle(reader: Any, loader: _StorageLoader, pickle_module: Any, arguments: dict[str, Any]) -> Any:
    class Unpickler(pickle_module.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            if module == "torch" or module.startswith("torch."):
                return _find_global(module, name)
            return super().find_class(module, name)

        def persistent_load(self, saved_id: Any) -> Any:
            return loader.persistent_load(saved_id)

    arguments.setdefault("encoding", "utf-8")
    return Unpickler(io.BytesIO(reader.pickle_bytes()), **arguments).load()


def _get_layout(name: str) -> Any:
    """Return the layout of a name such as ``"torch.strided"``; the function named by pickled layouts."""
    value = getattr(torch, name.split(".")[-1], None)
    if not isinstance(value, torch.layout):
        raise RuntimeError(f"{name} is not a layout")
    return value


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[int, ...], error_if_malformed: bool = True
) -> bool:
    """Return whether ``module.__version__`` is at least the given version.

    Args:
        module: a module with a ``__version__``.
        req_version_tuple: the version, as numbers.
        error_if_malformed: whether a version that cannot be read is an error, or a warning and ``True``.
    """
    try:
        parts = module.__version__.split(".")
        version = tuple(type(required)(part) for required, part in zip(req_version_tuple, parts, strict=False))
        return version >= req_version_tuple
    except Exception as error:
        message = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be compared "
            f"with tuple {req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(f"{message}, but continuing assuming that requirement is met", stacklevel=2)
        return True
