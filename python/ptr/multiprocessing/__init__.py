"""Python's :mod:`multiprocessing`, which also sends tensors: as shared memory, so that both processes see the same
values.

Everything of the standard module is here under its name. Importing this one is enough for the standard module's own
queues and pipes, too.

Example::

    >>> import ptr.multiprocessing as mp
    >>> def fill(queue):
    ...     queue.get().fill_(1)
    >>> queue = mp.Queue()
    >>> process = mp.Process(target=fill, args=(queue,))
    >>> process.start()
    >>> x = torch.zeros(3)
    >>> queue.put(x)
    >>> process.join()
    >>> x
    tensor([1., 1., 1.])
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403

from ptr.multiprocessing.reductions import init_reductions
from ptr.multiprocessing.spawn import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *multiprocessing.__all__,
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "init_reductions",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

_STRATEGY = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """Return the names of the ways to share memory: descriptors of files without a name, which leave nothing behind."""
    return {_STRATEGY}


def get_sharing_strategy() -> str:
    """Return the way in which memory is shared: ``"file_descriptor"``."""
    return _STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose the way in which memory is shared.

    Args:
        new_strategy: ``"file_descriptor"``. PyTorch's ``"file_system"``, whose named files can outlive a process that
            is killed, does not exist.

    Raises:
        ValueError: for other names.
    """
    if new_strategy != _STRATEGY:
        raise ValueError(
            f"set_sharing_strategy(): expected one of {sorted(get_all_sharing_strategies())}, got {new_strategy!r}"
        )


init_reductions()
