"""Fetching the samples of a batch from a data set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ptr as torch
from ptr.utils.data._utils.collate import default_collate, shared_output
from ptr.utils.data.dataset import TensorDataset


class _DatasetKind:
    """The kinds of data sets, and their fetchers."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool
    ) -> _BaseDatasetFetcher:
        """Return a new fetcher for a data set of a kind."""
        fetcher = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)


class _BaseDatasetFetcher:
    """Turns what the sampler gives into data.

    Args:
        dataset: the data set.
        auto_collation: whether the sampler gives lists of indices.
        collate_fn: applied to what is fetched.
        drop_last: whether to drop a short last batch.
    """

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, index: Any) -> Any:
        """Return the batch (or sample) for ``index``."""
        raise NotImplementedError


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Takes samples from a stream; of the indices only the number counts."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        data = []
        for _ in index:
            try:
                data.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not data or (self.drop_last and len(data) < len(index)):
            raise StopIteration
        return self.collate_fn(data)


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Looks samples up."""

    def fetch(self, index: Any) -> Any:
        dataset = self.dataset
        if not self.auto_collation:
            return self.collate_fn(dataset[index])
        if type(dataset) is TensorDataset and self.collate_fn is default_collate:
            batch = _index_tensors(dataset.tensors, index)
            if batch is not None:
                return batch
        if hasattr(dataset, "__getitems__") and dataset.__getitems__:
            return self.collate_fn(dataset.__getitems__(index))
        return self.collate_fn([dataset[i] for i in index])


def _index_tensors(tensors: tuple[torch.Tensor, ...], indices: Any) -> list[Any] | None:
    """Return rows of ``tensors`` as a batch, without making them samples first; ``None`` where that could be told
    apart."""
    for tensor in tensors:
        if type(tensor) is not torch.Tensor or tensor.requires_grad or not tensor.is_contiguous():
            return None
    size = tensors[0].size(0)
    if not all(type(i) is int and -size <= i < size for i in indices):
        return None
    index = torch.tensor(indices)
    return [_rows(tensor, index) for tensor in tensors]


def _rows(tensor: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    out = shared_output((index.numel(), *tensor.size()[1:]), tensor.dtype)
    if out is None:
        return tensor[index]
    index = torch.where(index < 0, index + tensor.size(0), index)
    return torch.index_select(tensor, 0, index, out=out)
