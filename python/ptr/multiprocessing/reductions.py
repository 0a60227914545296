"""How tensors and storages travel between processes: as descriptors of shared memory, never as bytes.

The sender's storage is moved to shared memory, in place, so that both sides see what either writes. A storage that
arrives again is the one that arrived before, as long as somebody holds it.
"""

from __future__ import annotations

import os
import weakref
from multiprocessing import reduction
from multiprocessing.reduction import ForkingPickler

import ptr as torch
from ptr import _shared_memory
from ptr._utils import _over_storage, _with_metadata
from ptr.storage import TypedStorage, UntypedStorage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["init_reductions", "reduce_storage", "reduce_tensor", "reduce_typed_storage"]

# The storages of this process by the file they map. A child keeps its own from the fork on.
_storages: weakref.WeakValueDictionary[tuple[int, int], Any] = weakref.WeakValueDictionary()


def _file_key(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


def _rebuild_storage(descriptor: Any, nbytes: int) -> Any:
    """Map the memory that another process sent."""
    fd = descriptor.detach()
    key = _file_key(fd)
    storage = _storages.get(key)
    if storage is not None and storage.nbytes() == nbytes:
        os.close(fd)
        return storage
    storage = _storages[key] = _shared_memory.map_descriptor(fd, nbytes, keep=True)
    return storage


def _rebuild_empty_storage() -> Any:
    return _shared_memory.new_shared_storage(0)


def reduce_storage(storage: Any) -> tuple[Any, ...]:
    """Return how a storage is rebuilt in another process; it is moved to shared memory for that.

    Args:
        storage: a storage of bytes, on the host.

    Raises:
        RuntimeError: the storage is on a device.
    """
    if storage.device.type != "cpu":
        raise RuntimeError(f"Cannot pickle a storage on {storage.device} for another process")
    if storage.nbytes() == 0:
        return (_rebuild_empty_storage, ())
    fd = _shared_memory.descriptor_of(storage)
    _storages[_file_key(fd)] = storage
    return (_rebuild_storage, (reduction.DupFd(fd), storage.nbytes()))


def _rebuild_typed_storage(untyped: Any, dtype: Any) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


def reduce_typed_storage(storage: TypedStorage) -> tuple[Any, ...]:
    """Return how a typed storage is rebuilt in another process.

    Args:
        storage: the storage.
    """
    return (_rebuild_typed_storage, (storage._untyped_storage, storage.dtype))


def _rebuild_tensor(cls: Any, storage: Any, dtype: Any, view: Any, requires_grad: bool, metadata: Any) -> Any:
    tensor = _with_metadata(_over_storage(storage, dtype, *view), metadata)
    if cls is torch.nn.Parameter:
        return torch.nn.Parameter(tensor, requires_grad)
    tensor.requires_grad = requires_grad
    return tensor


def reduce_tensor(tensor: torch.Tensor) -> Any:
    """Return how a tensor (or parameter) is rebuilt in another process: over the same memory.

    Args:
        tensor: the tensor. Its gradient is not sent.

    Raises:
        RuntimeError: the tensor is the result of operations that autograd has recorded.
    """
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor before "
            "serializing (e.g., putting it on the queue)."
        )
    from ptr.utils.hooks import warn_if_has_hooks

    if tensor.layout is not torch.strided or tensor.device.type != "cpu":
        return tensor.__reduce_ex__(2)
    warn_if_has_hooks(tensor)
    metadata = {"conj": tensor.is_conj(), "neg": tensor.is_neg()}
    cls = type(tensor) if type(tensor) is torch.nn.Parameter else torch.Tensor
    view = (tensor.storage_offset(), tuple(tensor.size()), tensor.stride())
    return (
        _rebuild_tensor,
        (cls, tensor.untyped_storage(), tensor.dtype, view, tensor.requires_grad, metadata),
    )


def init_reductions() -> None:
    """Let everything in :mod:`multiprocessing` (queues, pipes, pools, arguments of processes) send tensors this way.

    Subclasses of tensors are pickled as such; their storages then travel as above.
    """
    ForkingPickler.register(torch.Tensor, reduce_tensor)
    ForkingPickler.register(torch.nn.Parameter, reduce_tensor)
    ForkingPickler.register(UntypedStorage, reduce_storage)
    ForkingPickler.register(TypedStorage, reduce_typed_storage)
