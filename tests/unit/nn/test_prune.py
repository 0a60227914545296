"""Pruning: masks, hooks, combinations, removal; values are PyTorch's."""

from __future__ import annotations

import ptr as torch
import pytest
from ptr import nn
from ptr.nn.utils import prune


def linear(values):
    layer = nn.Linear(len(values[0]), len(values), bias=False)
    layer.weight.data = torch.tensor(values)
    return layer


def test_a_pruned_parameter():
    layer = linear([[1.0, -4.0], [3.0, 2.0]])
    weight = layer.weight
    assert prune.l1_unstructured(layer, "weight", amount=0.5) is layer
    assert list(layer.state_dict()) == ["weight_orig", "weight_mask"] and layer.weight_orig is weight
    assert layer.weight_mask.tolist() == [[0, 1], [1, 0]] and type(layer.weight) is torch.Tensor
    layer(torch.ones(1, 2)).sum().backward()
    assert weight.grad.tolist() == [[0, 1], [1, 0]]
    weight.data.fill_(5)
    assert layer(torch.ones(1, 2)).tolist() == [[5, 5]]
    assert prune.is_pruned(nn.Sequential(layer)) and not prune.is_pruned(nn.Linear(1, 1))
    prune.remove(layer, "weight")
    assert layer.weight is weight and weight.tolist() == [[0, 5], [5, 0]] and not prune.is_pruned(layer)
    with pytest.raises(ValueError, match="Parameter 'weight' of module .* has to be pruned before"):
        prune.remove(layer, "weight")


def test_pruning_further():
    layer = linear([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [0.1, 9.0, 8.0]])
    prune.l1_unstructured(layer, "weight", amount=2)
    # Of what is left.
    prune.l1_unstructured(layer, "weight", amount=1)
    assert layer.weight_mask.tolist() == [[0, 0, 1], [1, 1, 1], [0, 1, 1]]
    prune.ln_structured(layer, "weight", amount=1, n=2, dim=0)
    assert layer.weight_mask.tolist() == [[0, 0, 0], [1, 1, 1], [0, 1, 1]]
    prune.ln_structured(layer, "weight", amount=1, n=1, dim=-2)
    assert layer.weight_mask.tolist() == [[0, 0, 0], [0, 0, 0], [0, 1, 1]]
    (hook,) = layer._forward_pre_hooks.values()
    assert isinstance(hook, prune.PruningContainer) and len(hook) == 4 and isinstance(hook[0], prune.L1Unstructured)
    with pytest.raises(ValueError, match="amount=7 should be smaller than the number of parameters to prune=2"):
        prune.l1_unstructured(layer, "weight", amount=7)
    assert len(hook) == 4 and layer(torch.ones(1, 3)).tolist() == [[0, 0, 17]]


def test_random_choices():
    torch.manual_seed(0)
    assert prune.random_unstructured(nn.Linear(4, 3), "weight", amount=0.5).weight_mask.sum() == 6
    mask = prune.random_structured(nn.Linear(4, 3), "weight", amount=0.5, dim=1).weight_mask
    assert sorted(mask.sum(0).tolist()) == [0, 0, 3, 3]
    assert prune.random_structured(nn.Linear(4, 3), "weight", amount=0, dim=1).weight_mask.sum() == 12
    torch.manual_seed(7)
    layer = prune.random_unstructured(nn.Linear(3, 2), "weight", amount=3)
    assert layer.weight_mask.tolist() == [[1, 0, 0], [0, 1, 1]]


def test_several_parameters_as_one():
    a, b = linear([[1.0, -8.0]]), linear([[2.0, 3.0], [4.0, 5.0]])
    prune.global_unstructured([(a, "weight"), (b, "weight")], pruning_method=prune.L1Unstructured, amount=3)
    assert a.weight_mask.tolist() == [[0, 1]] and b.weight_mask.tolist() == [[0, 0], [1, 1]]
    prune.global_unstructured(
        [(a, "weight"), (b, "weight")],
        pruning_method=prune.L1Unstructured,
        importance_scores={(a, "weight"): torch.zeros(1, 2)},
        amount=1,
    )
    assert a.weight_mask.tolist() == [[0, 0]] and b.weight_mask.tolist() == [[0, 0], [1, 1]]
    with pytest.raises(TypeError, match='Only "unstructured" PRUNING_TYPE supported'):
        prune.global_unstructured([(a, "weight")], pruning_method=prune.LnStructured, amount=1, n=2)


def test_masks_and_tensors():
    layer = prune.custom_from_mask(linear([[1.0, 2.0]]), "weight", torch.tensor([[1, 0]]))
    assert layer.weight.tolist() == [[1, 0]]
    assert prune.identity(nn.Linear(2, 2), "bias").bias_mask.tolist() == [1, 1]
    assert prune.L1Unstructured(2).prune(torch.tensor([1.0, -3, 2, 0.5])).tolist() == [0, -3, 2, 0]
    scores = torch.tensor([4.0, 3, 2, 1])
    assert prune.L1Unstructured(2).prune(torch.ones(4), importance_scores=scores).tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda m: prune.l1_unstructured(m, "weight", 1.5), ValueError, r"amount=1.5 should either be a float"),
        (lambda m: prune.l1_unstructured(m, "weight", -1), ValueError, "non-negative integer"),
        (lambda m: prune.l1_unstructured(m, "weight", "x"), TypeError, "Invalid type for amount: x"),
        (lambda m: prune.l1_unstructured(m, "weight", 20), ValueError, "number of parameters to prune=12"),
        (lambda m: prune.ln_structured(m, "bias", 1, 2, 0), ValueError, "only be applied to multidimensional"),
        (lambda m: prune.ln_structured(m, "weight", 1, 2, 3), IndexError, "Invalid index 3 for tensor of size"),
        (lambda m: prune.custom_from_mask(m, "weight", torch.ones(2)), AssertionError, "must match self.mask shape"),
        (
            lambda m: prune.l1_unstructured(m, "weight", 1, importance_scores=torch.ones(3)),
            AssertionError,
            "importance_scores should have the same shape",
        ),
    ],
)
def test_misuse_leaves_the_module_as_it_was(call, error, match):
    layer = nn.Linear(4, 3)
    with pytest.raises(error, match=match):
        call(layer)
    assert list(layer.state_dict()) == ["weight", "bias"] and not prune.is_pruned(layer)


def test_containers_refuse_others():
    method = prune.L1Unstructured(1)
    method._tensor_name = "weight"
    container = prune.PruningContainer(method)
    with pytest.raises(TypeError, match="is not a BasePruningMethod subclass"):
        container.add_pruning_method(3)
    other = prune.L1Unstructured(1)
    other._tensor_name = "bias"
    with pytest.raises(ValueError, match="acting on the parameter named 'weight'"):
        container.add_pruning_method(other)
