"""The stable ABI: an extension built apart from the engine attaches an operator, a device and a transform."""

import ctypes
import os
import subprocess
from pathlib import Path

import numpy as np
import ptr as torch
import pytest

HERE = Path(__file__).resolve().parents[1] / "abi"


@pytest.fixture(scope="module")
def extension():
    """Builds and loads the extension; yields the library and the address of the process's table."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", HERE / "target")) / "abi_test"
    subprocess.run(
        ["cargo", "build", "--quiet", "--manifest-path", str(HERE / "Cargo.toml"), "--target-dir", str(target)],
        check=True,
    )
    library = ctypes.CDLL(str(target / "debug" / "libptr_abi_test.so"))
    library.abi_test_init.argtypes = library.abi_test_count_calls.argtypes = [ctypes.c_void_p]
    library.abi_test_count_calls.restype = ctypes.c_int64
    library.abi_test_live_bytes.restype = ctypes.c_size_t
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = pointer_of(torch._C._abi, b"ptr._C._abi")
    assert library.abi_test_init(table) == 0
    yield library, table
    library.abi_test_exit()


def test_operator_runs_on_cpu_and_meta(extension):
    scale = torch.ops.abi_test.scale
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    assert scale(x, 2.5).tolist() == [[0.0, 2.5, 5.0], [7.5, 10.0, 12.5]]
    meta = scale(x.to("meta"), 2.5)
    assert meta.device.type == "meta" and meta.shape == (2, 3)


def test_errors_of_the_extension_arrive(extension):
    with pytest.raises(RuntimeError, match="expected a float32 tensor for x"):
        torch.ops.abi_test.scale(torch.ones(2, dtype=torch.float64), 2.0)


def test_gradients_flow_through_the_operator(extension):
    x = torch.ones(3, requires_grad=True)
    y = torch.ops.abi_test.scale(x, 3.0)
    assert y.grad_fn.name() == "ScaleBackward"
    (gradient,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    assert gradient.tolist() == [18.0] * 3
    (second,) = torch.autograd.grad(gradient.sum(), x)
    assert second.tolist() == [18.0] * 3
    with torch.no_grad():
        assert torch.ops.abi_test.scale(x, 3.0).grad_fn is None


def test_device_computes_on_its_own_memory(extension):
    library, _ = extension
    before = library.abi_test_live_bytes()
    x = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    on_device = x.to("hostdev")
    assert on_device.device.type == "hostdev"
    assert library.abi_test_live_bytes() > before
    assert (-on_device).device.type == "hostdev"
    assert (-on_device).cpu().tolist() == [[-1.0, 2.0], [-3.0, -4.0]]
    del on_device
    assert library.abi_test_live_bytes() == before


def test_device_falls_back_to_the_cpu(extension):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).to("hostdev")
    product = torch.mm(x, x)
    assert product.device.type == "hostdev"
    np.testing.assert_allclose(product.cpu().numpy(), [[7.0, 10.0], [15.0, 22.0]])
    x.mul_(2.0)
    assert x.cpu().tolist() == [[2.0, 4.0], [6.0, 8.0]]


def test_device_supports_autograd(extension):
    x = torch.tensor([1.0, 2.0]).to("hostdev").requires_grad_()
    (x * x).sum().backward()
    assert x.grad.device.type == "hostdev"
    assert x.grad.cpu().tolist() == [2.0, 4.0]


def test_fallback_on_a_transform_sees_every_call(extension):
    library, table = extension
    assert library.abi_test_count_calls(table) >= 2
