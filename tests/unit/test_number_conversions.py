"""Python numbers on their way into tensors: what a dtype holds, and the exception class for what it does not."""

import array

import ptr as torch
import pytest


@pytest.mark.parametrize(
    ("value", "dtype", "error"),
    [
        (-1, torch.uint64, OverflowError),
        (2**64, torch.uint64, OverflowError),
        (1.5, torch.uint64, TypeError),
        (float("nan"), torch.uint64, TypeError),
        (2**63, torch.int64, ValueError),
        (2**64, torch.int32, ValueError),
        (256, torch.uint8, RuntimeError),
        (1j, torch.float32, TypeError),
        (None, torch.bool, TypeError),
        (10**400, torch.float32, OverflowError),
        ("a", torch.float32, TypeError),
    ],
)
def test_tensor_refuses(value, dtype, error):
    for make in (torch.tensor, torch.as_tensor, torch.zeros(1).new_tensor):
        with pytest.raises(error):
            make(value, dtype=dtype)
    with pytest.raises(ValueError if value == "a" else error):
        torch.tensor([value], dtype=dtype)


@pytest.mark.parametrize(
    ("value", "dtype", "result"),
    [
        (2**64 - 1, torch.uint64, 2**64 - 1),
        (True, torch.uint64, 1),
        (-1, torch.uint8, 255),
        (2**31, torch.float16, float("inf")),
        (-(2**70), torch.bfloat16, -(2.0**70)),
        (10**30, torch.float32, 1.0000000150474662e30),
        (10**30, torch.float64, 1e30),
        (2**70, torch.complex64, complex(2**70)),
    ],
)
def test_tensor_takes(value, dtype, result):
    assert torch.tensor(value, dtype=dtype).item() == result
    assert torch.tensor([value], dtype=dtype).item() == result


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
def test_scalar_arguments_beyond_64_bits_overflow(value):
    x = torch.zeros(1)
    for call in (
        lambda: torch.full((1,), value),
        lambda: x.fill_(value),
        lambda: x + value,
        lambda: x == value,
        lambda: x.clamp(min=value),
        lambda: torch.arange(value),
        lambda: x.masked_fill(x > 0, value),
    ):
        with pytest.raises(OverflowError):
            call()


def test_numbers_between_int64_and_uint64_take_part_in_arithmetic():
    assert (torch.ones(1) + 2**63).item() == 2.0**63
    assert (torch.ones(1, dtype=torch.int64) + 2**63).item() == -(2**63) + 1
    assert (torch.ones(1, dtype=torch.uint8) + 2**63).item() == 1
    assert (torch.tensor([1.0]) // 2**63).item() == 0
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        torch.zeros(1)[0] = 2**63


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_unsigned_dtypes_compare_and_combine_bits(dtype):
    x = torch.tensor([1, 2, 3], dtype=dtype)
    assert (x == 2).tolist() == [False, True, False]
    assert (x != x).tolist() == [False] * 3
    assert (x & 1).tolist() == [1, 0, 1]
    assert (x | 4).tolist() == [5, 6, 7]
    assert (x ^ x).tolist() == [0, 0, 0]


def test_complex_half_negation_and_absolute_value():
    x = torch.tensor([3 + 4j, -1j], dtype=torch.complex32)
    assert (-x).dtype == torch.complex32
    assert (-x).to(torch.complex64).tolist() == [-3 - 4j, 1j]
    assert x.abs().dtype == torch.float16
    assert x.abs().tolist() == [5, 1]


def test_none_stands_for_all_dimensions_where_the_default_does():
    x = torch.tensor([[1.0, 5.0], [0.5, 2.0]])
    assert x.amin(dim=None).item() == 0.5
    assert torch.amax(x, None).item() == 5
    with pytest.raises(TypeError):
        x.logsumexp(dim=None)


def test_buffers():
    assert torch.tensor(array.array("d", [1.0, 2.0])).tolist() == [1, 2]


def test_outer_refuses_to_overwrite_what_it_reads():
    x = torch.ones(3, 3)
    with pytest.raises(RuntimeError, match="unsupported operation"):
        torch.outer(x[0], x[1], out=x)


@pytest.mark.parametrize("name", ["eq", "lt", "logical_xor", "logical_and"])
def test_an_output_with_overlapping_elements_is_refused_before_it_is_resized(name):
    x = torch.ones(2, 3)
    for sizes in ((2, 3), (4, 5), (7, 2, 3)):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            getattr(torch, name)(x, x, out=torch.ones(1).expand(*sizes))
