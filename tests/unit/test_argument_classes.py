"""The class of the exception for an argument that is none: PyTorch's."""

import numpy as np
import ptr
import pytest

SURROGATE = "\ud800"


@pytest.mark.parametrize(
    "call",
    [
        lambda: ptr.device(SURROGATE),
        lambda: ptr.device("cpu" + SURROGATE),
        lambda: ptr.ones(2, device=SURROGATE),
        lambda: ptr.ones(2).to(SURROGATE),
        lambda: ptr.ones(2).type(SURROGATE),
        lambda: ptr.ones(2).div(2, rounding_mode=SURROGATE),
        lambda: ptr.add(ptr.ones(2), 2, **{SURROGATE: 3}),
        lambda: ptr.ones(2, **{SURROGATE: 3}),
        lambda: ptr.set_default_device(SURROGATE),
        lambda: ptr.nn.functional.conv2d(ptr.ones(1, 1, 2, 2), ptr.ones(1, 1, 1, 1), padding=SURROGATE),
    ],
)
def test_strings_with_lone_surrogates(call):
    with pytest.raises(RuntimeError, match="error unpacking string as utf-8"):
        call()


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (TypeError, lambda: ptr.ones(2, dtype=SURROGATE)),
        (AttributeError, lambda: getattr(ptr.ones(2), SURROGATE)),
        (AttributeError, lambda: getattr(ptr, SURROGATE)),
        (ValueError, lambda: ptr.device("cpu", 2**70)),
        (TypeError, lambda: ptr.device(ptr.device("cpu"), 1)),
        (RuntimeError, lambda: ptr.Generator().manual_seed("a")),
        (RuntimeError, lambda: ptr.Generator().manual_seed(1.5)),
        (RuntimeError, lambda: ptr.Generator().manual_seed(True)),
        (RuntimeError, lambda: ptr.Generator().manual_seed(None)),
        (ValueError, lambda: ptr.Generator().manual_seed(2**64)),
        (RuntimeError, lambda: ptr.set_num_threads("2")),
        (RuntimeError, lambda: ptr.set_num_threads(1.5)),
        (ValueError, lambda: ptr.set_num_threads(2**40)),
        (ValueError, lambda: ptr.broadcast_shapes((-1,))),
        (ValueError, lambda: ptr.broadcast_shapes((2**70,))),
        (RuntimeError, lambda: ptr.broadcast_shapes(1.5)),
        (RuntimeError, lambda: ptr.broadcast_shapes(ptr.ones(2))),
        (RuntimeError, lambda: ptr.broadcast_shapes((2,), (3,))),
        (TypeError, lambda: ptr.broadcast_tensors(3)),
        (RuntimeError, lambda: ptr.norm(ptr.ones(2), 2 + 0j)),
        (RuntimeError, lambda: ptr.ones(2).norm(2 + 1j)),
        (TypeError, lambda: ptr.ones(2).norm(ptr.ones(2))),
        (RuntimeError, lambda: ptr.arange(2**63 - 1)),
        (RuntimeError, lambda: ptr.linspace(0, 1, 10**15)),
        (RuntimeError, lambda: ptr.frombuffer(memoryview(b"abcd")[::2], dtype=ptr.uint8)),
        (RuntimeError, lambda: ptr.frombuffer(np.ones((3, 3)).T, dtype=ptr.float64)),
        (ValueError, lambda: ptr.from_dlpack(ptr.ones(2, device="meta"))),
        (ValueError, lambda: ptr.ones(2, device="meta").__dlpack_device__()),
        (BufferError, lambda: ptr.ones(2, device="meta").__dlpack__()),
        (AssertionError, lambda: ptr.ones(2).__dlpack__(stream=1)),
        (TypeError, lambda: ptr.ones(2).__dlpack__(stream="a")),
        (TypeError, lambda: ptr.ones(2).__dlpack__(copy=3)),
        (RuntimeError, lambda: ptr.tensor([1, 2]).storage()["a"]),
    ],
)
def test_classes(error, call):
    with pytest.raises(error):
        call()


def test_what_is_accepted():
    assert ptr.ones(2).copy_(2.5).tolist() == [2.5, 2.5]
    assert ptr.ones(2, dtype=ptr.int64).copy_(True).tolist() == [1, 1]
    assert ptr.broadcast_shapes(None, (2, 1), [3]) == (2, 3)
    assert type(ptr.ones(2).__dlpack__(stream=-1)).__name__ == "PyCapsule"


def conv(input_sizes, weight_sizes, dtype=ptr.float32, **arguments):
    input, weight = ptr.ones(input_sizes, dtype=dtype), ptr.ones(weight_sizes, dtype=dtype)
    return ptr.nn.functional.conv2d(input, weight, **arguments)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: conv((1, 1, 3, 3), (1, 1, 0, 0)), "kernel size should be greater than zero"),
        (lambda: conv((1, 1, 3, 3), (1, 1, 0, 1)), "kernel size should be greater than zero"),
        (lambda: conv((1, 1, 0, 3), (1, 1, 1, 1), padding=1), "Only zero batch or zero channel inputs"),
        (lambda: conv((1, 1, 0, 0), (1, 1, 3, 3), padding=2), "Only zero batch or zero channel inputs"),
        (lambda: conv((1, 1, 0, 0), (1, 1, 1, 1)), "Kernel size can't be greater than actual input"),
    ],
)
def test_convolutions_of_nothing(call, match):
    with pytest.raises(RuntimeError, match=match):
        call()


def test_convolutions_of_no_channels():
    assert conv((0, 1, 3, 3), (1, 1, 2, 2)).shape == (0, 1, 2, 2)
    assert conv((1, 0, 3, 3), (2, 0, 2, 2)).shape == (1, 0, 2, 2)
    assert conv((1, 0, 3, 3), (2, 0, 2, 2), groups=2).shape == (1, 0, 2, 2)
    input, weight, bias = (ptr.ones(s, requires_grad=True) for s in ((1, 0, 3, 3), (2, 0, 2, 2), (2,)))
    ptr.nn.functional.conv2d(input, weight, bias).sum().backward()
    assert (input.grad.shape, weight.grad.shape, bias.grad.tolist()) == ((1, 0, 3, 3), (2, 0, 2, 2), [0.0, 0.0])


def test_convolutions_of_integers_with_gaps():
    assert conv((1, 2, 3, 3), (1, 2, 2, 2), ptr.int64, dilation=2).tolist() == [[[[8]]]]
    for dtype, name in ((ptr.int32, "Int"), (ptr.int8, "Char")):
        with pytest.raises(NotImplementedError, match=f"not implemented for '{name}'"):
            conv((1, 2, 3, 3), (1, 2, 2, 2), dtype, dilation=2)


def test_l1_loss():
    input, target = ptr.tensor([1.0, -2.0], requires_grad=True), ptr.tensor([2.0, 1.0])
    loss = ptr.nn.functional.l1_loss(input, target)
    loss.backward()
    assert loss.item() == 2.0 and input.grad.tolist() == [-0.5, -0.5]
    assert ptr.nn.functional.l1_loss(input, target, reduction="none").tolist() == [1.0, 3.0]
    assert ptr.nn.functional.l1_loss(input, target, reduction="sum").item() == 4.0
    with pytest.raises(ValueError, match="abc is not a valid value for reduction"):
        ptr.nn.functional.l1_loss(input, target, reduction="abc")
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        ptr.ops.aten.l1_loss.default(ptr.ones(5, 4), ptr.ones(5))


def test_counts_of_frombuffer():
    for count in (2**70, 0, 5):
        with pytest.raises(ValueError):
            ptr.frombuffer(bytearray(8), dtype=ptr.int32, count=count)
