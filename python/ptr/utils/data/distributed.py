"""A sampler that gives each of several processes a part of the data."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sized
from typing import Any

import ptr as torch
from ptr.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every ``num_replicas``-th index, from ``rank`` on, of a data set, so that processes load disjoint parts.

    All parts have one length: some indices come twice, or with ``drop_last`` some not at all.

    Args:
        dataset: the data set.
        num_replicas: how many processes there are. Default: the size of the default process group.
        rank: which of them this is. Default: the rank in the default process group.
        shuffle: visit the data in random order, the same in all processes. Default: ``True``.
        seed: of that order; the same in all processes. Default: 0.
        drop_last: leave out indices at the end instead of repeating some. Default: ``False``.

    Raises:
        ValueError: ``rank`` is not below ``num_replicas``, or one is missing and there is no process group.

    .. note::
        Call :meth:`set_epoch` before each pass over the data, or all have the same order.

    Example::

        >>> sampler = DistributedSampler(dataset, num_replicas=2, rank=0)
        >>> loader = DataLoader(dataset, batch_size=32, sampler=sampler)
        >>> for epoch in range(10):
        ...     sampler.set_epoch(epoch)
        ...     train(loader)
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            distributed = _process_group()
            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        # Rounded down or up to what all processes can have the same number of.
        size = len(dataset)
        self.num_samples = size // num_replicas if drop_last else -(-size // num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        if self.shuffle:
            generator = torch.Generator().manual_seed(self.seed + self.epoch)
            indices = torch.randperm(size, generator=generator).tolist()
        else:
            indices = list(range(size))
        # From the start again where more are needed than there are.
        return itertools.islice(itertools.cycle(indices), self.rank, self.total_size, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next pass.

        Args:
            epoch: the number of the pass.
        """
        self.epoch = epoch


def _process_group() -> Any:
    """The module of process groups."""
    try:
        from ptr import distributed
    except ImportError:
        raise ValueError(
            "DistributedSampler: num_replicas and rank are needed where there is no process group. Default process "
            "group has not been initialized, please make sure to call init_process_group."
        ) from None
    return distributed
