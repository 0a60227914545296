"""Nothing reads or writes past a storage that was shrunk or replaced after tensors were made over it."""

import subprocess
import sys

import numpy as np
import ptr
import pytest


def shrunk(*sizes, dtype=ptr.float32):
    tensor = ptr.ones(*sizes, dtype=dtype)
    tensor.untyped_storage().resize_(8)
    return tensor


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.tolist(),
        lambda x: x.numpy(),
        lambda x: x[99, 99].item(),
        lambda x: x.__dlpack__(),
        lambda x: x.sum(),
        lambda x: x.clone(),
        lambda x: x.add_(1),
    ],
)
def test_a_shrunk_storage_is_not_read_past_its_end(read):
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 8"):
        read(shrunk(100, 100))


def test_numpy_and_dlpack_keep_the_memory_of_a_tensor_that_gets_another_storage():
    tensor = ptr.arange(10.0)
    array, capsule = tensor.numpy(), tensor.__dlpack__()
    tensor.set_(ptr.zeros(3))
    others = [ptr.ones(10) for _ in range(100)]
    assert array.tolist() == list(range(10))
    assert ptr.from_dlpack(capsule).tolist() == list(range(10))
    del others


def test_memory_seen_by_others_is_not_moved():
    tensor = ptr.arange(10.0)
    capsule = tensor.__dlpack__()
    with pytest.raises(RuntimeError, match="not resizable"):
        tensor.resize_(1000)
    assert np.from_dlpack(ptr.from_dlpack(capsule)).sum() == 45


def test_tolist_while_a_finalizer_changes_the_tensor():
    program = """
import gc
import ptr

x = ptr.ones(200, 50)

class Replaces:
    def __init__(self):
        self.cycle = self

    def __del__(self):
        x.untyped_storage().resize_(1 << 20)
        x.set_(ptr.zeros(3))

Replaces()
gc.set_threshold(1)
assert x.tolist() == [[1.0] * 50] * 200
assert x.shape == (3,)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
