"""nn.init: streams for a seed, effects and checks."""

import math

import ptr as torch
import pytest
from ptr import nn
from ptr.testing import assert_close as close


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("xavier_uniform_", (), [0.56444, -0.48351, -0.21236, 0.51417, -1.03129, 0.65696]),
        ("xavier_normal_", (), [0.41828, 0.16882, 0.03901, 0.39296, -0.28581, -0.10507]),
        ("kaiming_normal_", (), [0.66135, 0.26692, 0.06168, 0.62132, -0.45191, -0.16613]),
        ("trunc_normal_", (), [0.66135, 0.26692, 0.06168, 0.62132, -0.45191, -0.16613]),
        ("trunc_normal_", (0, 1, 1.5, 3), [1.76519, 1.81565, 1.52896, 2.18248, 1.54392, 1.75231]),
        ("sparse_", (0.5,), [0.00661, 0.0, 0.0, 0.0, 0.0, -0.00166]),
    ],
)
def test_streams_are_pytorchs(name, args, expected):
    if name == "trunc_normal_" and not hasattr(torch.Tensor, "log_"):
        pytest.skip("rejection sampling needs log_")
    func = getattr(nn.init, name)
    torch.manual_seed(1)
    param = nn.Parameter(torch.empty(3, 2))
    assert func(param, *args) is param and param.grad_fn is None
    close(param.detach().flatten(), torch.tensor(expected), rtol=0, atol=6e-6)
    # An own generator gives the same values (the zeros of sparse_ come from the global one).
    if name != "sparse_":
        again = func(torch.empty(3, 2), *args, generator=torch.Generator().manual_seed(1))
        close(again, param.detach(), rtol=0, atol=0)


def test_fills():
    t = torch.empty(2, 2)
    assert nn.init.ones_(t).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert nn.init.zeros_(t).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert nn.init.constant_(t, 0.5).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert nn.init.eye_(nn.Parameter(t)).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert nn.init.dirac_(torch.empty(2, 2, 3)).tolist() == [[[0, 1, 0], [0, 0, 0]], [[0, 0, 0], [0, 1, 0]]]


def test_gains_and_fans():
    gain = nn.init.calculate_gain
    assert gain("linear") == gain("conv2d") == gain("sigmoid") == 1
    assert gain("tanh") == 5 / 3 and gain("relu") == math.sqrt(2) and gain("selu") == 0.75
    assert gain("leaky_relu", 1) == 1 and gain("leaky_relu") == math.sqrt(2 / (1 + 0.01**2))
    assert nn.init._calculate_fan_in_and_fan_out(torch.empty(2, 3, 4, 5)) == (60, 40)


@pytest.mark.parametrize(
    "call",
    [
        lambda: nn.init.calculate_gain("x"),
        lambda: nn.init.calculate_gain("leaky_relu", True),
        lambda: nn.init.kaiming_uniform_(torch.empty(2, 2), mode="x"),
        lambda: nn.init.xavier_normal_(torch.empty(3)),
        lambda: nn.init.eye_(torch.empty(3)),
        lambda: nn.init.dirac_(torch.empty(3, 2, 2), 2),
        lambda: nn.init.sparse_(torch.empty(3), 0.5),
        lambda: nn.init.orthogonal_(torch.empty(3)),
    ],
)
def test_misuse(call):
    with pytest.raises(ValueError):
        call()


def test_empty_and_deprecated():
    with pytest.warns(UserWarning, match="zero-element"):
        nn.init.kaiming_uniform_(torch.empty(0, 3))
    with pytest.warns(FutureWarning, match="in favor of `nn.init.constant_`"):
        nn.init.constant(torch.empty(2), 1.0)
