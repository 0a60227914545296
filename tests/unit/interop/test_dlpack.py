"""DLPack with NumPy and with ourselves."""

import gc
import sys

import numpy as np
import ptr as torch
import pytest
from ptr.utils import dlpack


def test_from_numpy_and_back_without_copy():
    array = np.arange(6.0).reshape(2, 3)
    tensor = torch.from_dlpack(array)
    assert tensor.dtype is torch.float64 and tensor.tolist() == array.tolist()
    array[0, 0] = 9.0
    assert tensor[0, 0].item() == 9.0
    back = np.from_dlpack(tensor)
    tensor[1, 2] = -1.0
    assert back[1, 2] == -1.0 == array[1, 2]


def test_strides_and_offsets():
    x = torch.arange(12).reshape(3, 4)[:, 1:].t()
    assert np.from_dlpack(x).tolist() == x.tolist()
    y = torch.from_dlpack(np.arange(12).reshape(3, 4)[1:, ::2])
    assert y.tolist() == [[4, 6], [8, 10]] and y.stride() == (4, 2)


@pytest.mark.parametrize(
    "dtype",
    ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"],
)
def test_dtypes(dtype):
    x = torch.ones(2, dtype=getattr(torch, dtype))
    assert np.from_dlpack(x).dtype == dtype
    y = torch.from_dlpack(x)
    assert y.dtype is x.dtype and y.tolist() == x.tolist()


def test_bfloat16():
    x = torch.ones(2, dtype=torch.bfloat16)
    assert torch.from_dlpack(x).dtype is torch.bfloat16


def test_capsules_are_consumed_once():
    x = torch.ones(2)
    for capsule in (x.__dlpack__(), x.__dlpack__(max_version=(1, 0))):
        y = dlpack.from_dlpack(capsule)
        y[0] = 5.0
        assert x[0].item() == 5.0
        with pytest.raises(RuntimeError, match="can be consumed only once"):
            dlpack.from_dlpack(capsule)
        x[0] = 1.0
    assert 'capsule object "dltensor"' in repr(x.__dlpack__())
    assert 'capsule object "dltensor_versioned"' in repr(x.__dlpack__(max_version=(1, 0)))
    with pytest.raises(RuntimeError, match="invalid capsule"):
        dlpack.from_dlpack(3)


def test_memory_lives_as_long_as_needed():
    array = np.ones(100)
    count = sys.getrefcount(array)
    tensor = torch.from_dlpack(array)
    assert sys.getrefcount(array) > count
    del tensor
    gc.collect()
    assert sys.getrefcount(array) == count
    view = np.from_dlpack(torch.arange(1000.0))
    gc.collect()
    assert view.sum() == 499500.0
    torch.ones(3).__dlpack__()  # never consumed


def test_copy_and_device():
    x = torch.ones(2)
    copied = torch.from_dlpack(x, copy=True)
    copied[0] = 7.0
    assert x[0].item() == 1.0
    assert torch.from_dlpack(np.ones(2), device="cpu").tolist() == [1.0, 1.0]
    assert x.__dlpack_device__() == (1, 0)


def test_refusals():
    with pytest.raises(BufferError, match="require gradient"):
        torch.ones(1, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match="conjugate bit"):
        torch.ones(1, dtype=torch.complex64).conj().__dlpack__()
    with pytest.raises(BufferError, match="Cannot pack tensors on meta"):
        torch.ones(1, device="meta").__dlpack__()
    with pytest.raises(AssertionError, match="stream should be None"):
        torch.ones(1).__dlpack__(stream=1)


def test_scalars_and_empty():
    assert torch.from_dlpack(np.array(3.0)).item() == 3.0
    assert torch.from_dlpack(np.empty((0, 3))).shape == (0, 3)
    assert np.from_dlpack(torch.empty(0, 3)).shape == (0, 3)
