"""The line between a loader and one worker: messages, and with them the memory of tensors.

A message is a pickle. Storages of some size do not enter it: they are moved to shared memory, and the descriptors go
along with the message (``SCM_RIGHTS``), so that the other side maps what this side wrote. Small ones are copied into
the pickle, which is faster than a mapping. Each worker has a line of its own, without locks that a killed process could
hold; its end is seen as the end of the stream.
"""

from __future__ import annotations

import array
import contextlib
import errno
import functools
import io
import os
import pickle
import socket
import struct
import threading
import weakref
from multiprocessing.reduction import ForkingPickler
from typing import Any

from ptr import _shared_memory
from ptr.multiprocessing import reductions
from ptr.storage import UntypedStorage, _storage_of_bytes

__all__ = ["Channel", "new_pair"]

# The system passes at most 253 descriptors at once.
_FDS_PER_MESSAGE = 200
_HEADER = struct.Struct("<QI")
_FLAGS = getattr(socket, "MSG_CMSG_CLOEXEC", 0)

# The loaders' ends of all lines of this process. A process that is forked from it must not hold them open, or workers
# would not see the loader's end.
_loader_ends: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def _close_in_child() -> None:
    for end in _loader_ends:
        end.close()
    _loader_ends.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)


class _Received(threading.local):
    """The storages that came with the message which this thread unpickles."""

    storages: list[Any] = []


_received = _Received()


def _take(position: int) -> Any:
    return _received.storages[position]


def _reduce_storage(beside: list[Any], storage: Any) -> Any:
    """How a storage is pickled: by its place in ``beside``, what goes beside the message, or as bytes."""
    nbytes = storage.nbytes()
    if storage.device.type != "cpu":
        return reductions.reduce_storage(storage)
    if nbytes < _shared_memory.MAP_FROM:
        return (_storage_of_bytes, (bytes(storage),))
    beside.append(storage)
    return (_take, (len(beside) - 1,))


def _pickled(message: Any) -> tuple[Any, list[Any]]:
    """Return the pickle of a message, and the storages that go beside it."""
    file = io.BytesIO()
    pickler = ForkingPickler(file, pickle.HIGHEST_PROTOCOL)
    beside: list[Any] = []
    # Not a method of the pickler: a cycle would keep each batch until the collector runs.
    pickler.dispatch_table = {**pickler.dispatch_table, UntypedStorage: functools.partial(_reduce_storage, beside)}
    pickler.dump(message)
    return file.getbuffer(), beside


class Channel:
    """One end of the line.

    Args:
        end: a connected stream socket of the Unix family.
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._unsent = bytearray()

    def fileno(self) -> int:
        """Return the descriptor, for polling."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close this end; the other sees the end of the stream."""
        self._socket.close()

    # ---- small messages that must not block

    @property
    def has_unsent(self) -> bool:
        """Whether something that was posted waits for room."""
        return bool(self._unsent)

    def post(self, message: Any) -> None:
        """Send a message without tensors, or keep what there is no room for.

        Raises:
            OSError: the other side is gone.
        """
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self._unsent += _HEADER.pack(len(data), 0) + data
        self.flush()

    def flush(self) -> None:
        """Send what was kept, as far as there is room now."""
        while self._unsent:
            try:
                sent = self._socket.send(self._unsent, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            del self._unsent[:sent]

    # ---- messages

    def send(self, message: Any) -> None:
        """Send a message.

        Raises:
            OSError: the other side is gone.
            Exception: what pickling raises; nothing has been sent then.
        """
        data, storages = _pickled(message)
        fds = [_shared_memory.descriptor_of(storage) for storage in storages]
        sizes = struct.pack(f"<{len(storages)}Q", *[storage.nbytes() for storage in storages])
        self._send_with_fds(_HEADER.pack(len(data), len(fds)), fds[:_FDS_PER_MESSAGE])
        for start in range(_FDS_PER_MESSAGE, len(fds), _FDS_PER_MESSAGE):
            self._send_with_fds(b"+", fds[start : start + _FDS_PER_MESSAGE])
        if sizes:
            self._socket.sendall(sizes)
        self._socket.sendall(data)

    def _send_with_fds(self, data: bytes, fds: list[int]) -> None:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        sent = self._socket.sendmsg([data], ancillary)
        if sent < len(data):
            self._socket.sendall(data[sent:])

    def receive(self) -> Any:
        """Return the next message.

        Raises:
            EOFError: the other side is gone.
            OSError: this process cannot have more open files.
        """
        header, fds = self._receive_with_fds(_HEADER.size)
        nbytes, fd_count = _HEADER.unpack(header)
        with _closing(fds):
            while len(fds) < fd_count:
                fds += self._receive_with_fds(1)[1]
            sizes = struct.unpack(f"<{fd_count}Q", self._receive_exactly(8 * fd_count)) if fd_count else ()
            data = self._receive_exactly(nbytes)
            storages = []
            for size in sizes:
                storages.append(_shared_memory.map_descriptor(fds.pop(0), size, keep=False, populate=True))
        _received.storages = storages
        try:
            return pickle.loads(data)
        finally:
            _received.storages = []

    def _receive_with_fds(self, nbytes: int) -> tuple[bytes, list[int]]:
        room = socket.CMSG_SPACE(_FDS_PER_MESSAGE * array.array("i").itemsize)
        data, ancillary, flags, _ = self._socket.recvmsg(nbytes, room, _FLAGS)
        fds = array.array("i")
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
        with _closing(fds) as received:
            if flags & socket.MSG_CTRUNC:
                raise OSError(
                    errno.EMFILE,
                    "Too many open files: a batch from a worker has more tensors than this process may open files; "
                    "raise the limit (`ulimit -n`) or make fewer, larger tensors of a batch",
                )
            if not data:
                raise EOFError
            if len(data) < nbytes:
                data += self._receive_exactly(nbytes - len(data))
            kept = list(received)
            del received[:]
        return data, kept

    def _receive_exactly(self, nbytes: int) -> Any:
        data = bytearray(nbytes)
        view = memoryview(data)
        while view:
            count = self._socket.recv_into(view)
            if count == 0:
                raise EOFError
            view = view[count:]
        return data


@contextlib.contextmanager
def _closing(fds: Any) -> Any:
    """Close what is left in ``fds`` at the end."""
    try:
        yield fds
    finally:
        for fd in fds:
            os.close(fd)


def new_pair() -> tuple[Channel, socket.socket]:
    """Return the loader's end, and the worker's as a socket, which can be an argument of any kind of process."""
    loader_end, worker_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    _loader_ends.add(loader_end)
    return Channel(loader_end), worker_end
