"""Memory that several processes see: files without a name, mapped by everybody who holds a descriptor.

Such a file goes when the last process that maps it does, however that ends, so nothing is ever left behind in
``/dev/shm``, and its size is not limited by that folder's. The descriptor is kept beside the storage (in its
attributes) while the storage lives, so that it can be sent again.
"""

from __future__ import annotations

import mmap
import os
import tempfile

from ptr import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["descriptor_of", "is_shared", "map_descriptor", "new_shared_storage", "shared_form"]

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
    flags = mmap.MAP_SHARED | (getattr(mmap, "MAP_POPULATE", 0) if populate else 0)
    storage = _C.frombuffer(mmap.mmap(fd, nbytes, flags), dtype=_C.uint8).untyped_storage()
    setattr(storage, _ATTRIBUTE, file if keep else _SharedFile(None))
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


def shared_form(storage: Any) -> Any:
    """Return the storage itself if other processes can map it, else a shared copy."""
    shared = getattr(storage, _ATTRIBUTE, None)
    if shared is not None and shared.fd is not None:
        return storage
    copy = new_shared_storage(storage.nbytes())
    copy.copy_(storage)
    return copy


def descriptor_of(storage: Any) -> int:
    """Return the descriptor by which another process can map a storage of the form above."""
    return getattr(storage, _ATTRIBUTE).fd
