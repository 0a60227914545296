"""Layers: values of their parameters for a seed, outputs, printing and checks."""

import math

import ptr as torch
import ptr.nn.functional as F
import pytest
from ptr import nn
from ptr.testing import assert_close as close


def test_linear_draws_pytorchs_values():
    torch.manual_seed(0)
    m = nn.Linear(3, 2)
    close(
        m.weight.detach(),
        torch.tensor(
            [
                [-0.004322517663240433, 0.3097158372402191, -0.4751853346824646],
                [-0.4248946011066437, -0.2223689705133438, 0.15482072532176971],
            ]
        ),
        rtol=0,
        atol=0,
    )
    close(m.bias.detach(), torch.tensor([-0.011439144611358643, 0.45777493715286255]), rtol=0, atol=0)


def test_conv2d_draws_pytorchs_values():
    torch.manual_seed(0)
    m = nn.Conv2d(2, 2, 2, groups=2)
    expected = [
        -0.003743410110473633,
        0.26822179555892944,
        -0.4115225672721863,
        -0.3679695129394531,
        -0.19257718324661255,
        0.13407868146896362,
        -0.009906589984893799,
        0.39644473791122437,
    ]
    close(m.weight.detach().flatten(), torch.tensor(expected), rtol=0, atol=0)
    close(m.bias.detach(), torch.tensor([-0.04437202215194702, 0.1323062777519226]), rtol=0, atol=0)


def test_linear_follows_replaced_parameters():
    m = nn.Linear(2, 2, bias=False)
    m.weight = nn.Parameter(torch.eye(2))
    x = torch.tensor([[1.0, 2.0]])
    assert m(x).tolist() == [[1.0, 2.0]]
    del m.weight
    m.weight = torch.eye(2) * 3  # a plain tensor, as parametrizations leave it
    assert m(x).tolist() == [[3.0, 6.0]]


@pytest.mark.parametrize(
    ("padding", "size"), [(0, (4, 4)), (1, (6, 6)), ((1, 2), (6, 8)), ("same", (6, 6)), ("valid", (4, 4))]
)
def test_conv2d_paddings(padding, size):
    x = torch.randn(1, 2, 6, 6)
    assert nn.Conv2d(2, 4, 3, padding=padding)(x).shape == (1, 4, *size)


@pytest.mark.parametrize(
    ("kwargs", "match"),
    [
        ({"groups": 3}, "in_channels must be divisible by groups"),
        ({"groups": 2, "out_channels": 3}, "out_channels must be divisible by groups"),
        ({"groups": 0}, "groups must be a positive integer"),
        ({"padding": "x"}, "Invalid padding string"),
        ({"padding": "same", "stride": 2}, "not supported for strided convolutions"),
        ({"padding_mode": "x"}, "padding_mode must be one of"),
    ],
)
def test_conv2d_misuse(kwargs, match):
    with pytest.raises(ValueError, match=match):
        nn.Conv2d(**{"in_channels": 2, "out_channels": 2, "kernel_size": 3, **kwargs})


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: nn.Linear(2, 3, bias=False), "Linear(in_features=2, out_features=3, bias=False)"),
        (lambda: nn.Bilinear(2, 3, 4), "Bilinear(in1_features=2, in2_features=3, out_features=4, bias=True)"),
        (
            lambda: nn.Conv2d(
                3, 6, (3, 1), stride=2, padding=(1, 0), dilation=2, groups=3, bias=False, padding_mode="circular"
            ),
            "Conv2d(3, 6, kernel_size=(3, 1), stride=(2, 2), padding=(1, 0), dilation=(2, 2), groups=3, bias=False, "
            "padding_mode=circular)",
        ),
        (lambda: nn.Conv2d(3, 3, 3, padding="same"), "Conv2d(3, 3, kernel_size=(3, 3), stride=(1, 1), padding=same)"),
        (lambda: nn.MaxPool2d(2), "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)"),
        (lambda: nn.Dropout(0.3), "Dropout(p=0.3, inplace=False)"),
        (lambda: nn.Softmax(1), "Softmax(dim=1)"),
        (lambda: nn.LogSoftmax(), "LogSoftmax(dim=None)"),
        (lambda: nn.Unflatten(1, (2, 3)), "Unflatten(dim=1, unflattened_size=(2, 3))"),
        (lambda: nn.CrossEntropyLoss(), "CrossEntropyLoss()"),
        (lambda: nn.Identity(1, a=2), "Identity()"),
    ],
)
def test_repr(make, text):
    assert repr(make()) == text


def test_flatten_and_unflatten():
    x = torch.zeros(2, 3, 4)
    assert nn.Flatten()(x).shape == (2, 12) and nn.Flatten(0, 1)(x).shape == (6, 4)
    assert nn.Unflatten(1, (3, 1))(x).shape == (2, 3, 1, 4)
    for wrong in (3, ("a",)):
        with pytest.raises(TypeError, match="unflattened_size must be"):
            nn.Unflatten(1, wrong)


def test_max_pool2d():
    x = torch.arange(16.0).reshape(1, 1, 4, 4)
    assert nn.MaxPool2d(2)(x).flatten().tolist() == [5.0, 7.0, 13.0, 15.0]
    out, where = nn.MaxPool2d(2, return_indices=True)(x)
    assert where.flatten().tolist() == [5, 7, 13, 15] and out.shape == (1, 1, 2, 2)
    assert nn.MaxPool2d(3, stride=2, ceil_mode=True)(x).shape == (1, 1, 2, 2)


def test_dropout():
    x = torch.ones(1000)
    torch.manual_seed(0)
    y = nn.Dropout(0.25)(x)
    assert {round(v, 4) for v in y.tolist()} == {0.0, 1.3333} and 200 < int((y == 0).sum()) < 300
    assert nn.Dropout(0.25).eval()(x).tolist() == x.tolist()
    for wrong in (-0.1, 1.1):
        with pytest.raises(ValueError, match="between 0 and 1"):
            nn.Dropout(wrong)
        with pytest.raises(ValueError, match="between 0 and 1"):
            F.dropout(x, wrong)


def test_relu_in_place():
    x = torch.tensor([-1.0, 2.0])
    assert nn.ReLU()(x).tolist() == [0.0, 2.0] and x.tolist() == [-1.0, 2.0]
    assert nn.ReLU(inplace=True)(x) is x and x.tolist() == [0.0, 2.0]


def test_softmax_and_losses():
    x = torch.zeros(2, 4)
    close(nn.Softmax(1)(x), torch.full((2, 4), 0.25))
    close(nn.LogSoftmax(1)(x), torch.full((2, 4), -math.log(4)))
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        nn.Softmax()(x)
    target = torch.tensor([1, 3])
    close(nn.CrossEntropyLoss()(x, target), torch.tensor(math.log(4)))
    close(nn.CrossEntropyLoss(reduction="sum")(x, target), torch.tensor(2 * math.log(4)))
    close(nn.NLLLoss(reduction="none")(nn.LogSoftmax(1)(x), target), torch.full((2,), math.log(4)))
    close(nn.CrossEntropyLoss(ignore_index=3, reduction="sum")(x, target), torch.tensor(math.log(4)))
    with pytest.raises(ValueError, match="not a valid value for reduction"):
        nn.NLLLoss(reduction="x")(x, target)
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert nn.NLLLoss(size_average=False).reduction == "sum"
    with pytest.warns(UserWarning, match="reduction='none'"):
        assert nn.NLLLoss(reduce=False).reduction == "none"


def test_gradients_of_class_weights_are_refused():
    x, weight = torch.randn(2, 3, requires_grad=True), torch.ones(3, requires_grad=True)
    loss = nn.functional.nll_loss(x, torch.tensor([0, 1]), weight=weight)
    with pytest.raises(NotImplementedError, match="derivative for 'weight' is not implemented"):
        loss.backward()
    nn.functional.nll_loss(x, torch.tensor([0, 1]), weight=weight.detach()).backward()
