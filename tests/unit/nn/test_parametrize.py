"""Parametrized tensors: registering, using, assigning, copying, removing; weight and spectral normalization."""

from __future__ import annotations

import copy
import pickle

import ptr as torch
import pytest
from ptr import nn
from ptr.nn.utils import parametrize
from ptr.nn.utils.parametrizations import spectral_norm, weight_norm


class Symmetric(nn.Module):
    calls = 0

    def forward(self, x):
        Symmetric.calls += 1
        return x.triu() + x.triu(1).T

    def right_inverse(self, a):
        return a.triu()


class Double(nn.Module):
    def forward(self, x):
        return 2 * x


class Sum(nn.Module):
    def forward(self, a, b):
        return a + b

    def right_inverse(self, x):
        return x / 4, x * 0.75


class Returns(nn.Module):
    def __init__(self, value, inverse=None):
        super().__init__()
        self.value = value
        if inverse is not None:
            self.right_inverse = lambda _: inverse

    def forward(self, *_):
        return self.value


def test_a_parameter_is_computed():
    layer = nn.Linear(3, 3)
    weight = layer.weight
    assert parametrize.register_parametrization(layer, "weight", Symmetric()) is layer
    assert torch.equal(layer.weight, layer.weight.T) and not isinstance(layer.weight, nn.Parameter)
    assert layer.parametrizations.weight.original is weight
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert type(layer).__name__ == "ParametrizedLinear" and isinstance(layer, nn.Linear)
    assert parametrize.is_parametrized(layer) and parametrize.is_parametrized(layer, "weight")
    assert not parametrize.is_parametrized(layer, "bias")
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    layer(torch.ones(1, 3)).sum().backward()
    assert weight.grad is not None
    layer.weight = torch.arange(9.0).reshape(3, 3)
    assert layer.weight.tolist() == [[0, 1, 2], [1, 4, 5], [2, 5, 8]]
    assert weight is layer.parametrizations.weight.original


def test_chains_and_removal():
    layer = nn.Linear(2, 2, bias=False)
    layer.weight.data = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    weight = layer.weight
    parametrize.register_parametrization(layer, "weight", Symmetric())
    parametrize.register_parametrization(layer, "weight", Double())
    assert layer.weight.tolist() == [[2, 4], [4, 8]]
    with pytest.raises(RuntimeError, match="parametrization Double does not implement right_inverse."):
        layer.weight = torch.zeros(2, 2)
    other = copy.deepcopy(layer)
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    assert layer.weight is weight and layer.weight.tolist() == [[1, 2], [0, 4]]
    assert type(layer) is nn.Linear and not hasattr(layer, "parametrizations")
    parametrize.remove_parametrizations(other, "weight")
    assert other.weight.tolist() == [[2, 4], [4, 8]] and isinstance(other.weight, nn.Parameter)
    with pytest.raises(ValueError, match="does not have a parametrization on weight"):
        parametrize.remove_parametrizations(layer, "weight")


def test_several_originals():
    layer = nn.Linear(2, 2)
    value = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Sum())
    assert {name for name, _ in layer.named_parameters()} == {
        "bias",
        "parametrizations.weight.original0",
        "parametrizations.weight.original1",
    }
    torch.testing.assert_close(layer.weight, value)
    layer.weight = torch.ones(2, 2)
    assert layer.parametrizations.weight.original0.tolist() == [[0.25, 0.25], [0.25, 0.25]]
    with pytest.raises(ValueError, match="Cannot leave unparametrized"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    parametrize.remove_parametrizations(layer, "weight")
    assert isinstance(layer.weight, nn.Parameter) and layer.weight.tolist() == [[1, 1], [1, 1]]


def test_buffers():
    bn = nn.BatchNorm1d(2)
    parametrize.register_parametrization(bn, "running_mean", Double())
    assert "running_mean" not in bn._buffers and bn.parametrizations.running_mean.original.tolist() == [0, 0]
    parametrize.remove_parametrizations(bn, "running_mean")
    assert "running_mean" in bn._buffers


def test_values_are_cached_in_a_context():
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Symmetric())
    Symmetric.calls = 0
    with parametrize.cached():
        with parametrize.cached():
            first = layer.weight
        assert layer.weight is first and Symmetric.calls == 1
    assert layer.weight is not first and Symmetric.calls == 2


def test_copies_and_pickles():
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Symmetric())
    replica = copy.deepcopy(layer)
    replica.weight = torch.zeros(2, 2)
    assert not torch.equal(replica.weight, layer.weight)
    parametrize.remove_parametrizations(replica, "weight")
    assert parametrize.is_parametrized(layer) and torch.equal(layer.weight, layer.weight.T)
    with pytest.raises(RuntimeError, match=r"only supported through state_dict\(\)"):
        pickle.dumps(layer)


def test_transfer():
    source = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Symmetric())
    target = parametrize.transfer_parametrizations_and_params(source, nn.Linear(2, 2))
    assert torch.equal(source.weight, target.weight)
    assert target.parametrizations.weight.original is source.parametrizations.weight.original


@pytest.mark.parametrize(
    ("parametrization", "match"),
    [
        (Returns(3), "A parametrization must return a tensor. Got int."),
        (Returns(torch.zeros(2, 2, dtype=torch.float64)), "may not change the dtype of the tensor, unless `unsafe`"),
        (Returns(torch.zeros(3)), "may not change the shape of the tensor, unless `unsafe` flag"),
        (Returns(torch.zeros(2, 2), 3), r"must return a Tensor or a Sequence of tensors .* Got int"),
        (Returns(torch.zeros(2, 2), (3,)), "Got element 0 of the sequence with type int."),
        (Returns(torch.zeros(2, 2), torch.zeros(2, 2).double()), "it may not change the dtype"),
    ],
)
def test_misfits_are_refused(parametrization, match):
    layer = nn.Linear(2, 2)
    with pytest.raises(ValueError, match=match):
        parametrize.register_parametrization(layer, "weight", parametrization)
    assert not parametrize.is_parametrized(layer)


def test_further_misfits_are_refused():
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Symmetric())
    with pytest.raises(ValueError, match="may not change the shape of the tensor, unless the `unsafe` flag is enabled"):
        parametrize.register_parametrization(layer, "weight", Returns(torch.zeros(3)))
    with pytest.raises(ValueError, match="does not have a parameter, a buffer, or a parametrized element"):
        parametrize.register_parametrization(layer, "foo", Symmetric())
    parametrize.register_parametrization(layer, "weight", Returns(torch.zeros(3)), unsafe=True)
    assert layer.weight.shape == (3,)


def test_weight_norm():
    layer = nn.Linear(2, 2)
    layer.weight.data = torch.tensor([[3.0, 4.0], [0.0, 2.0]])
    weight_norm(layer)
    assert layer.parametrizations.weight.original0.tolist() == [[5], [2]]
    torch.testing.assert_close(layer.weight, torch.tensor([[3.0, 4.0], [0.0, 2.0]]))
    layer.parametrizations.weight.original0.data.fill_(10)
    torch.testing.assert_close(layer.weight, torch.tensor([[6.0, 8.0], [0.0, 10.0]]))
    one = weight_norm(nn.Conv1d(2, 3, 4), dim=None)
    assert one.parametrizations.weight.original0.shape == ()
    assert weight_norm(nn.Conv1d(2, 3, 4), dim=1).parametrizations.weight.original0.shape == (1, 2, 1)


def test_weight_norm_loads_older_checkpoints():
    layer = weight_norm(nn.Linear(2, 1))
    old = {"bias": torch.zeros(1), "weight_g": torch.tensor([[2.0]]), "weight_v": torch.tensor([[0.0, 1.0]])}
    layer.load_state_dict(old)
    assert layer.weight.tolist() == [[0, 2]]


def test_spectral_norm_is_pytorchs():
    torch.manual_seed(0)
    layer = spectral_norm(nn.Linear(3, 4))
    assert list(layer.state_dict()) == [
        "bias",
        "parametrizations.weight.original",
        "parametrizations.weight.0._u",
        "parametrizations.weight.0._v",
    ]
    expected = torch.tensor(
        [
            [-0.0058, 0.4186, -0.6422],
            [-0.5742, -0.3005, 0.2092],
            [-0.0155, 0.6186, -0.0692],
            [0.2065, -0.2358, -0.1534],
        ]
    )
    torch.testing.assert_close(layer.weight, expected, rtol=0, atol=1e-4)
    layer(torch.ones(1, 3)).sum().backward()
    layer.eval()
    assert torch.equal(layer.weight, layer.weight)
    u = layer.parametrizations.weight[0]._u.clone()
    layer.weight
    assert torch.equal(layer.parametrizations.weight[0]._u, u)
    assert spectral_norm(nn.ConvTranspose1d(2, 3, 4)).parametrizations.weight[0]._u.shape == (3,)


@pytest.mark.parametrize(
    ("kwargs", "error", "match"),
    [
        ({"n_power_iterations": 0}, ValueError, "Expected n_power_iterations to be positive"),
        ({"name": "q"}, ValueError, "has no parameter or buffer with name 'q'"),
        ({"dim": 5}, IndexError, r"expected to be in range of \[-2, 1\] but got 5"),
    ],
)
def test_spectral_norm_misuse(kwargs, error, match):
    with pytest.raises(error, match=match):
        spectral_norm(nn.Linear(3, 4), **kwargs)
