"""Loading in worker processes: order, seeds, failures, and the end of workers."""

from __future__ import annotations

import gc
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import ptr as torch
import pytest
from ptr.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info
from ptr.utils.data._utils import channel, iterators


class Items(Dataset):
    """``n`` items made by a function."""

    def __init__(self, function, n=4):
        self.function, self.n = function, n

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        return self.function(index)


class Stream(IterableDataset):
    """Numbers, split over the workers unless told otherwise."""

    def __init__(self, n=7, *, is_split=True):
        self.n, self.is_split = n, is_split

    def __iter__(self):
        info = get_worker_info()
        if info is None or not self.is_split:
            return iter(range(self.n))
        return iter(range(info.id, self.n, info.num_workers))

    def __len__(self):
        return self.n


class Plain(Exception):
    pass


class TwoArguments(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"


def wait_until_gone(pids, seconds=10):
    end = time.monotonic() + seconds
    while any(map(is_alive, pids)):
        assert time.monotonic() < end, "workers outlive their loader"
        time.sleep(0.01)


def pids_of(iterator):
    return [process.pid for process in iterator._workers]


# ---- what is loaded


@pytest.mark.parametrize("width", [3, 40_000])
def test_batches_are_those_of_one_process(width):
    torch.manual_seed(1)
    x, y = torch.randn(11, width), torch.arange(11)
    dataset = TensorDataset(x, y)
    for _ in range(2):
        state = torch.get_rng_state()
        expected = list(DataLoader(dataset, 4, shuffle=True))
        after = torch.get_rng_state()
        torch.set_rng_state(state)
        result = list(DataLoader(dataset, 4, shuffle=True, num_workers=2))
        assert torch.equal(torch.get_rng_state(), after)
        assert len(result) == 3
        for (a, b), (c, d) in zip(expected, result, strict=True):
            assert torch.equal(a, c) and torch.equal(b, d)


def test_large_batches_arrive_in_shared_memory_without_open_files():
    loader = DataLoader(TensorDataset(torch.zeros(8, 100_000)), 2, num_workers=1)
    before = len(os.listdir("/proc/self/fd"))
    batches = [batch for (batch,) in loader]
    assert all(batch.is_shared() for batch in batches) and len(os.listdir("/proc/self/fd")) <= before
    batches[0].fill_(1)
    assert batches[0].sum() == 200_000 and batches[1].sum() == 0


def test_any_structure_travels():
    def item(index):
        return {
            "big": torch.full((50_000,), float(index)),
            "half": torch.full((2,), index, dtype=torch.bfloat16),
            "array": np.full(3, index),
            "text": str(index),
            "empty": torch.zeros(0, 2),
            "view": torch.arange(40_000.0)[index : index + 2],
            "complex": torch.tensor([1j * index]).conj(),
        }

    single = list(DataLoader(Items(item), batch_size=None, num_workers=0))
    several = list(DataLoader(Items(item), batch_size=None, num_workers=2))
    for a, b in zip(single, several, strict=True):
        assert list(a) == list(b)
        for key in a:
            assert a[key] == b[key] if key == "text" else torch.equal(a[key], b[key])


def test_more_tensors_than_one_message_has_room_for():
    def item(index):
        return [torch.full((20_000,), float(i)) for i in range(450)]

    (result,) = DataLoader(Items(item, 1), batch_size=None, num_workers=1)
    assert [int(x[-1]) for x in result] == list(range(450))


def test_indices_larger_than_the_line():
    batches = [list(range(200_000)), [5, 6], list(range(200_000))]
    loader = DataLoader(range(200_000), batch_sampler=batches, num_workers=1, collate_fn=len)
    assert list(loader) == [200_000, 2, 200_000]


def test_streams():
    loader = DataLoader(Stream(), 2, num_workers=2)
    assert [batch.tolist() for batch in loader] == [[0, 2], [1, 3], [4, 6], [5]]
    assert [b.tolist() for b in DataLoader(Stream(), 2, num_workers=2, drop_last=True)] == [[0, 2], [1, 3], [4, 6]]
    assert sorted(DataLoader(Stream(3, is_split=False), None, num_workers=2)) == [0, 0, 1, 1, 2, 2]
    whole = DataLoader(Stream(2, is_split=False), None, num_workers=2)
    assert len(whole) == 2
    with pytest.warns(UserWarning, match="not properly configuring the IterableDataset replica"):
        list(whole)


def test_out_of_order():
    def item(index):
        time.sleep(0.3 if index == 0 else 0)
        return index

    loader = DataLoader(Items(item), None, num_workers=2, in_order=False, prefetch_factor=1)
    result = list(loader)
    assert result[0] == 1 and sorted(result) == [0, 1, 2, 3]


def test_persistent_workers():
    def item(index):
        return os.getpid()

    loader = DataLoader(Items(item), None, num_workers=2, persistent_workers=True)
    first = list(loader)
    assert list(loader) == first and len(set(first)) == 2
    # A pass that is left early: what was asked for in it does not turn up in the next.
    next(iter(loader))
    assert list(loader) == first
    stream = DataLoader(Stream(), None, num_workers=2, persistent_workers=True)
    assert list(stream) == list(stream) == list(range(7))
    workers = pids_of(stream._iterator)
    del stream
    gc.collect()
    wait_until_gone(workers)


def test_workers_keep_no_batch():
    def mapped(index):
        with open("/proc/self/maps") as file:
            return sum("memfd:ptr" in line for line in file), torch.zeros(50_000)

    counts = [count for count, _ in DataLoader(Items(mapped, 30), None, num_workers=1)]
    assert max(counts) <= 1


# ---- seeds


def test_seeds_are_pytorchs():
    def item(index):
        info = get_worker_info()
        return info.id, info.seed, torch.initial_seed(), random.random(), np.random.rand(), torch.rand(1).item()

    torch.manual_seed(0)
    a, b = DataLoader(Items(item, 2), None, num_workers=2)
    seed = 900450186894289455
    assert a[:3] == [0, seed, seed] and b[:3] == [1, seed + 1, seed + 1]
    # What PyTorch 2.13's workers draw: Python's, NumPy's and the engine's first number.
    assert a[3:] == [0.21315340548154382, 0.8371640508861415, 0.7821398973464966]
    assert b[3:] == [0.7733861492043289, 0.6702704958690073, 0.6938178539276123]
    (c, _) = DataLoader(Items(item, 2), None, num_workers=2, generator=torch.Generator().manual_seed(5))
    assert c[1] == 4095051218741643470


def test_worker_info():
    def item(index):
        info = get_worker_info()
        assert info.dataset.n == 1 and info.num_workers == 1 and torch.get_num_threads() == 1
        with pytest.raises(AttributeError, match="cannot assign to field"):
            info.id = 3
        return repr(info)

    (text,) = DataLoader(Items(item, 1), None, num_workers=1)
    assert text.startswith("WorkerInfo(id=0, num_workers=1, seed=") and get_worker_info() is None


def test_init_function():
    def initialize(worker_id):
        torch.manual_seed(worker_id + 10)

    loader = DataLoader(Items(lambda _: torch.initial_seed(), 2), None, num_workers=2, worker_init_fn=initialize)
    assert list(loader) == [10, 11]


# ---- failures


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Plain("x"), Plain),
        (KeyError("x"), KeyError),
        (TwoArguments(1, 2), RuntimeError),
        (FileNotFoundError(2, "x"), FileNotFoundError),
    ],
)
def test_exceptions_come_with_class_and_traceback(error, expected):
    def item(index):
        if index == 1:
            raise error
        return index

    iterator = iter(DataLoader(Items(item), None, num_workers=1))
    assert next(iterator) == 0
    match = rf"(?s)Caught {type(error).__name__} in DataLoader worker process 0.\nOriginal Traceback .*raise error"
    with pytest.raises(expected, match=match):
        next(iterator)
    # One bad sample does not end the pass.
    assert list(iterator) == [2, 3]


def test_failing_init_function():
    def initialize(worker_id):
        raise Plain("no")

    with pytest.raises(Plain, match="Caught Plain in DataLoader worker process 0"):
        next(iter(DataLoader([1], num_workers=1, worker_init_fn=initialize)))


def test_what_cannot_be_pickled():
    class Local(Exception):
        pass

    def fail(index):
        raise Local("x")

    with pytest.raises(AttributeError, match="(?s)in DataLoader worker process 0.*Can't pickle local object"):
        next(iter(DataLoader(Items(lambda i: lambda: 0), None, num_workers=1)))
    with pytest.raises(RuntimeError, match="(?s)in DataLoader worker process 0.*Local: x"):
        next(iter(DataLoader(Items(fail), None, num_workers=1)))
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        next(iter(DataLoader(Items(lambda i: torch.ones(1, requires_grad=True) * 2), None, num_workers=1)))
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        pickle.dumps(iter(DataLoader([1], num_workers=1)))


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "is killed by signal: Killed. "),
        (lambda: os._exit(3), "exited unexpectedly with exit code 3. Details are lost due to multiprocessing."),
    ],
)
def test_dead_workers_are_noticed(end, cause):
    iterator = iter(DataLoader(Items(lambda _: end()), None, num_workers=2))
    pids = pids_of(iterator)
    began = time.monotonic()
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) [\d, ]+\) exited unexpectedly") as raised:
        next(iterator)
    assert time.monotonic() - began < 4
    assert cause in str(raised.value.__cause__)
    wait_until_gone(pids)


def test_dead_workers_are_noticed_though_a_child_holds_the_line(monkeypatch):
    monkeypatch.setattr(iterators, "STATUS_CHECK_INTERVAL", 0.2)

    def item(index):
        if os.fork() == 0:
            time.sleep(1.5)
        os._exit(0)

    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        next(iter(DataLoader(Items(item), None, num_workers=1)))


def test_timeout():
    loader = DataLoader(Items(lambda _: time.sleep(60)), None, num_workers=1, timeout=0.1)
    iterator = iter(loader)
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.1 seconds"):
        next(iterator)
    pids = pids_of(iterator)
    os.kill(pids[0], signal.SIGKILL)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        next(iterator)


@pytest.mark.parametrize(
    ("kwargs", "error", "match"),
    [
        ({"multiprocessing_context": "x"}, ValueError, r"valid start method in \['fork'"),
        ({"multiprocessing_context": 3}, TypeError, "valid context object or a string"),
        ({"prefetch_factor": -1}, ValueError, "prefetch_factor option should be non-negative"),
    ],
)
def test_misuse(kwargs, error, match):
    with pytest.raises(error, match=match):
        DataLoader([1], num_workers=1, **kwargs)


def test_a_warning_for_many_workers():
    with pytest.warns(UserWarning, match="This DataLoader will create 1000 worker processes"):
        DataLoader([1], num_workers=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert DataLoader([1], num_workers=1).prefetch_factor == 2


# ---- the end


def test_workers_end_with_their_iterator():
    iterator = iter(DataLoader(Items(lambda _: torch.zeros(100_000), 100), None, num_workers=2))
    next(iterator)
    pids = pids_of(iterator)
    began = time.monotonic()
    del iterator
    gc.collect()
    assert not any(map(is_alive, pids)) and time.monotonic() - began < 3
    exhausted = iter(DataLoader([1, 2], num_workers=1))
    assert len(list(exhausted)) == 2 and not any(map(is_alive, pids_of(exhausted)))
    assert list(exhausted) == []


def test_workers_that_do_not_listen_are_stopped(monkeypatch):
    monkeypatch.setattr(iterators, "JOIN_TIMEOUT", 0.1)
    iterator = iter(DataLoader(Items(lambda _: time.sleep(60)), None, num_workers=1))
    pids = pids_of(iterator)
    iterator._shutdown_workers()
    assert not any(map(is_alive, pids))


def test_a_forked_copy_does_not_end_the_workers():
    iterator = iter(DataLoader([1, 2, 3], None, num_workers=1))
    pid = os.fork()
    if pid == 0:
        del iterator
        gc.collect()
        os._exit(0)
    os.waitpid(pid, 0)
    assert list(iterator) == [1, 2, 3]


PROGRAM = """
    import os, signal, sys, time
    import ptr as torch
    from ptr.utils.data import DataLoader

    class Slow:
        def __len__(self):
            return 1000
        def __getitem__(self, index):
            if index > 1:
                time.sleep(0.05)
            return torch.zeros(50_000)

    # A shell starts what runs in the background with the signal ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    iterator = iter(DataLoader(Slow(), None, num_workers=2))
    next(iterator)
    print(*[process.pid for process in iterator._workers], flush=True)
"""


def run(end):
    text = textwrap.dedent(PROGRAM) + textwrap.dedent(end)
    return subprocess.Popen(
        [sys.executable, "-c", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize(
    "end", ["", "sys.exit(3)", "raise ValueError", "os.kill(os.getpid(), signal.SIGKILL)", "os._exit(0)"]
)
def test_no_orphans(end):
    before = os.listdir("/dev/shm")
    with run(end) as process:
        pids = [int(pid) for pid in process.stdout.readline().split()]
        process.wait(20)
        wait_until_gone(pids)
    assert set(os.listdir("/dev/shm")) <= set(before)


def test_interrupts_end_everything():
    with run("for _ in iterator: pass") as process:
        pids = [int(pid) for pid in process.stdout.readline().split()]
        os.killpg(process.pid, signal.SIGINT)  # As a terminal does.
        _, stderr = process.communicate(timeout=20)
        wait_until_gone(pids)
    assert process.returncode != 0 and stderr.count("KeyboardInterrupt") == 1


def test_other_start_methods():
    program = """
        import ptr as torch
        from ptr.utils.data import DataLoader, TensorDataset
        if __name__ == "__main__":
            dataset = TensorDataset(torch.arange(40_000).reshape(4, 10_000))
            for method in ("spawn", "forkserver"):
                loader = DataLoader(dataset, 2, num_workers=1, multiprocessing_context=method)
                assert [int(batch[0, 0]) for (batch,) in loader] == [0, 20_000]
    """
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"ptr_start_methods_{os.getpid()}.py")
    with open(path, "w") as file:
        file.write(textwrap.dedent(program))
    try:
        subprocess.run([sys.executable, path], check=True, timeout=60)
    finally:
        os.remove(path)


def test_an_interrupted_line_is_an_end_not_a_hang():
    ours, theirs = channel.new_pair()
    theirs.sendall(b"\x10\0\0")
    theirs.close()
    with pytest.raises(EOFError):
        ours.receive()
    ours.close()
