"""Gradients through views whose base, or that themselves, are modified in place."""

import copy

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


def stale_view(asked=False):
    """A view whose base has got a history since.

    In PyTorch some answers depend on whether anyone has asked the view for its own history since; here they are those
    it gives to who has.
    """
    base, w = ptr.zeros(2), ptr.tensor([2.0, 3.0], requires_grad=True)
    view = base[:1]
    base.mul_(w).add_(w)
    assert not asked or view.grad_fn is not None
    return view, w


asked_or_not = pytest.mark.parametrize("asked", [True, False])


@asked_or_not
def test_a_view_of_a_base_that_got_a_history_is_no_leaf(asked):
    view, _ = stale_view(asked)
    assert not view.is_leaf and view.requires_grad
    assert view.detach().is_leaf

    with pytest.raises(RuntimeError, match="support the deepcopy protocol"):
        copy.deepcopy(stale_view()[0])
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        stale_view()[0].register_post_accumulate_grad_hook(lambda t: None)
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        stale_view(asked)[0].requires_grad_(False)


@asked_or_not
def test_a_view_of_a_base_that_got_a_history_is_modified_in_place(asked):
    view, w = stale_view(asked)
    view.mul_(w[1:])
    assert view.tolist() == [6]
    view.sum().backward()
    assert w.grad.tolist() == [3, 2]


@asked_or_not
def test_a_view_of_a_base_that_got_a_history_retains_its_gradient(asked):
    view, w = stale_view(asked)
    view.retain_grad()
    (view * view).sum().backward()
    assert view.retains_grad and view.grad.tolist() == [4]
    assert w.grad.tolist() == [4, 0]


def test_a_view_of_a_base_that_got_a_history_is_saved_with_it():
    class Square(ptr.autograd.Function):
        @staticmethod
        def forward(ctx, x, view):
            ctx.save_for_backward(view)
            return x * view

        @staticmethod
        def backward(ctx, grad):
            (view,) = ctx.saved_tensors
            assert not view.is_leaf
            return grad * view, None

    view, w = stale_view()
    with ptr.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = Square.apply(w[:1], view)
    (grad,) = ptr.autograd.grad(y.sum(), w, create_graph=True)
    grad.sum().backward()
    # d(w * view)/dw = view = w here, and that once more.
    assert w.grad.tolist() == [1, 0]


def test_a_view_made_without_recording_has_no_history_to_ask_for():
    base, w = ptr.zeros(2), ptr.ones(2, requires_grad=True)
    with ptr.no_grad():
        view = base[:1]
    base.mul_(w)
    with pytest.raises(
        RuntimeError, match="A view was created in no_grad mode and its base or another view of its base"
    ):
        _ = view.is_leaf
    # What does not need the history goes on.
    view.retain_grad()
    assert view.grad is None and view.requires_grad_(False) is view


def test_one_of_several_views_without_history_says_so():
    part, _ = ptr.ones(4).split(2)
    with pytest.raises(
        RuntimeError, match=r"with grad mode enabled\. This view is the output of a function that returns"
    ):
        part.add_(ptr.ones(2, requires_grad=True))
