"""The loader: batches of a data set in the order of a sampler."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import ptr as torch
from ptr.utils.data._utils.collate import default_collate, default_convert
from ptr.utils.data._utils.fetch import _IterableDatasetFetcher, _MapDatasetFetcher
from ptr.utils.data.dataset import Dataset, IterableDataset
from ptr.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

_T_co = TypeVar("_T_co", covariant=True)


def get_worker_info() -> Any:
    """Return what is known of the worker process that runs this code; ``None`` in the main process."""
    return None


class _DatasetKind:
    Map = 0
    Iterable = 1


class _InfiniteConstantSampler(Sampler[None]):
    """What a stream is "sampled" with: it alone knows where it ends."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class DataLoader(Generic[_T_co]):
    """Iterates over a data set in batches.

    Loading takes place in the calling process: worker processes (``num_workers > 0``) are not supported yet.

    Args:
        dataset: a :class:`Dataset`, anything with ``__getitem__`` and ``__len__``, or an :class:`IterableDataset`.
        batch_size: samples per batch; ``None`` gives single samples. Default: 1.
        shuffle: visit the data in random order, another one each time. Default: ``False``.
        sampler: the order of the data, instead of ``shuffle``.
        batch_sampler: gives lists of indices, one per batch; excludes ``batch_size``, ``shuffle``, ``sampler`` and
            ``drop_last``.
        num_workers: 0.
        collate_fn: makes a batch of a list of samples. Default: :func:`default_collate`, without batches
            :func:`default_convert`.
        pin_memory: accepted; without an accelerator there is nothing to pin for, which a warning says.
        drop_last: leave out a last batch that is shorter. Default: ``False``.
        timeout: for worker processes.
        worker_init_fn, multiprocessing_context, prefetch_factor, persistent_workers, in_order: for worker processes.
        generator: the source of randomness of ``shuffle``.
        pin_memory_device: deprecated.

    Raises:
        ValueError: options that exclude each other, or values out of range.
        NotImplementedError: ``num_workers`` is positive.

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
        if prefetch_factor is not None:
            if num_workers == 0:
                raise ValueError(
                    "prefetch_factor option could only be specified in multiprocessing. Let num_workers > 0 to enable "
                    "multiprocessing, otherwise set prefetch_factor to None."
                )
            if prefetch_factor < 0:
                raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        if multiprocessing_context is not None and num_workers == 0:
            raise ValueError(
                "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                f"num_workers={num_workers}"
            )
        if num_workers > 0:
            raise NotImplementedError(
                f"DataLoader(): num_workers={num_workers} needs worker processes, which share tensors through shared "
                "memory and are not available yet; use num_workers=0 to load in the calling process."
            )

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
        self.__initialized = True

    def __setattr__(self, attr: str, val: Any) -> None:
        # The samplers were made from these.
        if self.__initialized and attr in _FIXED:
            raise ValueError(f"{attr} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(attr, val)

    def __iter__(self) -> Iterator[Any]:
        return _SingleProcessDataLoaderIter(self)

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


class _SingleProcessDataLoaderIter:
    """One pass over a loader's data."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0: it is for worker processes")
        if loader.pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used.",
                stacklevel=3,
            )
        self._dataset = loader.dataset
        self._claimed_len = loader._IterableDataset_len_called
        self._is_stream = loader._dataset_kind == _DatasetKind.Iterable
        self._sampler_iter = iter(loader._index_sampler)
        # The seed that workers would get. Drawn in any case, so that the number of workers does not change what
        # follows.
        self._base_seed = torch.empty((), dtype=torch.int64).random_(generator=loader.generator).item()
        self._num_yielded = 0
        self._index_sampler = loader._index_sampler
        fetcher = _IterableDatasetFetcher if self._is_stream else _MapDatasetFetcher
        self._fetcher = fetcher(loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last)

    def __iter__(self) -> _SingleProcessDataLoaderIter:
        return self

    def __next__(self) -> Any:
        data = self._fetcher.fetch(next(self._sampler_iter))
        self._num_yielded += 1
        if self._is_stream and self._claimed_len is not None and self._num_yielded > self._claimed_len:
            warnings.warn(
                f"Length of IterableDataset {self._dataset} was reported to be {self._claimed_len} (when accessing "
                f"len(dataloader)), but {self._num_yielded} samples have been fetched.",
                stacklevel=2,
            )
        return data

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")
