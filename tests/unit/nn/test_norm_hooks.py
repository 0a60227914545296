"""The older weight and spectral normalization, by hooks; values are PyTorch's."""

from __future__ import annotations

import ptr as torch
import pytest
from ptr import nn


def test_spectral_norm():
    torch.manual_seed(0)
    layer = nn.utils.spectral_norm(nn.Linear(3, 4))
    assert list(layer.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    assert layer.state_dict()._metadata[""] == {"version": 1, "spectral_norm": {"weight.version": 1}}
    x = torch.ones(1, 3)
    for _ in range(30):
        layer(x)
    assert torch.mv(layer.weight, layer.weight_v).norm().item() == pytest.approx(1, abs=1e-5)
    layer.eval()
    expected = layer(x)
    expected.sum().backward()
    assert layer.weight_orig.grad.shape == (4, 3)
    with pytest.raises(RuntimeError, match="Cannot register two spectral_norm hooks on the same parameter weight"):
        nn.utils.spectral_norm(layer)
    nn.utils.remove_spectral_norm(layer)
    torch.testing.assert_close(layer(x), expected)
    assert set(layer.state_dict()) == {"bias", "weight"} and layer.state_dict()._metadata[""] == {"version": 1}
    with pytest.raises(ValueError, match="spectral_norm of 'weight' not found in Linear"):
        nn.utils.remove_spectral_norm(layer)


def test_weight_norm():
    layer = nn.Linear(2, 2, bias=False)
    layer.weight.data = torch.tensor([[3.0, 4.0], [0.0, 2.0]])
    with pytest.warns(FutureWarning, match=r"in favor of `torch.nn.utils.parametrizations.weight_norm`"):
        nn.utils.weight_norm(layer)
    assert layer.weight_g.tolist() == [[5], [2]] and list(layer.state_dict()) == ["weight_g", "weight_v"]
    layer.weight_g.data.fill_(10)
    assert layer(torch.ones(1, 2)).tolist() == [[14, 10]]
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="Cannot register two weight_norm hooks"):
        nn.utils.weight_norm(layer)
    nn.utils.remove_weight_norm(layer)
    assert layer.weight.tolist() == [[6, 8], [0, 10]] and isinstance(layer.weight, nn.Parameter)
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found in Linear"):
        nn.utils.remove_weight_norm(layer)


def test_names_mean_functions_whatever_is_imported_first():
    import importlib

    for name in ("weight_norm", "spectral_norm"):
        module = importlib.import_module(f"ptr.nn.utils.{name}")
        assert getattr(nn.utils, name) is getattr(module, name)
