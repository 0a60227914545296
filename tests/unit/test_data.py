"""Tensors from Python data, NumPy arrays and buffers, and back."""

from __future__ import annotations

import numpy as np
import ptr
import pytest


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (3, "int64", ()),
        (2.5, "float32", ()),
        (True, "bool", ()),
        (1 + 2j, "complex64", ()),
        ([1, 2.5, True], "float32", (3,)),
        ([[1, 2], [3, 4]], "int64", (2, 2)),
        ([[], []], "float32", (2, 0)),
        (range(3), "int64", (3,)),
        ([np.float32(1), np.float32(2)], "float32", (2,)),
        ([np.int32(1)], "int32", (1,)),
        (np.float64(2.5), "float64", ()),
        (np.ones((2, 3)), "float64", (2, 3)),
    ],
)
def test_inference(data, dtype, shape):
    x = ptr.tensor(data)
    assert x.dtype is getattr(ptr, dtype) and x.shape == shape


@pytest.mark.parametrize(
    ("data", "dtype", "error", "message"),
    [
        ([[1, 2], [3]], None, ValueError, r"expected sequence of length 2 at dim 1 \(got 1\)"),
        ([[1, 2], 3], None, TypeError, "not a sequence"),
        ("a", None, TypeError, r"new\(\): invalid data type 'str'"),
        ([None], None, RuntimeError, "Could not infer dtype of NoneType"),
        (2**70, None, ValueError, "Overflow when unpacking long long"),
        (300, "uint8", RuntimeError, "value cannot be converted to type .* without overflow"),
        (1 + 2j, "float32", TypeError, "must be real number, not complex"),
    ],
)
def test_errors(data, dtype, error, message):
    with pytest.raises(error, match=message):
        ptr.tensor(data, dtype=dtype and getattr(ptr, dtype))


def test_tolist_is_the_inverse():
    for data in ([[1, 2], [3, 4]], [True, False], [0.5, -1.0], 7, [[]], [1 + 2j]):
        assert ptr.tensor(data).tolist() == data
    assert ptr.tensor([[1, 2], [3, 4]]).transpose(0, 1).tolist() == [[1, 3], [2, 4]]


def test_numpy_shares_memory_both_ways():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = ptr.from_numpy(array)
    x[0, 0] = 7
    assert array[0, 0] == 7
    back = x.numpy()
    back[1, 2] = 9
    assert x[1, 2].item() == 9 and back.dtype == np.float32 and back.shape == (2, 3)
    assert ptr.from_numpy(array.T).stride() == (1, 3)
    assert np.asarray(ptr.ones(2)).tolist() == [1.0, 1.0]


def test_the_array_outlives_the_tensor_and_the_reverse():
    x = ptr.from_numpy(np.full(1000, 3.0))
    assert x.tolist() == [3.0] * 1000
    array = ptr.full((1000,), 2.0).numpy()
    assert array.sum() == 2000


def test_numpy_of_what_requires_gradients_where_none_are_recorded():
    x = ptr.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()
    with ptr.no_grad():
        assert x.numpy().tolist() == x.__array__().tolist() == np.asarray(x).tolist() == [1, 1]
        with pytest.raises(RuntimeError, match="conjugate bit"):
            ptr.ones(2, dtype=ptr.complex64, requires_grad=True).conj().numpy()
    with ptr.inference_mode():
        assert x.numpy().tolist() == [1, 1]


def test_numpy_refusals():
    with pytest.raises(TypeError, match=r"expected np.ndarray \(got int\)"):
        ptr.from_numpy(3)
    with pytest.raises(ValueError, match="negative"):
        ptr.from_numpy(np.arange(3)[::-1])
    with pytest.raises(TypeError, match="can't convert np.ndarray of type numpy.object_"):
        ptr.from_numpy(np.array([None]))
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        ptr.ones(1, requires_grad=True).numpy()
    assert ptr.ones(1, requires_grad=True).numpy(force=True).tolist() == [1.0]


def test_as_tensor_copies_only_if_it_must():
    x = ptr.ones(2)
    assert ptr.as_tensor(x) is x
    array = np.ones(2)
    assert ptr.as_tensor(array).data_ptr() == array.ctypes.data
    assert ptr.as_tensor(array, dtype=ptr.float32).dtype is ptr.float32


def test_frombuffer():
    data = bytearray(b"\x01\x00\x02\x00")
    x = ptr.frombuffer(data, dtype=ptr.int16)
    assert x.tolist() == [1, 2]
    data[0] = 5
    assert x[0].item() == 5
    with pytest.raises(ValueError, match="must not be 0"):
        ptr.frombuffer(b"", dtype=ptr.int16)


def test_pinned_memory_needs_an_accelerator():
    x = ptr.ones(2)
    assert not x.is_pinned() and not ptr.ones(2, device="meta").is_pinned()
    for pin in (x.pin_memory, lambda: ptr.empty(2, pin_memory=True), lambda: ptr.tensor([1.0], pin_memory=True)):
        with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
            pin()
    assert ptr.empty(2, pin_memory=True, device="meta").is_meta


def test_is_pinned_takes_a_device():
    x = ptr.ones(2)
    assert not x.is_pinned() and not x.is_pinned(device=None) and not ptr.empty(2, device="meta").is_pinned()
    with pytest.warns(DeprecationWarning, match="The argument 'device' of Tensor.is_pinned\\(\\) is deprecated"):
        assert not x.is_pinned("cuda")
    with pytest.warns(DeprecationWarning):
        assert not x.is_pinned(device="cpu")
    with pytest.warns(DeprecationWarning), pytest.raises(RuntimeError, match="CPU device type not an accelerator"):
        x.pin_memory(device="cpu")
    assert not x.untyped_storage().is_pinned() and not x.untyped_storage().is_pinned(device="cuda")
