"""What a worker process does."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import ptr as torch
from ptr._utils import ExceptionWrapper
from ptr.utils.data._utils.channel import Channel
from ptr.utils.data._utils.fetch import _DatasetKind
from ptr.utils.data._utils.worker_info import WorkerInfo, _set_worker_info

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

__all__ = ["Resume", "StreamEnd", "Task", "WorkerArgs", "run"]


@dataclass(frozen=True)
class Task:
    """A batch to be made; with ``index`` ``None`` in place of a task, the worker ends.

    ``epoch`` counts the passes over the data: results of an abandoned one are told apart by it.
    """

    epoch: int
    number: int
    index: Any


@dataclass(frozen=True)
class Resume:
    """A new pass begins: streams start again."""

    epoch: int


@dataclass(frozen=True)
class StreamEnd:
    """A result: the worker's stream has no more data."""

    worker_id: int


@dataclass(frozen=True)
class WorkerArgs:
    """All that a worker is told when it starts."""

    dataset_kind: int
    dataset: Any
    auto_collation: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool
    base_seed: int
    init_fn: Callable[[int], None] | None
    worker_id: int
    num_workers: int


def _seed_everything(args: WorkerArgs) -> int:
    """Seed the generators of this process as PyTorch does, so that the same seed gives the same data."""
    seed = args.base_seed + args.worker_id
    random.seed(seed)
    torch.manual_seed(seed)
    try:
        import numpy
    except ImportError:
        return seed
    words = [args.worker_id, args.base_seed & 0xFFFFFFFF, args.base_seed >> 32, 0]
    numpy.random.seed(numpy.random.SeedSequence(words).generate_state(4))
    return seed


def run(args: WorkerArgs, end: socket.socket) -> None:
    """Make batches until the loader is done or gone; the target of worker processes.

    Args:
        args: what to load.
        end: the line to the loader.
    """
    try:
        torch.set_num_threads(1)
        _set_worker_info(WorkerInfo(args.worker_id, args.num_workers, _seed_everything(args), args.dataset))
        _Worker(args, Channel(end)).serve()
    except (KeyboardInterrupt, EOFError, ConnectionError):
        pass  # The loader has the interrupt too, or does not listen any more.


class _Worker:
    """The state of a worker between tasks.

    Args:
        args: what to load.
        channel: the line to the loader.
    """

    def __init__(self, args: WorkerArgs, channel: Channel) -> None:
        self.args = args
        self.channel = channel
        self.where = f"in DataLoader worker process {args.worker_id}"
        self.fetcher: Any = None
        self.failure: ExceptionWrapper | None = None
        self.is_at_end = False

    def start(self) -> None:
        """Call the user's function and make a fetcher; a failure is the first task's result."""
        args = self.args
        try:
            if args.init_fn is not None:
                args.init_fn(args.worker_id)
            self.make_fetcher()
        except Exception:
            self.failure = ExceptionWrapper(where=self.where)

    def make_fetcher(self) -> None:
        """Make a fetcher: streams start from their beginning."""
        args = self.args
        self.is_at_end = False
        self.fetcher = _DatasetKind.create_fetcher(
            args.dataset_kind, args.dataset, args.auto_collation, args.collate_fn, args.drop_last
        )

    def serve(self) -> None:
        """Do tasks in the order in which they come."""
        self.start()
        while True:
            message = self.channel.receive()
            if message is None:
                return
            if isinstance(message, Resume):
                try:
                    self.make_fetcher()
                except Exception:
                    self.failure = ExceptionWrapper(where=self.where)
            elif not self.is_at_end:
                self.send(message, self.result(message.index))

    def result(self, index: Any) -> Any:
        """Return the batch for ``index``, or what has to be said instead."""
        if self.failure is not None:
            failure, self.failure = self.failure, None
            return failure
        try:
            return self.fetcher.fetch(index)
        except StopIteration:
            if self.args.dataset_kind != _DatasetKind.Iterable:
                return ExceptionWrapper(where=self.where)
            self.is_at_end = True
            return StreamEnd(self.args.worker_id)
        except Exception:
            # Whole as text: the objects of a traceback do not travel.
            return ExceptionWrapper(where=self.where)

    def send(self, task: Task, result: Any) -> None:
        """Send a result; if it cannot be pickled, the reason instead."""
        try:
            self.channel.send((task.epoch, task.number, result))
            return
        except (EOFError, ConnectionError):
            raise
        except Exception:
            failure = ExceptionWrapper(where=self.where)
        if isinstance(result, ExceptionWrapper):
            # Its class is what cannot be pickled. The text says which it was.
            failure = result.with_type(RuntimeError)
        self.channel.send((task.epoch, task.number, failure))
