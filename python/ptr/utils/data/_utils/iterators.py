"""One pass over a loader's data: in this process, or in worker processes."""

from __future__ import annotations

import itertools
import os
import select
import signal
import sys
import time
import warnings
from typing import Any

import ptr as torch
from ptr._utils import ExceptionWrapper
from ptr.utils.data._utils.fetch import _DatasetKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ptr.utils.data._utils.channel import Channel
    from ptr.utils.data.dataloader import DataLoader

# Seconds after which workers that say nothing are looked at: one may be gone while a child of it holds its line open.
STATUS_CHECK_INTERVAL = 5.0
# Seconds that workers have to end by themselves.
JOIN_TIMEOUT = 5.0


class _BaseDataLoaderIter:
    """What all passes have in common.

    Args:
        loader: the loader.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        if loader.pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used.",
                stacklevel=4,
            )
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._collate_fn = loader.collate_fn
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._timeout = loader.timeout
        self._start_pass(loader)
        # What workers are seeded with. Drawn in any case, so that the number of workers does not change what follows.
        self._base_seed = int(torch.empty((), dtype=torch.int64).random_(generator=loader.generator).item())

    def _start_pass(self, loader: DataLoader[Any]) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._claimed_len = loader._IterableDataset_len_called

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        data = self._next_data()
        self._num_yielded += 1
        claimed = self._claimed_len
        if claimed is not None and self._num_yielded > claimed and self._dataset_kind == _DatasetKind.Iterable:
            text = (
                f"Length of IterableDataset {self._dataset} was reported to be {claimed} (when accessing "
                f"len(dataloader)), but {self._num_yielded} samples have been fetched. "
            )
            if self._num_workers > 0:
                text += (
                    "For multiprocessing data-loading, this could be caused by not properly configuring the "
                    "IterableDataset replica at each worker: see get_worker_info()."
                )
            warnings.warn(text, stacklevel=2)
        return data

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """A pass in which batches are made when they are asked for.

    Args:
        loader: the loader.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0: it is for worker processes")
        super().__init__(loader)
        self._fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last
        )

    def _next_data(self) -> Any:
        return self._fetcher.fetch(next(self._sampler_iter))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """A pass in which worker processes make batches ahead of time.

    Tasks are numbered and dealt to the workers in turn, ``prefetch_factor`` per worker at the beginning and then one
    for each result. ``_tasks`` has those that are under way, in order of their numbers, with the worker's number or,
    once it is there, the result.

    Args:
        loader: the loader.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        self._persistent_workers = loader.persistent_workers
        self._epoch = 0
        self._shutdown = False
        self._owner_pid = os.getpid()
        self._workers: list[Any] = []
        self._channels: list[Channel] = []
        try:
            self._start_workers(loader)
        except BaseException:
            self._shutdown_workers()
            raise
        self._begin()

    def _start_workers(self, loader: DataLoader[Any]) -> None:
        import multiprocessing

        from ptr.utils.data._utils import channel, worker

        context = multiprocessing if loader.multiprocessing_context is None else loader.multiprocessing_context
        for worker_id in range(self._num_workers):
            args = worker.WorkerArgs(
                dataset_kind=self._dataset_kind,
                dataset=self._dataset,
                auto_collation=self._auto_collation,
                collate_fn=self._collate_fn,
                drop_last=self._drop_last,
                base_seed=self._base_seed,
                init_fn=loader.worker_init_fn,
                worker_id=worker_id,
                num_workers=self._num_workers,
            )
            ours, theirs = channel.new_pair()
            self._channels.append(ours)
            try:
                process = context.Process(target=worker.run, args=(args, theirs))
                process.daemon = True
                process.start()
            finally:
                # Only the worker may hold its end, so that its death is the end of the stream.
                theirs.close()
            self._workers.append(process)

    def _reset(self, loader: DataLoader[Any]) -> None:
        """Begin another pass with the same workers."""
        from ptr.utils.data._utils.worker import Resume

        self._start_pass(loader)
        self._epoch += 1
        for worker_id in range(self._num_workers):
            self._post(worker_id, Resume(self._epoch))
        self._begin()

    def _begin(self) -> None:
        self._next_number = 0
        self._tasks: dict[int, Any] = {}
        self._outstanding = [0] * self._num_workers
        # Workers whose stream has not ended.
        self._active = [True] * self._num_workers
        self._turn = itertools.cycle(range(self._num_workers))
        for _ in range(max(1, self._prefetch_factor) * self._num_workers):
            self._deal_task()

    # ---- dealing tasks

    def _deal_task(self) -> None:
        """Give the next task to the worker whose turn it is."""
        from ptr.utils.data._utils.worker import Task

        try:
            index = next(self._sampler_iter)
        except StopIteration:
            return
        worker_id = self._choose_worker()
        if worker_id is None:
            return
        number = self._next_number
        self._next_number += 1
        self._tasks[number] = worker_id
        self._outstanding[worker_id] += 1
        self._post(worker_id, Task(self._epoch, number, index))

    def _choose_worker(self) -> int | None:
        active = sum(self._active)
        for worker_id in itertools.islice(self._turn, self._num_workers):
            if not self._active[worker_id]:
                continue
            # Out of order, those who are slow get fewer.
            if self._in_order or self._outstanding[worker_id] <= sum(self._outstanding) // active:
                return worker_id
        return None

    def _post(self, worker_id: int, message: Any) -> None:
        try:
            self._channels[worker_id].post(message)
        except OSError:
            self._raise_dead_workers()
            raise

    # ---- results

    def _next_data(self) -> Any:
        from ptr.utils.data._utils.worker import StreamEnd

        while True:
            number = self._ready_number()
            if number is None:
                if not self._tasks:
                    if not self._persistent_workers:
                        self._shutdown_workers()
                    raise StopIteration
                self._wait_for_results()
                continue
            result = self._tasks.pop(number)[0]
            if isinstance(result, StreamEnd):
                self._drop_worker(result.worker_id)
                self._deal_task()
                continue
            self._deal_task()
            if isinstance(result, ExceptionWrapper):
                result.reraise()
            return result

    def _ready_number(self) -> int | None:
        """The task whose result comes next, if it is there."""
        for number, state in self._tasks.items():
            if isinstance(state, tuple):
                return number
            if self._in_order:
                return None
        return None

    def _drop_worker(self, worker_id: int) -> None:
        """A stream has ended: what else its worker was asked for does not exist."""
        self._active[worker_id] = False
        self._outstanding[worker_id] = 0
        self._tasks = {number: state for number, state in self._tasks.items() if state != worker_id}
        if not self._persistent_workers:
            self._post_end(worker_id)

    def _wait_for_results(self) -> None:
        """Receive at least one result."""
        deadline = time.monotonic() + self._timeout if self._timeout > 0 else None
        while True:
            wait = STATUS_CHECK_INTERVAL
            if deadline is not None:
                wait = max(0.0, min(wait, deadline - time.monotonic()))
            ready = self._poll(wait)
            for worker_id in ready:
                self._receive(worker_id)
            if ready:
                return
            if deadline is not None and time.monotonic() >= deadline:
                self._raise_dead_workers()
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
            self._raise_dead_workers()

    def _poll(self, wait: float) -> list[int]:
        """The workers that have something to say, within ``wait`` seconds."""
        poll = select.poll()
        worker_of = {}
        for worker_id, channel in enumerate(self._channels):
            if self._active[worker_id]:
                poll.register(channel, select.POLLIN | (select.POLLOUT if channel.has_unsent else 0))
                worker_of[channel.fileno()] = worker_id
        ready = []
        for fd, events in poll.poll(wait * 1000):
            worker_id = worker_of[fd]
            if events & ~select.POLLOUT:
                ready.append(worker_id)
            else:
                self._channels[worker_id].flush()
        return ready

    def _receive(self, worker_id: int) -> None:
        try:
            epoch, number, result = self._channels[worker_id].receive()
        except (EOFError, ConnectionError):
            self._workers[worker_id].join(JOIN_TIMEOUT)
            self._raise_dead_workers()
            raise RuntimeError(f"DataLoader worker (pid {self._workers[worker_id].pid}) closed its line") from None
        except BaseException:
            # Half a message may be left: there is no going on with these workers.
            self._shutdown_workers()
            raise
        if epoch == self._epoch and number in self._tasks:
            self._outstanding[worker_id] -= 1
            self._tasks[number] = (result,)

    # ---- failures and the end

    def _raise_dead_workers(self) -> None:
        """Raise if a worker that should be there is gone."""
        dead = [w for w, active in zip(self._workers, self._active, strict=True) if active and not w.is_alive()]
        if not dead:
            return
        self._shutdown_workers()
        pids = ", ".join(str(process.pid) for process in dead)
        raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly") from _cause_of_death(dead[0])

    def _post_end(self, worker_id: int) -> None:
        try:
            self._channels[worker_id].post(None)
        except OSError:
            pass  # It is gone already.

    def _shutdown_workers(self) -> None:
        """End all workers: first they are asked to, then they are made to."""
        if self._shutdown or self._owner_pid != os.getpid():
            return
        self._shutdown = True
        for worker_id in range(len(self._workers)):
            self._post_end(worker_id)
        for channel in self._channels:
            # Whoever is sending a result sees that nobody takes it.
            channel.close()
        deadline = time.monotonic() + JOIN_TIMEOUT
        for process in self._workers:
            process.join(max(0.0, deadline - time.monotonic()))
        for process in self._workers:
            if process.is_alive():
                process.terminate()
        for process in self._workers:
            process.join(1)
            if process.is_alive():
                process.kill()
                process.join()

    def __del__(self) -> None:
        # When Python ends, it ends its daemonic processes itself, and this one's line is closed in any case.
        if "_shutdown" in self.__dict__ and not sys.is_finalizing():
            self._shutdown_workers()


def _cause_of_death(process: Any) -> RuntimeError:
    code = process.exitcode
    if code is not None and code < 0:
        text = f"DataLoader worker (pid {process.pid}) is killed by signal: {signal.strsignal(-code)}. "
        if -code == signal.SIGBUS:
            text += (
                "It is possible that dataloader's workers are out of shared memory. Please try to raise your shared "
                "memory limit."
            )
        return RuntimeError(text)
    return RuntimeError(
        f"DataLoader worker (pid {process.pid}) exited unexpectedly with exit code {code}. Details are lost due to "
        "multiprocessing. Rerunning with num_workers=0 may give better error trace."
    )
