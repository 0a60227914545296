"""Operators that change in place what a tensor shows of its memory: `t_`, `transpose_`, `squeeze_`, `as_strided_` …"""

import ptr as torch
import pytest


@pytest.mark.parametrize(
    ("change", "shape", "result"),
    [
        (lambda x: x.t_(), (2, 3), (3, 2)),
        (lambda x: x.transpose_(0, -1), (2, 3, 4), (4, 3, 2)),
        (lambda x: x.swapaxes_(0, 1), (2, 3), (3, 2)),
        (lambda x: x.swapdims_(0, 1), (2, 3), (3, 2)),
        (lambda x: x.squeeze_(), (1, 2, 1), (2,)),
        (lambda x: x.squeeze_(0), (1, 2, 1), (2, 1)),
        (lambda x: x.squeeze_((0, 2)), (1, 2, 1), (2,)),
        (lambda x: x.unsqueeze_(-1), (2,), (2, 1)),
        (lambda x: x.as_strided_((2,), (2,)), (4,), (2,)),
    ],
)
def test_the_tensor_itself_changes(change, shape, result):
    x = torch.arange(float(torch.Size(shape).numel())).view(shape)
    pointer, version = x.data_ptr(), x._version
    assert change(x) is x
    assert x.shape == result
    assert x.data_ptr() == pointer
    assert x._version == version + 1


def test_gradients_pass_through_the_changed_tensor():
    x = torch.arange(6.0).requires_grad_()
    y = (x * 2).view(2, 3)
    y.t_()
    (gradient,) = torch.autograd.grad(y, x, torch.arange(6.0).view(3, 2))
    assert gradient.tolist() == [0, 4, 8, 2, 6, 10]


def test_the_base_of_a_changed_view_keeps_its_history():
    x = torch.arange(6.0).requires_grad_()
    y = x * 2
    view = y[0:4].view(2, 2)
    view.t_()
    assert y.grad_fn.name() == "MulBackward0"
    (gradient,) = torch.autograd.grad(y, x, torch.arange(6.0), retain_graph=True)
    assert gradient.tolist() == [0, 2, 4, 6, 8, 10]
    (gradient,) = torch.autograd.grad(view, x, torch.arange(4.0).view(2, 2))
    assert gradient.tolist() == [0, 4, 2, 6, 0, 0]


def test_lazy_conjugation_stays():
    x = torch.view_as_complex(torch.ones(2, 3, 2)).conj()
    x.t_()
    assert x.is_conj()
    assert x.shape == (3, 2)
    assert x[0, 0].item() == 1 - 1j


def test_refusals():
    leaf = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        leaf.unsqueeze_(0)
    first, _ = (torch.ones(4, requires_grad=True) * 2).split(2)
    with pytest.raises(RuntimeError, match="Output 0 of SplitBackward0 is a view and is being modified inplace"):
        first.unsqueeze_(0)
    with torch.inference_mode():
        inference = torch.ones(2, 3)
        inference.t_()
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        inference.t_()
    x = torch.arange(6.0)
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        x.as_strided_((2,), (30,))
    with pytest.raises(RuntimeError, match=r"t\(\) expects a tensor with <= 2 dimensions"):
        torch.ones(1, 2, 3).t_()
    assert x.shape == (6,)
