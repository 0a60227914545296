"""Writing: the storages of a file, the pickle that names them, and the two file formats."""

from __future__ import annotations

import os
import pickle
import struct
import sys
from typing import Any

import ptr as torch
from ptr import _C
from ptr._serialization.locations import location_tag
from ptr.storage import _STORAGE_CLASSES, TypedStorage, UntypedStorage

DEFAULT_PROTOCOL = 2
MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001


def _storage_record(storage: Any) -> tuple[Any, Any, int]:
    """The class that a file names for a storage, its bytes, and how many elements they are."""
    if isinstance(storage, TypedStorage):
        untyped = storage._untyped_storage
        storage_class = _STORAGE_CLASSES.get(storage.dtype)
        if storage_class is not None:
            return storage_class, untyped, len(storage)
        return UntypedStorage, untyped, untyped.nbytes()
    return UntypedStorage, storage, storage.nbytes()


class _StorageTable:
    """The storages of one file, in the order in which they are met."""

    def __init__(self, is_legacy: bool) -> None:
        self.keys: dict[int, str] = {}
        self.storages: list[Any] = []
        self.element_counts: list[int] = []
        # The ids of the older format end with the view of the storage that is meant: always the whole.
        self._ending = (None,) if is_legacy else ()
        self._dtypes: dict[int, Any] = {}

    def persistent_id(self, obj: Any) -> tuple[Any, ...] | None:
        """Return what stands for ``obj`` in the pickle if it is a storage."""
        if not isinstance(obj, (TypedStorage, UntypedStorage)):
            return None
        storage_class, untyped, numel = _storage_record(obj)
        pointer = untyped.data_ptr() if untyped.device.type != "meta" else 0
        if pointer and isinstance(obj, TypedStorage) and self._dtypes.setdefault(pointer, obj.dtype) != obj.dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        key = self.keys.get(untyped._cdata)
        if key is None:
            key = self.keys[untyped._cdata] = str(len(self.storages))
            self.storages.append(untyped)
            self.element_counts.append(numel)
        return ("storage", storage_class, key, location_tag(untyped), numel, *self._ending)


def _pickler_class(pickle_module: Any, table: _StorageTable) -> Any:
    class Pickler(pickle_module.Pickler):
        def persistent_id(self, obj: Any) -> Any:
            return table.persistent_id(obj)

    if pickle_module is not pickle:
        return Pickler

    class ModulePickler(Pickler):
        def reducer_override(self, obj: Any) -> Any:
            if not isinstance(obj, torch.nn.Module):
                return NotImplemented
            reduced = obj.__reduce_ex__(DEFAULT_PROTOCOL)
            if isinstance(reduced, str) or len(reduced) < 3 or not isinstance(reduced[2], dict):
                return reduced
            function, args, state, *rest = reduced
            return (function, args, obj._state_for_files(state), *rest)

    return ModulePickler


def _on_host(storage: Any) -> Any:
    if storage.device.type == "cpu":
        return storage
    with torch.no_grad():
        return torch.tensor([], dtype=torch.uint8, device=storage.device).set_(storage).cpu().untyped_storage()


def _path(f: Any) -> str | bytes:
    path = os.fspath(f)
    if ("\0" if isinstance(path, str) else b"\0") in path:
        raise ValueError("embedded null byte in the path of a file")
    return path


def _write_archive(writer: Any, table: _StorageTable, pickled: bytes) -> None:
    try:
        writer.write_preamble(pickled)
        for key, storage in enumerate(table.storages):
            if storage.device.type != "meta":
                writer.write_storage(str(key), _on_host(storage))
    except BaseException:
        writer.abandon()
        raise
    writer.commit()


def _write_legacy(f: Any, table: _StorageTable, data: bytes) -> None:
    """Write the stream format that came before the zip archives."""
    if isinstance(f, (str, os.PathLike)):
        path = _path(f)
        if os.path.isdir(path):
            raise IsADirectoryError(21, "Is a directory", path)
        file = _C._AtomicFile(path)
        try:
            _write_legacy(file, table, data)
        except BaseException:
            file.abandon()
            raise
        file.commit()
        return
    system = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    for header in (MAGIC_NUMBER, PROTOCOL_VERSION, system):
        f.write(pickle.dumps(header, protocol=DEFAULT_PROTOCOL))
    f.write(_C._normalize_pickle(data))
    keys = sorted(table.keys.values())
    f.write(pickle.dumps(keys, protocol=DEFAULT_PROTOCOL))
    f.flush()
    for key in keys:
        storage = _on_host(table.storages[int(key)])
        f.write(struct.pack("<q", table.element_counts[int(key)]))
        f.write(bytes(storage))
