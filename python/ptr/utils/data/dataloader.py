"""The loader: batches of a data set in the order of a sampler."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from ptr.utils.data._utils.collate import default_collate, default_convert
from ptr.utils.data._utils.fetch import _DatasetKind
from ptr.utils.data._utils.iterators import _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter
from ptr.utils.data._utils.worker_info import get_worker_info
from ptr.utils.data.dataset import Dataset, IterableDataset
from ptr.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

_T_co = TypeVar("_T_co", covariant=True)


class _InfiniteConstantSampler(Sampler[None]):
    """What a stream is "sampled" with: it alone knows where it ends."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class DataLoader(Generic[_T_co]):
    """Iterates over a data set in batches.

    With ``num_workers > 0``, worker processes make batches ahead of time. Each has a copy of the data set; what an
    exception in one says is raised here, with the traceback. Batches arrive in shared memory, which is not limited by
    the size of ``/dev/shm``, and the order and the random numbers are PyTorch's for the same seed.

    Args:
        dataset: a :class:`Dataset`, anything with ``__getitem__`` and ``__len__``, or an :class:`IterableDataset`.
        batch_size: samples per batch; ``None`` gives single samples. Default: 1.
        shuffle: visit the data in random order, another one each time. Default: ``False``.
        sampler: the order of the data, instead of ``shuffle``.
        batch_sampler: gives lists of indices, one per batch; excludes ``batch_size``, ``shuffle``, ``sampler`` and
            ``drop_last``.
        num_workers: how many worker processes to use. Default: 0, for loading in the calling process.
        collate_fn: makes a batch of a list of samples. Default: :func:`default_collate`, without batches
            :func:`default_convert`.
        pin_memory: accepted; without an accelerator there is nothing to pin for, which a warning says.
        drop_last: leave out a last batch that is shorter. Default: ``False``.
        timeout: seconds to wait for a batch from workers; 0 for any time. Default: 0.
        worker_init_fn: called in each worker, with its number, after seeding and before loading.
        multiprocessing_context: a start method (``"fork"``, ``"spawn"``, …) or context of :mod:`ptr.multiprocessing`.
        generator: the source of randomness of ``shuffle`` and of the workers' seeds.
        prefetch_factor: batches that each worker makes ahead. Default: 2 with workers.
        persistent_workers: keep the workers after a pass over the data. Default: ``False``.
        pin_memory_device: deprecated.
        in_order: give batches of workers in order, not as they become ready. Default: ``True``.

    Raises:
        ValueError: options that exclude each other, or values out of range.
        RuntimeError: while iterating, if a worker is killed or takes longer than ``timeout``.

    Example::

        >>> for images, labels in DataLoader(dataset, batch_size=64, shuffle=True):
        ...     train_step(images, labels)
    """

    dataset: Any
    batch_size: int | None
    num_workers: int
    pin_memory: bool
    drop_last: bool
    timeout: float
    sampler: Any
    pin_memory_device: str
    prefetch_factor: int | None
    __initialized = False

    def __init__(
        self,
        dataset: Dataset[_T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing. Let num_workers > 0 to enable "
                "multiprocessing, otherwise set prefetch_factor to None."
            )
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = 2
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")

        is_stream = isinstance(dataset, IterableDataset)
        if is_stream:
            refused = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
            for name, value in refused.items():
                if value is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                    )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")

        if sampler is None:
            if is_stream:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]
            else:
                sampler = SequentialSampler(dataset)  # type: ignore[arg-type]
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate

        self.dataset = dataset
        self._dataset_kind = _DatasetKind.Iterable if is_stream else _DatasetKind.Map
        self.batch_size = batch_size
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.collate_fn = collate_fn
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.drop_last = drop_last
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.prefetch_factor = prefetch_factor
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self._IterableDataset_len_called: int | None = None
        self._iterator: _MultiProcessingDataLoaderIter | None = None
        self.__initialized = True
        self.check_worker_number_rationality()

    @property
    def multiprocessing_context(self) -> Any:
        """How worker processes are started; ``None`` for Python's default."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            context = _checked_context(context)
        self.__multiprocessing_context = context

    def check_worker_number_rationality(self) -> None:
        """Warn if there are more workers than processors that this process may use."""
        cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if self.num_workers and cpus is not None and self.num_workers > cpus:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number "
                f"of worker in current system is {cpus}, which is smaller than what this DataLoader is going to "
                "create. Please be aware that excessive worker creation might get DataLoader running slow or even "
                "freeze, lower the worker number to avoid potential slowness/freeze if necessary.",
                stacklevel=3,
            )

    def __setattr__(self, attr: str, val: Any) -> None:
        # The samplers were made from these.
        if self.__initialized and attr in _FIXED:
            raise ValueError(f"{attr} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(attr, val)

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        if not self.persistent_workers:
            return _MultiProcessingDataLoaderIter(self)
        if self._iterator is None or self._iterator._shutdown:
            self._iterator = _MultiProcessingDataLoaderIter(self)
        else:
            self._iterator._reset(self)
        return self._iterator

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        # What the fetcher gets: lists of indices, or single ones.
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __len__(self) -> int:
        if self._dataset_kind != _DatasetKind.Iterable:
            return len(self._index_sampler)
        # The length that a stream claims; iteration warns if it gives more.
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)


def _checked_context(context: Any) -> Any:
    """The context that a start method names, or that ``context`` is."""
    import multiprocessing
    from multiprocessing.context import BaseContext

    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                f"multiprocessing_context={context!r}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, "
            f"but got multiprocessing_context={context}"
        )
    return context
