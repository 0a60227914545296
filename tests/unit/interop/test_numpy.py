"""Arithmetic between tensors and NumPy's arrays."""

import numpy as np
import ptr as torch
import pytest


def test_equality_is_elementwise_from_both_sides():
    a, n = torch.tensor([1.0, 2.0]), np.array([1.0, 3.0])
    for result in (a == n, n == a):
        assert result.dtype is torch.bool and result.tolist() == [True, False]
    assert (torch.tensor([1, 2]) == np.array([3, 2])).tolist() == [False, True]
    assert (np.array(3.0) == torch.tensor([3.0, 1.0])).tolist() == [True, False]
    with pytest.raises(RuntimeError, match="must match the size"):
        assert a == np.ones(3)
    # No tensor has the dtype.
    assert (a == np.array(["x", "y"])) is False


def test_the_other_comparisons_take_no_arrays():
    a, n = torch.ones(2), np.ones(2)
    assert (a != n) is True
    for compare in (lambda: a < n, lambda: n < a, lambda: a >= n, lambda: n >= a):
        with pytest.raises(TypeError, match="not supported between"):
            compare()


def test_division_of_an_array_is_numpys_product():
    result = np.array([3.0, 4.0]) / torch.tensor([1, 2])
    assert result.dtype is torch.float64 and result.tolist() == [3.0, 2.0]
    assert (np.array(3.0) / torch.tensor([1.0, 2.0])).tolist() == [3.0, 1.5]
    assert (np.float64(2.0) / torch.ones(2)).dtype is torch.float32
    with pytest.raises(RuntimeError, match="requires grad"):
        np.ones(2) / torch.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="unsupported operand"):
        [1, 1] / torch.ones(2)


def test_an_array_on_the_right_is_an_operand():
    a, n = torch.ones(2), np.array([1.0, 2.0])
    assert (a + n).tolist() == [2.0, 3.0] and (a + n).dtype is torch.float64
    assert (a / n).tolist() == [1.0, 0.5]
