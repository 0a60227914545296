"""Memory that several processes see: files without a name, mapped by everybody who holds a descriptor.

Such a file goes when the last process that maps it does, however that ends, so nothing is ever left behind in
``/dev/shm``, and its size is not limited by that folder's. The descriptor is kept beside the storage (in its
attributes) while the storage lives, so that it can be sent again.
"""

from __future__ import annotations

import os
import tempfile

from ptr import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["descriptor_of", "from_file", "is_shared", "map_descriptor", "new_shared_storage", "share"]

# Bytes from which on mapping memory that another process filled is faster than copying it twice.
MAP_FROM = 1 << 16

_ATTRIBUTE = "_shared_file"


class _SharedFile:
    """A descriptor, closed with the object. ``fd`` is ``None`` where it was not kept."""

    __slots__ = ("fd",)

    def __init__(self, fd: int | None) -> None:
        self.fd = fd

    def __del__(self, close: Any = os.close) -> None:
        if self.fd is not None:
            close(self.fd)


def _new_file(nbytes: int) -> int:
    """Return a descriptor of a new file of ``nbytes`` zeros that has no name."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("ptr", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    try:
        os.ftruncate(fd, nbytes)
    except BaseException:
        os.close(fd)
        raise
    return fd


def map_descriptor(fd: int, nbytes: int, *, keep: bool, populate: bool = False) -> Any:
    """Return a storage over a shared file.

    Args:
        fd: its descriptor, which belongs to this function from here on.
        nbytes: how many bytes of it to map; not 0.
        keep: keep the descriptor for as long as the storage lives, for sending it to other processes.
        populate: map all pages at once, for memory that will soon be read or written as a whole.
    """
    file = _SharedFile(fd)
    storage = _C._map_file(fd, nbytes, True, populate)
    setattr(storage, _ATTRIBUTE, file if keep else _SharedFile(None))
    return storage


def from_file(filename: Any, shared: bool, nbytes: int) -> Any:
    """Return a storage over the first ``nbytes`` bytes of a file; see ``UntypedStorage.from_file``."""
    path = os.fspath(filename)
    if nbytes < 0:
        raise RuntimeError(f"from_file(): the size must not be negative, got {nbytes}")
    try:
        fd = os.open(path, os.O_CLOEXEC | (os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY), 0o666)
    except OSError as error:
        mode = "read-write" if shared else "read-only"
        raise RuntimeError(f"unable to open file <{path}> in {mode} mode: {error.strerror} ({error.errno})") from error
    file = _SharedFile(fd)
    size = os.fstat(fd).st_size
    if size < nbytes:
        if not shared:
            raise RuntimeError(f"file <{path}> size <{size}> is smaller than the required mapping size <{nbytes}>")
        os.ftruncate(fd, nbytes)
    storage = _C._map_file(fd, nbytes, shared, False) if nbytes else _C.UntypedStorage(0)
    if shared:
        setattr(storage, _ATTRIBUTE, file)
        storage._filename = path
    return storage


def new_shared_storage(nbytes: int) -> Any:
    """Return a storage of ``nbytes`` zeros that can be shared with other processes."""
    if nbytes == 0:
        storage = _C.UntypedStorage(0)
        setattr(storage, _ATTRIBUTE, _SharedFile(None))
        return storage
    return map_descriptor(_new_file(nbytes), nbytes, keep=True, populate=True)


def is_shared(storage: Any) -> bool:
    """Return whether the memory of a storage can be seen by several processes."""
    return _ATTRIBUTE in storage.__dict__


def share(storage: Any) -> None:
    """Move the memory of a storage on the host to where other processes can see it. All tensors over it follow."""
    if is_shared(storage):
        return
    if storage.device.type != "cpu":
        raise NotImplementedError(f"share_memory_(): expected a storage on the CPU, got one on {storage.device}")
    _move(storage)


def _move(storage: Any) -> None:
    shared = new_shared_storage(storage.nbytes())
    if storage.nbytes():
        shared.copy_(storage)
        _C._adopt_memory(storage, shared)
    setattr(storage, _ATTRIBUTE, getattr(shared, _ATTRIBUTE))


def descriptor_of(storage: Any) -> int:
    """Return the descriptor by which another process can map a (not empty) storage, which is shared for that if it is
    not yet."""
    share(storage)
    if getattr(storage, _ATTRIBUTE).fd is None:
        _move(storage)
    return getattr(storage, _ATTRIBUTE).fd
