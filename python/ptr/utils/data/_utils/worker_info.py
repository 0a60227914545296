"""What code that runs in a worker can know of the worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["WorkerInfo", "get_worker_info"]


@dataclass(frozen=True)
class WorkerInfo:
    """What :func:`get_worker_info` returns in a worker process.

    Attributes:
        id: the number of the worker, from 0.
        num_workers: how many there are.
        seed: what its generators were seeded with.
        dataset: its copy of the data set.
        rng: ``None``: in a process of its own, a worker has the global generators for itself.
        worker_method: ``"multiprocessing"``.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: Literal["multiprocessing"] = "multiprocessing"


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return what is known of the worker process that runs this code; ``None`` in the main process.

    Example::

        >>> class Numbers(IterableDataset):
        ...     def __iter__(self):
        ...         info = get_worker_info()
        ...         return iter(range(info.id, 100, info.num_workers) if info else range(100))
    """
    return _worker_info


def _set_worker_info(info: WorkerInfo) -> None:
    global _worker_info
    _worker_info = info
