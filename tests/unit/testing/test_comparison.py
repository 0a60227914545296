"""assert_close and make_tensor."""

import math

import ptr as torch
import pytest
from ptr.testing import assert_close, make_tensor

nan = float("nan")


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (1, 1),
        (1.0, 1.0 + 1e-9),
        (None, None),
        (True, True),
        (torch.ones(2), torch.ones(2) + 1e-6),
        ([torch.ones(1), {"a": 1}], [torch.ones(1), {"a": 1}]),
        (torch.tensor([1, 2]), torch.tensor([1, 2])),
    ],
)
def test_close(actual, expected):
    assert_close(actual, expected)


@pytest.mark.parametrize(
    ("actual", "expected", "error", "match"),
    [
        (1, 2, AssertionError, "Scalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1"),
        (1, 1.0, AssertionError, r"The \(d\)types do not match"),
        (True, False, AssertionError, "Booleans mismatch"),
        (None, 1, AssertionError, "None mismatch"),
        (nan, nan, AssertionError, "Scalars are not close"),
        ([1, 2], [1], AssertionError, "length of the sequences mismatch: 2 != 1"),
        ({"a": 1}, {"b": 1}, AssertionError, "keys of the mappings do not match"),
        ([1, {"a": 1}], [1, {"a": 2}], AssertionError, r"The failure occurred for item \[1\]\['a'\]"),
        ("a", "a", TypeError, "No comparison pair was able to handle"),
        (torch.ones(2), torch.ones(3), AssertionError, "The values for attribute 'shape' do not match"),
        (torch.ones(2), torch.ones(2, dtype=torch.float64), AssertionError, "attribute 'dtype'"),
        (torch.ones(()), torch.zeros(()), AssertionError, "Tensor-likes are not close!\n\nExpected 0.0 but got 1.0"),
    ],
)
def test_mismatches(actual, expected, error, match):
    with pytest.raises(error, match=match):
        assert_close(actual, expected)


def test_message_of_tensors():
    with pytest.raises(AssertionError) as info:
        assert_close(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1.0, 2.0], [3.0, 5.0]]))
    assert str(info.value) == (
        "Tensor-likes are not close!\n\nMismatched elements: 1 / 4 (25.0%)\n"
        "Greatest absolute difference: 1.0 at index (1, 1) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 0.20000000298023224 at index (1, 1) (up to 1.3e-06 allowed)"
    )


def test_options():
    assert_close(nan, nan, equal_nan=True)
    assert_close(torch.ones(1), torch.ones(1, dtype=torch.float64), check_dtype=False)
    assert_close(1.0, 2.0, rtol=1, atol=0)
    with pytest.raises(ValueError, match="must be either specified or omitted, but got no atol"):
        assert_close(1, 1, rtol=1)
    with pytest.raises(AssertionError, match="stride"):
        assert_close(torch.ones(2, 3), torch.ones(3, 2).t(), check_stride=True)
    with pytest.raises(AssertionError, match=r"^mine$"):
        assert_close(1, 2, msg="mine")
    with pytest.raises(AssertionError, match=r"^mine: Scalars"):
        assert_close(1, 2, msg=lambda text: f"mine: {text}")


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float32, torch.float64, torch.complex64])
def test_make_tensor(dtype):
    t = make_tensor(3, 4, dtype=dtype)
    assert t.shape == (3, 4) and t.dtype == dtype
    assert not make_tensor((3, 4), dtype=dtype, noncontiguous=True).is_contiguous()
    if not dtype.is_complex:
        assert all(v != 0 for v in make_tensor((50,), dtype=dtype, low=0, high=2, exclude_zero=True).tolist())
        assert all(0 <= v < 2 for v in make_tensor((50,), dtype=dtype, low=0, high=2).tolist())


@pytest.mark.parametrize(
    ("kwargs", "match"),
    [
        ({"dtype": torch.int64, "requires_grad": True}, "not supported for boolean and integral"),
        ({"dtype": torch.float32, "low": 2, "high": 1}, "must be less than"),
        ({"dtype": torch.float32, "low": math.nan}, "cannot be NaN"),
        ({"dtype": torch.uint8, "low": 300, "high": 400}, "only supports"),
        (
            {"dtype": torch.float32, "noncontiguous": True, "memory_format": torch.contiguous_format},
            "mutually exclusive",
        ),
    ],
)
def test_make_tensor_misuse(kwargs, match):
    with pytest.raises(ValueError, match=match):
        make_tensor(2, **kwargs)
