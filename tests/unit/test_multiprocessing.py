"""Tensors between processes: shared memory, queues, pipes, pools, and what starts processes."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import time

import ptr as torch
import ptr.multiprocessing as mp
import pytest
from ptr import nn

context = mp.get_context("fork")


def in_child(function, *args):
    process = context.Process(target=function, args=args)
    process.start()
    process.join(20)
    assert process.exitcode == 0


# ---- shared memory


def test_shared_memory_is_seen_by_children_and_by_all_views():
    base = torch.arange(6.0)
    view = base[2:]
    assert not base.is_shared() and not base.untyped_storage().is_shared()
    assert base.share_memory_() is base
    assert base.is_shared() and view.is_shared() and base.storage().is_shared()
    assert base.tolist() == [0, 1, 2, 3, 4, 5]
    in_child(lambda: view.fill_(7))
    assert base.tolist() == [0, 1, 7, 7, 7, 7] and view.data_ptr() == base.data_ptr() + 8


def test_gradients_and_modules():
    model = nn.Linear(2, 2)
    assert model.share_memory() is model and all(p.is_shared() for p in model.parameters())
    weight = model.weight

    def train():
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(3)

    in_child(train)
    assert weight is model.weight and weight.tolist() == [[3, 3], [3, 3]]
    model(torch.ones(1, 2)).sum().backward()
    assert weight.grad.tolist() == [[1, 1], [1, 1]]


def test_empty_and_special_tensors():
    assert torch.empty(0).share_memory_().is_shared()
    assert torch.empty(2, device="meta").share_memory_().is_meta
    assert not torch.empty(2, device="meta").is_shared()
    assert torch.UntypedStorage._new_shared(5).is_shared() and torch.UntypedStorage._new_shared(5).tolist() == [0] * 5
    array = torch.from_numpy(__import__("numpy").arange(3.0))
    assert array.share_memory_().tolist() == [0, 1, 2]


def test_the_size_of_shared_memory_is_fixed():
    x = torch.zeros(3).share_memory_()
    with pytest.raises(RuntimeError, match="not resizable"):
        x.resize_(10_000)
    assert x.tolist() == [0, 0, 0]


def test_memory_and_descriptors_are_given_back():
    def files():
        return len(os.listdir("/proc/self/fd"))

    before = files()
    tensors = [torch.zeros(1000).share_memory_() for _ in range(10)]
    assert files() > before
    tensors.clear()
    gc.collect()
    assert files() == before


def test_shared_memory_without_descriptors_left():
    code = """
        import os, resource
        import ptr as torch
        resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
        kept = []
        try:
            for i in range(100):
                kept.append(torch.full((10,), i))
                kept[-1].share_memory_()
        except OSError as error:
            assert error.errno == 24
        else:
            raise SystemExit("no error")
        assert [int(x[0]) for x in kept] == list(range(len(kept)))
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_bad_maps_are_errors():
    from ptr import _C

    for fd, nbytes in ((-1, 5), (1_000_000, 5), (0, 0)):
        with pytest.raises((OSError, ValueError)):
            _C._map_file(fd, nbytes, True, False)
    fd = os.memfd_create("x")
    os.ftruncate(fd, 10)
    with pytest.raises(ValueError, match="expected a file of at least 11 bytes, got 10"):
        _C._map_file(fd, 11, True, False)
    os.close(fd)
    with pytest.raises(ValueError, match="two storages of one size"):
        _C._adopt_memory(torch.UntypedStorage(3), torch.UntypedStorage(4))
    storage = torch.UntypedStorage(3)
    with pytest.raises(ValueError, match="two storages"):
        _C._adopt_memory(storage, storage)
    with pytest.raises(TypeError, match="expected two storages"):
        _C._adopt_memory(storage, 3)


# ---- messages


def test_queues_share_what_they_carry():
    queue, back = context.Queue(), context.Queue()

    def child():
        x, y = queue.get()
        assert x.untyped_storage() is y.untyped_storage() and x.is_shared()
        x.add_(1)
        back.put(torch.full((3,), 5.0))
        back.get()  # The other side has it.

    process = context.Process(target=child)
    process.start()
    x = torch.zeros(2, 3)
    queue.put((x, x[1]))
    result = back.get(timeout=20)
    assert result.tolist() == [5, 5, 5] and x.tolist() == [[1, 1, 1], [1, 1, 1]] and x.is_shared()
    back.put(None)
    process.join(20)
    assert process.exitcode == 0


def test_the_same_storage_stays_the_same():
    here, there = context.Pipe()

    def child():
        first = there.recv()
        second = there.recv()
        assert first.untyped_storage() is second.untyped_storage()
        there.send(first)
        there.recv()  # The other side has it.

    process = context.Process(target=child)
    process.start()
    x = torch.zeros(4)
    here.send(x)
    here.send(x[2:])
    assert here.recv().untyped_storage() is x.untyped_storage()
    here.send(None)
    process.join(20)
    assert process.exitcode == 0


def test_kinds_of_tensors():
    here, there = context.Pipe()

    def child():
        while (message := there.recv()) is not None:
            there.send(message)

    process = context.Process(target=child)
    process.start()

    def through(x):
        here.send(x)
        return here.recv()

    parameter = through(nn.Parameter(torch.ones(2), requires_grad=False))
    assert type(parameter) is nn.Parameter and not parameter.requires_grad and parameter.tolist() == [1, 1]
    assert through(torch.ones(2, requires_grad=True)).requires_grad
    assert through(torch.zeros(0, 3)).shape == (0, 3)
    assert through(torch.empty(2, 3, device="meta")).is_meta
    conjugate = through(torch.tensor([1 + 2j]).conj())
    assert conjugate.is_conj() and conjugate.tolist() == [1 - 2j]
    transposed = through(torch.arange(6).reshape(2, 3).t())
    assert transposed.stride() == (1, 3) and transposed.tolist() == [[0, 3], [1, 4], [2, 5]]
    for dtype in (torch.bfloat16, torch.bool, torch.uint16, torch.complex128):
        assert through(torch.ones(2, dtype=dtype)).dtype is dtype
    storage = torch.arange(3).storage()
    assert through(storage).tolist() == [0, 1, 2] and bytes(through(storage.untyped())) == bytes(storage.untyped())
    assert through(nn.Linear(2, 1).state_dict())["weight"].shape == (1, 2)
    here.send(None)
    process.join(20)


def test_graphs_do_not_travel():
    queue = context.SimpleQueue()
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        queue.put(torch.ones(2, requires_grad=True) * 2)


def double(x):
    return x.mul_(2)


def test_pools():
    with context.Pool(2) as pool:
        assert [x.tolist() for x in pool.map(double, [torch.ones(2), torch.full((2,), 3.0)])] == [[2, 2], [6, 6]]


def test_computing_in_parallel_after_a_fork():
    x = torch.ones(400, 400)
    (x @ x).sum()  # Threads are running.

    def child():
        assert (x @ x).sum() == 400**3
        assert torch.ones(3_000_000).sum() == 3_000_000

    in_child(child)


# ---- starting processes


def _fill(rank, x):
    x[rank] = rank + 1


def _fail(rank, x):
    if rank == 1:
        raise ZeroDivisionError("rank one")
    time.sleep(60)


def _exit(rank, x):
    os._exit(3 if rank == 0 else 0)


def _kill(rank, x):
    os.kill(os.getpid(), 9)


def test_start_processes():
    x = torch.zeros(3).share_memory_()
    assert mp.start_processes(_fill, (x,), nprocs=3, start_method="fork") is None
    assert x.tolist() == [1, 2, 3]
    started = mp.start_processes(_fill, (x,), nprocs=2, start_method="fork", join=False)
    assert len(started.pids()) == 2
    while not started.join(timeout=20):
        pass


@pytest.mark.parametrize(
    ("function", "error", "match"),
    [
        (_fail, mp.ProcessRaisedException, "(?s)-- Process 1 terminated with the following error:.*ZeroDivisionError"),
        (_exit, mp.ProcessExitedException, "process 0 terminated with exit code 3"),
        (_kill, mp.ProcessExitedException, r"process \d terminated with signal SIGKILL"),
    ],
)
def test_one_failure_stops_all(function, error, match):
    began = time.monotonic()
    with pytest.raises(error, match=match) as raised:
        mp.start_processes(function, (None,), nprocs=2, start_method="fork")
    assert time.monotonic() - began < 10 and raised.value.error_pid > 0
    assert not mp.active_children()


def test_spawn():
    x = torch.zeros(2)
    mp.spawn(_fill, (x,), nprocs=2)
    assert x.tolist() == [1, 2]


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_no_orphans():
    code = """
        import os, signal, time
        import ptr.multiprocessing as mp

        def sleep(rank):
            time.sleep(60)

        started = mp.start_processes(sleep, nprocs=2, start_method="fork", join=False)
        print(*started.pids(), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    end = time.monotonic() + 10
    for pid in map(int, done.stdout.split()):
        while is_running(pid):
            assert time.monotonic() < end
            time.sleep(0.01)


def test_strategies():
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(ValueError, match="got 'file_system'"):
        mp.set_sharing_strategy("file_system")
    assert mp.Queue and mp.get_context("spawn")
