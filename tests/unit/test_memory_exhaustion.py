"""A process whose memory is exhausted: errors that can be caught, and a process that goes on."""

import subprocess
import sys
from pathlib import Path

import pytest

PROLOGUE = """
import resource
import ptr

# There is a page for small tensors: the address space may be used up by others for good.
ptr.zeros(3)

def limit(megabytes):
    for line in open("/proc/self/status"):
        if line.startswith("VmSize"):
            size = int(line.split()[1]) * 1024 + megabytes * 2**20
            resource.setrlimit(resource.RLIMIT_AS, (size, size))

def fill():
    blocks = []
    try:
        while True:
            blocks.append(bytearray(1 << 16))
    except MemoryError:
        return blocks

def program():
{body}

caught = False
try:
    program()
except (MemoryError, ptr.OutOfMemoryError):
    caught = True
# Only now the traceback is gone, and with it what the program had.
print(caught)
print(ptr.ones(3).sum().item())
"""

PROGRAMS = {
    "many small tensors": """
        tensors = []
        limit(20)
        while True:
            tensors.append(ptr.zeros(1))
    """,
    "many views": """
        limit(20)
        ptr.zeros(1).expand(2**25).unbind()
    """,
    "tables of a long pool": """
        x = ptr.ones(1, 1)
        limit(100)
        ptr.nn.functional.adaptive_avg_pool1d(x, 2**24)
    """,
    "tables of a long pool's maxima": """
        x = ptr.ones(1, 1)
        limit(300)
        ptr.nn.functional.adaptive_max_pool1d(x, 2**24)
    """,
    "tables of a long interpolation": """
        x = ptr.ones(1, 1, 1)
        limit(100)
        ptr.nn.functional.interpolate(x, 2**24, mode="linear")
    """,
    "a graph that never ends": """
        x = ptr.ones(1, requires_grad=True)
        limit(20)
        while True:
            x = x * 2
    """,
    "backward of a long chain": """
        x = ptr.ones(1, requires_grad=True)
        y = x
        for _ in range(200_000):
            y = y + 1
        limit(8)
        blocks = fill()
        y.backward()
    """,
    "backward of a wide graph": """
        x = ptr.ones(100_000, requires_grad=True)
        y = ptr.stack(x.unbind()).sum()
        limit(8)
        blocks = fill()
        y.backward()
    """,
    "a long list": """
        tensors = [ptr.ones(1)] * 2**21
        limit(20)
        ptr.cat(tensors)
    """,
    "many generators": """
        generators = []
        limit(20)
        while True:
            generators.append(ptr.Generator())
    """,
    "many empty storages": """
        storages = []
        limit(20)
        while True:
            storages.append(ptr.UntypedStorage(0))
    """,
    "many slices of a storage": """
        storage, slices = ptr.UntypedStorage(8), []
        limit(20)
        while True:
            slices.append(storage[1:3])
    """,
    "the bytes of a large storage": """
        storage = ptr.UntypedStorage(60_000_000)
        limit(20)
        bytes(storage.fill_(1).copy_(storage))
    """,
    "the list of a large storage": """
        storage = ptr.UntypedStorage(60_000_000)
        limit(20)
        storage.tolist()
    """,
    "the printed form of a large storage": """
        storage = ptr.UntypedStorage(60_000_000)
        limit(20)
        repr(storage)
    """,
    "a storage from bytes": """
        data = bytes(60_000_000)
        limit(20)
        ptr.UntypedStorage(data)
    """,
    "saving a large tensor to memory": """
        import io
        x = ptr.zeros(15_000_000)
        limit(20)
        ptr.save(x, io.BytesIO())
    """,
    "many modules": """
        modules = []
        limit(20)
        while True:
            modules.append(ptr.nn.Linear(3, 3))
    """,
}


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space as Linux does")
@pytest.mark.parametrize("name", PROGRAMS)
def test_exhausted_memory_is_an_error_that_can_be_caught(name: str) -> None:
    body = "\n".join(line[4:] for line in PROGRAMS[name].splitlines())
    program = PROLOGUE.replace("{body}", body)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stdout.split()) == (0, ["True", "3.0"]), run.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space as Linux does")
@pytest.mark.parametrize("arguments", [["small", "6"], ["large", "4", "30"]], ids=["small", "large"])
def test_no_allocation_that_fails_ends_the_process(arguments: list[str]) -> None:
    """As a wide sweep: ``small 1000000`` is every allocation, ``large`` any list of limits in MiB."""
    path = Path(__file__).with_name("memory_exhaustion_programs.py")
    run = subprocess.run([sys.executable, path, *arguments], capture_output=True, text=True, timeout=240)
    assert (run.returncode, run.stdout) == (0, ""), run.stdout + run.stderr
