"""SGD: all forms give the same steps, and the steps follow the formula."""

import itertools

import ptr as torch
import pytest
from ptr import nn
from ptr.optim import SGD

SHAPES = [(3, 4), (5,), (), (2, 3, 2, 33)]
OPTIONS = [
    dict(momentum=m, weight_decay=w, nesterov=n, maximize=x, dampening=d)
    for m, w, n, x, d in itertools.product((0, 0.9), (0, 0.01), (False, True), (False, True), (0, 0.1))
    if not (n and (m == 0 or d))
]


def run(options, steps=4, dtype=torch.float32, **form):
    torch.manual_seed(0)
    params = [nn.Parameter(torch.randn(shape).to(dtype)) for shape in SHAPES]
    opt = SGD(params, lr=0.1, **options, **form)
    for _ in range(steps):
        for p in params:
            p.grad = torch.randn(p.shape).to(dtype)
        opt.step()
    return [p.detach().tolist() for p in params], sorted(opt.state_dict()["state"])


def reference(p, g, buf, *, momentum, weight_decay, nesterov, maximize, dampening, lr=0.1):
    g = -g if maximize else g
    g = g + weight_decay * p
    if momentum:
        buf = g if buf is None else momentum * buf + (1 - dampening) * g
        g = g + momentum * buf if nesterov else buf
    return p - lr * g, buf


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("form", [{}, {"foreach": False}, {"foreach": True}, {"fused": True}], ids=str)
def test_steps_follow_the_formula(options, form):
    p = nn.Parameter(torch.tensor([1.5], dtype=torch.float64))
    opt = SGD([p], lr=0.1, **options, **form)
    value, buf = 1.5, None
    for g in (0.3, -1.25, 2.0, 0.7):
        p.grad = torch.tensor([g], dtype=torch.float64)
        opt.step()
        value, buf = reference(value, g, buf, **options)
        assert p.item() == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_all_forms_give_the_same_bits(options, dtype):
    values, state = run(options, dtype=dtype, foreach=False)
    for form in ({}, {"foreach": True}, {"fused": True}):
        assert run(options, dtype=dtype, **form) == (values, state)


def test_mixed_dtypes_and_absent_gradients():
    p, q, r = (nn.Parameter(torch.ones(2, dtype=d)) for d in (torch.float32, torch.float64, torch.float32))
    opt = SGD([p, q, r], lr=0.5, momentum=0.9)
    p.grad, q.grad = torch.ones(2), torch.ones(2, dtype=torch.float64)
    opt.step()
    assert p.tolist() == q.tolist() == [0.5, 0.5] and r.tolist() == [1.0, 1.0]
    r.grad = torch.ones(2)  # joins later: some buffers exist, one does not
    opt.step()
    assert r.tolist() == [0.5, 0.5] and p.tolist() == pytest.approx([-0.45, -0.45])


def test_closure_and_grad_mode():
    p = nn.Parameter(torch.tensor([2.0]))
    opt = SGD([p], lr=0.25)

    def closure():
        opt.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert opt.step(closure).item() == 4.0
        assert not torch.is_grad_enabled()
    assert p.tolist() == [1.0] and torch.is_grad_enabled()


def test_tensor_learning_rate():
    p = nn.Parameter(torch.tensor([2.0]))
    p.grad = torch.ones(1)
    for lr in (torch.tensor(0.5), torch.tensor([0.5])):
        SGD([p], lr=lr, foreach=False).step()
    assert p.tolist() == [1.0]


def test_differentiable_steps_stay_in_the_graph():
    start = torch.tensor([2.0], requires_grad=True)
    p = start.clone()
    p.retain_grad()
    opt = SGD([p], lr=0.5, differentiable=True)
    p.grad = (start * 3).clone()
    opt.step()
    p.sum().backward()
    assert start.grad.tolist() == [1 - 0.5 * 3]


@pytest.mark.parametrize(
    ("kwargs", "error", "match"),
    [
        ({"lr": -1}, ValueError, "Invalid learning rate"),
        ({"lr": torch.ones(2)}, ValueError, "Tensor lr must be 1-element"),
        ({"momentum": -1}, ValueError, "Invalid momentum value"),
        ({"weight_decay": -1}, ValueError, "Invalid weight_decay value"),
        ({"nesterov": True}, ValueError, "Nesterov momentum requires"),
        ({"fused": True, "foreach": True}, RuntimeError, "cannot be `True` together"),
        ({"fused": True, "differentiable": True}, RuntimeError, "does not support `differentiable`"),
    ],
)
def test_misuse(kwargs, error, match):
    with pytest.raises(error, match=match):
        SGD([nn.Parameter(torch.ones(1))], **kwargs)


def test_without_momentum_there_is_no_state():
    param = torch.nn.Parameter(torch.ones(2))
    param.grad = torch.ones(2)
    optimizer = torch.optim.SGD([param], lr=0.1)
    optimizer.step()
    assert optimizer.state_dict()["state"] == {} and not optimizer.state
