"""Sequential, lists and dictionaries of modules and parameters."""

import ptr as torch
import pytest
from ptr import nn


def kinds(modules):
    return [type(m).__name__ for m in modules]


def test_sequential_edits():
    m = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    m.append(nn.Identity()).insert(0, nn.Flatten()).extend([nn.Softmax(1)])
    assert kinds(m) == ["Flatten", "Linear", "ReLU", "Identity", "Softmax"]
    del m[1]
    assert kinds(m) == ["Flatten", "ReLU", "Identity", "Softmax"] and list(m._modules) == ["0", "1", "2", "3"]
    assert type(m.pop(-1)).__name__ == "Softmax"
    m[0] = nn.Dropout()
    assert kinds(m[:2]) == ["Dropout", "ReLU"] and len(m) == 3
    del m[1:]
    assert kinds(m * 2) == kinds(2 * m) == kinds(m + m) == ["Dropout", "Dropout"]
    m *= 3
    assert len(m) == 3
    m += nn.Sequential(nn.ReLU())
    assert kinds(m) == ["Dropout"] * 3 + ["ReLU"]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda m: m[5], IndexError),
        (lambda m: m + 3, ValueError),
        (lambda m: m * 0, ValueError),
        (lambda m: m * "x", TypeError),
        (lambda m: m.insert(9, nn.ReLU()), IndexError),
        (lambda m: m.insert(0, 3), AssertionError),
    ],
)
def test_sequential_misuse(call, error):
    with pytest.raises(error):
        call(nn.Sequential(nn.ReLU()))


def test_module_list():
    m = nn.ModuleList([nn.Linear(1, 1)])
    m.append(nn.ReLU())
    m.extend([nn.ReLU()])
    m.insert(1, nn.Flatten())
    assert kinds(m) == ["Linear", "Flatten", "ReLU", "ReLU"]
    assert repr(m[1:]) == "ModuleList(\n  (0): Flatten(start_dim=1, end_dim=-1)\n  (1-2): 2 x ReLU()\n)"
    assert repr(nn.ModuleList()) == "ModuleList()"
    del m[0]
    assert list(m._modules) == ["0", "1", "2"] and kinds([*m, nn.Identity()])[-1] == "Identity"
    with pytest.raises(TypeError, match="should be called with an iterable"):
        m.extend(3)
    with pytest.raises(IndexError):
        m[9]


def test_module_dict():
    m = nn.ModuleDict([["a", nn.ReLU()]])
    m["b"] = nn.Flatten()
    m.update({"c": nn.Identity()})
    assert list(m) == list(m.keys()) == ["a", "b", "c"] and "a" in m
    assert type(m.pop("a")) is nn.ReLU and len(m) == 2
    for wrong, error in ((3, TypeError), ([1], TypeError), ([[1, 2, 3]], ValueError)):
        with pytest.raises(error):
            m.update(wrong)
    m.clear()
    assert len(m) == 0


def test_parameter_list():
    m = nn.ParameterList([torch.ones(2)])
    m.append(torch.zeros(1))
    m += ["text"]
    assert [n for n, _ in m.named_parameters()] == ["0", "1"] and m[2] == "text" and len(m[1:]) == 2
    assert repr(m) == (
        "ParameterList(\n    (0): Parameter containing: [ptr.float32 of size 2]\n"
        "    (1): Parameter containing: [ptr.float32 of size 1]\n    (2): Object of type: str\n)"
    )
    with pytest.raises(RuntimeError, match="should not be called"):
        m()
    with pytest.raises(TypeError):
        m.extend(torch.ones(2))


def test_parameter_dict():
    m = nn.ParameterDict({"b": torch.ones(2), "a": torch.zeros(1)})
    assert list(m) == ["a", "b"]
    m["c"] = 3
    assert m.get("zz", 5) == 5 and m.setdefault("d", 4) == 4
    assert list(m | nn.ParameterDict({"z": torch.ones(1)})) == ["a", "b", "c", "d", "z"]
    assert m.popitem() == ("d", 4) and m.pop("c") == 3
    assert [n for n, _ in m.named_parameters()] == ["a", "b"]
    assert "Parameter containing: [torch.FloatTensor of size 2]" in repr(m)
    with pytest.raises(AttributeError):
        m.pop("zz")
    with pytest.raises(TypeError, match="not a string"):
        m[3]
