"""nn.utils: clipping, vectors of parameters, calls with other parameters."""

import math

import ptr as torch
import pytest
from ptr import nn
from ptr.nn import utils
from ptr.testing import assert_close as close

functional_call = utils.stateless._functional_call


def params_with_grads(*grads):
    params = []
    for grad in grads:
        p = nn.Parameter(torch.zeros(len(grad)))
        p.grad = torch.tensor(grad)
        params.append(p)
    return params


def test_clip_grad_norm():
    params = params_with_grads([3.0], [4.0, 0.0])
    total = utils.clip_grad_norm_(params, 1.0)
    close(total, torch.tensor(5.0))
    close(params[0].grad, torch.tensor([0.6]))
    close(params[1].grad, torch.tensor([0.8, 0.0]))
    close(utils.clip_grad_norm_(params, 10.0), torch.tensor(1.0))
    close(params[0].grad, torch.tensor([0.6]))
    close(utils.get_total_norm([p.grad for p in params], float("inf")), torch.tensor(0.8))
    assert utils.clip_grad_norm_([], 1.0).item() == 0.0


def test_forms_of_clipping_agree():
    for kind in (2.0, 1.0, math.inf):
        results = []
        for foreach in (None, False, True):
            torch.manual_seed(0)
            params = [torch.zeros(n, dtype=dtype) for n in (3, 5) for dtype in (torch.float32, torch.float64)]
            for p in params:
                p.grad = torch.randn(p.shape, dtype=p.dtype)
            total = utils.clip_grad_norm_(params, 0.5, kind, foreach=foreach)
            assert total.shape == () and total.dtype is torch.float64
            # The factor is 0.5 / (total + 1e-6).
            clipped = utils.get_total_norm([p.grad for p in params], kind).item()
            assert clipped == pytest.approx(0.5 * total.item() / (total.item() + 1e-6), rel=1e-6)
            utils.clip_grad_value_(params, 0.1, foreach=foreach)
            results.append([total.item(), *[p.grad.tolist() for p in params]])
        assert results[0] == results[1] == results[2]


def test_clip_grad_norm_nonfinite():
    params = params_with_grads([float("nan")])
    with pytest.raises(RuntimeError, match="non-finite"):
        utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)


def test_clip_grad_value():
    params = params_with_grads([3.0, -0.5], [-4.0])
    utils.clip_grad_value_(iter(params), 1.0)
    assert [p.grad.tolist() for p in params] == [[1.0, -0.5], [-1.0]]


def test_vectors():
    m = nn.Linear(2, 1)
    vec = torch.tensor([1.0, 2.0, 3.0])
    utils.vector_to_parameters(vec, m.parameters())
    assert m.weight.tolist() == [[1.0, 2.0]] and m.bias.tolist() == [3.0]
    assert utils.parameters_to_vector(m.parameters()).tolist() == vec.tolist()
    with pytest.raises(TypeError, match=r"expected torch.Tensor"):
        utils.vector_to_parameters([1.0], m.parameters())


def test_functional_call():
    m = nn.Linear(2, 2)
    before = m(torch.ones(1, 2)).tolist()
    given = {"weight": torch.zeros(2, 2), "bias": torch.ones(2)}
    assert functional_call(m, given, torch.ones(1, 2), strict=True).tolist() == [[1.0, 1.0]]
    assert m(torch.ones(1, 2)).tolist() == before and isinstance(m.weight, nn.Parameter)
    for wrong, match in (({"weight": torch.zeros(2, 2)}, "Missing"), ({**given, "x": torch.ones(1)}, "Unexpected")):
        with pytest.raises(RuntimeError, match=match):
            functional_call(m, wrong, torch.ones(1, 2), strict=True)
    with pytest.warns(FutureWarning, match="torch.func.functional_call"):
        utils.stateless.functional_call(m, given, torch.ones(1, 2))


def test_functional_call_gradients_reach_the_given_tensors():
    m = nn.Linear(2, 1, bias=False)
    weight = torch.ones(1, 2, requires_grad=True)
    functional_call(m, {"weight": weight}, torch.tensor([[2.0, 3.0]])).sum().backward()
    assert weight.grad.tolist() == [[2.0, 3.0]] and m.weight.grad is None


def test_functional_call_tied_weights():
    shared = nn.Linear(1, 1, bias=False)
    m = nn.Sequential(shared, shared)
    given = {"0.weight": torch.full((1, 1), 3.0)}
    assert functional_call(m, given, torch.ones(1, 1)).tolist() == [[9.0]]
    with pytest.raises(ValueError, match="multiple values for keys"):
        functional_call(m, {**given, "1.weight": torch.ones(1, 1)}, torch.ones(1, 1))


def test_functional_call_returns_new_buffers_and_restores_after_errors():
    class Count(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.zeros(1))

        def forward(self, fail):
            self.n = self.n + 1
            if fail:
                raise ValueError("failed")

    m, given = Count(), {"n": torch.ones(1)}
    functional_call(m, given, (False,))
    assert given["n"].tolist() == [2.0] and m.n.tolist() == [0.0]
    with pytest.raises(ValueError, match="failed"):
        functional_call(m, given, (True,))
    assert m.n.tolist() == [0.0]
