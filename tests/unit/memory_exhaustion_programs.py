"""Run by test_memory_exhaustion.py: forks a child for every point at which memory is exhausted.

A child may end with success or with an exception that ``except Exception`` sees. Printed is every other end.
"""

import collections.abc
import io
import os
import pickle
import resource
import signal
import sys
import warnings

import numpy as np
import ptr
from ptr import nn
from ptr.utils.data import DataLoader, TensorDataset

try:
    import _testcapi
except ImportError:  # not every build of Python has it
    _testcapi = None


def limit(megabytes: int) -> None:
    """Leave the process this much more address space."""
    with open("/proc/self/status") as status:
        kilobytes = next(int(line.split()[1]) for line in status if line.startswith("VmSize"))
    size = kilobytes * 1024 + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


x = ptr.arange(20.0).reshape(4, 5)
leaf = ptr.ones(4, 5, requires_grad=True)
module = nn.Sequential(nn.Linear(5, 3), nn.ReLU(), nn.Linear(3, 2))
optimizer = ptr.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)


class Double(ptr.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a * 2

    @staticmethod
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        return grad * a


class Subclass(ptr.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


def hooks():
    a = ptr.ones(3, requires_grad=True)
    a.register_hook(lambda grad: grad * 2)
    b = a * 3
    b.retain_grad()
    b.sum().backward()


def save_and_load():
    file = io.BytesIO()
    ptr.save({"a": x, "b": [1, 2.0, "c", 3j, None, True, b"x", (1, 2), {1}]}, file)
    file.seek(0)
    ptr.load(file)


def step():
    optimizer.zero_grad()
    module(x).sum().backward()
    optimizer.step()


def index():
    y = x.clone()
    y[0], y[:, 1], y[x > 0], y[..., None], y[[0, 1]]
    y[0] = 3
    y[y > 1] = 0


def schemas():
    ptr._C._parse_schema("a::foo(Tensor a, int[2] b=1, *, str c='x') -> (Tensor, int)")
    schema = ptr.ops.aten.add.Tensor._schema
    str(schema), [argument.name for argument in schema.arguments]
    ptr.ops.aten.max.dim(x, 0)


def nodes():
    node = (leaf * leaf).grad_fn
    node.name(), node.next_functions, node.metadata, node._sequence_nr(), node._saved_self


def errors():
    wrong = [
        lambda: x + ptr.ones(7),
        lambda: x[9],
        lambda: ptr.device("bogus"),
        lambda: ptr.add(1, 2, 3, 4),
        lambda: ptr.tensor([[1], [1, 2]]),
        lambda: ptr.load(io.BytesIO(b"abc")),
        lambda: ptr._C._parse_schema(3),
        lambda: ptr._C._parse_schema(),
        lambda: ptr.set_default_dtype(3),
        lambda: ptr.UntypedStorage(-1),
    ]
    for call in wrong:
        try:
            call()
        except MemoryError:
            raise
        except Exception:
            pass


# So many allocations of CPython's fail from the n-th on. (Not all, for where an exception is caught CPython 3.11
# tries to make a number until it has it.)
FAILURES = 10_000
SMALL = {
    "operators": lambda: (x + x, x.max(0), x.split(2), ptr.zeros(2, 3), x.view(5, 4).t()),
    "module": lambda: module(x),
    "backward": lambda: (leaf * 2).sum().backward(),
    "hooks": hooks,
    "step": step,
    "function": lambda: Double.apply(leaf).sum().backward(),
    "subclass": lambda: ptr.add(x.as_subclass(Subclass), 1, alpha=2),
    "repr": lambda: (repr(x), repr(x.shape), repr(x.device), repr(x.max(0)), repr(ptr.finfo(ptr.float32))),
    "tolist": lambda: (x.tolist(), x.stride(), ptr.tensor([1j, 2]).tolist(), x[0, 0].item()),
    "tensor": lambda: (ptr.tensor([[1, 2], [3, 4.5]]), ptr.tensor(True), ptr.Size([1, 2]), ptr.device("cpu:0")),
    "index": index,
    "save": save_and_load,
    "state": lambda: module.load_state_dict(module.state_dict()),
    "pickle": lambda: pickle.loads(pickle.dumps((ptr.device("cpu"), ptr.float32, x.shape))),
    "numpy": lambda: ptr.from_numpy(np.ones(3)).numpy(),
    "loader": lambda: list(DataLoader(TensorDataset(x), batch_size=2, shuffle=True)),
    "schemas": schemas,
    "nodes": nodes,
    "storage": lambda: (x.untyped_storage().tolist(), x.data_ptr(), x.untyped_storage().nbytes()),
    "generator": lambda: (ptr.Generator().get_state(), ptr.Generator().initial_seed()),
    "errors": errors,
}

N = 10_000_000


def stored(value):
    file = io.BytesIO()
    ptr.save(value, file)
    file.seek(0)
    return file


# Texts and lists beyond c10's reserve: what is made before the address space is limited, and what is called then.
LARGE = {
    "device": (lambda: "x" * N, ptr.device),
    "argument": (lambda: "x" * N, lambda text: ptr.div(x, x, rounding_mode=text)),
    "keyword": (lambda: "x" * N, lambda text: x.sum(**{text: 1})),
    "schema": (lambda: "a::f(int[] a=[" + "1," * (N // 2) + "1]) -> Tensor", ptr._C._parse_schema),
    "key": (lambda: "x" * N, ptr._C._dispatch_key_parse),
    "size": (lambda: ptr.Size([1] * (N // 10)), repr),
    "items of an index": (lambda: (0,) * (N // 10), lambda items: x[items]),
    "tensors": (lambda: [x] * (N // 20), ptr.cat),
    "inputs": (lambda: [leaf] * (N // 10), lambda inputs: ptr.autograd.grad(leaf.sum(), inputs)),
    "sizes": (lambda: [1] * (N // 10), lambda sizes: ptr.zeros(*sizes)),
    "saving a text": (lambda: "x" * N, lambda text: ptr.save(text, io.BytesIO())),
    "saving a list": (lambda: list(range(N // 20)), lambda items: ptr.save(items, io.BytesIO())),
    "loading a text": (lambda: stored("x" * N), ptr.load),
    "loading a list": (lambda: stored(list(range(N // 20))), ptr.load),
    "loading a tensor": (lambda: stored(ptr.zeros(N)), ptr.load),
}


def end_of(child: collections.abc.Callable[[], object]) -> str:
    """How a forked child that calls ``child`` ends."""
    pid = os.fork()
    if pid == 0:
        status = 3
        try:
            signal.alarm(30)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            try:
                child()
                status = 0
            except Exception:
                status = 1
            except BaseException:
                status = 2
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return ["success", "error", "an exception that is no Exception", "exit"][os.WEXITSTATUS(status)]


def fail_from(n: int, program: collections.abc.Callable[[], object]) -> None:
    _testcapi.set_nomemory(n, n + FAILURES)
    try:
        program()
    finally:
        _testcapi.remove_mem_hooks()


def small(steps: int) -> None:
    for name, program in SMALL.items():
        program()
        program()  # what is made at the first use exists
        n = 1
        while (end := end_of(lambda n=n, program=program: fail_from(n, program))) != "success":
            if end != "error":
                print(f"{name}, from allocation {n} on: {end}")
            n += 1 + n // steps


def large(megabytes: list[int]) -> None:
    for name, (make, call) in LARGE.items():
        value = make()
        for room in megabytes:
            end = end_of(lambda room=room, call=call, value=value: (limit(room), call(value)))
            if end not in ("success", "error"):
                print(f"{name}, with {room} MiB left: {end}")


if __name__ == "__main__":
    ptr.set_num_threads(1)
    warnings.simplefilter("ignore")
    if sys.argv[1] == "large":
        large([int(argument) for argument in sys.argv[2:]])
    elif _testcapi is not None:
        small(int(sys.argv[2]))
