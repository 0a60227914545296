"""Starting several processes that run one function, and failing as a whole if one of them fails."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
import traceback
import warnings
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]


class ProcessException(Exception):
    """A process failed.

    Args:
        msg: what happened.
        error_index: which of the processes it was.
        error_pid: its process id.
    """

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = error_pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """A process ended with an exception, whose traceback the message holds."""


class ProcessExitedException(ProcessException):
    """A process was killed by a signal or exited with a status other than 0.

    Args:
        msg, error_index, error_pid: see :class:`ProcessException`.
        exit_code: the status; negative for a signal.
        signal_name: the name of the signal.
    """

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def _end_with_parent() -> None:
    """Interrupt this process when the one that started it is gone."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGINT)


def _run(fn: Callable[..., Any], index: int, args: Sequence[Any], errors: Any) -> None:
    """What a process does: sends its traceback to the parent if ``fn`` fails."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # The parent has it too.
    except Exception:
        errors.send(traceback.format_exc())
        raise SystemExit(1) from None


class ProcessContext:
    """Processes that were started together.

    Args:
        processes: the processes.
        error_pipes: for each, where its traceback comes from.
    """

    def __init__(self, processes: list[Any], error_pipes: list[Any]) -> None:
        self.processes = processes
        self.error_pipes = error_pipes
        self._running = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Return the process ids."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for processes to end. If one has failed, the others are stopped.

        Args:
            timeout: seconds to wait at most. Default: until one has ended.
            grace_period: seconds that the others have after the failure of one before they are asked to stop.

        Returns:
            whether all have ended.

        Raises:
            ProcessRaisedException: a process ended with an exception.
            ProcessExitedException: a process was killed or exited with a status other than 0.
        """
        failed = None
        for sentinel in multiprocessing.connection.wait(list(self._running), timeout=timeout):
            index = self._running.pop(sentinel)  # type: ignore[arg-type]
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self._running
        self._stop(grace_period)
        self._raise(failed)
        raise AssertionError("unreachable")

    def _stop(self, grace_period: float | None) -> None:
        self._wait(grace_period or 0)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        self._wait(30)
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, end - time.monotonic()))

    def _raise(self, index: int) -> None:
        process, errors = self.processes[index], self.error_pipes[index]
        text = None
        try:
            if errors.poll():
                text = errors.recv()
        except (EOFError, OSError):
            pass  # It ended without a word.
        if text is not None:
            header = f"\n\n-- Process {index} terminated with the following error:\n"
            raise ProcessRaisedException(header + text, index, process.pid)
        code = process.exitcode
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
            raise ProcessExitedException(
                f"process {index} terminated with signal {name}", index, process.pid, code, name
            )
        raise ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)


class SpawnContext(ProcessContext):
    """What :func:`spawn` returned in older versions."""


def start_processes(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Start ``nprocs`` processes that call ``fn(i, *args)``, with ``i`` counting them.

    Args:
        fn: the function; defined at the top level of a module unless ``start_method`` is ``"fork"``.
        args: its further arguments.
        nprocs: how many processes.
        join: wait for all of them.
        daemon: make them end with this process.
        start_method: ``"spawn"``, ``"fork"`` or ``"forkserver"``.

    Returns:
        a :class:`ProcessContext`, or ``None`` if ``join`` is set.

    Raises:
        ProcessRaisedException: a process ended with an exception.
        ProcessExitedException: a process was killed or exited with a status other than 0.
    """
    context: Any = multiprocessing.get_context(start_method)
    processes, pipes = [], []
    for index in range(nprocs):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, index, args, sender), daemon=daemon)
        process.start()
        sender.close()
        processes.append(process)
        pipes.append(receiver)
    started = ProcessContext(processes, pipes)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Start ``nprocs`` fresh processes that call ``fn(i, *args)``; see :func:`start_processes`.

    Args:
        fn, args, nprocs, join, daemon: see :func:`start_processes`.
        start_method: ``"spawn"``; others are a matter of :func:`start_processes`, which a warning says.

    Example::

        >>> def main(rank, size):
        ...     print(f"{rank} of {size}")
        >>> torch.multiprocessing.spawn(main, args=(2,), nprocs=2)
    """
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}). To use a different start_method use "
            "torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, "spawn")
