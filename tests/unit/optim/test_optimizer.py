"""The base class of optimizers: groups, hooks, state dicts, gradients, printing."""

import copy

import ptr as torch
import pytest
from ptr import nn
from ptr.optim import SGD, Optimizer
from ptr.optim import optimizer as module


def param(*values):
    return nn.Parameter(torch.tensor(values))


@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        (lambda: torch.ones(1), TypeError, "should be an iterable of Tensors or dicts"),
        (lambda: [], ValueError, "empty parameter list"),
        (lambda: [3], TypeError, "can only optimize Tensors"),
        (lambda: [param(1.0) * 2], ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: [{"params": {param(1.0)}}], TypeError, "ordered collections"),
        (lambda: [("a", param(1.0)), param(2.0)], ValueError, "Some param names are missing"),
        (lambda: [{"params": [("a", param(1.0))]}, {"params": [param(2.0)]}], ValueError, "with/without names"),
    ],
)
def test_refused_parameters(params, error, match):
    with pytest.raises(error, match=match):
        SGD(params())


def test_groups():
    a, b = param(1.0), param(2.0)
    opt = SGD([{"params": a, "lr": 0.5}, {"params": [b]}], lr=0.1)
    assert [g["lr"] for g in opt.param_groups] == [0.5, 0.1]
    with pytest.raises(ValueError, match="more than one parameter group"):
        opt.add_param_group({"params": a})
    with pytest.raises(TypeError, match="param_group must be a dict"):
        opt.add_param_group([a])
    with pytest.warns(UserWarning, match="duplicate parameters"):
        c = param(3.0)
        opt.add_param_group({"params": [c, c]})
    named = SGD([("x", param(1.0))], lr=0.1)
    assert named.param_groups[0]["param_names"] == ["x"]


def test_required_options():
    class Needs(Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": module.required})

    with pytest.raises(ValueError, match="required optimization parameter lr"):
        Needs([param(1.0)])
    assert repr(module.required) == "<required parameter>"
    with pytest.raises(NotImplementedError):
        Needs([{"params": param(1.0), "lr": 1}]).step()


def test_repr():
    assert repr(SGD([param(1.0)], lr=0.1)) == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n    fused: None\n"
        "    lr: 0.1\n    maximize: False\n    momentum: 0\n    nesterov: False\n    weight_decay: 0\n)"
    )


def test_step_hooks():
    p, log = param(1.0), []
    p.grad = torch.tensor([1.0])
    opt = SGD([p], lr=0.1)
    handles = [
        module.register_optimizer_step_pre_hook(lambda o, args, kwargs: log.append("global pre")),
        opt.register_step_pre_hook(lambda o, args, kwargs: log.append(o is opt)),
        opt.register_step_post_hook(lambda o, args, kwargs: log.append(round(p.item(), 4))),
        module.register_optimizer_step_post_hook(lambda o, args, kwargs: log.append("global post")),
    ]
    opt.step()
    for handle in handles:
        handle.remove()
    opt.step()
    assert log == ["global pre", True, 0.9, "global post"]
    opt.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        opt.step()


def test_state_dict_round_trip():
    a, b = param(1.0), nn.Parameter(torch.tensor([2.0], dtype=torch.float64))
    opt = SGD([{"params": [a]}, {"params": [b], "lr": 0.5}], lr=0.1, momentum=0.9)
    a.grad, b.grad = torch.tensor([1.0]), torch.tensor([1.0], dtype=torch.float64)
    opt.step()
    saved = copy.deepcopy(opt.state_dict())
    assert [g["params"] for g in saved["param_groups"]] == [[0], [1]] and set(saved["state"]) == {0, 1}
    assert saved["state"][0]["momentum_buffer"].tolist() == [1.0]

    c, d = nn.Parameter(torch.zeros(1, dtype=torch.float64)), param(0.0)
    other = SGD([{"params": [c]}, {"params": [d]}], lr=1.0)
    other.load_state_dict(saved)
    assert [g["lr"] for g in other.param_groups] == [0.1, 0.5] and other.param_groups[0]["params"][0] is c
    assert (
        other.state[c]["momentum_buffer"].dtype == torch.float64
        and other.state[d]["momentum_buffer"].dtype == torch.float32
    )
    for wrong, match in ((SGD([param(1.0)]), "different number of parameter groups"),):
        with pytest.raises(ValueError, match=match):
            wrong.load_state_dict(saved)
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        SGD([{"params": [param(1.0)]}, {"params": [param(1.0), param(2.0)]}]).load_state_dict(saved)


def test_state_dict_hooks():
    opt, log = SGD([param(1.0)], lr=0.1), []
    opt.register_state_dict_pre_hook(lambda o: log.append("pre"))
    opt.register_state_dict_post_hook(lambda o, sd: {**sd, "extra": 1})
    opt.register_load_state_dict_pre_hook(lambda o, sd: log.append(sd.pop("extra")))
    opt.register_load_state_dict_post_hook(lambda o: log.append("post"))
    opt.register_load_state_dict_post_hook(lambda o: log.append("first"), prepend=True)
    opt.load_state_dict(opt.state_dict())
    assert log == ["pre", 1, "first", "post"]


@pytest.mark.parametrize("foreach", [None, True])
def test_zero_grad(foreach):
    p, q = param(1.0), param(2.0)
    opt = SGD([p, q], foreach=foreach)
    p.grad = torch.ones(1)
    opt.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0] and q.grad is None
    opt.zero_grad()
    assert p.grad is None


def test_copies_keep_working():
    p = param(1.0)
    opt = copy.deepcopy(SGD([p], lr=0.5))
    (twin,) = opt.param_groups[0]["params"]
    twin.grad = torch.ones(1)
    opt.step()
    assert twin.tolist() == [0.5] and p.tolist() == [1.0]


def test_groups_are_shown_apart():
    p, q = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    text = repr(SGD([{"params": [p]}, {"params": [q], "lr": 0.5}], lr=0.1))
    assert "    weight_decay: 0\n\nParameter Group 1\n" in text
    assert text.startswith("SGD (\nParameter Group 0\n") and text.endswith("    weight_decay: 0\n)")
