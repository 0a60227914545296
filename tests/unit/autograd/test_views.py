"""Gradients through views whose base, or that themselves, are modified in place."""

import ptr
import pytest


def test_a_view_that_changes_a_lazy_bit_is_made_anew_by_its_operator():
    x = ptr.ones(2, requires_grad=True)
    y = x * 1
    view = ptr._neg_view(y)
    y.mul_(ptr.tensor([2.0, 3.0]))
    view.sum().backward()
    assert x.grad.tolist() == [-2, -3]


def test_a_view_that_changes_the_dtype_is_made_anew_by_its_operator():
    x = ptr.arange(8.0).to(ptr.complex64).requires_grad_()
    y = x * 1
    view = y[:2].real
    y.mul_(2 + 1j)
    view.sum().backward()
    assert x.grad.tolist() == [2 - 1j, 2 - 1j, 0, 0, 0, 0, 0, 0]


def test_a_view_that_changes_the_dtype_is_modified_in_place():
    x = ptr.ones(2, dtype=ptr.complex64, requires_grad=True)
    y = x * 1
    y.imag.mul_(3)
    y.abs().sum().backward()
    assert x.grad.tolist() == [1, 1]


@pytest.mark.parametrize("dtype", [ptr.int32, ptr.float64, ptr.uint8])
def test_gradients_do_not_pass_a_view_of_another_dtype(dtype):
    x = ptr.ones(4, requires_grad=True)
    view = (x * 1).view(dtype)
    assert not view._is_view()
    assert not view.requires_grad
